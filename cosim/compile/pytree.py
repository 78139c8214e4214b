"""Records (nested tuples of arrays) taken apart into scalars and put together again.

A `Form` is what is known of a record before any body is looked at: its structure, and for each scalar
either its value, when that is the same for every body, or the place where bodies keep theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim import ops

TreeStructure = Any  # shape of an array, or (type, structures of the fields)
VARIES = None  # in place of a constant


def flatten(record: Any) -> tuple[list[Any], TreeStructure]:
    """(scalars, structure) of a record; scalars are numbers or casadi symbols."""
    if isinstance(record, tuple):
        parts = [flatten(field) for field in record]
        return [x for scalars, _ in parts for x in scalars], (type(record), tuple(s for _, s in parts))
    array = np.asarray(ops._boxed(record), dtype=object)
    return [constant_of(x) for x in array.ravel()], array.shape


def constant_of(x: Any) -> Any:
    """The number that a scalar is, if it is one; symbols are returned as they are."""
    if not ops.is_symbolic(x):
        return x if isinstance(x, (bool, np.bool_)) else float(x)
    return float(x) if x.is_constant() else x


def unflatten(structure: TreeStructure, scalars: Iterator[Any]) -> Any:
    """The record of a structure with its scalars taken from the iterator."""
    if structure and isinstance(structure[0], type):
        kind, fields = structure
        parts = [unflatten(field, scalars) for field in fields]
        return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
    n = int(np.prod(structure, dtype=int))
    return ops.array([next(scalars) for _ in range(n)]).reshape(structure) if n else np.zeros(structure)


def count(structure: TreeStructure) -> int:
    """How many scalars a record of this structure has."""
    if structure and isinstance(structure[0], type):
        return sum(map(count, structure[1]))
    return int(np.prod(structure, dtype=int))


@dataclass(frozen=True)
class Form:
    """Structure of a record and its constants, VARIES where bodies differ."""

    structure: TreeStructure
    constants: tuple[Any, ...]

    @staticmethod
    def of(record: Any) -> tuple[Form, list[Any]]:
        """The form of one record with every number constant, and its scalars."""
        scalars, structure = flatten(record)
        return Form(structure, tuple(VARIES if ops.is_symbolic(x) else x for x in scalars)), scalars

    @property
    def places(self) -> list[int]:
        """Which scalars vary, in order of their place in a row."""
        return [k for k, c in enumerate(self.constants) if c is VARIES]

    def fill(self, row: Any) -> Any:
        """The record whose varying scalars are the elements of `row`."""
        elements = iter(row)
        return unflatten(self.structure, iter([next(elements) if c is VARIES else c for c in self.constants]))

    def joined(self, other: Form) -> Form:
        """What holds for both: scalars of different values vary."""
        both = zip(self.constants, other.constants, strict=True)
        return Form(self.structure, tuple(a if a is not VARIES and a == b else VARIES for a, b in both))

    def row(self, scalars: Sequence[Any]) -> list[Any]:
        """The scalars that vary."""
        return [scalars[k] for k in self.places]
