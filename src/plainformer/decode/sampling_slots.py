"""Texts that are drawn side by side while others come and go: every row has its own length, settings and key.

The caches are rings. A step writes one place of the ring, the same for all rows, so that a row's tokens are the last
ones that were written, as many as it has: it sees the places that are no older than its text. A text that comes in,
read elsewhere, is turned so that its last token stands just before the next place.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from plainformer.decode.constraints import penalise_repetition
from plainformer.decode.sampling import Choices, sample_each
from plainformer.decode.sampling_loop import Drawing, keys_of
from plainformer.equations.masks import AttentionMask
from plainformer.models.language_model import LanguageModel, LanguageModelState
from plainformer.nn.cache import CacheSlots, capacity, turned
from plainformer.programs.compiled import compiled
from plainformer.shapes import Array, Bool, Int, Key


class Texts(eqx.Module):
    """What each text needs for its next token.

    lengths: how many tokens of it the model has read, in the window that it sees.
    places: where the next token stands in the whole text.
    last: the token that is read next.
    seen: True on the tokens of the text. banned: on those that are never written.
    """

    lengths: Int[Array, " rows"]
    places: Int[Array, " rows"]
    last: Int[Array, " rows"]
    keys: Key[Array, " rows"]
    choices: Choices
    seen: Bool[Array, "rows vocab"]
    banned: Bool[Array, "rows vocab"]


class Slots(eqx.Module):
    """Texts and the model's state, in rows."""

    texts: Texts
    state: LanguageModelState


def text_of(drawing: Drawing, ids: list[int], start: int) -> Texts:
    """One text that has these tokens, and is seen from `start` on; all but the last of them have been read."""
    vocab = len(drawing.banned)
    seen = np.zeros((1, vocab), bool)
    seen[0, ids] = True
    return Texts(
        lengths=jnp.array([len(ids) - 1 - start], jnp.int32),
        places=jnp.array([len(ids)], jnp.int32),
        last=jnp.array([ids[-1]], jnp.int32),
        keys=keys_of(jnp.uint32(drawing.settings.seed), jnp.array([drawing.number], jnp.int32)),
        choices=Choices.of(drawing.settings, vocab),
        seen=jnp.asarray(seen),
        banned=jnp.asarray(drawing.banned[None, :]),
    )


@compiled
def empty(model: LanguageModel, rows: int, room: int) -> Slots:
    """So many rows without texts, with room for so many tokens each."""
    none, vocab = jnp.zeros(rows, jnp.int32), model.config.rows(model.config.vocab)
    nothing, unseen = jnp.zeros(rows, jnp.float32), jnp.zeros((rows, vocab), bool)
    keys = jax.vmap(jax.random.key)(jnp.zeros(rows, jnp.uint32))
    choices = Choices(none, nothing, none, nothing, nothing, nothing)
    return Slots(Texts(none, none, none, keys, choices, unseen, unseen), model.start(rows, room))


@compiled(donate=(2,))
def seat(text: Texts, state: LanguageModelState, slots: Slots, row: Int[Array, ""], turn: Int[Array, ""]) -> Slots:
    """The rows, whose memory this takes, with one more text in one of them, before the step that writes `turn`."""
    by = turn - text.lengths
    both = Slots(text, LanguageModelState(state.length, tuple(turned(cache, by) for cache in state.caches)))
    return jax.tree.map(lambda all, one: all.at[row].set(one[0]), slots, both)


@compiled
def rows_of(slots: Slots, rows: Int[Array, " others"]) -> Slots:
    """These rows."""
    return jax.tree.map(lambda leaf: leaf[rows], slots)


@compiled(donate=(1,))
def draw_next(model: LanguageModel, slots: Slots, turn: Int[Array, ""], active: Bool[Array, " rows"]) -> Slots:
    """The next token of each active text, which is its `last` then. Takes the memory of `slots`.

    It is drawn as `sampling_loop` draws it, with the key of its place. Of logits that are not finite it is none: the id
    behind the vocabulary's rows.
    """
    texts = slots.texts
    room = capacity(slots.state.caches)
    seen = ((turn - jnp.arange(room)) % room)[None, :] <= texts.lengths[:, None]
    mask = AttentionMask(seen[:, None, None, :], start=(turn + 1) % room)
    here = CacheSlots(turn, texts.lengths[:, None], mask, active=active[:, None])
    logits, state = model.extend(texts.last[:, None], slots.state, here)
    logits = jax.lax.cond(
        jnp.any(active & (texts.choices.penalty != 1.0)),
        partial(penalise_repetition, seen=texts.seen, penalty=texts.choices.penalty[:, None]),
        lambda logits: logits,
        logits[:, 0],
    )
    logits = jnp.where(texts.banned, -jnp.inf, logits)
    drawn = sample_each(logits, jax.vmap(jax.random.fold_in)(texts.keys, texts.places), texts.choices, active)
    after = Texts(
        texts.lengths + 1,
        texts.places + 1,
        drawn,
        texts.keys,
        texts.choices,
        texts.seen.at[jnp.arange(len(drawn)), drawn].set(True, mode="drop"),
        texts.banned,
    )
    return Slots(after, state)
