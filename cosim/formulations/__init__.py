"""The equations of motion of one mechanism, developed in ways other than the separate-body sweeps of `multibody`.

A module for each formulation, found by its name. It has

    ABOUT                      a line: what it is
    SOURCE                     where its equations come from
    refusal(equations)         why it cannot treat a mechanism, in words for the user, or None where it can
    load(equations)            -> `Formulation`, for `MechanismEquations` that it does not refuse
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

from cosim.errors import InputError, did_you_mean
from cosim.types import Numeric

if TYPE_CHECKING:  # the name of a formulation is read without the equations
    from cosim.multibody.equations import MechanismEquations

SEPARATE_BODIES = "separate_bodies"  # the formulation of every rig that names no other


class Formulation(Protocol):
    """Pure functions of numbers or symbols, in the independent coordinates of the mechanism."""

    def forward_dynamics(self, q: Numeric, v: Numeric, tau: Numeric, t: Numeric = 0.0) -> Numeric:
        """q̈ (nv,): see `Model.forward_dynamics`."""
        ...


def known_formulations() -> dict[str, ModuleType]:
    """Name -> its module."""
    names = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    return {name: importlib.import_module(f"{__name__}.{name}") for name in names}


def load_formulation(name: str, equations: MechanismEquations, place: str = "formulation") -> Formulation:
    """Raises InputError for a name that is none, and for a formulation that cannot treat the mechanism."""
    known = known_formulations()
    if name not in known:
        raise InputError(f"there is no formulation '{name}'{did_you_mean(name, list(known))}", place)
    if (why := known[name].refusal(equations)) is not None:
        able = ", ".join(other for other, module in known.items() if module.refusal(equations) is None)
        raise InputError(f"'{name}' cannot treat this mechanism: {why}; those that can: {able}", place)
    return known[name].load(equations)
