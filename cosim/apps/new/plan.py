"""The figures of a first rig: where the joints start and move, what their actuators need, and which integrator.

All of them follow from the mechanism. A figure that replaces one of the robot file has its reason in words, which
become comments of the rig. Where only the greatest effort and velocity of a joint are known, a DC motor with gear
follows from them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cosim.apps.new.loops import DECIMALS, Drivable, LoopPlan, plan_loops
from cosim.core.types import Array
from cosim.core.units import DEGREE, RPM
from cosim.mechanics.multibody.description.robot_file import FileActuator, RobotFile
from cosim.mechanics.multibody.description.urdf_extensions import LIMITS_OF_JOINT
from cosim.mechanics.multibody.friction import FRICTION_SPEED
from cosim.mechanics.multibody.mechanism import GRAVITY, Joint, Mechanism
from cosim.mechanics.multibody.model import Model
from cosim.rig.sections.dofs import dofs_of

Actuators = Literal["auto", "ideal", "dc_motor", "file"]

USUAL_STEP = 1e-3  # s, of a rig whose bandwidth permits it
STEPS_PER_PERIOD = 100  # at least, of the bandwidth
DURATION, DELAY, PAUSE = 1.0, 0.2, 0.3  # s: of the motion there, before it, after it
PEAK_VELOCITY = 1.875  # of a quintic of length 1 and duration 1
_SAMPLES = (0.0, 0.2113, 0.5, 0.7887, 1.0)  # of its duration; among them its greatest velocity and accelerations

TRAVEL_FRACTION = 0.1  # of the range of a joint
VELOCITY_FRACTION = 0.5  # of its velocity limit
LOCKED_RANGE = 1e-6  # rad or m: a joint with a smaller range does not move
BESIDE = "of the robot file beside its <limit>: a soft limit or ros2_control"
EFFORT_MARGIN = 1.5  # of an effort limit above the required effort, below which the limit does not count
EFFORT_RESERVE = 3.0  # of an effort limit that is not given above the required effort
EFFORT_EXCESS = 200.0  # of an effort limit above the required effort, from which it may be a placeholder
STIFF_RATE = 1.4  # rate of friction times step, from which explicit integration is unstable or inaccurate
SMALLEST_STEP = 0.25e-3  # s, below which an implicit integrator is the better remedy
IMPLICIT_STEP = 0.5e-3  # s, at which it integrates the change from sliding to sticking
SUPPLY_VOLTAGE = 48.0  # V
MOTOR_SPEED = 4000.0 * RPM  # of the motor at the velocity limit of the joint
BACK_EMF, DROP = 0.7, 0.2  # of the supply at the velocity limit, and at the effort limit across the resistance
WINDING_TIME = 2e-3  # s, time constant of the winding
RUN_UP = 0.02  # s
CURRENT_BANDWIDTH = 100.0  # Hz


@dataclass(frozen=True)
class Usual:
    """What is usual for a rotational or a linear joint, in its display unit `shown` and SI."""

    shown: str
    factor: float  # SI per display unit
    travel: float
    velocity: float
    acceleration: float
    reach: float  # of a joint without position limits where the rig must have some
    largest_velocity: float  # from which a limit is a placeholder
    largest_effort: float  # which only a large excess makes a placeholder
    effort_unit: str


USUAL = {
    "rad": Usual("deg", DEGREE, 5 * DEGREE, 180 * DEGREE, 10.0, math.pi, 100.0, 1000.0, "N*m"),
    "m": Usual("mm", 1e-3, 0.01, 0.5, 5.0, 1.0, 10.0, 10_000.0, "N"),
}


@dataclass(frozen=True)
class PlannedValue:
    """A value, and why the rig has another one than the robot file; "": it is the file's."""

    value: float
    reason: str = ""


@dataclass(frozen=True)
class JointPlan:
    """A joint of one dof. start, goal: rad or m."""

    joint: Joint
    unit: str
    locked: bool
    start: float
    goal: float
    lower: PlannedValue
    upper: PlannedValue
    effort: PlannedValue
    velocity: PlannedValue
    rotor: float  # reflected inertia of its dc_motor [kg m² or kg]; 0: its actuator is ideal
    passive: bool = False  # follows actuated joints of its closed loop
    idle: tuple[str, ...] = ()  # actuators of the robot file on it that the rig does not have
    of_file: FileActuator | None = None  # the actuator of the robot file that it has
    ratio: float | None = None  # of the gear in the robot file: motion of the motor per motion of the joint
    given: bool = False  # whether the robot file has the start

    @property
    def name(self) -> str:
        return self.joint.name

    @property
    def usual(self) -> Usual:
        return USUAL[self.unit]

    @property
    def replaced(self) -> dict[str, PlannedValue]:
        """The limits of the file that the rig replaces, by their key."""
        figures = {"lower": self.lower, "upper": self.upper, "velocity": self.velocity, "effort": self.effort}
        taken = {key: figure for key, figure in figures.items() if figure.reason}
        if self.of_file is not None:
            taken.pop("effort", None)  # its actuator knows
        if self.passive:  # nothing drives it
            taken.pop("effort", None)
            if math.isinf(self.joint.max_velocity):
                taken.pop("velocity", None)
        return taken

    @property
    def follows(self) -> str:
        """What of its command an actuator of the robot file follows."""
        return "effort" if self.of_file is None else str(self.of_file.keys.get("mode", "effort"))


@dataclass(frozen=True)
class Plan:
    """The figures of a new rig, from the mechanism: joints, bandwidth, step and integrator. joints: of one dof; held:
    joints of several dofs, which are latched; loops: which joints of closed loops are actuated and why, in lines."""

    mechanism: Mechanism
    joints: tuple[JointPlan, ...]
    held: tuple[str, ...]
    bandwidth: float  # Hz
    step: float  # s
    integrator: str
    loops: tuple[str, ...] = ()

    @property
    def moving(self) -> tuple[JointPlan, ...]:
        return tuple(joint for joint in self.joints if not joint.locked)

    @property
    def actuated(self) -> tuple[JointPlan, ...]:
        return tuple(joint for joint in self.moving if not joint.passive)

    @property
    def duration(self) -> float:
        return DELAY + 2 * DURATION + PAUSE


@dataclass(frozen=True)
class _Motion:
    """A joint before its drive is sized. passive: it follows actuated joints of its closed loop."""

    joint: Joint
    unit: str
    placeholder: bool  # its limits are all 0, as exporters write them where none are set
    locked: bool
    start: float
    goal: float
    passive: bool = False


def plan_rig(
    mechanism: Mechanism,
    bandwidth: float,
    actuator: Actuators = "auto",
    hold: bool = True,
    gravity: tuple[float, float, float] = GRAVITY,
    file: RobotFile | None = None,
) -> Plan:
    """The figures of a rig for the mechanism.

    bandwidth: of the control [Hz]; actuator: of all joints, or `auto`: motors where friction is strong, else ideal;
    hold: latch joints of several dofs; gravity: [m/s²]; file: what the robot file states beside the mechanism, its
    actuators for `file`.
    Raises InputErrors for links that can move without inertia.
    """
    model, dofs = Model(mechanism, gravity), dofs_of(mechanism)
    units = dict(zip(model.dof_names, model.dof_units, strict=True))
    singles = [joint for name, joint in dofs.single.items() if name in units and name not in dofs.by_name]
    limits, starts, ratios = _of_file(file)
    motions = [
        _motion(within(joint, limits.get(joint.name, {})), units[joint.name], starts.get(joint.name, 0.0))
        for joint in singles
    ]
    loops = plan_loops(model, _guess(model, motions, file), _drivable(model, motions, hold, file))
    coupled = {dofs.owners[model.dof_names[k]] for k in loops.dofs}
    held = tuple(name for name in dofs.multi_dof_joints if hold and name not in coupled)
    motions = [_in_its_loop(motion, loops) for motion in motions]
    required, mass = _required_effort(loops, motions)
    friction = _friction_slope(model)
    N = loops.motions
    mobility = np.diag(N @ np.linalg.inv(N.T @ mass @ N) @ N.T) if model.nv else np.zeros(0)  # of a dof that is pushed
    inertia = np.diag((rates := loops.following(loops.q)).T @ mass @ rates)  # at a dof, with what follows it
    rotors, joints = np.zeros(model.nv), []
    actuators = file.actuators if file is not None else ()
    able = actuators if actuator == "file" else ()
    given = {name: each for each in able if each.type for name in each.joints}
    stiffness = np.zeros(model.nv)
    for joint, motion in zip(singles, motions, strict=True):
        k, name = model.dof_index(joint.name), joint.name
        servo = None if motion.passive else given.get(name)
        if servo is not None:
            friction[k] += max(-float(servo.keys.get("bias_velocity", 0.0)), 0.0)
            stiffness[k] = max(-float(servo.keys.get("bias_position", 0.0)), 0.0)
        stiff = friction[k] * mobility[k] * USUAL_STEP > STIFF_RATE
        motor = servo is None and (actuator == "dc_motor" or (actuator == "auto" and stiff)) and not motion.passive
        least = friction[k] * SMALLEST_STEP / STIFF_RATE if motor else None
        sized = replace(_sized(motion, float(required[k]), float(inertia[k]), least), of_file=servo)
        idle = tuple(each.name for each in actuators if name in each.joints) if motion.passive else ()
        found = as_in_file(sized, joint, limits.get(name, {}), ratios.get(name), starts.get(name))
        joints.append(replace(found, idle=idle))
        rotors[k] = joints[-1].rotor
    moved = N.T @ (mass + np.diag(rotors)) @ N
    rates = [_friction_rate(N.T @ np.diag(terms) @ N, moved) for terms in (friction, stiffness)]
    step, integrator = _integration(bandwidth, max(rates[0], math.sqrt(rates[1])))
    return Plan(mechanism, tuple(joints), held, bandwidth, step, integrator, tuple(loops.summary()))


# --- closed loops ---


def _guess(model: Model, motions: list[_Motion], file: RobotFile | None) -> Array:
    """Where the robot file has the joints, (nq,); without a range where that is."""
    starts = dict(file.start.positions) if file is not None and file.start is not None else {}
    locked = {motion.joint.name: (motion.start,) for motion in motions if motion.locked}
    q, names = model.neutral(), np.array([name.partition(".")[0] for name in model.coordinate_names])
    for name, values in (starts | locked).items():
        if (names == name).sum() == len(values):
            q[names == name] = values
    return q


def _drivable(model: Model, motions: list[_Motion], hold: bool, file: RobotFile | None) -> Drivable:
    """What is known of the dofs before their loops are planned."""
    nv = model.nv
    lower, upper, travel = np.full(nv, -np.inf), np.full(nv, np.inf), np.full(nv, np.inf)
    still, held = np.zeros(nv, dtype=bool), np.full(nv, hold)
    for motion in motions:
        k = model.dof_index(motion.joint.name)
        still[k], held[k], travel[k] = motion.locked, False, abs(motion.goal - motion.start)
        if not motion.placeholder:
            lower[k], upper[k] = motion.joint.lower, motion.joint.upper
    single = np.isfinite(travel) & ~still
    actuated = {name for each in (file.actuators if file is not None else ()) for name in each.joints}
    of_file = frozenset(k for k, name in enumerate(model.dof_names) if single[k] and name in actuated)
    return Drivable(still, held, single, lower, upper, travel, of_file)


def _in_its_loop(motion: _Motion, loops: LoopPlan) -> _Motion:
    """The motion of a joint that its closed loops allow."""
    k = loops.model.dof_index(motion.joint.name)
    if motion.locked or k not in loops.dofs:
        return motion
    start = round(float(loops.positions[k]), DECIMALS) + 0.0
    return replace(motion, start=start, goal=loops.goals.get(k, start), passive=k not in loops.goals)


# --- what the robot file states beside the mechanism ---


def _of_file(file: RobotFile | None) -> tuple[Mapping[str, Mapping[str, float]], dict[str, float], dict[str, float]]:
    """(joint -> its limits that are no mechanics, joint -> its position at the start, joint -> ratio of its gear)."""
    if file is None:
        return {}, {}, {}
    starts = {} if file.start is None else {name: value[0] for name, value in file.start.positions.items()}
    geared = {
        next(iter(each.joints)): next(iter(each.joints.values())) for each in file.actuators if len(each.joints) == 1
    }
    return file.limits, starts, {name: abs(ratio) for name, ratio in geared.items() if abs(ratio) not in (0.0, 1.0)}


def within(joint: Joint, limits: Mapping[str, float]) -> Joint:
    """The joint inside of limits by the key of a rig."""
    return replace(joint, **{LIMITS_OF_JOINT[key]: value for key, value in limits.items()})


def as_in_file(
    plan: JointPlan, joint: Joint, limits: Mapping[str, float], ratio: float | None, start: float | None
) -> JointPlan:
    """The plan with the joint as the robot file has it; limits of the file that are no mechanics are written out."""
    soft = {key: replace(getattr(plan, key), reason=BESIDE) for key in limits if not getattr(plan, key).reason}
    return replace(plan, joint=joint, ratio=ratio, given=start is not None and plan.start == start, **soft)


# --- positions ---


def _motion(joint: Joint, unit: str, at: float = 0.0) -> _Motion:
    """at: where it starts, if its limits permit that."""
    usual, range_ = USUAL[unit], joint.upper - joint.lower
    placeholder = joint.lower == joint.upper == joint.max_effort == joint.max_velocity == 0.0
    if range_ <= LOCKED_RANGE and not placeholder:
        return _Motion(joint, unit, False, True, joint.lower, joint.lower)
    lower, upper = (-usual.reach, usual.reach) if placeholder else (joint.lower, joint.upper)
    fastest = _velocity(joint, usual).value
    longest = VELOCITY_FRACTION * fastest * DURATION / PEAK_VELOCITY
    travel = _two_digits(min(usual.travel, TRAVEL_FRACTION * (upper - lower), longest), usual.factor)
    lowest, highest = lower + 2.0 * travel, upper - 2.0 * travel
    start = at if lowest <= at <= highest else _rounded(min(max(at, lowest), highest), lowest, highest, usual.factor)
    towards = 1.0 if upper - start >= start - lower else -1.0
    return _Motion(joint, unit, placeholder, False, start, start + towards * travel)


def _two_digits(value: float, factor: float) -> float:
    """A positive value rounded down to two digits of its display unit."""
    shown = value / factor
    digit = 10.0 ** (math.floor(math.log10(shown)) - 1)
    return math.floor(shown / digit * (1.0 + 1e-12)) * digit * factor


def _rounded(value: float, lowest: float, highest: float, factor: float) -> float:
    """The value with as few decimals of its display unit as keep it between the bounds."""
    for decimals in range(9):
        rounded = round(value / factor, decimals) * factor
        if lowest <= rounded <= highest:
            return rounded
    return value


# --- efforts and limits ---


def _required_effort(loops: LoopPlan, motions: list[_Motion]) -> tuple[Array, Array]:
    """(effort (nv,), mass matrix (nv, nv)): the largest required effort of each dof during the motions, and M at their
    start; bases and other joints of several dofs outside of closed loops are at rest."""
    model, q = loops.model, np.array(loops.q)
    equations, peak = model.equations, np.zeros(model.nv)
    v, a = np.zeros(model.nv), np.zeros(model.nv)
    moved = [motion for motion in motions if not motion.passive]
    for motion in moved:
        q[model.coordinate_names.index(motion.joint.name)] = motion.start
    mass = np.asarray(equations.mass_matrix(q))
    for s in _SAMPLES:
        shape = 10 * s**3 - 15 * s**4 + 6 * s**5, 30 * s**2 * (1 - s) ** 2, 60 * s - 180 * s**2 + 120 * s**3
        for motion in moved:
            k, travel = model.dof_index(motion.joint.name), motion.goal - motion.start
            q[model.coordinate_names.index(motion.joint.name)] = motion.start + shape[0] * travel
            v[k], a[k] = shape[1] * travel / DURATION, shape[2] * travel / DURATION**2
        q = loops.closed(q)
        peak = np.maximum(peak, np.abs(loops.effort(q, loops.following(q) @ v, a)))
    return peak, mass


def _friction_slope(model: Model) -> Array:
    """(nv,): the change of the friction of each dof with its velocity around standstill, its greatest."""
    slow = 1e-3 * FRICTION_SPEED
    return np.asarray(model.equations.friction_effort(np.full(model.nv, slow))) / slow


def _friction_rate(slope: Array, mass: Array) -> float:
    """The fastest decay of a velocity by friction [1/s]; slope, mass: (m, m)."""
    if not slope.any():
        return 0.0
    return float(np.abs(np.linalg.eigvals(np.linalg.solve(mass, slope))).max())


def _integration(bandwidth: float, rate: float) -> tuple[float, str]:
    """(step [s], integrator) for a bandwidth [Hz] of the control and a rate of friction [1/s]."""
    step = USUAL_STEP
    while step * bandwidth * STEPS_PER_PERIOD > 1.0:
        step /= 2.0
    explicit = step
    while explicit * rate > STIFF_RATE and explicit > SMALLEST_STEP:
        explicit /= 2.0
    return (explicit, "rk4") if explicit * rate <= STIFF_RATE else (min(step, IMPLICIT_STEP), "rosenbrock")


def _sized(motion: _Motion, required: float, inertia: float, least_rotor: float | None) -> JointPlan:
    """least_rotor: the smallest reflected inertia of a motor, None for an ideal actuator."""
    joint, usual = motion.joint, USUAL[motion.unit]
    effort, velocity = _effort(joint, usual, required, inertia), _velocity(joint, usual)
    rotor = 0.0
    if least_rotor is not None and not motion.locked:
        rotor = max(least_rotor, reflected_inertia(effort.value, velocity.value))
    reach = "the file has 0 to 0 and no effort and velocity, which stands for no limits" if motion.placeholder else ""
    return JointPlan(
        joint,
        motion.unit,
        motion.locked,
        motion.start,
        motion.goal,
        PlannedValue(-usual.reach if motion.placeholder else joint.lower, reach),
        PlannedValue(usual.reach if motion.placeholder else joint.upper, reach and "likewise"),
        effort,
        velocity,
        rotor,
        motion.passive,
    )


def _effort(joint: Joint, usual: Usual, required: float, inertia: float) -> PlannedValue:
    given, unit = joint.max_effort, usual.effort_unit
    default = _ceiled(EFFORT_RESERVE * required + inertia * usual.acceleration)
    chosen = f"chosen: {EFFORT_RESERVE:g} times what this motion requires, and a reserve"
    if math.isinf(given):
        return PlannedValue(default, f"the file has none; {chosen}")
    if given == 0.0:
        return PlannedValue(default, f"the file has 0; {chosen}")
    if given < EFFORT_MARGIN * required:
        return PlannedValue(default, f"the file has {given:.4g} {unit}, this motion requires {required:.4g}; {chosen}")
    if given >= usual.largest_effort and given > EFFORT_EXCESS * (required + inertia * usual.acceleration):
        return PlannedValue(default, f"the file has {given:.4g} {unit}, no limit of a real drive; {chosen}")
    return PlannedValue(given)


def _velocity(joint: Joint, usual: Usual) -> PlannedValue:
    given, unit = joint.max_velocity, f"{usual.shown}/s"
    if math.isinf(given):
        return PlannedValue(usual.velocity, "the file has none; a usual value")
    if given == 0.0:
        return PlannedValue(usual.velocity, "the file has 0; a usual value")
    if given >= usual.largest_velocity:
        return PlannedValue(usual.velocity, f"the file has {given / usual.factor:.4g} {unit}; a usual value")
    return PlannedValue(given)


def _ceiled(value: float) -> float:
    """A positive value rounded up to two digits; 1 for 0."""
    if value <= 0.0:
        return 1.0
    digit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / digit) * digit:.3g}")


def reflected_inertia(effort: float, velocity: float) -> float:
    """Of a rotor that the effort alone brings to the velocity in the run-up time, at the joint [kg m² or kg]."""
    return effort * RUN_UP / velocity


def motor_keys(effort: float, velocity: float, rotor: float, gear: float | None = None) -> dict[str, str]:
    """The keys of a `dc_motor` that reaches the effort [N·m or N] at the velocity [rad/s or m/s].

    gear: its ratio, where it is known; else it follows from the speed. The torque constant follows from the back-EMF,
    the resistance and the current from what the supply has left. rotor: reflected inertia [kg m² or kg].
    """
    ratio = MOTOR_SPEED / velocity if gear is None else gear
    constant = BACK_EMF * SUPPLY_VOLTAGE / (ratio * velocity)
    current = effort / (constant * ratio)
    resistance = DROP * SUPPLY_VOLTAGE / current
    return {
        "resistance": f"{resistance:.3g} ohm",
        "inductance": f"{resistance * WINDING_TIME:.3g} H",
        "torque_constant": f"{constant:.3g} N*m/A",
        "rotor_inertia": f"{rotor / ratio**2:.3g} kg*m^2",
        "ratio": f"{ratio:.4g}",
        "voltage_limit": f"{SUPPLY_VOLTAGE:g} V",
        "current_limit": f"{current:.3g} A",
        "bandwidth": f"{CURRENT_BANDWIDTH:g} Hz",
    }
