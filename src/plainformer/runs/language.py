"""The task of a language model: running text to a vocabulary, blocks of tokens and an objective."""

from plainformer.data.block import in_order
from plainformer.decode.settings import SamplingSettings
from plainformer.models.language_model import LanguageModel
from plainformer.objective import LanguageObjective
from plainformer.recipe import LanguageRecipe
from plainformer.runs.samples import continuations
from plainformer.runs.task import Console, PreparedTask, Tokenizers
from plainformer.runs.text import TextTask, dev_rows


class LanguageTask(TextTask):
    """Every token is predicted from those before it."""

    recipe: LanguageRecipe
    model = LanguageModel

    def prepare(self, tokenizers: Tokenizers, devices: int, console: Console) -> PreparedTask:
        recipe = self.recipe
        config = self.config(tokenizers)
        tokens = self.encode(tokenizers.source, console)
        loader = self.blocks(tokens, config.context, devices, console)
        self.check_test(tokenizers.source, console)
        (dev, counts), rows = self.dev_part(tokens, tokenizers.source, console), dev_rows(config.context, devices)
        settings = SamplingSettings(**recipe.generate.model_dump())
        return PreparedTask(
            config=config,
            objective=LanguageObjective(recipe.loss.label_smoothing),
            batches=loader.batches,
            dev_batches=lambda: in_order(dev, context=config.context, rows=rows),
            content=lambda model: self.content(model, tokenizers, recipe.generate.model_dump()),
            describe=lambda nll: {"bits_per_byte": counts.bits_per_byte(nll)},
            samples=continuations(dev, recipe.train.samples, tokenizers.source, settings)
            if recipe.train.samples
            else None,
            initial=self.pretrained.model if self.pretrained else None,
            unit="tokens",
        )
