"""A training run from a recipe: text to batches, model, loop, and the folders it leaves behind."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import optax

from plainformer.data import Pairs
from plainformer.data.loader import PairLoader
from plainformer.decode.settings import GenerationSettings
from plainformer.decode.translator import Translator
from plainformer.evaluate.bleu import check_tokenizer, score_translations
from plainformer.extras import require
from plainformer.models.parts import count_parameters
from plainformer.models.transformer import Transformer
from plainformer.objective import TranslationObjective
from plainformer.recipe import Recipe
from plainformer.runs.folder import begin_run, check_folder, generation_of, keep_model, new_tokenizers, old_tokenizers
from plainformer.runs.text import Say, Text, Tokenizers, encode, make_loader, read_text, say_shapes
from plainformer.train.average import average
from plainformer.train.checkpoint import Checkpoints
from plainformer.train.log import Log
from plainformer.train.loop import LoopSettings, Progress, Surroundings, train
from plainformer.train.mesh import data_mesh, replicate, split_batch
from plainformer.train.optimizer import make_optimizer
from plainformer.train.schedule import Schedule, make_schedule
from plainformer.train.state import initial_state
from plainformer.train.step import StepSettings, make_evaluation, make_step


def run_recipe(recipe: Recipe, folder: Path, *, resume: bool = False, overwrite: bool = False, say: Say = print) -> str:
    """Train as `recipe` says, in `folder`; returns why it ended: "done", "patience" or "signal".

    Args:
        resume: go on from the newest checkpoint; what comes out is what one uninterrupted run would have given.
        overwrite: start afresh where a run is.

    Raises:
        InputError: recipe, data or folder will not do, or they changed since the run began.
        WorkError: numbers that are not finite, or a disk that is full.
    """
    resume = check_folder(recipe, folder, resume=resume, overwrite=overwrite, say=say)
    text = read_text(recipe)
    tokenizers = old_tokenizers(text, folder) if resume else new_tokenizers(recipe, text, say)
    mesh = data_mesh(recipe.train.mesh)
    _check_needs(recipe)
    loader, dev_loader, dev = _loaders(recipe, text, tokenizers, mesh.size, say)

    # Keys by role, so that one more dropout layer changes neither the initial weights nor the order of the data.
    init_key, dropout_key = (jax.random.fold_in(jax.random.key(recipe.train.seed), role) for role in (0, 1))
    config = recipe.model.config(source_vocab=tokenizers.source.vocab_size, target_vocab=tokenizers.target.vocab_size)
    model = Transformer(config, key=init_key)
    say(f"model: {count_parameters(model):,} parameters")
    schedule = schedule_of(recipe, config.d_model)
    optimizer = optimizer_of(recipe, schedule)
    state, progress = replicate(initial_state(model, optimizer), mesh), Progress()

    # Only now: input that will not do leaves the disk as it was, and an older run where it is.
    begin_run(recipe, folder, text, tokenizers, resume=resume)
    keep, every = recipe.train.keep_last, recipe.train.save_every
    checkpoints = Checkpoints(folder / "checkpoints", keep=keep, every=every, say=say)
    if resume and (restored := checkpoints.restore(state)):
        state, progress = restored.state, Progress.from_notes(restored.notes)
        say(f"resuming after step {int(state.step):,}")
    objective = TranslationObjective(recipe.loss.label_smoothing)
    evaluate = make_evaluation(objective, recipe.train.compute_dtype)
    dev_batches = [split_batch(batch, mesh) for batch in dev_loader.in_order()]

    steps, settings = recipe.train.steps, StepSettings(recipe.train.accumulate, recipe.train.compute_dtype)
    log = Log(folder, steps=steps, start=int(state.step), tensorboard=recipe.train.tensorboard)
    around = Surroundings(
        batches=lambda first: (split_batch(batch, mesh) for batch in loader.batches(first, steps)),
        step=make_step(objective, optimizer, settings, dropout_key),
        schedule=schedule,
        checkpoints=checkpoints,
        log=log,
        evaluate=lambda model: evaluate(model, dev_batches),
        translate=_dev_bleu(recipe, dev, tokenizers) if recipe.train.bleu_every else None,
        keep_best=lambda model: keep_model(model, folder / "best", recipe, tokenizers),
    )
    try:
        state, reason = train(state, progress, _loop_settings(recipe), around)
        if reason != "signal":
            _finish(state.model, checkpoints.models(state), folder, recipe, tokenizers, around, say)
    finally:
        log.close()
    checkpoints.close()
    return reason


def _loaders(
    recipe: Recipe, text: Text, tokenizers: Tokenizers, devices: int, say: Say
) -> tuple[PairLoader, PairLoader, Pairs]:
    """Batches to train on, batches to watch, and the pairs of the latter. The ids are kept by the loaders alone."""
    train_set, dev_set = encode(recipe, text, tokenizers, say)
    loader = make_loader(recipe, train_set, tokenizers, multiple=devices * recipe.train.accumulate)
    say_shapes(loader, say)
    return loader, make_loader(recipe, dev_set, tokenizers, multiple=devices), dev_set.pairs


def _finish(
    last: eqx.Module,
    kept: Sequence[eqx.Module],
    folder: Path,
    recipe: Recipe,
    tokenizers: Tokenizers,
    around: Surroundings,
    say: Say,
) -> None:
    """Leave the last model and the average of the kept checkpoints, and say how well the average does."""
    keep_model(last, folder / "last", recipe, tokenizers)
    mean = average(kept)
    keep_model(mean, folder / "average", recipe, tokenizers)
    if around.evaluate is not None:
        sums = jax.device_get(around.evaluate(mean))
        say(f"average of the last {len(kept)} checkpoints: dev nll {float(sums.nll / sums.tokens):.4f}")


def _check_needs(recipe: Recipe) -> None:
    """Raise InputError now where something would be missing only at the end of the training."""
    if recipe.train.tensorboard:
        require("tensorboardX", extra="tensorboard")
    if recipe.data.test or recipe.train.bleu_every:
        check_tokenizer(recipe.evaluate.tokenize)


def schedule_of(recipe: Recipe, d_model: int) -> Schedule:
    """The learning rate of each step that a recipe states."""
    return make_schedule(**recipe.schedule.model_dump(), d_model=d_model, steps=recipe.train.steps)


def optimizer_of(recipe: Recipe, schedule: Schedule) -> optax.GradientTransformation:
    """The optimizer that a recipe states."""
    return make_optimizer(schedule, **recipe.optimizer.model_dump())


def _loop_settings(recipe: Recipe) -> LoopSettings:
    names = ("steps", "log_every", "evaluate_every", "save_every", "bleu_every", "best_by", "patience")
    return LoopSettings(**{name: getattr(recipe.train, name) for name in names})


def _dev_bleu(recipe: Recipe, dev: Pairs, tokenizers: Tokenizers) -> Callable[[eqx.Module], float]:
    """BLEU of greedy translations of the first `bleu_sentences` of the dev set."""
    count = recipe.train.bleu_sentences or len(dev)
    greedy = replace(GenerationSettings(**generation_of(recipe)), beam_size=1, n_best=1)

    def bleu(model: eqx.Module) -> float:
        assert isinstance(model, Transformer)
        translator = Translator(model, tokenizers.source, tokenizers.target, greedy)
        options = recipe.evaluate
        return score_translations(
            translator.translate(dev.source[:count]),
            dev.target[:count],
            tokenize=options.tokenize,
            lowercase=options.lowercase,
        ).bleu

    return bleu
