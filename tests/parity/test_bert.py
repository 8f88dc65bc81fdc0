"""BERT of the Hugging Face library: the same logits, states and gradients from the same folder, there and back."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from side_by_side import CLOSE_GRADIENT, SIZES, close, drawn, read, valid_of
from transformers import BertConfig, BertForMaskedLM, BertForPreTraining, BertForSequenceClassification, BertModel

from plainformer.errors import InputError
from plainformer.folder import load_folder, named_parameters
from plainformer.interop.bert import BERT
from plainformer.interop.export import Export, export_model
from plainformer.interop.weight_map import left_out, pairs_of
from plainformer.models import EncoderConfig
from plainformer.nn.trace import traced
from plainformer.tokenizer.word import train_word

# No two sizes of one configuration are equal.
CONFIGS: dict[str, dict[str, Any]] = {
    "as it was published": {},
    "untied, relu": {"tie_word_embeddings": False, "hidden_act": "relu"},
    "one head, one layer, tanh gelu": {"num_attention_heads": 1, "num_hidden_layers": 1, "hidden_act": "gelu_new"},
    "long, five heads, three types": {
        "max_position_embeddings": 301,
        "hidden_size": 20,
        "num_attention_heads": 5,
        "type_vocab_size": 3,
    },
    "four layers, odd heads of odd width, another epsilon": {
        "hidden_size": 35,
        "num_attention_heads": 7,
        "num_hidden_layers": 4,
        "layer_norm_eps": 1e-3,
    },
    "silu, untied, one type": {
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "type_vocab_size": 1,
        "hidden_size": 14,
        "num_attention_heads": 2,
    },
}
LABELS = {"id2label": {0: "bad", 1: "so-so", 2: "good"}}


def made(kind: Any, folder: Path, **settings: Any) -> tuple[Any, Any]:
    """A model of theirs with weights that make a difference, its folder, and ours from that."""
    theirs = drawn(kind(BertConfig(**SIZES | settings)), seed=3)
    theirs.save_pretrained(folder)
    return theirs, read(BERT, folder)


def inputs(theirs: Any, length: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ids, of which none is their padding, which are real, and types; one text has all positions, one a single one."""
    config, random = theirs.config, np.random.default_rng(5)
    length = int(length or config.max_position_embeddings)
    ids = random.integers(1, config.vocab_size, (3, length))
    return ids, valid_of(length), random.integers(0, config.type_vocab_size, ids.shape)


def asked(theirs: Any, ids: np.ndarray, valid: np.ndarray, types: np.ndarray, **more: Any) -> Any:
    tensors = torch.tensor(ids), torch.tensor(valid).long(), torch.tensor(types)
    return theirs(tensors[0], attention_mask=tensors[1], token_type_ids=tensors[2], **more)


@pytest.mark.parametrize("name", CONFIGS)
def test_logits_states_and_gradients_are_theirs(name: str, tmp_path: Path) -> None:
    theirs, ours = made(BertForMaskedLM, tmp_path, **CONFIGS[name])
    ids, valid, types = inputs(theirs)
    with torch.no_grad():
        said = asked(theirs, ids, valid, types, output_hidden_states=True)
    logits, seen = jax.jit(traced(ours))(*map(jnp.asarray, (ids, valid, types)))
    assert len(said.hidden_states) == len(ours.encoder.layers) + 1
    for layer, state in enumerate(said.hidden_states[1:]):
        close(np.asarray(seen[f"{layer}/output"])[valid], state.numpy()[valid], f"layer {layer}")
    assert said.logits.abs().max() > 1.0, "the logits are too small to differ"
    close(np.asarray(logits)[valid], said.logits.numpy()[valid], "logits")
    assert_equal_gradients(theirs, ours, ids, valid, types)
    assert BERT.differences(ours.config) == []
    assert BERT.config_from(BERT.config_to(ours.config), "again") == ours.config


def assert_equal_gradients(theirs: Any, ours: Any, ids: np.ndarray, valid: np.ndarray, types: np.ndarray) -> None:
    """Of the mean cross-entropy of other tokens at the real places, in every weight."""
    wanted = np.random.default_rng(7).integers(1, theirs.config.vocab_size, ids.shape)
    logits = asked(theirs, ids, valid, types).logits[torch.tensor(valid)]
    torch.nn.functional.cross_entropy(logits, torch.tensor(wanted[valid])).backward()

    def loss(model: Any) -> jax.Array:
        logprobs = jax.nn.log_softmax(model(*map(jnp.asarray, (ids, valid, types))))
        each = -jnp.take_along_axis(logprobs, jnp.asarray(wanted)[:, :, None], axis=-1)[:, :, 0]
        return jnp.where(valid, each, 0.0).sum() / int(valid.sum())

    gradients = {name: np.asarray(leaf) for name, leaf in named_parameters(jax.jit(jax.grad(loss))(ours)).items()}
    expected = {name: weight.grad.numpy() for name, weight in theirs.named_parameters() if weight.grad is not None}
    pairs = pairs_of(BERT, ours.config)
    assert {pair.theirs for pair in pairs} == set(expected)
    for pair in pairs:
        # A bias of all keys moves every score of a query alike: its gradient is zero, and what is computed is noise.
        size = max(np.abs(expected[pair.theirs]).max(), 1e-4)
        limit = CLOSE_GRADIENT * size
        np.testing.assert_allclose(
            pair.write(gradients), expected[pair.theirs], rtol=0, atol=limit, err_msg=pair.theirs
        )


@pytest.mark.parametrize("settings", [LABELS, {"num_labels": 5, "hidden_act": "relu"}], ids=["named", "numbered"])
def test_a_classifier_gives_their_logits(settings: dict[str, Any], tmp_path: Path) -> None:
    theirs, ours = made(BertForSequenceClassification, tmp_path, **settings)
    with torch.no_grad():
        said = asked(theirs, *inputs(theirs)).logits.numpy()
    close(ours(*map(jnp.asarray, inputs(theirs))), said, "logits")
    if settings is LABELS:
        assert ours.config.labels == ("bad", "so-so", "good")
    else:
        assert ours.config.labels == tuple(f"LABEL_{number}" for number in range(5))
    assert BERT.config_from(BERT.config_to(ours.config), "again") == ours.config


def test_of_pretraining_the_language_model_is_read_and_the_rest_is_named(tmp_path: Path) -> None:
    theirs, ours = made(BertForPreTraining, tmp_path)
    with torch.no_grad():
        said = asked(theirs, *inputs(theirs)).prediction_logits.numpy()
    valid = inputs(theirs)[1]
    close(np.asarray(ours(*map(jnp.asarray, inputs(theirs))))[valid], said[valid], "logits")
    left = left_out(BERT, pairs_of(BERT, ours.config), [name for name, _ in theirs.named_parameters()])
    assert left == [
        "the head that says whether one sentence follows another",
        "the pooler, which only a classifier uses",
    ]
    train_word([" ".join(a + b for a in "abcdef" for b in "abcdef")], 31).save(tmp_path / "tokenizer.json")
    assert load_folder(tmp_path).about["left out"] == " and ".join(left)


def test_a_bare_encoder_gives_their_states(tmp_path: Path) -> None:
    theirs, ours = made(BertModel, tmp_path)
    with torch.no_grad():
        said = asked(theirs, *inputs(theirs)).last_hidden_state.numpy()
    valid = inputs(theirs)[1]
    close(np.asarray(ours.encoder.encode(*map(jnp.asarray, inputs(theirs))))[valid], said[valid], "states")
    assert BERT.differences(ours.config) == []
    assert BERT.config_from(BERT.config_to(ours.config) | {"architectures": ["BertModel"]}, "again") == ours.config


@pytest.mark.parametrize("kind", [BertModel, BertForPreTraining])
def test_verify_compares_what_theirs_gives(kind: Any, tmp_path: Path) -> None:
    """Hidden states of an encoder without a head, there and back; the language model's logits of pretraining."""
    from plainformer.interop.verify import compare

    _, ours = made(kind, tmp_path / "theirs")
    found = compare(ours, tmp_path / "theirs")
    assert (found.architecture, list(found.layers)) == (kind.__name__, ["0/output", "1/output"])
    assert found.what == ("hidden states" if kind is BertModel else "logits")
    assert found.largest > 1.0
    assert found.first_departure(1e-4) is None
    tokenizer = train_word([" ".join(a + b for a in "abcdef" for b in "abcdef")], 31)
    name = export_model(Export(ours, tokenizer, tokenizer), tmp_path / "out")
    assert name == ("BertModel" if kind is BertModel else "BertForMaskedLM")
    assert compare(ours, tmp_path / "out").first_departure(1e-4) is None


def test_an_encoder_without_a_head_says_so(tmp_path: Path) -> None:
    said = "there is none: it has vectors of texts (embed), and fills no gaps"
    for kind, head in ((BertModel, said), (BertForMaskedLM, None), (BertForSequenceClassification, None)):
        made(kind, tmp_path / kind.__name__)
        words = train_word([" ".join(a + b for a in "abcdef" for b in "abcdef")], 31)
        words.save(tmp_path / kind.__name__ / "tokenizer.json")
        assert load_folder(tmp_path / kind.__name__).about.get("head") == head


def test_old_names_of_the_norms_are_read(tmp_path: Path) -> None:
    """The first BERT's own files call a norm's scale gamma and its bias beta."""
    from safetensors.numpy import load_file, save_file

    _, ours = made(BertForMaskedLM, tmp_path)
    path, old = tmp_path / "model.safetensors", {"weight": "gamma", "bias": "beta"}
    weights = {
        (f"{name.rpartition('.')[0]}.{old[name.rpartition('.')[2]]}" if "LayerNorm" in name else name): array
        for name, array in load_file(path).items()
    }
    assert any(name.endswith("LayerNorm.gamma") for name in weights)
    save_file(weights, path)
    for name, leaf in named_parameters(read(BERT, tmp_path)).items():
        assert np.array_equal(leaf, named_parameters(ours)[name]), name


@pytest.mark.parametrize("kind", [BertForMaskedLM, BertForSequenceClassification])
def test_there_and_back_again(kind: Any, tmp_path: Path) -> None:
    """Ours, a folder, theirs, a folder, ours: the same logits at every station."""
    settings = LABELS if kind is BertForSequenceClassification else {}
    theirs, ours = made(kind, tmp_path / "first", **settings)
    given = tuple(map(jnp.asarray, inputs(theirs)))
    before = np.asarray(ours(*given))
    tokenizer = train_word([" ".join(a + b for a in "abcdef" for b in "abcdef")], 31)
    assert export_model(Export(ours, tokenizer, tokenizer), tmp_path / "out") == kind.__name__
    there = kind.from_pretrained(tmp_path / "out")
    real = np.ones(3, bool) if settings else inputs(theirs)[1]
    with torch.no_grad():
        close(asked(there.eval(), *inputs(theirs)).logits.numpy()[real], before[real], "theirs")
    there.save_pretrained(tmp_path / "again")
    assert np.array_equal(np.asarray(read(BERT, tmp_path / "again")(*given)), before)


def test_the_parts_that_stand_in_the_way_of_an_export_are_named() -> None:
    plain = EncoderConfig(vocab=31, context=17, norm_position="pre", gated=True)
    assert BERT.differences(plain) == [
        "norm_position is 'pre', and theirs is 'post'",
        "gated is True, and theirs is False",
        "embedding_norm is False, and theirs is True",
        "add_cls_sep is False, and theirs is True",
        "mlm_transform is False, and theirs is True",
        "output_bias is False, and theirs is True",
        "it has no token types, and theirs has one or more",
    ]
    assert "pooling is 'mean', and theirs is 'first'" in BERT.differences(plain.with_labels(["no", "yes"]))


def test_settings_that_no_part_can_do_are_named_all_at_once() -> None:
    values = {
        "architectures": ["BertForSequenceClassification"],
        "hidden_act": "mish",
        "is_decoder": True,
        "position_embedding_type": "relative_key",
        "problem_type": "regression",
        "id2label": {"1": "yes"},
    }
    with pytest.raises(InputError) as caught:
        BERT.config_from(values, "there")
    for name in ("hidden_act", "is_decoder", "position_embedding_type", "problem_type", "id2label"):
        assert name in caught.value.what
    with pytest.raises(InputError, match="BertForQuestionAnswering"):
        BERT.config_from({"architectures": ["BertForQuestionAnswering"]}, "there")
