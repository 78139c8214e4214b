"""The equations of motion of one mechanism, developed in ways other than the separate-body sweeps of `multibody`.

A module for each formulation, found by its name. It has

    ABOUT                      a line: what it is
    SOURCE                     where its equations come from
    refusal(equations)         why it cannot treat a mechanism, in words for the user, or None where it can
    load(equations)            -> `Formulation`, for `MechanismEquations` that it does not refuse, without rotors that
                               turn with several joints, which `loaded` adds

A formulation that chooses coordinates in advance is an `InChosenCoordinates`; `dependent_row` finds where they fail.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from cosim.core import ops
from cosim.core.errors import InputError
from cosim.core.plugin_loading import FORMULATION, find, known_names
from cosim.core.types import Numeric

if TYPE_CHECKING:  # the name of a formulation is read without the equations
    from cosim.mechanics.multibody.equations import MechanismEquations

LENGTHS = {"q": "nq", "v": "nv", "tau": "nv"}
SEPARATE_BODIES = "separate_bodies"  # the formulation of every rig that names no other


class Formulation(Protocol):
    """Pure functions of numbers or symbols, in the independent coordinates of the mechanism."""

    def forward_dynamics(self, q: Numeric, v: Numeric, tau: Numeric, t: Numeric = 0.0) -> Numeric:
        """q̈ (nv,) under whole efforts τ (nv,), as `Model.forward_dynamics`: friction of the joints is not subtracted.
        NaN and infinity give NaN. Raises InputError for vectors of another length."""
        ...


def check_state(equations: MechanismEquations, q: Numeric, v: Numeric, tau: Numeric) -> None:
    """Raises InputError for numbers of another shape than (nq,), (nv,), (nv,)."""
    for name, given in (("q", q), ("v", v), ("tau", tau)):
        length = getattr(equations, LENGTHS[name])
        if not ops.is_symbolic(given) and np.shape(given) != (length,):
            raise InputError(f"has the shape {np.shape(given)}; give ({length},), see Model.{LENGTHS[name]}", name)


@runtime_checkable
class InChosenCoordinates(Formulation, Protocol):
    """A formulation in coordinates that it chose in advance, which are singular in some configurations."""

    def dependent_row(self, q: np.ndarray, t: float = 0.0, least: float | None = None) -> str | None:
        """See the function."""
        ...


def dependent_row(
    formulation: Formulation | None, q: np.ndarray, t: float = 0.0, least: float | None = None
) -> str | None:
    """The row of the constraints that depends on the others in the coordinates that a formulation chose, in the
    configuration q (nq,) at t [s]; None where there is none, and for formulations without such a choice.

    least: what must be left of a row, relative to it, by default the least with which the formulation computes."""
    return formulation.dependent_row(q, t, least) if isinstance(formulation, InChosenCoordinates) else None


def known_formulations() -> dict[str, ModuleType]:
    """Name -> its module."""
    return {name: find(FORMULATION, name) for name in known_names(FORMULATION)}


def load_formulation(name: str, equations: MechanismEquations, place: str = "formulation") -> Formulation:
    """The formulation of the equations of a model, `model.equations`.

    Raises InputError for an unknown name, for what is no equations, such as the model itself, and for a formulation
    that cannot treat the mechanism."""
    module = find(FORMULATION, name, place=place)
    if not hasattr(equations, "q_map"):
        what = f"expected the equations of a model, got {type(equations).__name__}; pass model.equations"
        raise InputError(what, place)
    if (why := module.refusal(equations)) is not None:
        able = ", ".join(each for each, other in known_formulations().items() if other.refusal(equations) is None)
        raise InputError(f"'{name}' cannot treat this mechanism: {why}; those that can: {able}", place)
    return loaded(module, equations)


def loaded(module: ModuleType, equations: MechanismEquations) -> Formulation:
    """The formulation of a module that does not refuse the equations, with their coupled rotors."""
    if not equations.tree.rotors:
        return module.load(equations)
    from cosim.mechanics.formulations._coupled_rotors import with_coupled_rotors

    return with_coupled_rotors(module.load(equations.without_coupled_rotors), equations.coupled_inertia)
