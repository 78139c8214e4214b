"""A servo drive out of components: a motor whose current is controlled, a gear train, and friction at the joint.

    request ─▶ current loop ─▶ motor ─▶ stage ─▶ … ─▶ stage ─▶ joint, with friction

It is assembled from the bond graphs of the components. A stage is a `gear_stage`, whose output turns rigidly with what
follows, or a strain wave gear. Its loops are continuous, or sampled with `loops`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from cosim.core import ops
from cosim.core.errors import InputError, SectionError
from cosim.core.layout import zeros_like
from cosim.core.servo import brake, cascade, encoder
from cosim.core.servo.brake import HoldingBrake
from cosim.core.servo.cascade import DriveLimits, Measured, ServoLoops, Setpoints
from cosim.core.types import BRAKE, Numeric, Parameters, Signal, Signals, State, param, params
from cosim.mechanics.bondgraph.components import friction
from cosim.mechanics.bondgraph.components._current_control import (
    LIMIT,
    CurrentControl,
    MachineWindings,
    SampledCurrentLoop,
)
from cosim.mechanics.bondgraph.components._open_loop import OpenLoop
from cosim.mechanics.bondgraph.components._switching import STEPS
from cosim.mechanics.bondgraph.graph import BondGraph, ElectricMachine, Stage
from cosim.plugins.actuators._graph_actuator import JOINT, GraphActuator
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
    motor: ElectricMachine = param(doc="a machine: a type of component, such as `pmsm`, with its parameters")
    control: CurrentControl = param(default=CurrentControl(), doc="of the motor's current")
    gears: tuple[Stage, ...] = param(default=(), doc="stages from the motor to the joint")
    friction: friction.Params | None = param(default=None, doc="at the joint")
    loops: ServoLoops | None = param(default=None, doc="sampled loops of position, velocity and current")
    open_loop: OpenLoop | None = param(default=None, doc="of a `stepper` or `induction_machine`, in place of loops")
    brake: HoldingBrake | None = param(default=None, doc="holding brake at the joint, which the drive switches")

    def __post_init__(self) -> None:
        if self.brake is not None and self.loops is None:
            raise ValueError("a brake is switched at samples of the drive; give 'loops' too, or take 'brake' out")
        if self.open_loop is None:
            return
        if self.loops is not None:
            raise ValueError("a drive has 'loops' or 'open_loop', not both; take one out")
        if self.control.overload is not None:
            raise ValueError("a field without feedback has a fixed amplitude; take 'overload' or 'open_loop' out")

    @property
    def ratio(self) -> float:
        """Turns of the motor per turn of the joint."""
        return math.prod(stage.params.ratio for stage in self.gears)

    @property
    def rigid(self) -> bool:
        """Whether the motor turns with the joint."""
        return all(math.isinf(stage.params.stiffness) for stage in self.gears)


def load(params: Params) -> GraphActuator:
    """The drive, with what the substeps of its plant may be. Raises as `_assembled`."""
    drive, inverter = _assembled(params), params.control.switching
    if inverter is not None:
        drive.longest_step = 1.0 / (STEPS * inverter.switching_frequency)
    return drive


def _assembled(params: Params) -> GraphActuator:
    """Raises InputError for a motor without a current loop, one that is too fast for its samples, and for a component
    that is no stage."""
    module, loops, field = params.motor.module, params.loops, params.open_loop
    if not hasattr(module, "controlled"):
        known = " or ".join(ElectricMachine.types)
        raise InputError(f"'{params.motor.type}' is no motor with a current loop; use {known}")
    if field is not None and not hasattr(module, "with_field"):
        what = f"a {params.motor.type} does not follow a field without feedback"
        raise SectionError(f"{what}; use a stepper or an induction_machine, or 'loops'", ("open_loop",))
    for number, stage in enumerate(params.gears):
        if stage.type not in Stage.types:
            what = f"'{stage.type}' is no stage of a gear train; use {' or '.join(Stage.types)}"
            raise SectionError(what, ("gears", number, "type"))
    _check_inertias(params)
    graph = BondGraph()
    graph.include("motor", _supplied_motor(params))
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
    if field is not None:
        step = module.step_size(params.motor.params, field)
        return OpenLoopDrive(params, graph, recorded, field, params.ratio, step, moving)
    if loops is None:
        return GraphActuator(params, graph, recorded, moving)
    windings, current = _of_motor("motor", module.windings, params.motor.params, params.control), None
    if loops.current is not None:
        try:
            current = SampledCurrentLoop(windings, params.control, loops.current)
        except ValueError as error:
            raise SectionError(str(error), ("control", "bandwidth")) from None
    gears, limit = (params.ratio, params.rigid), params.control.current_limit
    return ServoDrive(params, graph, recorded, loops, current, *gears, windings, limit, params.brake, moving)


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


def _supplied_motor(params: Params) -> BondGraph:
    """The motor with its inverter, and with what controls that continuously."""
    motor, control, loops = params.motor, params.control, params.loops
    if params.open_loop is not None:
        return _of_motor("open_loop", motor.module.with_field, motor.params, control, params.open_loop)
    if loops is not None and loops.current is not None:
        return _of_motor("motor", motor.module.with_voltages, motor.params, control)
    return _of_motor("motor", motor.module.controlled, motor.params, control, params.ratio)


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
        windings: MachineWindings,
        current_limit: float,
        holding_brake: HoldingBrake | None,
        moving: Mapping[str, Numeric],
    ) -> None:
        """graph, outputs, moving: as of `GraphActuator`; current: None for a continuous loop, whose request is held;
        ratio: turns of the motor per turn of the joint; rigid: whether these are fixed; windings: of the motor;
        current_limit: amplitude [A], where the graph records none.

        Raises GraphError as that does.
        """
        super().__init__(params, graph, outputs, moving)
        self.loops, self.current, self.ratio, self.rigid = loops, current, ratio, rigid
        self.period, self.mode = loops.period, loops.mode
        self.windings, self.current_limit = windings, current_limit
        self.effort_constant = abs(ratio) * windings.torque_constant
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
        limits = DriveLimits(velocity_limit, self.effort_constant * self.windings.of_torque(largest))
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
            motor = {name.removeprefix("motor."): value for name, value in x.items()}
            state |= self.current.sampled(x, motor, state["effort_setpoint"] / self.ratio, speed, largest)
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
