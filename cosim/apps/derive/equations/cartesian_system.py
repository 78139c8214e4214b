"""What a reader must know of equations in Cartesian coordinates: bodies, coordinates, rows of the constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class RowName(NamedTuple):
    """A row of the constraints: of which joint or constraint, and what it forbids."""

    owner: str
    about: str
    is_constraint: bool = True  # else it is the equation of a rotor


@dataclass(frozen=True)
class CartesianSystem:
    """What a reader must know of the coordinates and rows of a printed Cartesian system.

    basis: of the plane of the motion, its columns are x, y and the normal; None in space. accelerations: their names.
    bodies: of the tree, by name. rows: in the order of λ."""

    basis: np.ndarray | None
    accelerations: Sequence[str]
    bodies: Sequence[str]
    rows: Sequence[RowName]

    @property
    def size(self) -> int:
        """Coordinates of a body."""
        return 6 if self.basis is None else 3
