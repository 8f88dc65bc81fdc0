"""Going on with a text: token after token of a language model, many texts at once, in a compiled loop.

All rows stand at the same place. Where prompts differ in length, the longer ones are still being read while the
shorter ones are being written: a place that holds a token is read, one that holds none is written.

A text that outgrows the context is seen through a window (`window.py`). What stays in the window when it slides is read
anew, so that at any time the logits are those of the full forward of the window. `reference.continuation` is the
definition: the same tokens, in a dozen lines.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from plainformer.decode.batch import check_vocabulary, shaped
from plainformer.decode.constraints import generated_tokens, penalise_repetition
from plainformer.decode.sampling import sample
from plainformer.decode.settings import SamplingSettings
from plainformer.decode.sliding_window import window_start
from plainformer.errors import InputError, WorkError
from plainformer.models.language_model import LanguageModel, LanguageModelState
from plainformer.programs.compiled import compiled
from plainformer.renamed import old_arguments
from plainformer.shapes import Array, Bool, Int, Key, UInt32

UNWRITTEN = -1
ROUND = 64  # texts and windows have room for a multiple of this, so that texts of like length share a program
# What is known is read in pieces: how long they are, and for how many tokens or more. A longer one reads the weights
# less often; a few lengths are few shapes to compile, and the longest bounds the memory. A prompt that is no longer
# than the shortest is read token by token, by the program that writes: one less to compile.
PIECES = (256, 256), (64, 33), (16, 1)
SHORT = 16


class _Pages(eqx.Module):
    """What the loop carries. Places are counted from the first token of the prompts.

    texts: the tokens, `UNWRITTEN` where there are none yet, the id behind the last where logits were no numbers.
    ends: how long each text may become; how long it is, once it has ended.
    start: where the window begins.
    state: the model's, which has read the window up to, not including, the place `at`.
    """

    texts: Int[Array, "rows places"]
    ends: Int[Array, " rows"]
    start: Int[Array, ""]
    state: LanguageModelState

    @property
    def at(self) -> Int[Array, ""]:
        return self.start + self.state.length[0]


@dataclass(frozen=True, eq=False)
class Drawing:
    """What one text is drawn by.

    prompt: token ids. number: among the samples of the prompt.
    most: the most tokens that may follow.
    banned: True on the rows of the vocabulary that are never written. closing: the ids that end the text.
    """

    model: LanguageModel
    prompt: list[int]
    settings: SamplingSettings
    number: int
    most: int
    banned: Bool[np.ndarray, " vocab"]
    closing: frozenset[int]

    @classmethod
    def of(
        cls,
        model: LanguageModel,
        prompt: list[int],
        settings: SamplingSettings,
        *,
        number: int = 0,
        suppress_tokens: Sequence[int] = (),
        eos: int | None = None,
    ) -> "Drawing":
        """Arguments and errors as those of `continuations`."""
        (length,) = _checked_lengths([prompt], model.config.vocab)
        banned, closing = _banned_and_closing(model, settings, suppress_tokens, eos)
        return cls(
            model,
            prompt,
            settings,
            number,
            _most_new_tokens(length, settings),
            banned,
            frozenset(closing) - {UNWRITTEN},
        )


def _banned_and_closing(
    model: LanguageModel, settings: SamplingSettings, suppress_tokens: Sequence[int], eos: int | None
) -> tuple[Bool[np.ndarray, " vocab"], tuple[int, ...]]:
    """True on the rows of the vocabulary that are never written, and what ends a text."""
    banned = np.zeros(model.config.rows(model.config.vocab), bool)
    banned[[*suppress_tokens, *settings.suppress_tokens]] = True
    return banned, settings.end_tokens or (UNWRITTEN if eos is None else eos,)


@old_arguments
def continuations(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    settings: SamplingSettings,
    *,
    numbers: Sequence[int] | None = None,
    suppress_tokens: Sequence[int] = (),
    eos: int | None = None,
    burst: int = 64,
    on_slide: Callable[[], None] = lambda: None,
) -> Iterator[list[list[int]]]:
    """What comes after each prompt: at every turn the next tokens of each row, until all have ended.

    A row ends with `eos`, or one of the settings' `end_tokens` where these are named, which is not given out, or after
    as many tokens as the settings have room for. Rows do not depend on each other.

    Args:
        prompts: token ids, at least one each.
        numbers: the number of each row among the samples of its prompt (0 by default), which its choices depend on.
        suppress_tokens: ids that are never generated, beside the settings' own.
        burst: the most tokens that a turn brings; 1 to see each as it comes.
        on_slide: called whenever a text does not fit the context and a window of it is opened.

    Raises InputError for a prompt that is empty, has an id outside the vocabulary or leaves no room for any token,
    WorkError for outputs of the model that are not finite.
    """
    if not prompts:
        return
    config, lengths = model.config, _checked_lengths(prompts, model.config.vocab)
    ends = np.array([length + _most_new_tokens(length, settings) for length in lengths], np.int32)
    texts = np.full((len(prompts), round_up(int(ends.max()))), UNWRITTEN, np.int32)
    for row, prompt in enumerate(prompts):
        texts[row, : len(prompt)] = prompt
    capacity = min(round_up(int(ends.max())), config.context)
    keys = keys_of(jnp.uint32(settings.seed), jnp.asarray(numbers or [0] * len(prompts), jnp.int32))
    banned, closing = _banned_and_closing(model, settings, suppress_tokens, eos)
    # What is not compiled in may change without compiling anew.
    constants = (
        jnp.asarray(banned),
        jnp.array(closing, jnp.int32),
        replace(settings, seed=0, max_tokens=1, max_length=0, end_tokens=(), suppress_tokens=()),
    )
    least = min(lengths)  # tokens that every row has
    known = 1 if least <= SHORT else least
    _compile_ahead(model, texts.shape, capacity, _lengths_read(known, int(ends.max()), config.context), keys, constants)
    while (ends > known).any():
        start = window_start(known, config.context)
        if start:
            on_slide()
        state = read(model, texts[:, start : known - 1], capacity)
        pages = _Pages(jnp.asarray(texts), jnp.asarray(ends), jnp.int32(start), state)
        full = start + config.context + 1  # the last token of the window predicts one more
        while known < full and (ends > known).any():
            before, known = known, min(max(known, least) + burst, full, int(ends.max()))
            pages = _write(model, pages, jnp.int32(known), keys, *constants)
            texts, ends = _texts_and_ends(pages, config.rows(config.vocab))
            rows = zip(texts, lengths, ends, strict=True)
            yield [text[max(before, length) : min(known, end)].tolist() for text, length, end in rows]


def _most_new_tokens(prompt: int, settings: SamplingSettings) -> int:
    """How many tokens may follow a prompt of so many. Raises InputError where there is room for none."""
    most = settings.max_new_tokens(prompt)
    if most < 1:
        what = f"the prompt has {prompt:,} tokens, and with max_length {settings.max_length:,} none may follow"
        raise InputError(what, fix="give a shorter prompt, or max_tokens instead")
    return most


def _checked_lengths(prompts: Sequence[Sequence[int]], vocab: int) -> list[int]:
    """The lengths of prompts. Raises InputError as `continuations`."""
    check_vocabulary(prompts, vocab, "prompt")
    lengths = [len(prompt) for prompt in prompts]
    if not all(lengths):
        raise InputError("the prompt is empty", where=f"prompt {lengths.index(0) + 1}", fix="give at least one token")
    return lengths


def _lengths_read(known: int, last: int, context: int) -> set[int]:
    """How many tokens are read at first, and whenever a text of up to `last` tokens outgrows the context."""
    found = {known - 1 - window_start(known, context)}
    return found | {context - window_start(context + 1, context)} if last > context else found


def _texts_and_ends(pages: _Pages, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """What was written. Raises WorkError where a token is none of the vocabulary's `rows`: what `sample` makes of NaN.

    Behind its end a text is written as long as other rows go on, and that part is cut off.
    """
    texts, ends = np.asarray(pages.texts), np.asarray(pages.ends)
    is_read = np.arange(texts.shape[1])[None, :] < ends[:, None]
    if (is_read & (texts >= rows)).any():
        raise not_finite()
    return texts, ends


def not_finite() -> WorkError:
    """The error of a text in which no token could be drawn."""
    fix = "check that its weights are finite: training may have diverged"
    return WorkError("the model's log-probabilities are not finite", fix=fix)


def round_up(length: int) -> int:
    return -(-length // ROUND) * ROUND


def read(model: LanguageModel, ids: np.ndarray, capacity: int) -> LanguageModelState:
    """The model's state after reading `ids` (rows, seq), none of them perhaps, for `capacity` tokens in all."""
    rows, length = ids.shape
    state, done = _start(model, rows, capacity), 0
    for piece in _pieces(length, min(capacity, model.config.context)):
        # The last piece is filled up: what is written beyond the length is hidden, and soon written over.
        tokens = ids[:, done : done + piece]
        filled = np.pad(tokens, ((0, 0), (0, piece - tokens.shape[1])))
        state = _read(model, jnp.asarray(filled), state)
        done += piece
    return replace(state, length=jnp.asarray(np.full(rows, length, np.int32)))


def _pieces(length: int, places: int) -> Iterator[int]:
    """How long the pieces are in which so many tokens are read, into so many places."""
    done = 0
    while done < length:
        piece = next((long for long, least in PIECES if length - done >= least and long <= places - done), 1)
        yield piece
        done += piece


def _compile_ahead(
    model: LanguageModel,
    shape: tuple[int, ...],
    capacity: int,
    reads: Collection[int],
    keys: Key[Array, " rows"],
    constants: Sequence[Any],
) -> None:
    """Have what writes texts of this shape, and reads so many tokens, compiled side by side."""
    if (state := _start.ahead(model, shape[0], capacity)) is None:
        return

    def begun(state: LanguageModelState) -> _Pages:
        return _Pages(jnp.zeros(shape, jnp.int32), jnp.zeros(shape[:1], jnp.int32), jnp.int32(0), state)

    pages = jax.eval_shape(begun, state)
    _write.ahead(model, pages, pages.start, keys, *constants)
    for piece in {piece for length in reads for piece in _pieces(length, min(capacity, model.config.context))}:
        _read.ahead(model, shaped(shape[0], piece), state)


@compiled
def _start(model: LanguageModel, rows: int, capacity: int) -> LanguageModelState:
    """All caches by one program: each array that is made by itself keeps a GPU waiting for as long as it takes."""
    return model.start(rows, capacity)


@compiled
def _read(model: LanguageModel, ids: Int[Array, "rows piece"], state: LanguageModelState) -> LanguageModelState:
    return model.extend(ids, state)[1]


@jax.jit
def keys_of(seed: UInt32[Array, ""], numbers: Int[Array, " rows"]) -> Key[Array, " rows"]:
    return jax.vmap(lambda number: jax.random.fold_in(jax.random.key(seed), number))(numbers)


@compiled
def _write(
    model: LanguageModel,
    pages: _Pages,
    until: Int[Array, ""],
    keys: Key[Array, " rows"],
    banned: Bool[Array, " vocab"],
    closing: Int[Array, " ends"],
    settings: SamplingSettings,
) -> _Pages:
    """Go on until every row has `until` tokens, or has ended."""

    def step(pages: _Pages) -> _Pages:
        texts, place = pages.texts, pages.at + 1
        logits, state = model.extend(texts[:, pages.at][:, None], pages.state)
        logits = logits[:, 0]
        if settings.repetition_penalty != 1.0:
            seen = generated_tokens(texts, jnp.broadcast_to(place, texts.shape[:1]), logits.shape[-1])
            logits = penalise_repetition(logits, seen, settings.repetition_penalty)
        logits = jnp.where(jnp.broadcast_to(banned, logits.shape), -jnp.inf, logits)
        # The token at a place of a text is drawn with the key of that place, wherever the window stands.
        drawn = sample(logits, jax.vmap(jax.random.fold_in, (0, None))(keys, place), settings)
        unwritten = texts[:, place] == UNWRITTEN
        ended = unwritten & jnp.any(drawn[:, None] == closing[None, :], axis=1) & (place < pages.ends)
        return _Pages(
            texts=texts.at[:, place].set(jnp.where(unwritten, drawn, texts[:, place])),
            ends=jnp.where(ended, place, pages.ends),
            start=pages.start,
            state=state,
        )

    def goes_on(pages: _Pages) -> Bool[Array, ""]:
        known = pages.at + 1
        return (known < until) & jnp.any(pages.ends > known)

    return jax.lax.while_loop(goes_on, step, pages)
