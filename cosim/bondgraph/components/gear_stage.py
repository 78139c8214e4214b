"""One stage of a gear train (theory §9): an elastic mesh with backlash, a ratio, the inertia of its output and friction
that grows with the load.

The friction of the output shaft is M_T = M_0 + μ |M_load|, against its motion. At steady speed the load is what the
mesh transmits less the friction when the input drives, plus it when the load does, so with the transmitted torque M

    M_T = (M_0 + μ |M|) / (1 + μ) where the input drives, (M_0 + μ |M|) / (1 − μ) where the load drives.

The efficiency of a driving stage is then η = M_load / (M_load + M_0 + μ M_load). A sign function with a creep speed
stands for the direction; for stiction, bond a `friction` to the output.

Ports: `input`, from a 1-junction; `output`, a 1-junction. Stages in a chain make a train, several inputs bonded to one
output a branching one.
"""

from __future__ import annotations

import math
from typing import Literal

from cosim import ops
from cosim.bondgraph import TF, BondGraph, I, Law, R
from cosim.bondgraph.components import shaft
from cosim.types import Numeric, param, params
from cosim.units import TURN


@params
class Params:
    ratio: float = param(unit="1", doc="turns of the input per turn of the output; negative reverses")
    stiffness: float = param(
        unit="N*m/rad", above=0.0, default=math.inf, doc="of the mesh, at the input; rigid without"
    )
    damping: float = param(unit="N*m*s/rad", min=0.0, default=0.0, doc="of the mesh, at the input")
    backlash: float = param(unit="rad", min=0.0, max=TURN, default=0.0, doc="from edge to edge, at the input")
    backlash_model: Literal["dead_zone", "transformer"] = param(default="dead_zone", doc="see `shaft`")
    inertia: float = param(unit="kg*m^2", min=0.0, default=0.0, doc="of the output shaft")
    coulomb: float = param(unit="N*m", min=0.0, default=0.0, doc="M_0, friction without load, at the output")
    load_friction: float = param(unit="1", min=0.0, default=0.0, doc="μ, friction per load")
    viscous: float = param(unit="N*m*s/rad", min=0.0, default=0.0, doc="friction per speed, at the output")
    creep_speed: float = param(unit="rad/s", above=0.0, default=0.01, doc="below which dry friction fades out")

    def __post_init__(self) -> None:
        if self.ratio == 0.0:
            raise ValueError("a ratio of 0 transmits nothing; give turns of the input per turn of the output")
        if self.load_friction >= 1.0:
            what = f"load_friction is {self.load_friction:g}: the load could never drive the stage (self-locking)"
            raise ValueError(f"{what}; give less than 1")
        if math.isinf(self.stiffness) and (self.damping or self.backlash):
            raise ValueError("damping and backlash are those of an elastic mesh; give stiffness too, or leave them out")


def friction(params: Params, speed: Numeric, transmitted: Numeric) -> Numeric:
    """M_T at this speed of the output, with this torque on it from the mesh."""
    dry = params.coulomb + params.load_friction * ops.absolute(transmitted)
    share = ops.where(transmitted * speed > 0.0, 1.0 + params.load_friction, 1.0 - params.load_friction)
    return dry / share * ops.smooth_sign(speed, params.creep_speed) + params.viscous * speed


def build(params: Params) -> BondGraph:
    elastic = math.isfinite(params.stiffness)
    graph = BondGraph(ports={"input": "mesh.input" if elastic else "torque", "output": "output"})
    graph.junction("torque", "0")
    graph.junction("output", "1")
    graph.add("ratio", TF("rotational", "rotational", 1.0 / params.ratio))
    graph.chain("torque", "ratio", "output")
    if elastic:
        mesh = shaft.Params(params.stiffness, params.damping, params.backlash, model=params.backlash_model)
        graph.include("mesh", shaft.build(mesh))
        graph.bond("mesh.output", "torque")
    if params.inertia:
        graph.add("inertia", I("rotational", params.inertia))
        graph.bond("output", "inertia")
    if params.coulomb or params.load_friction or params.viscous:
        law = Law(lambda w, torque: friction(params, w, params.ratio * torque), ("flow", "torque.effort"))
        graph.add("friction", R("rotational", law))
        graph.bond("output", "friction")
    return graph
