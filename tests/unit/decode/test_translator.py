"""What a translator refuses, since it knows its vocabulary."""

import jax
import pytest

from plainformer.decode import GenerationSettings
from plainformer.decode.translator import Translator
from plainformer.errors import InputError
from plainformer.folder import ModelFolder
from plainformer.models import Transformer, TransformerConfig
from plainformer.tokenizer import train_word

CONFIG = TransformerConfig(
    source_vocab=11, target_vocab=13, d_model=6, d_ff=8, heads=2, encoder_layers=1, decoder_layers=1, tie="none",
    pad_vocab_to=1,
)  # fmt: skip


@pytest.mark.parametrize("token", [13, 1000])
def test_a_first_token_outside_the_vocabulary_is_one_line(token: int) -> None:
    """In the model's own settings, and in a call."""
    model = Transformer(CONFIG, key=jax.random.key(0))
    source = train_word(["one two three four five six seven"], 11)
    target = train_word(["eins zwei drei vier fünf sechs sieben acht neun"], 13)
    said = f"generation.forced_bos: forced_bos is {token}, and the vocabulary has 13 tokens; give an id from 0 to 12"
    loaded = Translator.of(ModelFolder(model, source, target, {"forced_bos": token}))
    assert len(loaded.score(["one two"], ["eins"])) == 1  # which needs no search
    with pytest.raises(InputError) as caught:
        loaded.translate(["one two"])
    assert str(caught.value) == f"{said}, or none"
    translator = Translator(model, source, target, GenerationSettings(beam_size=1, max_margin=1))
    with pytest.raises(InputError) as caught:
        translator.translate(["one two"], forced_bos=token)
    assert str(caught.value) == f"{said}, or none"
    assert len(translator.translate(["one two"], forced_bos=12)) == 1
