"""How a sublayer joins the residual stream: the paper's post-norm (section 5.4), or pre-norm."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax

from plainformer.nn.dropout import Dropout
from plainformer.nn.norm import Norm
from plainformer.shapes import Hidden, PRNGKeyArray

Sublayer = Callable[[Hidden], Hidden]
StatefulSublayer = Callable[[Hidden], tuple[Hidden, Any]]


class PostNorm(eqx.Module):
    """LayerNorm(x + Dropout(Sublayer(x))): the paper."""

    norm: Norm
    dropout: Dropout

    def __call__(self, x: Hidden, sublayer: Sublayer, key: PRNGKeyArray | None) -> Hidden:
        return keep(self.norm.add(x, sublayer(x), self.dropout, key))

    def with_state(self, x: Hidden, sublayer: StatefulSublayer) -> tuple[Hidden, Any]:
        """The same, without dropout, of a sublayer that gives a state beside its output; and that state."""
        y, state = sublayer(x)
        return keep(self.norm.add(x, y, self.dropout, None)), state


class PreNorm(eqx.Module):
    """x + Dropout(Sublayer(LayerNorm(x))); the stack then ends with a norm of its own (Xiong et al. 2020)."""

    norm: Norm
    dropout: Dropout

    def __call__(self, x: Hidden, sublayer: Sublayer, key: PRNGKeyArray | None) -> Hidden:
        return keep(x + self.dropout(sublayer(self.norm(x)), key))

    def with_state(self, x: Hidden, sublayer: StatefulSublayer) -> tuple[Hidden, Any]:
        """The same, without dropout, of a sublayer that gives a state beside its output; and that state."""
        y, state = sublayer(self.norm(x))
        return keep(x + y), state


def keep(x: Hidden) -> Hidden:
    """`x`, computed once: a compiler that fuses would otherwise compute it again inside every operation that uses it,
    and with it all that came before it, since a residual stream is nothing but sums."""
    return jax.lax.optimization_barrier(x.reshape(-1, x.shape[-1])).reshape(x.shape)


Residual = PostNorm | PreNorm
