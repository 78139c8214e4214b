"""Independent like trees on the ground, such as a hundred arms: an algorithm of one of them, mapped over the copies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cosim.core import ops
from cosim.core.compile.alike import Mapped
from cosim.core.compile.mathlib import TOGETHER
from cosim.core.compile.pytree import Pytree, count, flatten, unflatten
from cosim.core.types import Array, Numeric
from cosim.mechanics.multibody.sweeps import Unrolled


@dataclass(frozen=True)
class Forest:
    """The trees on the ground of a tree of bodies."""

    sweeps: Unrolled

    @cached_property
    def trees(self) -> list[slice]:
        """The bodies of each tree; bodies are in depth-first order."""
        roots = [k for k, parent in enumerate(self.sweeps.parents) if parent < 0]
        return [slice(a, b) for a, b in zip(roots, [*roots[1:], len(self.sweeps.parents)], strict=True)]

    @cached_property
    def classes(self) -> list[list[slice]]:
        """Trees with the same joints at the same places, class by class."""
        found: dict[Hashable, list[slice]] = defaultdict(list)
        for tree in self.trees:
            found[self._parents(tree), tuple(self.sweeps.kinds[tree])].append(tree)
        return list(found.values())

    def _parents(self, tree: slice) -> tuple[int, ...]:
        """Counted from the root of the tree."""
        return tuple(max(parent - tree.start, -1) for parent in self.sweeps.parents[tree])

    def has_copies(self, largest: int) -> bool:
        """Whether every tree has copies enough for SIMD lanes and fewer bodies than `largest`; numbers only."""
        scalars = (x for body in self.sweeps.bodies for x in flatten(body)[0])
        fit = all(len(alike) >= TOGETHER and alike[0].stop - alike[0].start < largest for alike in self.classes)
        return fit and not any(map(ops.is_symbolic, scalars))


class CopiesRoutine:
    """An algorithm over sweeps, evaluated for all copies of a tree together.

    algorithm(sweeps, *vectors) -> vectors (nv,) or sums over bodies; vectors that are None here are arguments, the
    others constants. Arguments and constants of the size of q or v are split by tree, others belong to all of them.
    """

    def __init__(
        self, algorithm: Callable[..., Numeric], forest: Forest, constants: Sequence[Array | None], sizes: Sequence[int]
    ) -> None:
        """sizes: of all vectors."""
        self.forest = forest
        kinds = forest.sweeps.kinds
        self.starts = {
            sum(numbers): np.cumsum([0, *numbers]) for numbers in ([k.nq for k in kinds], [k.nv for k in kinds])
        }
        self.nv = sum(k.nv for k in kinds)
        self.structures: list[Pytree] = []
        self.mapped = [self._mapped(algorithm, alike, constants, sizes) for alike in forest.classes]

    def _mapped(
        self,
        algorithm: Callable[..., Numeric],
        alike: Sequence[slice],
        constants: Sequence[Array | None],
        sizes: Sequence[int],
    ) -> Mapped:
        sweeps, first = self.forest.sweeps, alike[0]
        parents, kinds = self.forest._parents(first), sweeps.kinds[first]
        given = [size for size, constant in zip(sizes, constants, strict=True) if constant is None]
        fixed = [self._pieces(constant, alike) for constant in constants if constant is not None]
        structure: list[Pytree] = []

        def of_tree(numbers: Pytree, *pieces: Numeric) -> Numeric:
            bodies, *values = numbers
            remaining, others = iter(pieces), iter(values)
            vectors = [next(remaining) if c is None else next(others) for c in constants]
            scalars, found = flatten(algorithm(Unrolled(parents, kinds, bodies), *vectors))
            structure[:] = [found]
            return ops.array(scalars)

        numbers = [(tuple(sweeps.bodies[tree]), *(pieces[k] for pieces in fixed)) for k, tree in enumerate(alike)]
        places = [np.array([self._places(size, tree) for tree in alike]) for size in given]
        result = Mapped(of_tree, numbers, places, [(size,) for size in given], algorithm.__name__)
        self.structures.append(structure[0])
        return result

    def _places(self, size: int, tree: slice) -> Array:
        starts = self.starts[size]
        return np.arange(int(starts[tree.start]), int(starts[tree.stop]))

    def _pieces(self, constant: Array, alike: Sequence[slice]) -> list[Array]:
        whole = constant.size not in self.starts
        return [constant if whole else constant[self._places(constant.size, tree)] for tree in alike]

    def __call__(self, *vectors: Numeric) -> Numeric:
        """The results of all trees, put together."""
        trees: dict[int, Pytree] = {}
        for alike, mapped, structure in zip(self.forest.classes, self.mapped, self.structures, strict=True):
            flat = iter(mapped(*vectors))
            for tree in alike:
                trees[tree.start] = unflatten(structure, iter([next(flat) for _ in range(count(structure))]))
        parts = [trees[tree.start] for tree in self.forest.trees]
        if isinstance(parts[0], tuple):
            return tuple(map(_joined, zip(*parts, strict=True)))
        return _joined(parts)


def _joined(parts: Sequence[Numeric]) -> Numeric:
    """One vector from the trees' vectors, or the sum of their numbers."""
    return ops.concatenate(list(parts)) if np.ndim(parts[0]) else ops.sum(parts)
