"""A servo drive out of components: a motor whose current is controlled, a gear train, and friction at the joint.

    request ─▶ current loop ─▶ motor ─▶ stage ─▶ … ─▶ stage ─▶ joint, with friction

It is assembled from the bond graphs of the components. A stage is a `gear_stage`, whose output turns rigidly with what
follows, or a strain wave gear. Its loops are continuous, or sampled with `loops`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from cosim.core.errors import InputError, SectionError
from cosim.core.servo.brake import HoldingBrake
from cosim.core.servo.cascade import ServoLoops
from cosim.core.types import Numeric, param, params
from cosim.mechanics.bondgraph import Element, Law, power_account
from cosim.mechanics.bondgraph.components import _bridge, cable, friction
from cosim.mechanics.bondgraph.components._current_control import CurrentControl, SampledCurrentLoop
from cosim.mechanics.bondgraph.components._open_loop import OpenLoop
from cosim.mechanics.bondgraph.components._switching import STEPS, ripples_of
from cosim.mechanics.bondgraph.graph import BondGraph, ElectricMachine, Stage, built
from cosim.plugins.actuators._drive_doubts import doubts_of
from cosim.plugins.actuators._graph_actuator import JOINT, TORQUES, GraphActuator
from cosim.plugins.actuators._open_loop_drive import FieldReference
from cosim.plugins.actuators._sampled_graph import DriveSampler, SampledDrive
from cosim.plugins.actuators._sampled_servo import MOTOR_SPEED, SampledServo

Made = TypeVar("Made")


@params
class Params:
    motor: ElectricMachine = param(
        doc="`type: dc_machine`, `pmsm`, `linear_motor`, `bldc`, `stepper` or `induction_machine`, with its parameters"
    )
    control: CurrentControl = param(default=CurrentControl(), doc="of the motor's current")
    gears: tuple[Stage, ...] = param(default=(), doc="stages from the motor to the joint")
    friction: friction.Params | None = param(default=None, doc="at the joint")
    loops: ServoLoops | None = param(default=None, doc="sampled loops of position, velocity and current")
    open_loop: OpenLoop | None = param(default=None, doc="of a `stepper` or `induction_machine`, in place of loops")
    brake: HoldingBrake | None = param(default=None, doc="holding brake at the joint, which the drive switches")
    supply: str | None = param(default=None, doc="name of a supply that it shares with others")
    powers: bool = param(default=False, doc="record its powers and energies by part")
    cable: cable.Params | None = param(default=None, doc="between the inverter and the motor")

    def __post_init__(self) -> None:
        if self.brake is not None and self.loops is None:
            raise ValueError("a brake is switched at samples of the drive; give 'loops' too, or take 'brake' out")
        if self.open_loop is not None and self.loops is not None:
            raise ValueError("a drive has 'loops' or 'open_loop', not both; take one out")
        if self.open_loop is not None and self.control.overload is not None:
            raise ValueError("a field without feedback has a fixed amplitude; take 'overload' or 'open_loop' out")
        if self.motor.linear and self.gears:
            raise ValueError("a linear_motor pushes its joint without gears; take 'gears' out")
        seen = self.loops.encoder if self.loops else None
        if seen and self.motor.linear and seen.turns:
            what = "a linear_motor has no turns, to which cpr, offset and index of an encoder belong"
            raise ValueError(f"{what}; give its 'resolution' instead")
        field = self.loops.commutation if self.loops else None
        if field and self.motor.linear and field.of_turns:
            what = "a linear_motor has no turns, to which cpr, eccentricity and sine and cosine belong"
            raise ValueError(f"{what}; take them out of 'loops.commutation'")
        if seen and seen.resolution is not None and not self.motor.linear:
            raise ValueError("the resolution of an encoder is of a linear_motor; give its 'cpr' instead")

    @property
    def linear(self) -> bool:
        """Whether it pushes its joint."""
        return self.motor.linear or any(stage.linear for stage in self.gears)

    @property
    def ratio(self) -> float:
        """Travel of the motor per travel of the joint: turns per turn, rad/m, or 1."""
        return math.prod(stage.params.ratio for stage in self.gears)

    @property
    def rigid(self) -> bool:
        """Whether the motor turns with the joint."""
        return all(math.isinf(stage.params.stiffness) for stage in self.gears)


def load(params: Params) -> GraphActuator:
    """The drive, with what the substeps of its plant may be. Raises as `_assembled` does."""
    actuator, inverter = _assembled(params), params.control.switching
    actuator.doubts, actuator.temperatures = doubts_of(params, largest_voltage(params)), temperatures_of(params)
    if inverter is not None:
        actuator.longest_step = 1.0 / (STEPS * inverter.switching_frequency)
    actuator.for_other_joints = for_other_joints(params)
    return actuator


def for_other_joints(params: Params) -> str:
    """The fix for a joint that moves in the other domain."""
    if not params.linear:
        return "end its 'gears' with a ball_screw, rack or belt, or use a linear_motor"
    if params.gears:
        return f"take the {params.gears[-1].type} out of its 'gears'"
    return "use a motor that turns, such as pmsm"


def _assembled(params: Params) -> GraphActuator:
    """Raises InputError for a motor without a current loop, one that is too fast for its samples, and for a component
    that is no stage."""
    check(params)
    motor = motor_of(params)
    if (bridge := bridge_of(params)) is not None:
        _bridge.add_conduction(motor, bridge, params.control.inverter)
        _bridge.add_switching(motor, bridge, params.control.inverter, _bridge.meshes_of(motor), "")
    graph, moving = train(params, motor)
    if params.powers:
        sources = [f"motor.{name}" for name in _bridge.windings_of(motor)]
        sources += [name for name in ("motor.switching_supply",) if name in graph.elements]
        ripples = [f"motor.{name}" for name in ripples_of(motor)]
        add_powers(graph, power_account.supplied_by(sources, ripples))
    graph.bond(graph.ports["shaft"], JOINT)
    sampler, recorded = sampler_of(params), recorded_of(graph)
    if sampler is None:
        drive = GraphActuator(params, graph, recorded, moving)
    else:
        drive = SampledDrive(params, graph, recorded, moving, sampler)
    drive.outputs = {**drive.outputs, **({} if params.motor.linear else TORQUES)}
    return drive


def sampler_of(params: Params) -> DriveSampler | None:
    """What it does at samples. Raises SectionError for a current loop too fast for them."""
    module, loops, field = params.motor.module, params.loops, params.open_loop
    if field is not None:
        return FieldReference(field, params.ratio, module.step_size(params.motor.params, field))
    if loops is None:
        return None
    windings, current = _of_motor("motor", module.windings, params.motor.params, params.control), None
    if loops.commutation is not None and not windings.electrical_ratio:
        what = f"commutation is of a pmsm or a linear_motor, not of a {params.motor.type}"
        raise SectionError(f"{what}; take it out", ("loops", "commutation"))
    if loops.current is not None:
        try:
            field = loops.field if windings.electrical_ratio else None
            current = SampledCurrentLoop(windings, params.control, loops.current, field)
        except ValueError as error:
            raise SectionError(str(error), ("control", "bandwidth")) from None

    def effort(largest: Numeric) -> Numeric:
        return abs(params.ratio) * windings.largest_torque(largest)

    return SampledServo(loops, current, params.ratio, params.rigid, effort, params.control, params.brake)


def check(params: Params) -> None:
    """Raises InputError as `load` does."""
    if not hasattr(params.motor.module, "controlled"):
        raise InputError(f"'{params.motor.type}' is no motor with a current loop; use {ElectricMachine.choices()}")
    if params.open_loop is not None and not hasattr(params.motor.module, "with_field"):
        what = f"a {params.motor.type} does not follow a field without feedback"
        raise SectionError(f"{what}; use a stepper or an induction_machine, or 'loops'", ("open_loop",))
    if params.control.currents != "zero_d" and not hasattr(params.motor.module, "axes"):
        what = f"a {params.motor.type} is not controlled along the axes of its magnets; take it out"
        raise SectionError(what, ("control", "currents"))
    if params.cable is not None and bridge_of(params) is None:
        raise SectionError(f"the windings of a {params.motor.type} are not known; take it out", ("cable",))
    for number, stage in enumerate(params.gears):
        if stage.type not in Stage.types:
            fix = f"use {Stage.choices()}"
            if stage.type == "friction":
                fix = "give coulomb of the motor or of a stage, or friction of the drive at the joint"
            raise SectionError(f"'{stage.type}' is no stage of a gear train; {fix}", ("gears", number, "type"))
        if stage.linear and number < len(params.gears) - 1:
            what = f"{stage.type} has no shaft at its output, and a stage follows"
            raise SectionError(f"{what}; make it the last stage", ("gears", number))
    _check_inertias(params)


def train(params: Params, motor: BondGraph) -> tuple[BondGraph, dict[str, float]]:
    """(The motor with its gear train and friction, whose port `shaft` turns with the joint; flows of inertias -> their
    ratio to the velocity of the joint)."""
    graph = BondGraph()
    graph.include("motor", motor)
    graph.junction("motor_torque", "0")
    graph.bond("motor.shaft", "motor_torque")
    last, ratio = "motor_torque", params.ratio
    moving = {"motor.inertia.flow": ratio}
    for number, stage in enumerate(params.gears, 1):
        name, ratio = f"stage_{number}", ratio / stage.params.ratio
        moving[f"{name}.input_inertia.flow"] = ratio * stage.params.ratio
        moving[f"{name}.inertia.flow"] = ratio
        graph.include(name, stage.build())
        graph.chain(last, f"{name}.input")
        last = f"{name}.output"
        if stage.type == "harmonic_drive":  # its output is a torque, not yet a shaft
            graph.junction(f"shaft_{number}", "1")
            graph.bond(last, f"shaft_{number}")
            last = f"shaft_{number}"
    graph.junction("gear_torque", "0")
    graph.junction("shaft", "1")
    graph.chain(last, "gear_torque", "shaft")
    graph.ports["shaft"] = "shaft"
    if params.friction is not None:
        graph.include("friction", built(friction.build, replace(params.friction, linear=params.linear)))
        graph.bond("shaft", "friction.body")
    return graph, moving


def largest_voltage(params: Params, link: float | None = None) -> float | None:
    """The amplitude of a phase [V] that its inverter gives; None where that is not known. link: its voltage [V], by
    default the inverter's own."""
    bridge, inverter = bridge_of(params), params.control.inverter
    if link is None and inverter is not None:
        link = inverter.supply_voltage
    return None if link is None or bridge is None or bridge.per_link is None else bridge.per_link * link


def temperatures_of(params: Params) -> dict[str, float | None]:
    """Recorded rise of each thermal node of its motor -> its limit [K], None without one."""
    thermal = getattr(params.motor.params, "thermal", None)
    return {} if thermal is None else {f"{node.name}_temperature": node.limit for node in thermal.network_nodes}


def bridge_of(params: Params) -> _bridge.InverterBridge | None:
    """The inverter of its motor; None where it is not known."""
    return getattr(params.motor.module, "BRIDGE", None)


def add_powers(graph: BondGraph, supplied: Law) -> None:
    """The powers of a drive by part, out of an electrical power [W]."""

    def part_of(name: str, element: Element) -> str:
        if name.startswith("motor."):
            return "copper" if element.domains == ("electrical",) else "friction"
        return "friction" if name.startswith("friction.") else "gear"

    power_account.add_supply(graph, supplied)
    power_account.add_losses(graph, power_account.losses_by_part(graph, part_of))


def recorded_of(graph: BondGraph) -> dict[str, str]:
    """Recorded signals of a drive."""
    recorded = {name.removeprefix("motor."): name for name in graph.signals}
    return recorded | {MOTOR_SPEED: "motor.rotor.flow"} | {torque: f"{torque}.effort" for torque in TORQUES}


def _check_inertias(params: Params) -> None:
    """Raises SectionError for a shaft without inertia before an elastic stage: nothing would give its motion."""
    before, keys, what = params.motor.params.inertia, ("motor",), "a rotor"
    for number, stage in enumerate(params.gears):
        own, behind = stage.inertias
        before += own
        if math.isfinite(stage.params.stiffness):
            if not before:
                raise SectionError(f"{what} without inertia turns an elastic stage; give its inertia", keys)
            before = 0.0
        before += behind
        keys, what = ("gears", number), "the output of a stage"


def motor_of(params: Params) -> BondGraph:
    """The motor with its cable, its inverter, and with what controls that continuously. Raises SectionError for a motor
    or a loop that cannot be."""
    motor, control, loops = params.motor, params.control, params.loops
    if params.open_loop is not None:
        key, make, others = "open_loop", motor.module.with_field, (control, params.open_loop)
    elif loops is not None and loops.current is not None:
        key, make, others = "motor", motor.module.with_voltages, (control,)
    else:
        key, make, others = "motor", motor.module.controlled, (control, params.ratio)
    if params.cable is None:
        return _of_motor(key, built, make, motor.params, *others)
    bridge = bridge_of(params)
    assert bridge is not None  # `check` has seen to it

    def with_cable(own: Any, *others: object, cable: cable.Params) -> BondGraph:
        return _behind(cable, make(own, *others), own, bridge.conductors)

    return _of_motor(key, partial(built, cable=params.cable), with_cable, motor.params, *others)


def _behind(own: cable.Params, motor: BondGraph, of_motor: Any, conductors: int) -> BondGraph:
    """The motor on its inverter behind its cable."""
    meshes = {mesh: mesh.replace("mesh", "winding", 1) for mesh in _bridge.meshes_of(motor)}
    # of a machine in the axes d and q
    cable.add_before(motor, own, meshes, conductors, getattr(of_motor, "electrical_ratio", None))
    return motor


def _of_motor(key: str, make: Callable[..., Made], *given: object) -> Made:
    """What the motor's module makes. Raises SectionError at the key for a motor or a loop of which it cannot."""
    try:
        return make(*given)
    except ValueError as error:
        raise SectionError(str(error), (key,)) from None
