"""How a sublayer joins the residual stream: the paper's post-norm (section 5.4), or pre-norm."""

from collections.abc import Callable

import equinox as eqx
import jax

from plainformer.nn.dropout import Dropout
from plainformer.nn.norm import Norm, add_and_norm
from plainformer.shapes import Hidden, PRNGKeyArray

Sublayer = Callable[[Hidden], Hidden]


class PostNorm(eqx.Module):
    """LayerNorm(x + Dropout(Sublayer(x))): the paper."""

    norm: Norm
    dropout: Dropout

    def __call__(self, x: Hidden, sublayer: Sublayer, key: PRNGKeyArray | None) -> Hidden:
        return keep(add_and_norm(self.norm, x, sublayer(x), self.dropout, key))


class PreNorm(eqx.Module):
    """x + Dropout(Sublayer(LayerNorm(x))); the stack then ends with a norm of its own (Xiong et al. 2020)."""

    norm: Norm
    dropout: Dropout

    def __call__(self, x: Hidden, sublayer: Sublayer, key: PRNGKeyArray | None) -> Hidden:
        return keep(x + self.dropout(sublayer(self.norm(x)), key))


def keep(x: Hidden) -> Hidden:
    """`x`, computed once: a compiler that fuses would otherwise compute it again inside every operation that uses it,
    and with it all that came before it, since a residual stream is nothing but sums."""
    return jax.lax.optimization_barrier(x.reshape(-1, x.shape[-1])).reshape(x.shape)


Residual = PostNorm | PreNorm
