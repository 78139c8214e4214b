"""Shared types: signals, parameters, joint state and command, the contracts of blocks. Drivers: `driver_contract`.

Names follow ros2_control: position, velocity, acceleration, effort; a signal is `<joint>/<interface>`.
Arrays are preallocated `(n,)` in joint order, SI. Time is integer nanoseconds between parts, and seconds (a number or
a symbol) inside a pure block.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
    dataclass_transform,
    get_type_hints,
    runtime_checkable,
)
from weakref import WeakKeyDictionary

import numpy as np

from cosim.core.errors import InputError, did_you_mean

Array = np.ndarray
T = TypeVar("T")
# A number, an array of numbers, or a symbol of either while a block is traced: the same code runs on all of them.
# For the type checker it is `Any`: Python has no type for "the arithmetic of numpy, symbolic or not".
Numeric: TypeAlias = Any
State = dict[str, Numeric]  # named arrays, nested by part
PerJoint = Annotated[tuple[float, ...], "per joint"]  # a parameter with one value per joint; one number means all


# what a recorded signal is beside the value of the model, by which its curve is styled
Role = Literal["", "measured", "reference", "command", "estimate", "holding", "load", "error"]


@dataclass(frozen=True)
class Signal:
    """One named input or output of a block, or what a rig records: its declaration, which all that show it read.

    unit: of `cosim.core.units`, or a quantity of a joint such as `joint effort`. For recorded signals: meaning in one
    line; role; chart: the title of the chart of its joint in which its curve is drawn, by default one of its own.
    """

    shape: tuple[int, ...]
    unit: str
    meaning: str = ""
    role: Role = ""
    chart: str = ""


Signals = Mapping[str, Signal]

FEEDBACK: tuple[str, ...] = ("position", "velocity", "effort")
# what a controller may know of the whole mechanism, (nv,)
ALL: tuple[str, ...] = (*(f"all_{name}" for name in FEEDBACK), "all_acceleration", "all_locked")
REFERENCE: tuple[str, ...] = ("reference_position", "reference_velocity", "reference_acceleration", "reference_effort")
COMMAND: tuple[str, ...] = ("position", "velocity", "effort", "kp", "kd")


def joint_signals(names: tuple[str, ...], n: int) -> Signals:
    """Signals of shape (n,), one per name, with the unit of the interface the name ends in. Raises ValueError for
    a name that ends in none."""
    units = {
        "position": "joint position",
        "velocity": "joint velocity",
        "acceleration": "joint acceleration",
        "effort": "joint effort",
        "kp": "joint stiffness",
        "kd": "joint damping",
        "locked": "1",
    }
    for name in (name for name in names if name.rsplit("_", 1)[-1] not in units):
        raise ValueError(f"there is no signal '{name}'{did_you_mean(name, (*FEEDBACK, *ALL, *REFERENCE, *COMMAND))}")
    return {name: Signal((n,), units[name.rsplit("_", 1)[-1]]) for name in names}


# --- parameters ---------------------------------------------------------------------------------


def param(
    *,
    unit: str = "1",
    min: float | None = None,
    max: float | None = None,
    above: float | None = None,
    default: Any = dataclasses.MISSING,
    constant: bool = False,
    doc: str = "",
) -> Any:
    """A field of a parameter dataclass, with the unit and the bounds that rig, tuner and dashboard read.

    `min` and `max` are inclusive, `above` is an exclusive lower bound; bounds hold for every element
    of a vector field. A field without `default` must be given in the rig. constant: what a block computes from it when
    it is loaded is part of its code, so that it cannot change in a run.
    """
    metadata = {"unit": unit, "min": min, "max": max, "above": above, "constant": constant, "doc": doc}
    if isinstance(default, (list, dict)):
        raise TypeError("use a tuple or a number as the default of a parameter")
    return field(default=default, metadata=metadata)


@dataclass_transform(frozen_default=True, field_specifiers=(param, field))
def params(cls: type[T]) -> type[T]:
    """Class decorator: a frozen dataclass of parameters whose fields are made with `param`."""
    return dataclass(frozen=True)(cls)


_HINTS: WeakKeyDictionary[type, dict[str, Any]] = WeakKeyDictionary()


def hints_of(cls: type) -> Mapping[str, Any]:
    """The annotations of a class, evaluated once: Python compiles each of them anew. Raises what they raise."""
    if cls not in _HINTS:
        _HINTS[cls] = get_type_hints(cls, include_extras=True)
    return _HINTS[cls]


class Parameters(Protocol):
    """An instance of a class made with `params`."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


# --- blocks: the parts of a rig that are pure functions --------------------------------------------


@runtime_checkable
class Block(Protocol):
    """A pure part of a rig: its outputs depend only on (t, p, x, u).

    t: time in s; p: the params; x: the state as made by `initial`; u: the inputs by name.
    """

    inputs: Signals
    outputs: Signals

    @property
    def params(self) -> Parameters: ...


@runtime_checkable
class DiscreteBlock(Block, Protocol):
    """A block that is called once per period."""

    def initial(self) -> State: ...

    # p: Any, because every block has parameters of a class of its own
    def update(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        """(next state, outputs by name)."""
        ...


# inputs among FEEDBACK, REFERENCE and ALL; outputs COMMAND, shape (n,). A controller may have `signals`: further
# outputs of `update`, which are recorded, one per joint, shape (n,), or one of the controller, shape ()
Controller = DiscreteBlock


def signals_of(controller: Controller) -> Signals:
    """The signals that a controller declares besides its outputs."""
    return getattr(controller, "signals", {})


@runtime_checkable
class ContinuousBlock(Block, Protocol):
    """A block in continuous time."""

    def flow(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        """(time derivative of the state, outputs by name)."""
        ...


ACTUATOR_INPUTS: Signals = {
    "request": Signal((), "joint effort"),
    "position": Signal((), "joint position"),
    "velocity": Signal((), "joint velocity"),
}
# effort on the joint, power taken from the source, power lost, energy stored inside
ACTUATOR_OUTPUTS: Signals = {
    "effort": Signal((), "joint effort"),
    "power": Signal((), "W"),
    "loss": Signal((), "W"),
    "stored": Signal((), "J"),
}


ACCELERATION = "acceleration"  # a further input of a `InertialActuator`


class Actuator(ContinuousBlock, Protocol):
    """A continuous block between a requested effort and a joint; all signals are of one joint, shape ().

    inputs: ACTUATOR_INPUTS; outputs: ACTUATOR_OUTPUTS, and further ones to be recorded. One for rotational joints, or
    for linear ones, alone has `moves`, the unit of their position: rad or m.
    """

    reflected_inertia: float  # rigidly coupled to the joint; part of the mechanism [kg m² or kg]
    positions: Sequence[str]  # states that are positions; the semi-implicit method takes their rates at its end

    def initial(self, position: Numeric, velocity: Numeric) -> State:
        """The state without currents, with the joint at this position and velocity."""
        ...


class InertialActuator(Actuator, Protocol):
    """An actuator of m joints whose effort and rates are affine in their accelerations a, effort = e − B a and
    ẋ = c + D a, beyond the reflected inertia: the plant solves for a. `flow` takes a further input, ACCELERATION, and
    `effort` is the one on the joint at this acceleration.

    is_inertial: whether its motion depends on a; follows_acceleration: whether any output does.
    is_linear_in_acceleration: whether B and D are constant in a; if not, they are so piece by piece. states: the
    states of the rows of D, each of shape ().
    """

    is_inertial: bool
    follows_acceleration: bool
    is_linear_in_acceleration: bool
    states: Sequence[str]
    states: Sequence[str]

    def by_acceleration(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[Numeric, Numeric]:
        """(B (m, m), D (states, m))"""
        ...


class SharedActuator(InertialActuator, Protocol):
    """A drive of m joints. The names of its inputs, and of the outputs `effort`, begin with that of the joint and a
    dot; reflected, units: by that beginning the reflected inertia [kg m² or kg], and the unit of the joint's position,
    rad or m. `initial` takes positions and velocities (m,). One with sampled parts has `sampled`: by that beginning a
    `SampledPart`. One that may trip has `trips`, each a `TripLimit`."""

    reflected: Mapping[str, float]
    units: Mapping[str, str]


class LoopCut(NamedTuple):
    """Where a loop in a drive can be cut. every: how many samples of its drive lie from one of its own to the next;
    output: the state that holds what it gives; setpoint: the one of SETPOINTS, or `request`, that is added to what it
    gives, times a gain, and to nothing else; None: what it gives is used by nothing else in the same sample."""

    every: int
    output: str
    setpoint: str | None = None


class TripLimit(NamedTuple):
    """Of a state of an actuator: the run stops where factor · state leaves lowest to largest at the end of a tick."""

    what: str
    unit: str
    state: str
    factor: float
    lowest: float
    largest: float


class SampledPart(Protocol):
    """The sampled part of an actuator, or of one joint of a `SharedActuator`: see `SampledActuator`. One that closes
    loops has `cuts`: a `LoopCut` by the name of each."""

    @property
    def period(self) -> float:
        """s, or EVERY_TICK"""
        ...

    @property
    def mode(self) -> str:
        """What it follows of the command of its joint: effort, velocity or position."""
        ...

    def update(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> State:
        """The held states after the sample at time t; u: inputs of the actuator and SETPOINTS of the joint at that
        time, whose names begin with that of the joint where it is one of several."""
        ...


# what the sampled part of an actuator gets besides ACTUATOR_INPUTS: the setpoints of its joint's command, and whether
# it is switched on (1, else 0)
SETPOINTS: Signals = {
    "setpoint_position": Signal((), "joint position"),
    "setpoint_velocity": Signal((), "joint velocity"),
    "enabled": Signal((), "1"),
}


BRAKE = "brake"  # an output of an actuator with a holding brake: 1 where it is closed, 0 where it is open


EVERY_TICK = math.inf  # period of a sampled actuator that is sampled once in every tick


class SampledActuator(Actuator, SampledPart, Protocol):
    """An actuator with a sampled part, such as the loops of a drive.

    Its held states have the rate 0 in `flow`; they change at whole multiples of the period, before the step that begins
    there. A tick is a whole number of periods. One with a holding brake has `braking_effort` and the output BRAKE.
    """


class Trajectory(Protocol):
    """The reference of n joints as a pure function of time. One with an attribute `is_excitation` that is true has an
    effort that is added to what the controller commands, past it and its filters. One whose position is not smooth
    has an attribute `breaks`: the times [s] at which its velocity, its acceleration or a later derivative jumps. One
    with an attribute `blends` that is true begins where the rig starts, and blends into its motion. `doubts`: lines
    that runs warn of, `elsewhere`: lines about a first position that is not where the rig starts."""

    @property
    def end(self) -> float:
        """The time [s] after which it is constant; infinite for a periodic one."""
        ...

    def sample(self, t: Numeric) -> dict[str, Numeric]:
        """The reference at time t [s], a number or a symbol: `position`, `velocity`, `acceleration` and
        `effort` (an additional feedforward, zero for most kinds), each (n,), SI."""
        ...


def declared(trajectory: object, name: str, default: T) -> T:
    """An optional attribute of a trajectory, or of the one that it is made around, its `trajectory`."""
    while trajectory is not None:
        if hasattr(trajectory, name):
            return getattr(trajectory, name)
        trajectory = getattr(trajectory, "trajectory", None)
    return default


def breaks_of(given: object) -> Array:
    """The times [s] of 0 or above, increasing, that a given function of time, such as a `Trajectory`, declares as
    `breaks`; none without this attribute. Raises InputError for what are no times."""
    declared = getattr(given, "breaks", ())
    try:
        times = np.asarray(declared, dtype=float)
        fault = "" if times.ndim == 1 else f"of shape {times.shape}"
    except (TypeError, ValueError):
        raise InputError("declares breaks that are no numbers; give a list of times in s") from None
    if fault or not np.isfinite(times).all():
        raise InputError(f"declares breaks {fault or 'that are not finite'}; give a list of times in s")
    return np.unique(times[times >= 0.0])


# --- joints: what drivers read and write -----------------------------------------------------------


@dataclass
class JointState:
    """Measurements of n joints at t_ns: position, velocity, effort (SI), fault (0 = none), temperature [°C]; effort and
    temperature are NaN where they are not measured. If joints are measured at different times, t_ns is the earliest."""

    t_ns: int
    position: Array
    velocity: Array
    effort: Array
    fault: Array
    temperature: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if len(self.temperature) != len(self.position):
            self.temperature = np.full(len(self.position), np.nan)

    @classmethod
    def zeros(cls, n: int) -> JointState:
        return cls(0, np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n, dtype=np.int64))


@dataclass
class JointCommand:
    """The command of n joints: requested effort = kp (position − q) + kd (velocity − v) + effort."""

    position: Array
    velocity: Array
    effort: Array
    kp: Array
    kd: Array
    valid_until_ns: int

    @classmethod
    def zeros(cls, n: int) -> JointCommand:
        return cls(*(np.zeros(n) for _ in COMMAND), valid_until_ns=0)


def requested_effort(command: Mapping[str, Numeric], state: Mapping[str, Numeric]) -> Numeric:
    """kp (position − q) + kd (velocity − v) + effort: the effort that a command requests of the drive in a measured
    state."""
    kp, kd, position, velocity = (command[name] for name in ("kp", "kd", "position", "velocity"))
    return closed_loop_effort(kp, kd, position, velocity, state["position"], state["velocity"]) + command["effort"]


def closed_loop_effort(
    kp: Numeric, kd: Numeric, position: Numeric, velocity: Numeric, measured: Numeric, speed: Numeric
) -> Numeric:
    """kp (position − q) + kd (velocity − v), at the measured position q and velocity v."""
    return kp * (position - measured) + kd * (velocity - speed)


@dataclass(frozen=True)
class Limits:
    """Bounds of n joints: position in [lower, upper], |velocity|, |effort|; infinite where unbounded."""

    lower: Array
    upper: Array
    velocity: Array
    effort: Array

    def at(self, index: Array) -> Limits:
        """The limits of the joints at these indices."""
        return Limits(self.lower[index], self.upper[index], self.velocity[index], self.effort[index])


# --- what leaves a run --------------------------------------------------------------------------------

Level = Literal["info", "warning", "error"]


class Sink(Protocol):
    """Receives what a run measured: t_ns (k,) integer ns of the run, values (k, m), a column per channel."""

    def __call__(self, t_ns: Array, values: Array) -> None: ...

    def event(self, t_ns: int, what: str, level: Level = "info") -> None: ...

    def fault(self, t_ns: int, what: str) -> None: ...

    def change(self, t_ns: int, tick: int, name: str, value: Sequence[float]) -> None:
        """Before the tick, what has this name got this value in SI."""
        ...


# --- what plug-ins are given ---------------------------------------------------------------------------


class MechanismFunctions(Protocol):
    """The equations of a mechanism as pure functions of numbers or symbols, for use in `Controller.update`.

    q: (nq,) coordinates; v, qdd, tau: (nv,); prescribed: bool (nv,); t: time [s]. See
    `cosim.mechanics.multibody.Model`.
    """

    @property
    def timed(self) -> bool:
        """Whether the mechanism depends on time."""
        ...

    def coordinates(self, chart: Numeric) -> Numeric:
        """q (nq,) of joint positions (nv,), such as the input `all_position`."""
        ...

    def chart(self, q: Numeric) -> Numeric:
        """Joint positions (nv,) of q (nq,)."""
        ...

    def forward_dynamics(self, q: Numeric, v: Numeric, tau: Numeric, t: Numeric = 0.0) -> Numeric: ...

    def inverse_dynamics(self, q: Numeric, v: Numeric, qdd: Numeric, t: Numeric = 0.0) -> Numeric: ...

    def hybrid_dynamics(
        self, q: Numeric, v: Numeric, qdd: Numeric, tau: Numeric, prescribed: Numeric, t: Numeric = 0.0
    ) -> tuple[Numeric, Numeric]: ...

    def friction_effort(self, v: Numeric) -> Numeric: ...

    def rate(self, q: Numeric, v: Numeric) -> Numeric:
        """The rates (nq,) of the coordinates."""
        ...

    def mass_matrix(self, q: Numeric, t: Numeric = 0.0) -> Numeric: ...

    def kinetic_energy(self, q: Numeric, v: Numeric, t: Numeric = 0.0) -> Numeric: ...

    def gravity_energy(self, q: Numeric, t: Numeric = 0.0) -> Numeric: ...

    def elastic_energy(self, q: Numeric, t: Numeric = 0.0) -> Numeric: ...


class MechanismModel(Protocol):
    """The mechanism of a rig as controllers see it: a `cosim.mechanics.multibody.Model`.

    The functions take numbers, or symbols in `Controller.update`. q: (nq,) coordinates; v: (nv,); poses, Jacobians and
    momentum are in ground axes, linear part first. Where the mechanism depends on time, t [s] is the last argument.
    """

    nq: int
    nv: int
    dof_names: tuple[str, ...]  # (nv,)
    constraint_rows: tuple[str, ...]

    @property
    def dof_units(self) -> tuple[str, ...]:
        """(nv,): `rad` or `m`"""
        ...

    @property
    def timed(self) -> bool:
        """Whether the mechanism depends on time."""
        ...

    @property
    def elastic_dofs(self) -> Array:
        """(m,) the indices of the dofs of elastic links."""
        ...

    @property
    def equations(self) -> MechanismFunctions: ...

    def coordinates(self, chart: Numeric) -> Numeric:
        """q (nq,) of joint positions (nv,), such as the input `all_position`."""
        ...

    def inverse_dynamics_derivatives(
        self, q: Numeric, v: Numeric, qdd: Numeric, *t: Numeric
    ) -> tuple[Numeric, Numeric, Numeric]:
        """(∂τ/∂q, ∂τ/∂v, ∂τ/∂q̈), (nv, nv) each."""
        ...

    def link_regressor(self, q: Numeric, v: Numeric, qdd: Numeric, link: str, *t: Numeric) -> Numeric:
        """(nv, 10): ∂τ/∂(mass, m c (3,), Ixx, Iyy, Izz, Ixy, Ixz, Iyz about the origin) of a link."""
        ...

    def chart(self, q: Numeric) -> Numeric:
        """Joint positions (nv,) of q (nq,)."""
        ...

    def inverse_dynamics(self, q: Numeric, v: Numeric, qdd: Numeric, *t: Numeric) -> Numeric:
        """(nv,)"""
        ...

    def frame_pose(self, q: Numeric, frame: str, *t: Numeric) -> Numeric:
        """(4, 4) of the link of this name."""
        ...

    def frame_jacobian(self, q: Numeric, frame: str, *t: Numeric) -> Numeric:
        """(6, nv)"""
        ...

    def frame_jacobian_rate(self, q: Numeric, v: Numeric, frame: str, *t: Numeric) -> Numeric:
        """(6, nv)"""
        ...

    def inverse_kinematics(
        self,
        frame: str,
        pose: Numeric,
        q0: Numeric = None,
        posture: Numeric = "start",
        dofs: Numeric = None,
        tolerance: float = 1e-9,
        restarts: int = 20,
    ) -> Any:
        """See `Model.inverse_kinematics`; for numbers."""
        ...

    def center_of_mass(self, q: Numeric, *t: Numeric) -> Numeric:
        """(3,)"""
        ...

    def center_of_mass_jacobian(self, q: Numeric, *t: Numeric) -> Numeric:
        """(3, nv)"""
        ...

    def centroidal_momentum(self, q: Numeric, v: Numeric, *t: Numeric) -> Numeric:
        """(6,)"""
        ...

    def centroidal_momentum_matrix(self, q: Numeric, *t: Numeric) -> Numeric:
        """(6, nv)"""
        ...

    def mass_matrix(self, q: Numeric, *t: Numeric) -> Numeric:
        """(nv, nv)"""
        ...

    def nonlinear_effects(self, q: Numeric, v: Numeric, *t: Numeric) -> Numeric:
        """h (nv,), with gravity."""
        ...

    def gravity_effort(self, q: Numeric, *t: Numeric) -> Numeric:
        """(nv,)"""
        ...


@dataclass(frozen=True)
class ControllerContext:
    """The part of the rig that a controller receives when it is loaded."""

    joints: tuple[str, ...]  # the n joints it commands
    index: Array  # (n,) their indices in the nv velocities of the model
    model: MechanismModel  # of the whole mechanism
    period: float  # s
    limits: Limits  # of the n joints
    prescribed: Array  # bool (nv,): dofs of the mechanism with a prescribed trajectory
    drive_controlled: tuple[str, ...] = ()  # of the joints, those whose drives close a velocity or position loop
    start: Array = field(default_factory=lambda: np.zeros(0))  # (nv,) positions of the mechanism at the start of a run
    # the model with the numbers of the rig, for what is computed when a controller is loaded: in `model` they may be
    # inputs of the code
    nominal: MechanismModel | None = None
    trajectory: Trajectory | None = None  # of the n joints, for numbers; None: it holds the positions at the start

    @property
    def numeric_model(self) -> MechanismModel:
        """The model whose functions of numbers give numbers."""
        return self.nominal or self.model


@dataclass(frozen=True)
class TrajectoryContext:
    """What a trajectory that is planned with the model receives when it is loaded.

    A module with `NEEDS_MODEL = True` has `load(params, joints, folder, start, context)`.
    """

    index: Array  # (n,) the indices of its joints in the nv velocities of the model
    model: MechanismModel  # of the whole mechanism, for numbers
    position: Array  # (nq,) coordinates at which the rig starts
    limits: Limits  # of the n joints
    prescribed: Mapping[int, Trajectory] = field(default_factory=dict)  # of other dofs, by index
    # indices of the dofs that nothing drives, except dofs of elastic links
    passive: Array = field(default_factory=lambda: np.zeros(0, dtype=int))

    def positions_at(self, t: float) -> Array:
        """(nv,) positions of the mechanism, with prescribed dofs where they are at time t [s] and all others at the
        start."""
        positions = np.array(self.model.chart(self.position), dtype=float)
        for dof, trajectory in self.prescribed.items():
            positions[dof] = trajectory.sample(t)["position"][0]
        return positions
