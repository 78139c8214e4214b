"""A toothed belt around a pulley, with its carriage: x = r θ, elastic between pulley and carriage.

The stiffness is of both strands beside each other, at one position of the carriage: k = E A (1 / l_1 + 1 / l_2).

Ports: `input`, from a 1-junction of the shaft of the pulley; `output`, a 1-junction of the carriage.
"""

from __future__ import annotations

from functools import cached_property

from cosim.core.types import param, params
from cosim.mechanics.bondgraph import BondGraph
from cosim.mechanics.bondgraph.components import _linear_stage, gear_stage


@params
class Params:
    radius: float = param(unit="m", above=0.0, doc="r, of the pitch circle of the pulley")
    inertia: float = param(unit="kg*m^2", min=0.0, default=0.0, doc="of the pulleys")
    mass: float = _linear_stage.mass()
    stiffness: float = _linear_stage.stiffness()
    damping: float = _linear_stage.damping()
    coulomb: float = _linear_stage.coulomb()
    viscous: float = _linear_stage.viscous()
    creep_speed: float = _linear_stage.creep_speed()

    def __post_init__(self) -> None:
        _linear_stage.check(self, self.stage)

    @property
    def ratio(self) -> float:
        """rad/m"""
        return 1.0 / self.radius

    @cached_property
    def stage(self) -> gear_stage.Params:
        return _linear_stage.travelling(self)


def build(params: Params) -> BondGraph:
    return _linear_stage.build(params, params.stage)
