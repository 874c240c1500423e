"""Arithmetic on models: a model is a tree of arrays in nested dicts, as flax names them.

For schemes that compute with updates. All functions return arrays of numpy, in the types of their first argument, so
that results do not depend on a compiler, and can be kept in a checkpoint; types that numpy does not know (bfloat16)
become float32. This file needs no JAX.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tree = Any
"""An array, or a dict of trees."""


def tree_map(function: Callable[..., Any], tree: Tree, *others: Tree) -> Tree:
    """A tree with function(leaf, …) in the place of each leaf of trees of the same structure."""
    if isinstance(tree, dict):
        return {name: tree_map(function, tree[name], *(other[name] for other in others)) for name in sorted(tree)}
    return function(*map(_array, (tree, *others)))


def leaves(tree: Tree, name: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield (name, array) of each leaf, such as params.Dense_0.kernel, in the order of their names."""
    if not isinstance(tree, dict):
        yield name, _array(tree)
        return
    for key in sorted(tree):
        yield from leaves(tree[key], f"{name}.{key}" if name else str(key))


def split(tree: Tree) -> tuple[Tree, Tree]:
    """A model as what is trained, {"params": …}, and its statistics (BatchNorm's), which mostly is an empty dict."""
    if not isinstance(tree, dict) or "params" not in tree:
        return tree, {}
    return {"params": tree["params"]}, {name: branch for name, branch in tree.items() if name != "params"}


def cast_like(tree: Tree, like: Tree) -> Tree:
    """A tree in the types of another one, bfloat16 included."""
    if isinstance(tree, dict):
        return {name: cast_like(tree[name], like[name]) for name in tree}
    return np.asarray(tree).astype(np.asarray(like).dtype, copy=False)


def plain(value: Any) -> Any:
    """What a scheme remembers, with arrays of JAX as arrays of numpy, in dicts, lists and tuples."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value)) if type(value) in (list, tuple) else value
    return _array(value) if hasattr(value, "addressable_shards") else value  # an attribute of JAX's arrays only


def zeros(tree: Tree) -> Tree:
    """A tree of zeros."""
    return tree_map(np.zeros_like, tree)


def parameters_only(tree: Tree) -> Tree:
    """A tree with zeros in the place of statistics (BatchNorm's), which have no gradient."""
    return {name: branch if name == "params" else zeros(branch) for name, branch in tree.items()}


def minus(tree: Tree, other: Tree) -> Tree:
    """tree − other."""
    return tree_map(lambda a, b: a - b, tree, other)


def plus(tree: Tree, other: Tree, factor: float = 1.0) -> Tree:
    """tree + factor · other."""
    return tree_map(lambda a, b: _like(a, a + factor * b), tree, other)


def times(tree: Tree, factor: float) -> Tree:
    """factor · tree."""
    return tree_map(lambda a: _like(a, factor * a), tree)


def weighted_sum(trees: Sequence[Tree], weights: Sequence[float]) -> Tree:
    """Σ weight · tree, summed in the given order."""

    def add_up(*arrays: NDArray[Any]) -> NDArray[Any]:
        total = np.zeros(arrays[0].shape, np.float64)
        for array, weight in zip(arrays, weights, strict=True):
            total += weight * array
        return _like(arrays[0], total)

    return tree_map(add_up, *trees)


def mean(trees: Sequence[Tree]) -> Tree:
    """The mean of some trees."""
    return weighted_sum(trees, [1 / len(trees)] * len(trees))


def vector(tree: Tree) -> NDArray[np.float32]:
    """All numbers of a tree in one vector, in the order of `leaves`."""
    return np.concatenate([array.ravel().astype(np.float32) for _, array in leaves(tree)])


def from_vector(numbers: NDArray[Any], like: Tree) -> Tree:
    """The tree of which `vector` returned these numbers, with the structure and the types of `like`."""
    sizes = [array.size for _, array in leaves(like)]
    pieces = iter(np.split(numbers, np.cumsum(sizes)[:-1]))
    return tree_map(lambda leaf: _like(leaf, next(pieces).reshape(leaf.shape)), like)


def misfit(tree: Tree, like: Tree) -> str | None:
    """Why a tree has another structure than `like`, as a clause; None if it has the same."""
    own, wanted = dict(leaves(tree)), dict(leaves(like))
    if missing := wanted.keys() - own.keys():
        return f"it has no {min(missing)}"
    if more := own.keys() - wanted.keys():
        return f"the model has no {min(more) or 'single array'}"
    for name, array in own.items():
        if array.shape != wanted[name].shape:
            return f"{name} has the shape {array.shape}, and that of the model has {wanted[name].shape}"
        if array.dtype.kind not in "fiuV":
            return f"{name} does not hold numbers"
    return None


def _array(leaf: Any) -> NDArray[Any]:
    array = np.asarray(leaf)
    return array.astype(np.float32) if array.dtype.kind == "V" else array


def _like(array: NDArray[Any], result: NDArray[Any]) -> NDArray[Any]:
    return result.astype(array.dtype, copy=False)
