"""What turns rotation into travel: a `gear_stage` whose ratio is an angle of the input per travel of the output.

Its output is a carriage: stiffness, damping and backlash are given there, along its travel, and friction is a force on
it. The inertia is on the shaft of the input.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from cosim.core.types import param
from cosim.core.units import TURN
from cosim.mechanics.bondgraph import BondGraph
from cosim.mechanics.bondgraph.components import gear_stage


class TravelParams(Protocol):
    """Parameters that all have."""

    @property
    def ratio(self) -> float:
        """rad/m"""
        ...

    @property
    def inertia(self) -> float: ...
    @property
    def mass(self) -> float: ...
    @property
    def stiffness(self) -> float: ...
    @property
    def damping(self) -> float: ...
    @property
    def coulomb(self) -> float: ...
    @property
    def viscous(self) -> float: ...
    @property
    def creep_speed(self) -> float: ...


def mass() -> Any:
    return param(unit="kg", min=0.0, default=0.0, doc="of what it moves beside the joint's body")


def stiffness() -> Any:
    return param(unit="N/m", above=0.0, default=math.inf, doc="at the carriage; rigid without")


def damping() -> Any:
    return param(unit="N*s/m", min=0.0, default=0.0, doc="of its elasticity, at the carriage")


def backlash() -> Any:
    return param(unit="m", min=0.0, default=0.0, doc="from edge to edge, at the carriage")


def coulomb() -> Any:
    return param(unit="N", min=0.0, default=0.0, doc="F_0, friction without load, at the carriage")


def viscous() -> Any:
    return param(unit="N*s/m", min=0.0, default=0.0, doc="friction per speed, at the carriage")


def creep_speed() -> Any:
    return param(unit="m/s", above=0.0, default=1e-3, doc="below which dry friction fades out")


def load_width() -> Any:
    doc = "transmitted force below which F_0 passes between both directions; by default F_0"
    return param(unit="N", above=0.0, default=None, doc=doc)


def efficiency() -> Any:
    return param(unit="1", above=0.0, max=1.0, default=None, doc="η, the motor drives")


def back_efficiency() -> Any:
    doc = "η', the load drives, 0 or less locks; by default of the same friction, 2 − 1/η"
    return param(unit="1", max=1.0, default=None, doc=doc)


def travelling(p: TravelParams, **losses: Any) -> gear_stage.Params:
    """As a stage whose output has force and velocity in place of torque and speed. losses: further parameters of it, a
    backlash and a breakaway [m] along the travel."""
    per_travel = abs(p.ratio)
    losses |= {name: losses[name] * per_travel for name in ("backlash", "breakaway") if losses.get(name)}
    return gear_stage.Params(
        p.ratio,
        stiffness=p.stiffness / per_travel**2,
        damping=p.damping / per_travel**2,
        inertia=p.mass,
        coulomb=p.coulomb,
        viscous=p.viscous,
        creep_speed=p.creep_speed,
        **losses,
    )


def check(p: TravelParams, stage: gear_stage.Params) -> None:
    """Raises ValueError for a backlash beyond the travel of a turn; making the stage checks the rest."""
    if stage.backlash > TURN:
        raise ValueError(f"a backlash is at most the travel of a turn, {TURN / abs(p.ratio):.6g} m; give less")


def build(p: TravelParams, stage: gear_stage.Params) -> BondGraph:
    """Ports: `input`, from a 1-junction of a shaft; `output`, a 1-junction of a carriage."""
    return gear_stage.assembled(stage, "translational", p.inertia)
