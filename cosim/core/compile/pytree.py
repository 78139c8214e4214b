"""Pytrees (nested tuples of arrays): flattening to scalars and back.

A `Form` is the part of a pytree that bodies share: its structure and, for each scalar, its value if that is the
same for every body.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric

Pytree: TypeAlias = Any  # a nested tuple of arrays; Python has no type for "tuples of any class"
TreeStructure: TypeAlias = Any  # shape of an array, or (type, structures of the fields)
VARIES = None  # in place of a constant


def flatten(tree: Pytree) -> tuple[list[Numeric], TreeStructure]:
    """(scalars, structure) of a pytree; scalars are numbers or casadi symbols."""
    if isinstance(tree, tuple):
        parts = [flatten(field) for field in tree]
        return [x for scalars, _ in parts for x in scalars], (type(tree), tuple(s for _, s in parts))
    array = np.asarray(ops._boxed(tree), dtype=object)
    return [constant_of(x) for x in array.ravel()], array.shape


def constant_of(x: Numeric) -> Numeric:
    """The value of a constant scalar; symbols are returned unchanged."""
    if not ops.is_symbolic(x):
        return x if isinstance(x, (bool, np.bool_)) else float(x)
    return float(x) if x.is_constant() else x


def unflatten(structure: TreeStructure, scalars: Iterator[Numeric]) -> Pytree:
    """The pytree of a structure with scalars from the iterator."""
    if structure and isinstance(structure[0], type):
        kind, fields = structure
        parts = [unflatten(field, scalars) for field in fields]
        return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
    n = int(np.prod(structure, dtype=int))
    return ops.array([next(scalars) for _ in range(n)]).reshape(structure) if n else np.zeros(structure)


def count(structure: TreeStructure) -> int:
    """Number of scalars in a pytree of this structure."""
    if structure and isinstance(structure[0], type):
        return sum(map(count, structure[1]))
    return int(np.prod(structure, dtype=int))


@dataclass(frozen=True)
class Form:
    """Structure of a pytree and its constants, VARIES where bodies differ."""

    structure: TreeStructure
    constants: tuple[float | None, ...]

    @staticmethod
    def of(tree: Pytree) -> tuple[Form, list[Numeric]]:
        """(form with every number constant, scalars) of a pytree."""
        scalars, structure = flatten(tree)
        return Form(structure, tuple(VARIES if ops.is_symbolic(x) else x for x in scalars)), scalars

    @property
    def places(self) -> list[int]:
        """Indices of the scalars that vary, in their order in a row."""
        return [k for k, c in enumerate(self.constants) if c is VARIES]

    def fill(self, row: Iterable[Numeric]) -> Pytree:
        """The pytree whose varying scalars are the elements of `row`."""
        elements = iter(row)
        return unflatten(self.structure, iter([next(elements) if c is VARIES else c for c in self.constants]))

    def merged(self, other: Form) -> Form:
        """The common form of both: scalars with different values vary."""
        both = zip(self.constants, other.constants, strict=True)
        return Form(self.structure, tuple(a if a is not VARIES and a == b else VARIES for a, b in both))

    def row(self, scalars: Sequence[Numeric]) -> list[Numeric]:
        """The scalars that vary."""
        return [scalars[k] for k in self.places]
