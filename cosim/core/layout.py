"""A tree of named arrays as one flat vector, and back; on numbers and on symbols."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Array, Numeric, State

_NUMBERS = {float, np.float64}


class Region(NamedTuple):
    """A slice of a flat vector, and the shape of the array in it."""

    where: slice
    shape: tuple[int, ...]


class Layout:
    """The location of each array of a nested dict in the flat vector, from an example of the dict."""

    def __init__(self, example: State) -> None:
        self.places: dict[tuple[str, ...], tuple[slice, tuple[int, ...]]] = {}
        self.size = 0
        for path, value in leaves(example):
            shape = np.shape(value)
            n = int(np.prod(shape, dtype=int))
            self.places[path] = slice(self.size, self.size + n), shape
            self.size += n
        self._example = example
        self._indices = _indices(example, self.places, lambda where: (where.start, ...))
        self._number_indices = _indices(example, self.places, lambda where: where.start)
        # whether it is flat, and all of it are scalars
        self.scalar = all(shape == () and len(path) == 1 for path, (_, shape) in self.places.items())
        self._scalars = example.keys() if self.scalar and example else None

    def pack(self, tree: State) -> Numeric:
        """The flat vector (size,) of a tree with the keys and shapes of the example. Raises ValueError for others."""
        if (numbers := self._numbers_of(tree)) is not None:
            return np.array(numbers)
        found = self.check(tree)
        return ops.concatenate([_flat(found[path]) for path in self.places])

    def elements(self, tree: State) -> list[Any]:
        """As `pack`, of numbers, as a list."""
        numbers = self._numbers_of(tree)
        return list(self.pack(tree)) if numbers is None else numbers

    def _numbers_of(self, tree: State) -> list[Any] | None:
        """The scalars of a tree that has nothing else, in Python the fastest way; None for others."""
        if tree.keys() != self._scalars:
            return None
        numbers = [tree[name] for name in self._example]
        return numbers if _NUMBERS.issuperset(map(type, numbers)) else None

    def check(self, tree: State) -> dict[tuple[str, ...], Numeric]:
        """The arrays of a tree by path. Raises ValueError for keys and shapes that differ from the example."""
        found = dict(leaves(tree))
        if found.keys() != self.places.keys():
            odd = sorted(".".join(p) for p in found.keys() ^ self.places.keys())
            raise ValueError(f"the keys of the state differ from the initial ones: {', '.join(odd)}")
        for path, (_, shape) in self.places.items():
            if np.shape(found[path]) != shape:
                raise ValueError(f"{'.'.join(path)} has shape {np.shape(found[path])}; its initial shape is {shape}")
        return found

    def unpack(self, vector: Numeric) -> State:
        """The tree of arrays, views of the vector where numpy gives views."""
        return _filled(self._indices, vector)

    def numbers(self, vector: Array) -> State:
        """As `unpack`, of numbers, with scalars as such instead of arrays: Python computes faster with them."""
        return _filled(self._number_indices, vector)

    def place(self, *path: str) -> Region:
        """The region of `path`: one array in its shape, several or none as a flat vector."""
        if path in self.places:
            return Region(*self.places[path])
        found = [place for leaf, (place, _) in self.places.items() if leaf[: len(path)] == path]
        where = slice(found[0].start, found[-1].stop) if found else slice(0, 0)
        return Region(where, (where.stop - where.start,))

    def index(self, *path: str) -> np.ndarray:
        """Indices of the elements of one leaf in the flat vector."""
        place, _ = self.places[path]
        return np.arange(place.start, place.stop)


def _flat(value: Numeric) -> Numeric:
    return value.reshape(-1) if isinstance(value, np.ndarray) else np.reshape(np.asarray(value, dtype=float), -1)


def leaves(tree: State, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Numeric]]:
    """(path, array) of every array of a tree."""
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name), value


def _indices(
    tree: State,
    places: dict[tuple[str, ...], tuple[slice, tuple[int, ...]]],
    scalar: Callable[[slice], Any],
    path: tuple[str, ...] = (),
) -> State:
    """The tree with (index, shape where the index alone does not give it) of each array in the flat vector; scalar: the
    index of a scalar."""
    found: State = {}
    for name, value in tree.items():
        if isinstance(value, dict):
            found[name] = _indices(value, places, scalar, (*path, name))
        else:
            where, shape = places[*path, name]
            found[name] = where if shape else scalar(where), shape if len(shape) > 1 else None
    return found


def _filled(indices: State, vector: Numeric) -> State:
    tree = {}
    for name, item in indices.items():
        if isinstance(item, dict):
            tree[name] = _filled(item, vector)
        else:
            where, shape = item
            tree[name] = vector[where] if shape is None else vector[where].reshape(shape)
    return tree


def zeros_like(tree: State) -> State:
    """A tree with the same arrays, all 0."""
    return {k: zeros_like(v) if isinstance(v, dict) else np.zeros(np.shape(v)) for k, v in tree.items()}
