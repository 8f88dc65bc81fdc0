"""The task of a masked language model: running text to a vocabulary, blocks with hidden tokens and an objective."""

from plainformer.data.masking import MaskedLoader, Masking, in_order
from plainformer.errors import InputError
from plainformer.models.encoder import MaskedLanguageModel
from plainformer.objective import MaskedObjective
from plainformer.recipe import MaskedRecipe
from plainformer.runs.task import Console, PreparedTask, Tokenizers
from plainformer.runs.text import TextTask, dev_rows


class MaskedTask(TextTask):
    """Hidden tokens are predicted from all the others."""

    recipe: MaskedRecipe
    model = MaskedLanguageModel
    mask = "<mask>"

    def prepare(self, tokenizers: Tokenizers, devices: int, console: Console) -> PreparedTask:
        recipe, seed = self.recipe, self.recipe.train.seed
        config = self.config(tokenizers)
        masking = Masking.of(tokenizers.source, share=recipe.mask.share, whole_words=recipe.mask.whole_words)
        tokens = self.encode(tokenizers.source, console)
        blocks = self.blocks(tokens, config.context, devices, console)
        self.check_test(tokenizers.source, console)
        (dev, _), rows = self.dev_part(tokens, tokenizers.source, console), dev_rows(config.context, devices)
        if masking.special[dev].all():
            raise InputError("the held-out text has no token to hide", fix="give more text, or another vocabulary")
        return PreparedTask(
            config=config,
            objective=MaskedObjective(recipe.loss.label_smoothing),
            batches=MaskedLoader(blocks, masking, seed=seed).batches,
            dev_batches=lambda: in_order(dev, masking, context=config.context, rows=rows, seed=seed),
            content=lambda model: self.content(model, tokenizers, {}),
            initial=self.pretrained.model if self.pretrained else None,
            unit="hidden tokens",
        )
