"""Which parameters of a model train: all, all but those that are frozen, or pairs of low rank beside frozen ones."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from plainformer.adapter import Adapter
from plainformer.errors import InputError, some_of
from plainformer.folder import Model, ModelFolder, named_parameters
from plainformer.locate import PLACES
from plainformer.nn.lora import adapt, merge, named_linears, named_pairs
from plainformer.recipe.finetune import TuneOptions
from plainformer.runs.pretrained import Pretrained
from plainformer.runs.task import PreparedTask
from plainformer.shapes import PRNGKeyArray
from plainformer.train.state import parameter_names


class Tuning(NamedTuple):
    """A model made ready to be tuned.

    model: as it was or, with LoRA, with its pairs.
    frozen: the parameters that stay as they are, by `parameter_names`.
    work: the folders that it keeps say what the model comes from and, with LoRA, hold the adapter alone.
    """

    model: Model
    frozen: frozenset[str]
    work: PreparedTask


def tune(
    work: PreparedTask,
    model: Model,
    options: TuneOptions,
    pretrained: Pretrained | None,
    key: PRNGKeyArray,
    say: Callable[[str], None],
) -> Tuning:
    """The model with what `options` say done to it; a new one, which starts from nothing, stays as it is.

    Args:
        pretrained: what the model comes from.
        key: of the pairs.
        say: told how much trains, unless that is all.

    Raises:
        InputError: a pattern matches nothing, or nothing is left to train.
    """
    if pretrained is None:
        return Tuning(model, frozenset(), work)
    if options.lora_rank is None:
        frozen = frozenset(matching(options.freeze, parameter_names(model), where="tune.freeze"))
        tuning = Tuning(model, frozen, _keeping(work, pretrained, None))
    else:
        tuning = _with_pairs(work, model, options, pretrained, key)
    sizes = {name: leaf.size for name, leaf in named_parameters(tuning.model).items()}
    trained = sum(size for name, size in sizes.items() if name not in tuning.frozen)
    if not trained:
        raise InputError("every parameter is frozen, and nothing trains", where="tune.freeze", fix="freeze fewer")
    if tuning.frozen:
        say(f"of {sum(sizes.values()):,} parameters {trained:,} train ({trained / sum(sizes.values()):.2%})")
    return tuning


def _with_pairs(
    work: PreparedTask, model: Model, options: TuneOptions, pretrained: Pretrained, key: PRNGKeyArray
) -> Tuning:
    rank, alpha, new = options.lora_rank or 0, options.lora_alpha, work.new_parts
    known = [name for name in named_linears(model) if name.partition(".")[0] not in new]
    targets = matching(options.lora_targets, known, where="tune.lora_targets")
    adapted = adapt(model, targets, rank=rank, alpha=alpha, key=key)
    trains = {f"{name}.{side}" for name in named_pairs(adapted) for side in "ab"}
    frozen = {name for name in parameter_names(adapted) if name not in trains and name.partition(".")[0] not in new}
    adapter = Adapter(pretrained.folder, pretrained.sha256, rank, alpha, tuple(targets), new)
    return Tuning(adapted, frozenset(frozen), _keeping(work, pretrained, adapter))


def _keeping(work: PreparedTask, pretrained: Pretrained, adapter: Adapter | None) -> PreparedTask:
    """The work, with model folders that name the start (not its place, which says nothing elsewhere), keep what
    settings of it the recipe does not have, and hold the adapter if there is one."""
    bleu = work.bleu
    if pretrained.content.generation_file.damage is not None:
        raise pretrained.content.generation_file.damage

    def content(model: Model) -> ModelFolder:
        found = work.content(model)
        about = {**found.about, "starts from": f"{_name_of(pretrained.folder)} (sha256 {pretrained.sha256})"}
        generation = {**pretrained.content.generation, **found.generation}
        return replace(found, about=about, generation=generation, adapter=adapter)

    return replace(work, content=content, bleu=bleu and (lambda model: bleu(merge(model))))


def _name_of(folder: Path) -> str:
    """That of a model folder or, of one in a run, with the run's."""
    return f"{folder.parent.name}/{folder.name}" if folder.name in PLACES else folder.name


def matching(patterns: Sequence[str], names: Collection[str], *, where: str) -> list[str]:
    """The `names`, in their order, that one of the patterns matches, as a shell matches files.

    Raises:
        InputError: a pattern matches none; the message, in the name of the key `where`, has near ones.
    """
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            near = get_close_matches(pattern, _patterns_for(names), n=3)
            fix = f"near it are {', '.join(near)}" if near else f"there is {some_of(list(names), 3)}"
            raise InputError(f"the pattern {pattern!r} matches nothing in this model", where=where, fix=fix)
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]


def _patterns_for(names: Collection[str]) -> list[str]:
    """Patterns that match: each name, `layers.0.*` and so on, `*.query.weight` and so on."""
    found: dict[str, None] = {}
    for name in names:
        parts = name.split(".")
        found[name] = None
        for at in range(1, len(parts)):
            found[".".join([*parts[:at], "*"])] = None
            found[".".join(["*", *parts[at:]])] = None
    return list(found)
