"""Search and sampling in the engine: the library's hypotheses and texts, the tree that adds up, parts left out."""

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from test_engine_models import CLOSE, numbers

from plainformer.decode import GenerationSettings, SamplingSettings
from plainformer.decode.length_penalty import length_weights
from plainformer.decode.reference import beam_search, continuation, model_logits, text_logits
from plainformer.folder import ModelFolder
from plainformer.models.parameters import abstract_model, named_parameters, with_weights
from plainformer.page.bundle import bundle, rounded
from plainformer.tokenizer import train_character
from random_models import content_of

WORDS = ["a", "red", "fox", "saw", "the", "lazy", "dog", "near", "an", "old", "oak"]
SIZES: dict[str, Any] = {"d_model": 24, "d_ff": 36, "heads": 3, "encoder_layers": 1, "decoder_layers": 2} | {
    "position": "alibi"
}
SEARCHES: list[dict[str, Any]] = [
    {"beam_size": 1},
    {"beam_size": 4},
    {"beam_size": 5, "n_best": 3, "length_penalty": "average", "alpha": 1.3},
    {"beam_size": 3, "length_penalty": "none", "no_repeat_ngram": 2, "min_tokens": 5},
    {"beam_size": 4, "alpha": -0.5, "forced_eos": True, "suppress_tokens": (7, 9)},
    {"beam_size": 3, "n_best": 2, "beam": "full", "early_stopping": "heuristic", "repetition_penalty": 1.4},
    {"beam_size": 2, "beam": "full", "early_stopping": "first", "renormalize_logits": True, "end_tokens": (2, 8)},
    {"beam_size": 4, "beam": "full", "forced_bos": 6, "no_repeat_ngram": 3},
]
SAMPLES: list[dict[str, Any]] = [
    {"temperature": 0.0},
    {"seed": 7},
    {"temperature": 0.8, "top_k": 9, "seed": 3},
    {"top_p": 0.8, "seed": 11, "repetition_penalty": 1.2, "end_tokens": (99,)},
    {"min_p": 0.1, "temperature": 1.7, "seed": 2**32 - 1},
]


@pytest.fixture(scope="module")
def translator() -> ModelFolder:
    return content_of(SIZES, train_character([" ".join(WORDS)]), sharpness=2.0)


@pytest.fixture(scope="module")
def writer() -> ModelFolder:
    sizes = {"d_model": 32, "d_ff": 28, "heads": 4, "kv_heads": 2, "layers": 2, "context": 24, "position": "rotary"}
    return content_of(sizes, train_character([" ".join(WORDS)]), sharpness=2.0)


def test_a_search_finds_what_the_definition_finds(translator: ModelFolder, ask) -> None:
    texts, tokenizer = ["a red fox saw", "lazy old oaks"], translator.target_tokenizer
    packed = bundle(translator, asdict(GenerationSettings(max_margin=2)))
    asked = [("search", {"text": text, "settings": changes}) for text in texts for changes in SEARCHES]
    found, model = iter(ask(packed, *asked)), rounded(translator.model, "float16")
    special: Any = {"bos": tokenizer.bos_id, "eos": tokenizer.eos_id, "pad": tokenizer.pad_id}
    for text in texts:
        source = tokenizer.encode(text)
        next_logits = model_logits(model, source, bos=tokenizer.bos_id, eos=tokenizer.eos_id)
        for changes in SEARCHES:
            settings, answer = GenerationSettings(max_margin=2, **changes), next(found)
            allowed = {*range(tokenizer.vocab_size)} - {tokenizer.unk_id}
            bound = settings.bound(len(source) + 1)
            best = beam_search(next_logits, bound, settings, **special, allowed_tokens=allowed)
            assert answer["bound"] == bound
            hypotheses = answer["hypotheses"]
            assert [one["ids"] for one in hypotheses] == [list(one.ids) for one in best], (changes, text)
            assert [one["finished"] for one in hypotheses] == [one.finished for one in best]
            # A score is the sum of many log-probabilities: beside how close logits are, what float32 keeps of it.
            assert [one["score"] for one in hypotheses] == pytest.approx([one.score for one in best], CLOSE / 10, CLOSE)


def test_each_path_of_the_tree_sums_to_its_score(translator: ModelFolder, ask) -> None:
    settings = asdict(GenerationSettings(max_margin=9, n_best=4))
    (found,) = ask(bundle(translator, settings), ("search", {"text": "the red fox"}))
    nodes, weights = found["nodes"], length_weights(GenerationSettings(), found["bound"])
    fates = [node["fate"] for node in nodes]
    assert fates.count("finished") == len(found["hypotheses"]) > 1
    assert all(node["reason"] for node in nodes if node["fate"] == "pruned")
    for one in found["hypotheses"]:
        path = []
        at = one["node"]
        while nodes[at]["parent"] >= 0:
            path.insert(0, nodes[at])
            at = nodes[at]["parent"]
        assert [node["token"] for node in path][: len(one["ids"])] == one["ids"]
        total = sum(node["logprob"] for node in path)
        assert one["logprob"] == pytest.approx(total, rel=1e-5)
        assert one["score"] == pytest.approx(total * weights[len(path)], rel=1e-5)
    for step in range(1, 4):
        on = [node for node in nodes if node["step"] == step and node["fate"] != "pruned"]
        assert len(on) <= 4


def test_forced_tokens_begin_every_hypothesis_and_the_rest_follows(translator: ModelFolder, ask) -> None:
    packed = bundle(translator, asdict(GenerationSettings(max_margin=9)))
    prefix = translator.target_tokenizer.encode("ox")
    (forced,) = ask(packed, ("search", {"text": "the dog", "prefix": prefix, "settings": {"n_best": 2}}))
    best = forced["hypotheses"][0]
    assert all(one["ids"][:2] == prefix for one in forced["hypotheses"])
    (passed,) = ask(packed, ("forward", {"text": "the dog", "target": best["ids"], "best": 40}))
    logprobs = [
        next(one["logprob"] for one in row if one["id"] == id)
        for row, id in zip(passed["predictions"], best["ids"], strict=False)
    ]
    assert best["logprob"] == pytest.approx(sum(logprobs), abs=1e-2) or best["finished"]


def test_a_seed_gives_the_text_of_the_definition(writer: ModelFolder, ask) -> None:
    """Beyond the context, too, where the window slides."""
    prompt = writer.source_tokenizer.encode("an old fox")
    drawn = [SamplingSettings(max_tokens=40, **changes) for changes in SAMPLES]
    found = ask(bundle(writer, {}), *[("generate", {"ids": prompt, "settings": asdict(one)}) for one in drawn])
    next_logits = text_logits(rounded(writer.model, "float16"))
    tokenizer = writer.source_tokenizer
    never = [id for id in (tokenizer.pad_id, tokenizer.bos_id, tokenizer.unk_id) if id is not None]
    for settings, answer in zip(drawn, found, strict=True):
        wanted = continuation(next_logits, prompt, settings, context=24, suppress_tokens=never, eos=tokenizer.eos_id)
        assert answer["ids"] == [*prompt, *wanted], settings
        assert answer["text"] == tokenizer.decode(wanted)
    assert max(len(answer["ids"]) for answer in found) > 2 * 24


def test_a_step_says_what_each_setting_cuts(writer: ModelFolder, ask) -> None:
    packed = bundle(writer, asdict(SamplingSettings()))
    settings = {"top_k": 12, "top_p": 0.9, "min_p": 0.02, "temperature": 2.0}
    one, rest = ask(packed, ("step", {"text": "a dog", "settings": settings}), ("step", {"text": "a dog", "best": 99}))
    shown, whole = one["predictions"], rest["predictions"]
    assert sum(prediction["probability"] for prediction in whole) == pytest.approx(1.0, abs=1e-5)
    assert [prediction["id"] for prediction in shown] == [prediction["id"] for prediction in whole]
    tempered = np.sqrt([prediction["probability"] for prediction in whole[:12]])
    tempered /= tempered.sum()
    before = np.cumsum(tempered) - tempered
    cuts = [
        "top_p" if at >= 0.9 else "min_p" if of < 0.02 * tempered[0] else None
        for at, of in zip(before, tempered, strict=True)
    ]
    assert [prediction["cut"] for prediction in shown] == [*cuts, *["top_k"] * (len(whole) - 12)]
    kept = np.where([cut is None for cut in cuts], tempered, 0.0)
    assert np.array([p["drawn"] for p in shown[:12]]) == pytest.approx(kept / kept.sum(), abs=1e-5)
    assert one["kept"] == cuts.count(None)
    beyond = sum(prediction["probability"] for prediction in whole[12:])
    assert one["cuts"]["top_k"] == {"tokens": len(whole) - 12, "probability": pytest.approx(beyond, abs=1e-5)}


def test_a_layer_off_is_the_model_without_it_and_all_heads_off_are_attention_off(ask) -> None:
    sizes = {"d_model": 20, "d_ff": 28, "heads": 4, "layers": 3, "context": 24}
    content = content_of(sizes, train_character([" ".join(WORDS)]))
    left = {name: weight for name, weight in named_parameters(content.model).items() if "layers.1." not in name}
    renamed = {name.replace("layers.2.", "layers.1."): weight for name, weight in left.items()}
    shorter = with_weights(abstract_model(replace(content.model.config, layers=2)), renamed)

    def logits(packed: Any, *off: str) -> np.ndarray:
        asked = ("forward", {"text": "a dog", "off": off}), ("arrays", {"names": ["logits"]})
        return numbers(ask(packed, *asked)[1]["logits"])

    packed = bundle(content, {})
    without = logits(packed, "1")
    np.testing.assert_array_equal(without, logits(bundle(replace(content, model=shorter), {})))
    heads = logits(packed, *(f"2/self_attention/{head}" for head in range(4)))
    np.testing.assert_array_equal(heads, logits(packed, "2/self_attention"))
    real = np.isfinite(without)
    assert np.abs(logits(packed)[real] - heads[real]).max() > 1e-3
    assert np.abs(without[real] - heads[real]).max() > 1e-3
