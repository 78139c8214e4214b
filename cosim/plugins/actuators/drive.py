"""A servo drive out of components: a motor whose current is controlled, a gear train, and friction at the joint.

    request ─▶ current loop ─▶ motor ─▶ stage ─▶ … ─▶ stage ─▶ joint, with friction

It is assembled from the bond graphs of the components. A stage is a `gear_stage`, whose output turns rigidly with what
follows, or a strain wave gear. Its loops are continuous, or sampled with `loops`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

from cosim.core import ops
from cosim.core.errors import InputError, SectionError
from cosim.core.layout import zeros_like
from cosim.core.servo import brake, cascade, encoder
from cosim.core.servo.brake import HoldingBrake
from cosim.core.servo.cascade import DriveLimits, Measured, ServoLoops, Setpoints
from cosim.core.types import BRAKE, Numeric, Parameters, Signal, Signals, State, param, params
from cosim.mechanics.bondgraph import Element, Law, power_account
from cosim.mechanics.bondgraph.components import _bridge, friction
from cosim.mechanics.bondgraph.components._current_control import LIMIT, CurrentControl, SampledCurrentLoop
from cosim.mechanics.bondgraph.components._open_loop import OpenLoop
from cosim.mechanics.bondgraph.components._switching import STEPS, ripples_of
from cosim.mechanics.bondgraph.graph import BondGraph, ElectricMachine, Stage, built
from cosim.plugins.actuators._drive_doubts import doubts_of
from cosim.plugins.actuators._graph_actuator import JOINT, TORQUES, GraphActuator
from cosim.plugins.actuators._open_loop_drive import OpenLoopDrive

Made = TypeVar("Made")
MOTOR_SPEED = "motor_speed"  # recorded
# what the loops hold and what the encoder of the motor measures, at the joint
SETPOINTS: Signals = {
    "velocity_setpoint": Signal((), "joint velocity", "what the velocity loop follows", "command", "velocity"),
    "effort_setpoint": Signal((), "joint effort", "what the current loop follows", "command", "effort"),
}
MEASURED: Signals = {
    "measured_position": Signal((), "joint position", "position by the encoder of the motor", "measured", "position"),
    "measured_velocity": Signal((), "joint velocity", "velocity by the encoder of the motor", "measured", "velocity"),
    "referenced": Signal((), "1", "1 once the encoder knows its turn, else 0"),
}
OF_A_BRAKE: Signals = {BRAKE: Signal((), "1", "1 where the holding brake is closed, 0 where it is open")}


def _is_first(number: Numeric, count: int) -> Numeric:
    """Whether a sample is the first of so many."""
    return ops.remainder(number, float(count)) < 0.5 if count > 1 else True


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
    actuator.doubts, actuator.temperatures = doubts_of(params), temperatures_of(params)
    if inverter is not None:
        actuator.longest_step = 1.0 / (STEPS * inverter.switching_frequency)
    if not params.linear:
        actuator.for_other_joints = "end its 'gears' with a ball_screw, rack or belt, or use a linear_motor"
    elif params.gears:
        actuator.for_other_joints = f"take the {params.gears[-1].type} out of its 'gears'"
    else:
        actuator.for_other_joints = "use a motor that turns, such as pmsm"
    return actuator


def _assembled(params: Params) -> GraphActuator:
    """Raises InputError for a motor without a current loop, one that is too fast for its samples, and for a component
    that is no stage."""
    check(params)
    motor = _supplied_motor(params)
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
    drive = _with_loops(params, graph, moving)
    drive.outputs = {**drive.outputs, **({} if params.motor.linear else TORQUES)}
    return drive


def _with_loops(params: Params, graph: BondGraph, moving: Mapping[str, float]) -> GraphActuator:
    """The graph with sampled loops, or alone. Raises SectionError for a current loop too fast for its samples."""
    module, loops, field, recorded = params.motor.module, params.loops, params.open_loop, recorded_of(graph)
    if field is not None:
        step = module.step_size(params.motor.params, field)
        return OpenLoopDrive(params, graph, recorded, field, params.ratio, step, moving)
    if loops is None:
        return GraphActuator(params, graph, recorded, moving)
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

    gears, limit = (params.ratio, params.rigid), params.control.current_limit
    return ServoDrive(params, graph, recorded, loops, current, *gears, effort, limit, params.brake, moving)


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


def _supplied_motor(params: Params) -> BondGraph:
    """The motor with its inverter, and with what controls that continuously. Raises SectionError for a motor or a loop
    that cannot be."""
    motor, control, loops = params.motor, params.control, params.loops
    if params.open_loop is not None:
        return _of_motor("open_loop", built, motor.module.with_field, motor.params, control, params.open_loop)
    if loops is not None and loops.current is not None:
        return _of_motor("motor", built, motor.module.with_voltages, motor.params, control)
    return controlled(params)


def controlled(params: Params) -> BondGraph:
    """The motor with its continuous current loop."""
    module = params.motor.module
    return _of_motor("motor", built, module.controlled, params.motor.params, params.control, params.ratio)


def _of_motor(key: str, make: Callable[..., Made], *given: object) -> Made:
    """What the motor's module makes. Raises SectionError at the key for a motor or a loop of which it cannot."""
    try:
        return make(*given)
    except ValueError as error:
        raise SectionError(str(error), (key,)) from None


class ServoDrive(GraphActuator):
    """A drive whose loops are sampled: an assembled bond graph between samples, and the loops at their times. See
    `SampledActuator` in `cosim.core.types`.

    setpoints ─▶ position loop ─▶ velocity loop ─▶ current loop ─▶ held voltages ─▶ motor ─▶ gears ─▶ joint
                                                                                     └─▶ encoder

    Its state are the states of the graph, the angle of the motor behind
    an elastic gear, and what the loops hold."""

    def __init__(
        self,
        params: Parameters,
        graph: BondGraph,
        outputs: Mapping[str, str],
        loops: ServoLoops,
        current: SampledCurrentLoop | None,
        ratio: float,
        rigid: bool,
        largest_effort: Callable[[Numeric], Numeric],
        current_limit: float,
        holding_brake: HoldingBrake | None,
        moving: Mapping[str, Numeric],
    ) -> None:
        """graph, outputs, moving: as of `GraphActuator`; current: None for a continuous loop, whose request is held;
        ratio: turns of the motor per turn of the joint; rigid: whether these are fixed; largest_effort: on the joint
        by an amplitude of the current [A]; current_limit: amplitude [A], where the graph records none.

        Raises GraphError as that does.
        """
        super().__init__(params, graph, outputs, moving)
        self.loops, self.current, self.ratio, self.rigid = loops, current, ratio, rigid
        self.period, self.mode = loops.period, loops.mode
        self.largest_effort, self.current_limit = largest_effort, current_limit
        self._every = {name: loops.every(name) for name in ("position", "velocity")}
        self.holding_brake = holding_brake
        self.braking_effort = holding_brake.effort if holding_brake else None
        of_encoder = MEASURED if loops.encoder else {}
        self.outputs: Signals = {**self.outputs, **(OF_A_BRAKE if holding_brake else {}), **SETPOINTS, **of_encoder}

    # --- state ---

    def initial(self, position: Numeric, velocity: Numeric) -> State:
        angle, p = self.ratio * position, self.loops.encoder
        graph = super().initial(position, velocity)
        state = graph if self.rigid else graph | {"angle": ops.array(angle)}
        return state | self._initially_held(angle, velocity, p)

    def _initially_held(self, angle: Numeric, velocity: Numeric, p: encoder.ShaftEncoder | None) -> State:
        """Before the first sample."""
        state = {"sample": np.zeros(()), **cascade.initial()}
        state |= self.current.initial() if self.current else {}
        state |= brake.initial() if self.holding_brake else {}
        of_encoder = encoder.initial(p, angle, self.ratio * velocity) if p else {}
        return state | {f"encoder_{name}": value for name, value in of_encoder.items()}

    # --- between samples ---

    def flow(self, t: Numeric, p: Parameters, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        dx, y = super().flow(t, p, x, self._with_held(x, u))
        rates = zeros_like(x) | dx
        if not self.rigid:
            rates["angle"] = y[MOTOR_SPEED]
        held = {name: x[name] for name in (*SETPOINTS, BRAKE) if name in x}
        if self.loops.encoder is not None:
            measured = self._measured(x, self._encoder(x))
            held |= dict(zip(MEASURED, measured, strict=True))
        return rates, y | held

    def by_acceleration(self, t: Numeric, p: Parameters, x: State, u: Mapping[str, Numeric]) -> tuple[Numeric, Numeric]:
        return super().by_acceleration(t, p, x, self._with_held(x, u))

    def _with_held(self, x: State, u: Mapping[str, Numeric]) -> dict[str, Numeric]:
        """The inputs of the graph: what the loops hold, and the motion of the joint."""
        held = {name: x[name] for name in self.assembly.inputs if name in x}
        return {**u, **held, "request": x["effort_setpoint"]}

    # --- at samples ---

    def update(self, t: Numeric, p: Parameters, x: State, u: Mapping[str, Numeric]) -> State:
        """At a sample every loop that is due runs, slow ones first: each follows the output of the one before."""
        every, number = self._every, x["sample"]
        due = {name: _is_first(number, count) for name, count in every.items()}
        last = max(every.values())
        state: State = {"sample": ops.where(number > last - 1.5, 0.0, number + 1.0)}
        angle, speed, largest = self._shaft(t, p, x, u)
        velocity_limit = self.loops.velocity.limit if self.loops.velocity else math.inf
        limits = DriveLimits(velocity_limit, self.largest_effort(largest))
        if self.loops.encoder is None:
            measured = Measured(angle / self.ratio, speed / self.ratio, 1.0)
        else:
            seen = self._sampled_encoder(x, angle, due["velocity"])
            state |= {f"encoder_{name}": value for name, value in seen.items()}
            measured = self._measured(x, seen)
            speed = seen["speed"]
        wanted = Setpoints(u["setpoint_position"], u["setpoint_velocity"], u["request"])
        of_motion = {name: x[name] for name in cascade.initial()}
        renewed = due["position"], due["velocity"]
        following = cascade.followed(self.loops, self.loops.mode, of_motion, wanted, measured, limits, renewed)
        state |= {name: ops.where(u["enabled"] > 0.5, value, 0.0) for name, value in following.items()}
        if self.holding_brake is not None:
            state |= brake.sampled(self.holding_brake, x, u["enabled"], self.period)
        if self.current is not None:
            motor = {name.removeprefix("motor."): value for name, value in x.items() if name.startswith("motor.")}
            torque = state["effort_setpoint"] / self.ratio
            state |= self.current.sampled(x, motor, torque, angle, speed, largest)
        return state

    def _shaft(self, t: Numeric, p: Parameters, x: State, u: Mapping[str, Numeric]) -> tuple[Numeric, ...]:
        """Angle [rad] and speed [rad/s] of the motor, and the largest amplitude of its current [A]."""
        y: Mapping[str, Numeric] = {}
        if not self.rigid or LIMIT in self.outputs:
            y = self.flow(t, p, x, u)[1]
        largest = y.get(LIMIT, self.current_limit)
        if self.rigid:
            return self.ratio * u["position"], self.ratio * u["velocity"], largest
        return x["angle"], y[MOTOR_SPEED], largest

    def _sampled_encoder(self, x: State, angle: Numeric, due: Numeric) -> State:
        """The state of the encoder, which is sampled with the velocity loop."""
        before, p = self._encoder(x), self.loops.encoder
        assert p is not None
        after = encoder.sampled(p, before, angle, self._every["velocity"] * self.period)
        return {name: ops.where(due, after[name], value) for name, value in before.items()}

    def _encoder(self, x: State) -> State:
        names = (name for name in x if name.startswith("encoder_"))
        return {name.removeprefix("encoder_"): x[name] for name in names}

    def _measured(self, x: State, seen: State) -> Measured:
        p = self.loops.encoder
        assert p is not None
        return Measured(encoder.read(p, seen) / self.ratio, seen["speed"] / self.ratio, encoder.known(p, seen))
