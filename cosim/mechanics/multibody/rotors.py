"""The rotors of drives on the dofs of a mechanism, given by name or as a vector."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cosim.core import ops
from cosim.core.types import Array, Numeric

RotorInertia = Mapping[str, float] | Sequence[float] | Array  # by dof name, or (nv,)


def rotors_of(given: RotorInertia | None, nv: int, index: Callable[[str], int]) -> Numeric:
    """(nv,) inertias reflected to the dofs [kg m² or kg], 0 where none is given. index: of a dof by its name.

    Raises ValueError for a wrong shape and for values that are negative or not finite.
    """
    if given is None:
        return np.zeros(nv)
    if isinstance(given, Mapping):
        by_dof = ops.set_at(np.zeros(nv), [index(name) for name in given], list(given.values()))
        if ops.is_symbolic(by_dof):
            return by_dof
        given = by_dof
    rotors = np.asarray(given, dtype=float)
    if rotors.shape != (nv,) or not np.all((rotors >= 0.0) & np.isfinite(rotors)):
        raise ValueError(f"rotor_inertia must be {nv} numbers that are not negative, got {given}")
    return rotors
