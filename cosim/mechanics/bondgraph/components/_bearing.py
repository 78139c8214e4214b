"""Friction of the bearings of a machine: per speed, dry, and per torque M of the machine,

    M_B = b ω + (M_0 + μ |M|) s(ω),  s(ω) = ω / √(ω² + ω_0²).

It is at the rotor, so before an elastic gear; of a linear machine, force and velocity stand for torque and speed.
"""

from __future__ import annotations

from typing import Any, Protocol

from cosim.core import ops
from cosim.core.types import Numeric, param
from cosim.mechanics.bondgraph import BondGraph, Law, R


class WithBearings(Protocol):
    """Parameters of a machine."""

    @property
    def viscous(self) -> float: ...
    @property
    def coulomb(self) -> float: ...
    @property
    def load_friction(self) -> float: ...
    @property
    def creep_speed(self) -> float: ...


def viscous(unit: str = "N*m*s/rad") -> Any:
    return param(unit=unit, min=0.0, default=0.0, doc="b of the bearings")


def coulomb(unit: str = "N*m") -> Any:
    return param(unit=unit, min=0.0, default=0.0, doc="M_0, dry friction of the bearings")


def load_friction() -> Any:
    return param(unit="1", min=0.0, default=0.0, doc="μ, dry friction of the bearings per torque of the machine")


def creep_speed(unit: str = "rad/s", default: float = 1.0) -> Any:
    return param(unit=unit, above=0.0, default=default, doc="ω_0, below which their dry friction fades out")


def add_bearings(graph: BondGraph, params: WithBearings, torque: Law, domain: str = "rotational") -> None:
    """At the junction `rotor`. torque: of the machine, of signals that do not need the friction: currents."""
    if params.viscous:
        graph.add("bearing", R(domain, params.viscous))
        graph.bond("rotor", "bearing")
    if not params.coulomb and not params.load_friction:
        return

    def friction(speed: Numeric, *signals: Numeric) -> Numeric:
        dry = params.coulomb
        if params.load_friction:
            dry = dry + params.load_friction * ops.abs(torque.fn(*signals))
        return dry * ops.smooth_sign(speed, params.creep_speed)

    uses = torque.uses if params.load_friction else ()
    graph.add("bearing_friction", R(domain, Law(friction, ("flow", *uses))))
    graph.bond("rotor", "bearing_friction")
