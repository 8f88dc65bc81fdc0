"""What a tree of modules holds, by its path in it: `encoder.layers.0.self_attention.query.weight`."""

from collections.abc import Callable
from typing import Any

import jax


def named_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> dict[str, Any]:
    """Every leaf by its name, in the order of the leaves; of modules, too, where `is_leaf` says so."""
    return {name_of(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree, is_leaf=is_leaf)}


def name_of(path: tuple[Any, ...]) -> str:
    """The name of a leaf, by its path as JAX gives it: fields and indices with dots between them."""
    return jax.tree_util.keystr(path, simple=True, separator=".")
