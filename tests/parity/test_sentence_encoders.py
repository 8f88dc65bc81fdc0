"""Sentence encoders: the vectors that their modules say, made by hand with their encoder."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from side_by_side import CLOSE, SIZES, drawn
from transformers import BertConfig, BertModel

from plainformer.decode.load import load
from plainformer.errors import InputError
from plainformer.folder import load_folder, save_folder
from plainformer.interop.export import Export, export_model
from plainformer.tokenizer import Tokenizer

WORDS = ["the", "moon", "and", "sun", "a", "man", "cat", "##s", "un", "##der"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
# Of 1, 3, 7 and 5 tokens; the last two are cut to four, six with the two around them.
TEXTS = ["moon", "The moons", "the man and a cat under", "A man and the sun"]
PLACE = "sentence_transformers.models."


def module(number: int, kind: str, path: str) -> dict[str, Any]:
    return {"idx": number, "name": str(number), "path": path, "type": PLACE + kind}


def save_encoder(folder: Path, pooling: dict[str, Any], *more: str, length: int | None = 6, **settings: Any) -> Any:
    """A sentence encoder in `folder`, with modules after the pooling; their encoder."""
    theirs = drawn(BertModel(BertConfig(**SIZES)), seed=3)
    theirs.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    modules = [module(0, "Transformer", ""), module(1, "Pooling", "1_Pooling")]
    modules += [module(number, kind, f"{number}_{kind}") for number, kind in enumerate(more, 2)]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 12, **pooling}))
    if length is not None:
        lengths = {"max_seq_length": length, "do_lower_case": False, **settings}
        (folder / "sentence_bert_config.json").write_text(json.dumps(lengths))
    return theirs


def ids_of(texts: list[str]) -> list[list[int]]:
    """By hand: the pieces of the words of lower-cased texts, four at most, [CLS] and [SEP] around them."""
    spelled = {"moons": ["moon", "##s"], "under": ["un", "##der"]}
    rows = []
    for text in texts:
        pieces = [piece for word in text.lower().split() for piece in spelled.get(word, [word])]
        rows.append([VOCABULARY.index(piece) for piece in ["[CLS]", *pieces[:4], "[SEP]"]])
    return rows


def by_hand(states: np.ndarray) -> dict[str, np.ndarray]:
    """What each pooling makes of the states (tokens, d_model) of one text."""
    number = len(states)
    weights = np.arange(1, number + 1)[:, None]
    return {
        "cls_token": states[0],
        "max_tokens": states.max(axis=0),
        "mean_tokens": states.sum(axis=0) / number,
        "mean_sqrt_len_tokens": states.sum(axis=0) / np.sqrt(number),
        "weightedmean_tokens": (states * weights).sum(axis=0) / weights.sum(),
        "lasttoken": states[-1],
    }


def expected(theirs: Any, *modes: str, unit: bool = False) -> np.ndarray:
    rows = []
    for ids in ids_of(TEXTS):
        with torch.no_grad():
            states = theirs(input_ids=torch.tensor([ids])).last_hidden_state[0].numpy()
        rows.append(np.concatenate([by_hand(states)[mode] for mode in modes]))
    found = np.stack(rows)
    return found / np.linalg.norm(found, axis=1, keepdims=True) if unit else found


def embedded(folder: Path, texts: list[str] = TEXTS) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two texts are truncated
        return load(folder).embed(texts)


@pytest.mark.parametrize(
    "modes",
    [
        *(("cls_token",), ("max_tokens",), ("mean_tokens",), ("mean_sqrt_len_tokens",)),
        *(("weightedmean_tokens",), ("lasttoken",), ("cls_token", "mean_tokens")),
    ],
    ids=" and ".join,
)
def test_every_pooling_gives_the_vectors_that_are_meant(modes: tuple[str, ...], tmp_path: Path) -> None:
    theirs = save_encoder(tmp_path, {f"pooling_mode_{mode}": True for mode in modes} | {"pooling_mode_none": False})
    found, wanted = embedded(tmp_path), expected(theirs, *modes)
    assert np.abs(wanted).max() > 0.5
    np.testing.assert_allclose(found, wanted, rtol=0, atol=CLOSE)


def test_normalised_imported_and_exported_it_is_the_same(tmp_path: Path) -> None:
    """The newer way of naming a pooling; Dropout, which does nothing in use; a folder of ours; their folder again."""
    theirs = save_encoder(tmp_path / "theirs", {"pooling_mode": "mean"}, "Dropout", "Normalize")
    wanted = expected(theirs, "mean_tokens", unit=True)
    np.testing.assert_allclose(embedded(tmp_path / "theirs"), wanted, rtol=0, atol=1e-5)
    content = load_folder(tmp_path / "theirs")
    save_folder(content, tmp_path / "ours")
    np.testing.assert_array_equal(embedded(tmp_path / "ours"), embedded(tmp_path / "theirs"))
    ours = load_folder(tmp_path / "ours")
    exported = Export(ours.model, ours.source_tokenizer, ours.target_tokenizer, ours.generation)
    assert export_model(exported, tmp_path / "out") == "BertModel"
    np.testing.assert_allclose(embedded(tmp_path / "out"), wanted, rtol=0, atol=1e-5)
    kinds = [one["type"] for one in json.loads((tmp_path / "out" / "modules.json").read_text())]
    assert kinds == [PLACE + kind for kind in ("Transformer", "Pooling", "Normalize")]


def test_what_is_cut_is_told_and_where_no_length_is_said_the_tokenizers_holds(tmp_path: Path) -> None:
    save_encoder(tmp_path / "six", {"pooling_mode_mean_tokens": True})
    with pytest.warns(
        UserWarning,
        match=r"^2 texts are longer than the 4 tokens that are read \(first: text 3\): kept are the first 4",
    ):
        load(tmp_path / "six").embed(TEXTS)
    cut: list[str] = []
    load(tmp_path / "six").embed(TEXTS, where=list("wxyz"), on_cut=cut.extend)
    assert cut == ["y", "z"]
    save_encoder(tmp_path / "all", {"pooling_mode_mean_tokens": True}, length=None)
    settings = tmp_path / "all" / "tokenizer_config.json"
    for length, room in ((5, 3), (1e30, 15)):  # what their library writes where there is no bound
        settings.write_text(json.dumps({"model_max_length": length}))
        assert load(tmp_path / "all").vectors.max_tokens == room
    settings.unlink()
    assert load(tmp_path / "all").vectors.max_tokens == 15


def test_a_prompt_goes_before_every_text(tmp_path: Path) -> None:
    save_encoder(tmp_path, {"pooling_mode_mean_tokens": True}, length=17, do_lower_case=True)
    alone = embedded(tmp_path, ["the moon", "a CAT"])
    prompts = {"prompts": {"query": "the ", "other": "sun "}, "default_prompt_name": "query"}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    np.testing.assert_allclose(embedded(tmp_path, ["moon"]), alone[:1], rtol=0, atol=1e-6)
    assert load(tmp_path).vectors.lowercase


@pytest.mark.parametrize(
    ("more", "pooling", "said"),
    [
        (("Dense", "Normalize"), {"pooling_mode_mean_tokens": True}, "no part here does the module Dense"),
        (("LSTM", "CNN"), {"pooling_mode_mean_tokens": True}, "no part here does the module LSTM, CNN"),
        ((), {"pooling_mode_median": True}, "the pooling 'median' is not known; known are cls"),
        ((), {"pooling_mode": 7}, "the pooling 7 is not known"),
        ((), {"pooling_mode": "mean", "word_embedding_dimension": 13}, "it pools 13 numbers, and the encoder gives 12"),
    ],
)
def test_modules_and_poolings_that_no_part_does_are_named(
    more: tuple[str, ...], pooling: dict[str, Any], said: str, tmp_path: Path
) -> None:
    save_encoder(tmp_path, pooling, *more)
    with pytest.raises(InputError) as caught:
        load_folder(tmp_path)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("modules", "said"),
    [
        ({}, "the file does not hold a JSON array"),
        ([], "the modules are none, and known are a Transformer in the folder itself, Pooling and Normalize"),
        ([{"type": 3, "path": ""}], "a module has no type, or no path"),
        ([module(0, "Transformer", "0_Transformer")], "the modules are Transformer, and known are"),
        ([module(0, "Transformer", ""), module(1, "Pooling", "../elsewhere")], "is no folder of this folder"),
        (
            [module(0, "WordEmbeddings", ""), module(1, "Pooling", "1_Pooling")],
            "the modules are WordEmbeddings, Pooling",
        ),
    ],
)
def test_a_damaged_list_of_modules_is_one_line(modules: Any, said: str, tmp_path: Path) -> None:
    save_encoder(tmp_path, {"pooling_mode_mean_tokens": True})
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(InputError) as caught:
        load_folder(tmp_path)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path / 'modules.json'}: ")


def test_a_transformer_in_a_folder_of_its_own_is_not_taken_without_its_pooling(tmp_path: Path) -> None:
    """As older folders have it; that folder alone would give other vectors, and was named as the model."""
    save_encoder(tmp_path, {"pooling_mode_cls_token": True}, "Normalize")
    (tmp_path / "0_Transformer").mkdir()
    for name in ("config.json", "model.safetensors", "vocab.txt"):
        (tmp_path / name).rename(tmp_path / "0_Transformer" / name)
    with pytest.raises(InputError, match=r"is in a folder of its own.*; move the files of that folder up to modules"):
        load(tmp_path)


def test_a_case_that_is_not_said_is_kept(tmp_path: Path) -> None:
    save_encoder(tmp_path, {"pooling_mode_mean_tokens": True}, do_lower_case=None)
    assert not load(tmp_path).vectors.lowercase


def test_an_encoder_alone_fills_no_gaps(tmp_path: Path) -> None:
    save_encoder(tmp_path, {"pooling_mode_mean_tokens": True})
    with pytest.raises(InputError) as caught:
        load(tmp_path).fill(["the [MASK]"])
    assert caught.value.what == "this is an encoder without a head, which can say nothing of hidden tokens"
    assert isinstance(load(tmp_path).tokenizer, Tokenizer)


@pytest.mark.parametrize(
    ("embed", "said"),
    [
        (7, "embed must be an object of settings"),
        ({"lengths": 3}, "embed has no setting 'lengths'"),
        ({"pooling": ["median"]}, "embed: pooling is"),
        ({"pooling": []}, "embed: pooling is"),
        ({"max_tokens": -1}, "embed: max_tokens is -1"),
        ({"unit": "yes"}, "embed: unit is 'yes'"),
    ],
)
def test_settings_of_ours_that_will_not_do_are_one_line(embed: Any, said: str, tmp_path: Path) -> None:
    save_encoder(tmp_path / "theirs", {"pooling_mode_mean_tokens": True})
    save_folder(load_folder(tmp_path / "theirs"), tmp_path / "ours")
    (tmp_path / "ours" / "SHA256SUMS").unlink()
    (tmp_path / "ours" / "generation_config.json").write_text(json.dumps({"embed": embed}))
    with pytest.raises(InputError) as caught:
        load(tmp_path / "ours")
    assert said in str(caught.value)
