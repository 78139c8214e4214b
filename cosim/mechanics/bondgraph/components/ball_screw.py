"""A screw and its nut, with balls or sliding: x = l θ / 2π, and what the thread loses in both directions.

Where the screw drives, the load F takes the torque F l / (2π η); where the load drives, η' F l / 2π reaches the screw.
With the lead angle λ, tan λ = l / (π d), of the pitch diameter d, and the friction angle ρ = atan μ of the thread

    η = tan λ / tan(λ + ρ),   η' = tan(λ − ρ) / tan λ

(Shigley, Mechanical Engineering Design, power screws, of a square thread). From λ = ρ down the load cannot drive, the
screw locks itself; it then needs `breakaway`, the travel at which it begins to slip, and a stiffness. The loss is a
force on the nut, as of `gear_stage`; screw and nut are rigid without `stiffness`, of nut and bearings in series.

Ports: `input`, from a 1-junction of a shaft; `output`, a 1-junction of the nut.
"""

from __future__ import annotations

import math
from functools import cached_property

from cosim.core.types import param, params
from cosim.core.units import TURN
from cosim.mechanics.bondgraph import BondGraph
from cosim.mechanics.bondgraph.components import _linear_stage, gear_stage


@params
class Params:
    lead: float = param(unit="m", doc="l, travel of the nut per turn; negative of a left-handed screw")
    efficiency: float | None = _linear_stage.efficiency()
    back_efficiency: float | None = _linear_stage.back_efficiency()
    diameter: float | None = param(unit="m", above=0.0, default=None, doc="d, with `thread_friction` instead of η")
    thread_friction: float | None = param(unit="1", min=0.0, default=None, doc="μ of the thread")
    inertia: float = param(unit="kg*m^2", min=0.0, default=0.0, doc="of the screw")
    mass: float = _linear_stage.mass()
    stiffness: float = _linear_stage.stiffness()
    damping: float = _linear_stage.damping()
    backlash: float = _linear_stage.backlash()
    coulomb: float = _linear_stage.coulomb()
    viscous: float = _linear_stage.viscous()
    creep_speed: float = _linear_stage.creep_speed()
    load_width: float | None = _linear_stage.load_width()
    breakaway: float | None = param(
        unit="m", above=0.0, default=None, doc="travel at which it slips; without it no stiction"
    )
    bristle_time: float = param(unit="s", min=0.0, default=0.0, doc="τ, damping of bristles, as of `gear_stage`")

    def __post_init__(self) -> None:
        if self.lead == 0.0:
            raise ValueError("a lead of 0 moves nothing; give the travel per turn")
        if (self.diameter is None) != (self.thread_friction is None):
            raise ValueError("a thread has a diameter and a thread_friction; give both, or neither")
        if self.diameter is not None and (self.efficiency is not None or self.back_efficiency is not None):
            raise ValueError("diameter and efficiency give the same losses; give one of them")
        if self.thread_friction is not None and self._lead_angle + math.atan(self.thread_friction) >= math.pi / 2:
            raise ValueError("the screw cannot drive its nut with this thread_friction; lower it, or the lead")
        _linear_stage.check(self, self.stage)

    @property
    def ratio(self) -> float:
        """rad/m"""
        return TURN / self.lead

    @property
    def _lead_angle(self) -> float:
        assert self.diameter is not None
        return math.atan(abs(self.lead) / (math.pi * self.diameter))

    @property
    def efficiencies(self) -> tuple[float | None, float | None]:
        """(η, η')"""
        if self.thread_friction is None:
            return self.efficiency, self.back_efficiency
        lead, friction = self._lead_angle, math.atan(self.thread_friction)
        return math.tan(lead) / math.tan(lead + friction), math.tan(lead - friction) / math.tan(lead)

    @cached_property
    def stage(self) -> gear_stage.Params:
        forward, backward = self.efficiencies
        return _linear_stage.travelling(
            self,
            efficiency=forward,
            back_efficiency=backward,
            backlash=self.backlash,
            load_width=self.load_width,
            breakaway=self.breakaway,
            bristle_time=self.bristle_time,
        )


def build(params: Params) -> BondGraph:
    return _linear_stage.build(params, params.stage)
