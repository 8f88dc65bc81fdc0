"""Sentence encoders (Reimers and Gurevych 2019): a folder of the Sentence Transformers library, its modules in order.

    modules.json  1_Pooling/config.json  [sentence_bert_config.json]  [config_sentence_transformers.json]

What its modules do after the encoder, and how long a text may be, are settings of use here: `decode.VectorSettings`.
"""

from pathlib import Path
from typing import Any

from plainformer.errors import InputError, shown
from plainformer.files import atomic
from plainformer.files.json_object import read_list, read_object, write_object
from plainformer.models.config import EncoderConfig

MODULES = "modules.json"
LENGTHS = tuple(f"sentence_{name}_config.json" for name in ("bert", "roberta", "distilbert", "camembert", "albert"))
PROMPTS = "config_sentence_transformers.json"

POOLS = {
    "cls": "first",
    "cls_token": "first",
    "max": "max",
    "max_tokens": "max",
    "mean": "mean",
    "mean_tokens": "mean",
    "mean_sqrt_len_tokens": "mean_sqrt_len",
    "weightedmean": "weighted_mean",
    "weightedmean_tokens": "weighted_mean",
    "lasttoken": "last",
}
"""Their ways of pooling, and ours, in the order in which they are put one behind the other."""

WITHOUT_EFFECT = ("Dropout",)
ALONE = f"remove {MODULES} to use the encoder alone"


def settings_at(folder: Path, config: EncoderConfig) -> dict[str, Any]:
    """The keyword arguments of `VectorSettings` for a folder; none where it is of no sentence encoder.

    Raises:
        InputError: a file is damaged, or there is a module or a way of pooling that no part here does.
    """
    if not (folder / MODULES).exists():
        return {}
    kinds = _modules(folder)
    if kinds[:1] != [("Transformer", "")] or [kind for kind, _ in kinds[1:2]] != ["Pooling"]:
        names = ", ".join(kind for kind, _ in kinds) or "none"
        what = f"the modules are {names}, and known are a Transformer in the folder itself, Pooling and Normalize"
        raise InputError(what, where=str(folder / MODULES), fix=ALONE)
    rest = [kind for kind, _ in kinds[2:]]
    if strange := [kind for kind in rest if kind not in ("Normalize", *WITHOUT_EFFECT)]:
        what = f"no part here does the module {', '.join(strange)}"
        raise InputError(what, where=str(folder / MODULES), fix=ALONE)
    pooling, with_prompt = _pooling(folder / kinds[1][1] / "config.json", config)
    settings = _lengths(folder, config) | _prompt(folder, with_prompt)
    return {"pooling": pooling, "unit": "Normalize" in rest, **settings}


def _modules(folder: Path) -> list[tuple[str, str]]:
    """The class of each module, without its place in their library, and the folder that it has."""
    path = folder / MODULES
    found = read_list(path)
    named = [(one.get("type"), one.get("path")) if isinstance(one, dict) else (None, None) for one in found]
    modules = [(kind, place) for kind, place in named if isinstance(kind, str) and isinstance(place, str)]
    if len(modules) < len(found):
        raise InputError("a module has no type, or no path", where=str(path), fix=ALONE)
    if wrong := [place for _, place in modules if place and (len(Path(place).parts) != 1 or place.startswith("."))]:
        raise InputError(f"the module {shown(wrong[0])} is no folder of this folder", where=str(path), fix=ALONE)
    return [(kind.rpartition(".")[2], place) for kind, place in modules]


def _pooling(path: Path, config: EncoderConfig) -> tuple[list[str], bool]:
    """Our names, and whether a prompt's tokens count."""
    values = read_object(path)
    named = values.get("pooling_mode")
    if named is None:
        modes = [
            key.removeprefix("pooling_mode_")
            for key, value in values.items()
            if key.startswith("pooling_mode_") and value
        ]
    else:
        modes = [named] if isinstance(named, str) else list(named) if isinstance(named, list) else [named]
    if strange := [shown(mode) for mode in modes if not isinstance(mode, str) or mode not in POOLS]:
        what = f"the pooling {', '.join(strange)} is not known; known are {', '.join(POOLS)}"
        raise InputError(what, where=str(path), fix=ALONE)
    width = values.get("word_embedding_dimension", values.get("embedding_dimension", config.d_model))
    if width != config.d_model:
        what = f"it pools {shown(width)} numbers, and the encoder gives {config.d_model}"
        raise InputError(what, where=str(path), fix="get the folder again")
    order = list(dict.fromkeys(POOLS.values()))
    return sorted({POOLS[mode] for mode in modes} or {"mean"}, key=order.index), values.get(
        "include_prompt"
    ) is not False


def _lengths(folder: Path, config: EncoderConfig) -> dict[str, Any]:
    """How much of a text is read, the two tokens around it taken off, and whether in lower case."""
    path = next((folder / name for name in LENGTHS if (folder / name).exists()), None)
    values = read_object(path) if path else {}
    most = values.get("max_seq_length")
    tokenizer = folder / "tokenizer_config.json"
    if most is None and tokenizer.exists():
        most = read_object(tokenizer).get("model_max_length")
    if most is None:
        most = config.context
    room = most - 2 * config.add_cls_sep if type(most) in (int, float) else 0
    lowercase = values.get("do_lower_case")
    if not room >= 1 or not isinstance(lowercase, bool | None):
        what = f"max_seq_length is {shown(most)}, or do_lower_case is neither true nor false"
        raise InputError(what, where=str(path or tokenizer), fix="get the folder again")
    return {"max_tokens": int(min(room, config.max_text_tokens)), "lowercase": bool(lowercase)}


def _prompt(folder: Path, counts: bool) -> dict[str, Any]:
    """What is put before every text."""
    path = folder / PROMPTS
    values = read_object(path) if path.exists() else {}
    name, prompts = values.get("default_prompt_name"), values.get("prompts")
    if name is None:
        return {}
    if not isinstance(name, str) or not isinstance(prompts, dict) or not isinstance(prompts.get(name), str):
        raise InputError(f"there is no prompt {shown(name)}", where=str(path), fix="correct default_prompt_name")
    if not counts and prompts[name]:
        what = "the tokens of its prompt are left out of the pooling, which no part here does"
        raise InputError(what, where=str(path), fix=ALONE)
    return {"prompt": prompts[name]}


def write(settings: dict[str, Any], config: EncoderConfig, folder: Path) -> None:
    """The files by which their library knows a sentence encoder in a folder. Raises OSError where the disk refuses."""
    theirs = {our: mode for mode, our in POOLS.items()}
    pooling = settings.get("pooling", ["mean"])
    modes = {f"pooling_mode_{mode}": our in pooling for our, mode in theirs.items()}
    kinds = ["Transformer", "Pooling", *(["Normalize"] if settings.get("unit") else [])]
    paths = ["", *(f"{at}_{kind}" for at, kind in enumerate(kinds[1:], 1))]
    rows = [
        f'  {{"idx": {at}, "name": "{at}", "path": "{path}", "type": "sentence_transformers.models.{kind}"}}'
        for at, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    for path in paths[1:]:
        (folder / path).mkdir(exist_ok=True)
    write_object(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": config.d_model, **modes})
    most = settings.get("max_tokens") or config.max_text_tokens
    length = {"max_seq_length": most + 2 * config.add_cls_sep, "do_lower_case": settings.get("lowercase", False)}
    write_object(folder / LENGTHS[0], length)
    if prompt := settings.get("prompt"):
        write_object(folder / PROMPTS, {"prompts": {"default": prompt}, "default_prompt_name": "default"})
    atomic.write_text(folder / MODULES, "[\n" + ",\n".join(rows) + "\n]\n")
