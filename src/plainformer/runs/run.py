"""A training run from a recipe: text to batches, model, loop, and the folders it leaves behind."""

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import optax
from jax.sharding import Mesh

from plainformer.data.part import WHOLE
from plainformer.errors import InputError
from plainformer.extras import require
from plainformer.folder import KINDS, AnyConfig, Model, model_type_of
from plainformer.given import callables, instance, place
from plainformer.kernels.cpu import build
from plainformer.models.build import count_parameters
from plainformer.nn.stack import scanned, unstack_layers
from plainformer.programs import kept
from plainformer.recipe import ClassificationRecipe, LanguageRecipe, MaskedRecipe, Recipe, TranslationRecipe
from plainformer.runs.capsule import Recorder
from plainformer.runs.classification import ClassificationTask
from plainformer.runs.finetune import Tuning, tune
from plainformer.runs.folder import begin_run, check_folder, keep_model, keep_settings, old_tokenizers
from plainformer.runs.language import LanguageTask
from plainformer.runs.lock import RunLock
from plainformer.runs.masked import MaskedTask
from plainformer.runs.optimizer import optimizer_of as optimizer_of, schedule_of as schedule_of
from plainformer.runs.task import Console, PreparedTask, Task, Tokenizers
from plainformer.runs.translation import TranslationTask
from plainformer.shapes import PRNGKeyArray
from plainformer.train.average import average
from plainformer.train.checkpoint import Checkpoints
from plainformer.train.divergence import Divergence, make_norms
from plainformer.train.log import Log, Silent
from plainformer.train.loop import LoopHooks, LoopSettings, Progress, train
from plainformer.train.mesh import check_mesh, first_state, make_mesh, part_of, rows_of, split_batch, spread
from plainformer.train.processes import from_first, is_first, meet, of_first, whole
from plainformer.train.scan import least_in_loop
from plainformer.train.state import TrainState, initial_state
from plainformer.train.step import Step, StepSettings, make_evaluation, make_step


def open_task(recipe: Recipe) -> Task:
    """What a recipe is about, its text read. Raises InputError where that is missing or broken."""
    match recipe:
        case TranslationRecipe():
            return TranslationTask(recipe)
        case LanguageRecipe():
            return LanguageTask(recipe)
        case MaskedRecipe():
            return MaskedTask(recipe)
        case ClassificationRecipe():
            return ClassificationTask(recipe)
    raise InputError(f"there is no task {recipe.task!r}")


def run_recipe(
    recipe: Recipe,
    folder: str | PathLike[str],
    *,
    resume: bool = False,
    overwrite: bool = False,
    say: Callable[[str], None] = print,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> str:
    """Train as `recipe` says, in `folder`; returns why it ended: "done", "patience" or "signal".

    Args:
        resume: go on from the newest checkpoint; what comes out is what one uninterrupted run would have given.
        overwrite: start afresh where a run is.
        say: told what happens, line by line.
        progress: told how much of a long preparation is done: what it is, done, all.

    Raises:
        InputError: recipe, data or folder will not do, or they changed since the run began.
        WorkError: numbers that are not finite, or a disk that is full.
    """
    recipe, folder, say, progress = _given(recipe, folder, say, progress)
    with RunLock(folder, wanted=is_first()) as lock:
        resume = from_first(partial(check_folder, recipe, folder, resume=resume, overwrite=overwrite, say=say))
        task = open_task(recipe)
        tokenizers, work, mesh = _prepare(task, recipe, folder if resume else None, Console(say, progress))

        init_key, dropout_key, pairs_key = _keys(recipe.train.seed)
        optimizer = optimizer_of(recipe, schedule := schedule_of(recipe, work.config.d_model))
        step = _begun_step(work, recipe, optimizer, init_key, dropout_key, mesh) if task.pretrained is None else None
        begun = partial(_begun_model, work, recipe, task, init_key, pairs_key)
        model, frozen, work = begun(say)
        state, reached = first_state(model, optimizer, frozen, mesh), Progress()
        step = step or _step_of(work, recipe, optimizer, frozen, dropout_key, mesh)
        least = least_in_loop(recipe.train.scan, optimizer=recipe.optimizer.name, frozen=frozen)
        del model  # which the state has, and may give up

        seen = _seen_through(work, recipe, folder, mesh, least)
        # Only now: input that will not do leaves the disk as it was, and an older run where it is.
        lock.take()
        _begin(recipe, folder, task, tokenizers, resume=resume, say=say)
        with _open_checkpoints(folder, recipe, frozen, say) as checkpoints:
            if resume and (restored := checkpoints.restore(state)):
                state, reached = restored.state, Progress.from_notes(restored.notes)
                say(f"resuming after step {int(state.step):,}")
            looped = partial(_in_loops, least, mesh)
            state = looped(say, state)
            log = _open_log(folder, recipe, int(state.step), work.unit)
            step.compiling, step.compiled = lambda number: log.compiling(number, work.shapes), log.compiled
            again = partial(looped, _silent), lambda: first_state(begun(_silent).model, optimizer, frozen, mesh)
            explain = Recorder(recipe, folder, frozen, dropout_key, seen["batches"], step, *again, checkpoints, log.say)
            norms = _norms(work, recipe, optimizer, frozen, dropout_key)
            seen |= {"explain": explain, "divergence": Divergence(log.say), "norms": norms}
            hooks = LoopHooks(step=step, schedule=schedule, checkpoints=checkpoints, log=log, **seen)
            with closing(log):
                state, reason = train(state, reached, _loop_settings(recipe), hooks)
                if reason != "signal":
                    state = unstack_layers(state)
                    _finish(state.model, checkpoints.models(state), folder, work, hooks, say)
    return reason


def _prepare(task: Task, recipe: Recipe, old: Path | None, console: Console) -> tuple[Tokenizers, PreparedTask, Mesh]:
    """Tokenizers, the `old` run's or new ones; batches, objective and devices."""
    mesh = make_mesh(recipe.train.mesh)
    tokenizers = old_tokenizers(task, old) if old else task.learn_tokenizers(console)
    if recipe.train.tensorboard:
        require("tensorboardX", extra="tensorboard")
    task.check_needs()
    work = task.prepare(tokenizers, rows_of(mesh), console)
    for notice in check_mesh(work.config, mesh):
        console.say(notice)
    return tokenizers, work, mesh


@partial(jax.jit, static_argnums=0)
def _keys(seed: int) -> tuple[PRNGKeyArray, PRNGKeyArray, PRNGKeyArray]:
    """Keys by role, so that one more dropout layer changes neither the initial weights nor the order of the data: for
    initial weights, for dropout, and for LoRA's pairs."""
    key = jax.random.key(seed)
    return jax.random.fold_in(key, 0), jax.random.fold_in(key, 1), jax.random.fold_in(key, 2)


def _given(recipe: Any, folder: Any, say: Any, progress: Any) -> tuple[Recipe, Path, Any, Any]:
    """The recipe, with absolute paths, the folder, and who is told: by the first process alone.

    Raises InputError for what is of the wrong type.
    """
    callables(say=say, progress=progress)
    checked = instance(recipe, Recipe, "recipe", 'give plainformer.load_recipe("demo"), or of your file')
    return checked.anchored(), place(folder, "a folder for the run"), of_first(say), of_first(progress)


def _begin(
    recipe: Recipe, folder: Path, task: Task, tokenizers: Tokenizers, *, resume: bool, say: Callable[[str], None]
) -> None:
    """Begin the run on disk, and say what else its first step will wait for."""
    if is_first():
        begin_run(recipe, folder, task, tokenizers, resume=resume)
    meet()
    if build.is_making():
        say("CPU kernels are being compiled, the first time")


def _new_model(config: AnyConfig, key: PRNGKeyArray) -> Model:
    return KINDS[model_type_of(config)].model(config, key=key)


def _begun_model(
    work: PreparedTask,
    recipe: Recipe,
    task: Task,
    key: PRNGKeyArray,
    pairs_key: PRNGKeyArray,
    say: Callable[[str], None],
) -> Tuning:
    """The model that training starts from: a new one, or another's, made ready to be tuned."""
    model = (work.initial or _new_model)(work.config, key)
    say(f"model: {count_parameters(model):,} parameters")
    return tune(work, model, recipe.tune, task.pretrained, pairs_key, say)


def _silent(line: str) -> None:
    pass


def _open_checkpoints(folder: Path, recipe: Recipe, frozen: frozenset[str], say: Callable[[str], None]) -> Checkpoints:
    keep, every = recipe.train.keep_last, recipe.train.save_every
    return Checkpoints(folder / "checkpoints", keep=keep, every=every, frozen=frozen, say=say)


def _open_log(folder: Path, recipe: Recipe, start: int, unit: str) -> Log:
    if not is_first():
        return Silent(unit=unit)
    return Log(folder, steps=recipe.train.steps, start=start, tensorboard=recipe.train.tensorboard, unit=unit)


def _in_loops(least: int | None, mesh: Mesh, say: Callable[[str], None], state: TrainState) -> TrainState:
    looped = scanned(state, least)
    if jax.tree.structure(looped) == jax.tree.structure(state):
        return looped
    say("layers run in a loop (train.scan)")
    return spread(looped, mesh)


def _norms(
    work: PreparedTask,
    recipe: Recipe,
    optimizer: optax.GradientTransformation,
    frozen: frozenset[str],
    key: PRNGKeyArray,
) -> Callable[[TrainState, Any], Any] | None:
    """What logs norms by parameter, where that is asked for."""
    if not recipe.train.log_norms:
        return None
    return make_norms(work.objective, optimizer, _step_settings(recipe, frozen), key)


def _step_of(
    work: PreparedTask,
    recipe: Recipe,
    optimizer: optax.GradientTransformation,
    frozen: frozenset[str],
    key: PRNGKeyArray,
    mesh: Mesh,
) -> Step:
    """The task's step."""
    made_of = recipe.optimizer.model_dump(), recipe.schedule.model_dump(), work.config.d_model, recipe.train.steps
    return make_step(work.objective, optimizer, _step_settings(recipe, frozen), key, made_of=made_of, mesh=mesh)


def _step_settings(recipe: Recipe, frozen: frozenset[str]) -> StepSettings:
    how = recipe.train
    return StepSettings(how.accumulate, how.compute_dtype, frozen, how.remat)


def _begun_step(
    work: PreparedTask,
    recipe: Recipe,
    optimizer: optax.GradientTransformation,
    init_key: PRNGKeyArray,
    key: PRNGKeyArray,
    mesh: Mesh,
) -> Step:
    """The step of a new model. Its first program is compiled in the background, while weights are drawn; where CPU
    kernels are still being made, which it would wait for, weights come first."""
    step = _step_of(work, recipe, optimizer, frozenset(), key, mesh)
    least = least_in_loop(recipe.train.scan, optimizer=recipe.optimizer.name, frozen=())
    if jax.device_count() == 1 and kept.is_on() and not build.is_making():

        def first_state(key: PRNGKeyArray) -> TrainState:
            return scanned(initial_state(_new_model(work.config, key), optimizer), least)

        step.ahead(eqx.filter_eval_shape(first_state, init_key), next(iter(work.batches(1, 1, WHOLE))))
    return step


def _seen_through(work: PreparedTask, recipe: Recipe, folder: Path, mesh: Mesh, least: int | None) -> dict[str, Any]:
    """What the loop asks of the task, its batches spread over the devices, stacks of `least` layers in loops."""
    evaluate = make_evaluation(work.objective, recipe.train.compute_dtype, mesh)
    dev_batches = [split_batch(batch, mesh) for batch in work.dev_batches()]
    part, steps = part_of(mesh), recipe.train.steps
    return {
        "batches": lambda first: (split_batch(batch, mesh, part) for batch in work.batches(first, steps, part)),
        "evaluate": lambda model: evaluate(scanned(model, least), dev_batches),
        "describe": work.describe,
        "translate": work.bleu and partial(_by_first, work.bleu),
        "samples": (look := work.samples) and partial(_by_first, lambda model: [*look(model)]),
        "keep_best": lambda model: _keep(model, folder / "best", work),
    }


def _by_first(look: Callable[[Any], Any], model: Any) -> Any:
    """What `look` finds of a model, which is brought together for it, in the first process for all of them."""
    model = whole(model)
    return from_first(lambda: look(model))


def _keep(model: Any, folder: Path, work: PreparedTask) -> None:
    """`keep_model` of a model that may be spread over devices and processes."""
    _by_first(lambda model: keep_model(model, folder, work), model)


def _finish(
    last: Any,
    models: Sequence[eqx.Module],
    folder: Path,
    work: PreparedTask,
    hooks: LoopHooks,
    say: Callable[[str], None],
) -> None:
    """Leave the last model and the average of the kept checkpoints, and say how well the average does."""
    _keep(last, folder / "last", work)
    mean = average(models)
    _keep(mean, folder / "average", work)
    _by_first(lambda last: keep_settings(last, folder / "best", work), last)
    if hooks.evaluate is not None:
        sums = jax.device_get(hooks.evaluate(mean))
        nll = float(sums.nll / sums.tokens)
        more = "".join(f", {name} {value:z.4f}" for name, value in work.describe(nll).items())
        those = "the last checkpoint" if len(models) == 1 else f"the last {len(models)} checkpoints"
        say(f"average of {those}: dev nll {nll:z.4f}{more}")


def _loop_settings(recipe: Recipe) -> LoopSettings:
    names = ("steps", "log_every", "evaluate_every", "save_every", "bleu_every", "best_by", "patience")
    options = recipe.train
    return LoopSettings(**{name: getattr(options, name) for name in names if hasattr(options, name)})
