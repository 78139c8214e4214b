"""A servo drive out of components: a motor whose current is controlled, a gear train, and friction at the joint.

    request ─▶ current loop ─▶ motor ─▶ stage ─▶ … ─▶ stage ─▶ joint, with friction

It is assembled from the bond graphs of the components. A stage is a `gear_stage`, whose output turns rigidly with what
follows, or a strain wave gear. Its loops are continuous, or sampled with `loops`.
"""

from __future__ import annotations

import math

from cosim.core.errors import InputError, SectionError
from cosim.core.servo.brake import HoldingBrake
from cosim.core.servo.cascade import ServoLoops
from cosim.core.types import param, params
from cosim.mechanics.bondgraph.components import friction
from cosim.mechanics.bondgraph.components._current_control import CurrentControl, SampledCurrentLoop
from cosim.mechanics.bondgraph.graph import BondGraph, ElectricMachine, Stage
from cosim.plugins.actuators._graph_actuator import JOINT, GraphActuator
from cosim.plugins.actuators._servo_drive import MOTOR_SPEED, ServoDrive


@params
class Params:
    motor: ElectricMachine = param(doc="a machine: a type of component, `dc_machine` or `pmsm`, with its parameters")
    control: CurrentControl = param(default=CurrentControl(), doc="of the motor's current")
    gears: tuple[Stage, ...] = param(default=(), doc="stages from the motor to the joint")
    friction: friction.Params | None = param(default=None, doc="at the joint")
    loops: ServoLoops | None = param(default=None, doc="sampled loops of position, velocity and current")

    brake: HoldingBrake | None = param(default=None, doc="holding brake at the joint, which the drive switches")

    def __post_init__(self) -> None:
        if self.brake is not None and self.loops is None:
            raise ValueError("a brake is switched at samples of the drive; give 'loops' too, or take 'brake' out")

    @property
    def ratio(self) -> float:
        """Turns of the motor per turn of the joint."""
        return math.prod(stage.params.ratio for stage in self.gears)

    @property
    def rigid(self) -> bool:
        """Whether the motor turns with the joint."""
        return all(math.isinf(stage.params.stiffness) for stage in self.gears)


def load(params: Params) -> GraphActuator:
    """Raises InputError for a motor without a current loop, one that is too fast for its samples, and for a component
    that is no stage."""
    module, loops = params.motor.module, params.loops
    if not hasattr(module, "controlled"):
        known = " or ".join(ElectricMachine.types)
        raise InputError(f"'{params.motor.type}' is no motor with a current loop; use {known}")
    for number, stage in enumerate(params.gears):
        if stage.type not in Stage.types:
            what = f"'{stage.type}' is no stage of a gear train; use {' or '.join(Stage.types)}"
            raise SectionError(what, ("gears", number, "type"))
    _check_inertias(params)
    graph = BondGraph()
    sampled = loops is not None and loops.current is not None
    graph.include(
        "motor", module.with_voltages(params.motor.params, params.control) if sampled else _controlled(params)
    )
    last, ratio = "motor.shaft", params.ratio
    moving = {"motor.inertia.flow": ratio}
    for number, stage in enumerate(params.gears, 1):
        name, ratio = f"stage_{number}", ratio / stage.params.ratio
        moving[f"{name}.inertia.flow"] = ratio
        graph.include(name, stage.build())
        graph.chain(last, f"{name}.input")
        last = f"{name}.output"
        if stage.type == "harmonic_drive":  # its output is a torque, not yet a shaft
            graph.junction(f"shaft_{number}", "1")
            graph.bond(last, f"shaft_{number}")
            last = f"shaft_{number}"
    graph.bond(last, JOINT)
    if params.friction is not None:
        graph.include("friction", friction.build(params.friction))
        graph.bond(last, "friction.body")
    recorded = {name.removeprefix("motor."): name for name in graph.signals}
    recorded |= {MOTOR_SPEED: "motor.rotor.flow"}
    if loops is None:
        return GraphActuator(params, graph, recorded, moving)
    windings, current = module.windings(params.motor.params, params.control), None
    if loops.current is not None:
        try:
            current = SampledCurrentLoop(windings, params.control, loops.current)
        except ValueError as error:
            raise SectionError(str(error), ("control", "bandwidth")) from None
    effort = abs(params.ratio) * windings.torque_constant
    gears, limit = (params.ratio, params.rigid), params.control.current_limit
    return ServoDrive(params, graph, recorded, loops, current, *gears, effort, limit, params.brake, moving)


def _check_inertias(params: Params) -> None:
    """Raises SectionError for a shaft without inertia before an elastic stage: nothing would give its motion."""
    before, keys, what = params.motor.params.inertia, ("motor",), "a rotor"
    for number, stage in enumerate(params.gears):
        if math.isfinite(stage.params.stiffness):
            if not before:
                raise SectionError(f"{what} without inertia turns an elastic stage; give its inertia", keys)
            before = 0.0
        before += getattr(stage.params, "inertia", 0.0)
        keys, what = ("gears", number), "the output of a stage"


def _controlled(params: Params) -> BondGraph:
    """The motor with its continuous current loop."""
    return params.motor.module.controlled(params.motor.params, params.control, params.ratio)
