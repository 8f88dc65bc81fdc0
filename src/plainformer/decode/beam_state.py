"""What a beam search carries from step to step: the query, which stays, and the state of the search."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp

from plainformer.decode.constraints import Constraints
from plainformer.decode.protocols import CachedDecoder, Hypotheses
from plainformer.decode.settings import Beam, EarlyStopping
from plainformer.shapes import Array, Bool, Float, Int

SLOTS = 16  # that a search has at first, or more


class Query(eqx.Module):
    """What is searched with.

    read: tokens that its state holds before the search begins, in the first of the `before` places that are kept for
        such; all rows see them.
    beam, early_stopping: as `GenerationSettings` have them.
    weights: one over the length penalty, for every length up to the longest bound.
    allowed_tokens: True on the ids that may be generated, None for all.
    """

    model: CachedDecoder
    read: Int[Array, ""]
    weights: Float[Array, " lengths"]
    allowed_tokens: Bool[Array, " tokens"] | None
    constraints: Constraints = eqx.field(static=True)
    n_best: int = eqx.field(static=True)
    beam: Beam = eqx.field(static=True)
    early_stopping: EarlyStopping = eqx.field(static=True)
    before: int = eqx.field(static=True, default=0)


class Search(eqx.Module):
    """The state of the loop. A row of a beam with log-probability -inf holds no hypothesis.

    decoder: the model's state; every leaf has the batch as its first axis.
    max_lengths: the most tokens of each sentence; 0 where there is none.
    step: how many tokens a sentence's live hypotheses have.
    start: the slot of their first one. Slots are a ring: their next token goes to the slot after the last, which is the
        same one for all sentences.
    last: the token that each row consumes next.
    ancestors: the row in which a hypothesis, or its ancestor, stood in a slot; -1 in the slots of other sentences.
    finished: those that left the beam, `count` of them.
    """

    decoder: Any
    max_lengths: Int[Array, " batch"]
    step: Int[Array, " batch"]
    start: Int[Array, " batch"]
    last: Int[Array, "batch beam"]
    ancestors: Int[Array, "batch beam slots"]
    tokens: Int[Array, "batch beam slots"]
    logprobs: Float[Array, "batch beam"]
    finished: Hypotheses
    count: Int[Array, " batch"]

    @property
    def active(self) -> Bool[Array, " batch"]:
        return jnp.any(self.logprobs > -jnp.inf, axis=1)

    @property
    def next_slot(self) -> Int[Array, ""]:
        """The slot of the next token of all sentences."""
        after = (self.start + self.step) % self.tokens.shape[2]
        return jnp.max(jnp.where(self.active, after, 0))

    @property
    def is_full(self) -> Bool[Array, ""]:
        """Whether a sentence that lives has a token in every slot."""
        return jnp.any(self.active & (self.step >= self.tokens.shape[2]))
