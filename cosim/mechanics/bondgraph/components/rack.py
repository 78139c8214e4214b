"""A rack and its pinion: x = r θ, with the losses of their mesh.

Ports: `input`, from a 1-junction of the shaft of the pinion; `output`, a 1-junction of the rack.
"""

from __future__ import annotations

from functools import cached_property

from cosim.core.types import param, params
from cosim.mechanics.bondgraph import BondGraph
from cosim.mechanics.bondgraph.components import _linear_stage, gear_stage


@params
class Params:
    radius: float = param(unit="m", above=0.0, doc="r, of the pitch circle of the pinion")
    efficiency: float | None = _linear_stage.efficiency()
    back_efficiency: float | None = _linear_stage.back_efficiency()
    inertia: float = param(unit="kg*m^2", min=0.0, default=0.0, doc="of the pinion")
    mass: float = _linear_stage.mass()
    stiffness: float = _linear_stage.stiffness()
    damping: float = _linear_stage.damping()
    backlash: float = _linear_stage.backlash()
    coulomb: float = _linear_stage.coulomb()
    viscous: float = _linear_stage.viscous()
    creep_speed: float = _linear_stage.creep_speed()
    load_width: float | None = _linear_stage.load_width()

    def __post_init__(self) -> None:
        _linear_stage.check(self, self.stage)

    @property
    def ratio(self) -> float:
        """rad/m"""
        return 1.0 / self.radius

    @cached_property
    def stage(self) -> gear_stage.Params:
        return _linear_stage.travelling(
            self,
            efficiency=self.efficiency,
            back_efficiency=self.back_efficiency,
            backlash=self.backlash,
            load_width=self.load_width,
        )


def build(params: Params) -> BondGraph:
    return _linear_stage.build(params, params.stage)
