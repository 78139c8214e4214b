"""A servo drive out of components: a motor whose current is controlled, a gear train, and friction at the joint.

    request ─▶ current loop ─▶ motor ─▶ stage ─▶ … ─▶ stage ─▶ joint, with friction

It is assembled from the bond graphs of the components (theory §9). The last stage moves the joint rigidly, its inertia
is that of the joint; further elasticity is a further stage.
"""

from __future__ import annotations

import math

from cosim.actuators._graph_actuator import JOINT, GraphActuator
from cosim.bondgraph.components import friction, gear_stage
from cosim.bondgraph.components._current_control import CurrentControl
from cosim.bondgraph.graph import BondGraph, Component
from cosim.errors import InputError
from cosim.types import param, params


@params
class Params:
    motor: Component = param(doc="a machine: a type of component, `dc_machine` or `pmsm`, with its parameters")
    control: CurrentControl = param(default=CurrentControl(), doc="of the motor's current")
    gears: tuple[gear_stage.Params, ...] = param(default=(), doc="stages from the motor to the joint")
    friction: friction.Params | None = param(default=None, doc="at the joint")

    @property
    def ratio(self) -> float:
        """Turns of the motor per turn of the joint."""
        return math.prod(stage.ratio for stage in self.gears)


def load(params: Params) -> GraphActuator:
    """Raises InputError for a motor without a current loop."""
    controlled = getattr(params.motor.module, "controlled", None)
    if controlled is None:
        raise InputError(f"'{params.motor.type}' is no motor with a current loop; use dc_machine or pmsm")
    graph = BondGraph()
    graph.include("motor", controlled(params.motor.params, params.control, params.ratio))
    last = "motor.shaft"
    for number, stage in enumerate(params.gears, 1):
        name = f"stage_{number}"
        graph.include(name, gear_stage.build(stage))
        graph.chain(last, f"{name}.input")
        last = f"{name}.output"
    graph.bond(last, JOINT)
    if params.friction is not None:
        graph.include("friction", friction.build(params.friction))
        graph.bond(last, "friction.body")
    recorded = {name.removeprefix("motor."): name for name in graph.signals}
    return GraphActuator(params, graph, recorded | {"motor_speed": "motor.rotor.flow"})
