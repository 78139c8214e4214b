"""The table of limits: one row per kind of limit that the guard checks.

A row has the rig keys of a limit, its unit, default action, stop category, predicate, saturation and messages.
The guard, the reader of the rig, stop reasons, limit alarms and the description of a rig all read this table.
A fault code is the place of a limit in the table, counted from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Literal

from cosim.core import ops
from cosim.core.types import Array, Numeric
from cosim.core.units import quantity_unit

Action = Literal["warn", "saturate", "stop"]
WARN: Action = "warn"
SATURATE: Action = "saturate"
STOP: Action = "stop"

# K below the temperature limit at which derating of the effort limit begins
DERATING = 10.0
# rad or m by which a position may be beyond its limits: the rounding error of a joint that rests at one of them
POSITION_TOLERANCE = 1e-9
# s and fraction of the range, from which the default limits of tracking and unseen motion of a real joint follow
EXCURSION_TIME, EXCURSION_FRACTION = 0.1, 0.05
# s, default of a real joint
STALL_TIME = 1.0
# commanded effort of a real joint that cannot be meant, in terms of its limit: high gains reach a hundredth of it
ABSURD = 1000.0
# of the effort limit over the default excursion: the default limit of what virtual contacts generate
WALL_ENERGY = 0.02
# rad/s or m/s; lowest speed in the power limit
MIN_SPEED = 1e-9


@dataclass(frozen=True)
class GuardInputs:
    """The values that limits check, (n,) each, SI.

    bounds: by rig key, infinite where unbounded; previous_effort: requested in the previous tick; stalled_time,
    unseen_motion: see `standstill`; residual_energy, load_residual_energy [J]: of the drive of a real joint and of
    its load motor, see `energy_account`; wall_energy [J]: of the virtual contacts of a real joint, see
    `virtual_walls`; shadow_effort, shadow_drive, shadow_position, shadow_slip: of a real joint
    against its twin, see `shadow`; unit_disagreement: of a real joint, see `unit_proof`; reaction_force [N],
    reaction_moment [N m]: sizes of what the joint exerts on its child by the model; position_tolerance: of
    `Guard`; new: whether a new sample came in this tick, None where no joint is real; effort_limit: after soft start
    and derating; requested_effort: of the unchanged command; bounded_effort: within the bounds of limits that saturate;
    allowed_effort: within the rate limit too; step [s].
    """

    bounds: Mapping[str, Array]
    position: Numeric
    velocity: Numeric
    temperature: Numeric  # degC, NaN where it is not measured
    reference: Numeric
    previous_effort: Numeric
    step: float
    stalled_time: Numeric
    unseen_motion: Numeric
    residual_energy: Numeric
    load_residual_energy: Numeric
    wall_energy: Numeric
    shadow_effort: Numeric
    shadow_drive: Numeric
    shadow_position: Numeric
    shadow_slip: Numeric
    unit_disagreement: Numeric
    reaction_force: Numeric
    reaction_moment: Numeric
    position_tolerance: Numeric
    new: Numeric = None
    effort_limit: Numeric = None
    requested_effort: Numeric = None
    bounded_effort: Numeric = None
    allowed_effort: Numeric = None

    def judged_effort(self, saturates: Array) -> Numeric:
        """The effort that a limit checks: the requested one if it saturates, else the one after saturation."""
        return ops.where(saturates, self.requested_effort, self.allowed_effort)


@dataclass(frozen=True)
class GuardLimit:
    """A row of the table.

    key: of its action, and of its bound unless `keys` names others. unit: of the bound. inherited: attributes of a
    `Joint` of the mechanism that give bounds the rig leaves out. real_default: the bound of a real joint that has none,
    from its other bounds. reference: whether it checks the reference position of a controller. stop_category: of IEC
    60204-1, 1: controlled stop, 0: immediate stop. exceeded: from the inputs and where it saturates (n,).
    Saturation: effort_bounds, from the inputs and the (lowest, highest) of earlier rows, 0 always between them;
    slew_bounds about the previous effort, which yield to effort_bounds; position_bounds of the commanded position;
    derating, the factor of the effort limit.
    Messages are templates with the fields of `stop_reason.figures`; a limit without `saturation` cannot saturate, and
    one of category 1 needs `controlled_stop`.
    """

    key: str
    unit: str
    _: KW_ONLY
    meaning: str  # of the bound
    default_action: Action
    stop_category: Literal[0, 1]
    exceeded: Callable[[GuardInputs, Array], Numeric]
    reason: str
    warning: str
    saturation: str = ""
    controlled_stop: str = ""
    listed: str = "{limit}"  # its bound where limits are listed, after its key
    keys: tuple[str, ...] = ()
    inherited: tuple[str, ...] = ()
    positive: bool = True  # whether a bound must be above 0
    real_default: Callable[[Mapping[str, float]], float] | None = None
    reference: Literal["", "optional", "required"] = ""
    needs_history: bool = False  # whether it checks stalled_time or unseen_motion
    needs_twin: bool = False  # whether it checks a residual against the simulated twin of a real joint
    needs_wall: bool = False  # whether it checks virtual contacts of a real joint
    needs_reaction: bool = False  # whether it checks reaction_force or reaction_moment
    effort_bounds: Callable[[GuardInputs, Numeric, Numeric], tuple[Numeric, Numeric]] | None = None
    slew_bounds: Callable[[GuardInputs], tuple[Numeric, Numeric]] | None = None
    position_bounds: Callable[[GuardInputs], tuple[Numeric, Numeric]] | None = None
    derating: Callable[[GuardInputs], Numeric] | None = None
    # whether it saturates during a controlled stop that it caused
    saturates_while_stopping: bool = True

    @property
    def bound_keys(self) -> tuple[str, ...]:
        """The rig keys of its bounds."""
        return self.keys or (self.key,)

    @property
    def actions(self) -> tuple[Action, ...]:
        return (WARN, SATURATE, STOP) if self.saturation else (WARN, STOP)

    def unit_of(self, joint_unit: str) -> str:
        """The unit of its bound for a joint whose position has this unit."""
        return quantity_unit(self.unit, joint_unit)

    def show(self, values: list[float], joint_unit: str, digits: int = 6) -> str:
        """Its bounds of one joint in words: `5 N*m`, `-1 to 1 rad`."""
        numbers, unit = " to ".join(f"{value:.{digits}g}" for value in values), self.unit_of(joint_unit)
        return numbers if unit == "1" else f"{numbers} {unit}"


def _effort_bounds(x: GuardInputs, lowest: Numeric, highest: Numeric) -> tuple[Numeric, Numeric]:
    """±the effort limit; the first row of the table, so that there are no earlier bounds."""
    return -x.effort_limit, x.effort_limit


def _power_bounds(x: GuardInputs, lowest: Numeric, highest: Numeric) -> tuple[Numeric, Numeric]:
    effort = x.bounds["power"] / ops.maximum(ops.abs(x.velocity), MIN_SPEED)
    return ops.maximum(lowest, -effort), ops.minimum(highest, effort)


def _slew_bounds(x: GuardInputs) -> tuple[Numeric, Numeric]:
    change = x.bounds["rate"] * x.step
    return x.previous_effort - change, x.previous_effort + change


def _velocity_bounds(x: GuardInputs, lowest: Numeric, highest: Numeric) -> tuple[Numeric, Numeric]:
    """Beyond the limit only effort that decelerates the joint."""
    limit = x.bounds["velocity"]
    return ops.where(x.velocity < -limit, 0.0, lowest), ops.where(x.velocity > limit, 0.0, highest)


def _inward_effort(x: GuardInputs, lowest: Numeric, highest: Numeric) -> tuple[Numeric, Numeric]:
    """Outside the limits only effort towards them."""
    return ops.where(_is_below(x), 0.0, lowest), ops.where(_is_above(x), 0.0, highest)


def _is_below(x: GuardInputs) -> Numeric:
    return x.position < x.bounds["lower"] - x.position_tolerance


def _is_above(x: GuardInputs) -> Numeric:
    return x.position > x.bounds["upper"] + x.position_tolerance


def _exceeds_power(x: GuardInputs, saturates: Array) -> Numeric:
    """Where it saturates, also by a velocity that is old: the effort is cut by it. Else by a new sample only, as the
    velocity with which the effort acts is not known before."""
    beyond = ops.abs(x.judged_effort(saturates) * x.velocity) > x.bounds["power"]
    return beyond if x.new is None else ops.logical_and(beyond, ops.logical_or(saturates, x.new))


def _derating(x: GuardInputs) -> Numeric:
    """1 until DERATING below the limit, 0 at it; 1 for a temperature that is not measured (NaN)."""
    # fmin and fmax ignore NaN: in this order of arguments it gives 1
    return ops.maximum(ops.minimum((x.bounds["temperature"] - x.temperature) / DERATING, 1.0), 0.0)


def _derated(x: GuardInputs, saturates: Array) -> Numeric:
    return x.temperature > x.bounds["temperature"] - ops.where(saturates, DERATING, 0.0)


def _loses_reference(x: GuardInputs, saturates: Array) -> Numeric:
    """By a new sample only: while none comes, the reference moves on and the measured position does not."""
    beyond = ops.abs(x.reference - x.position) > x.bounds["tracking"]
    return beyond if x.new is None else ops.logical_and(beyond, x.new)


def _is_frozen(x: GuardInputs, saturates: Array) -> Numeric:
    """Half of the limit is enough to be the cause of a tracking error beyond its limit."""
    return x.unseen_motion > x.bounds["frozen"] * ops.where(_loses_reference(x, saturates), 0.5, 1.0)


def _default_excursion(bounds: Mapping[str, float]) -> float:
    """How far a joint comes at its velocity limit in EXCURSION_TIME, at most EXCURSION_FRACTION of its range."""
    return min(EXCURSION_TIME * bounds["velocity"], EXCURSION_FRACTION * (bounds["upper"] - bounds["lower"]))


# In order of precedence: the last limit exceeded gives the stop reason. Limits of stop category 1 come first, so
# that none of them hides one that stops immediately.
LIMITS: tuple[GuardLimit, ...] = (
    GuardLimit(
        "effort",
        "joint effort",
        meaning="greatest requested effort, either way",
        default_action=SATURATE,
        stop_category=1,
        exceeded=lambda x, saturates: ops.abs(x.judged_effort(saturates)) > x.bounds["effort"],
        effort_bounds=_effort_bounds,
        inherited=("max_effort",),
        reason=(
            "is commanded {effort}, above its limit of {limit}; lower the controller gains or change"
            " joints.{joint}.limits"
        ),
        controlled_stop="was commanded more than its limit of {limit}",
        warning="effort beyond its limit of {limit} (warned)",
        saturation="effort cut to its limit of {limit}",
    ),
    GuardLimit(
        "rate",
        "joint effort rate",
        meaning="greatest rate of change of the requested effort, either way",
        default_action=SATURATE,
        stop_category=1,
        exceeded=lambda x, _: ops.abs(x.bounded_effort - x.previous_effort) > x.bounds["rate"] * x.step,
        slew_bounds=_slew_bounds,
        reason=(
            "is commanded an effort that changes by {effort_rate}, above its limit of {limit}; smooth the reference,"
            " lower the controller gains or change joints.{joint}.limits"
        ),
        controlled_stop="was commanded an effort that changes faster than its limit of {limit}",
        warning="effort changes faster than its limit of {limit} (warned)",
        saturation="change of effort cut to its limit of {limit}",
    ),
    GuardLimit(
        "power",
        "W",
        meaning="greatest |requested effort · measured velocity|",
        default_action=SATURATE,
        stop_category=1,
        exceeded=_exceeds_power,
        effort_bounds=_power_bounds,
        reason=(
            "is commanded {power} ({effort} at {velocity}), above its limit of {limit}; slow the trajectory down or"
            " change joints.{joint}.limits"
        ),
        controlled_stop="was commanded more than its limit of {limit}",
        warning="power beyond its limit of {limit} (warned)",
        saturation="effort cut to its power limit of {limit}",
    ),
    GuardLimit(
        "temperature",
        "degC",
        meaning="greatest measured temperature of the drive; ignored where none is measured",
        default_action=STOP,
        stop_category=1,
        positive=False,
        exceeded=_derated,
        derating=_derating,
        reason=(
            "is at {temperature}, above its limit of {limit}; let it cool down, command less effort or change"
            " joints.{joint}.limits"
        ),
        controlled_stop="was hotter than its limit of {limit}",
        warning="temperature beyond its limit of {limit} (warned)",
        saturation="temperature close to its limit of {limit}: effort limit derated",
    ),
    GuardLimit(
        "position",
        "joint position",
        meaning="range of the measured position",
        default_action=STOP,
        stop_category=1,
        keys=("lower", "upper"),
        positive=False,
        exceeded=lambda x, _: ops.logical_or(_is_below(x), _is_above(x)),
        effort_bounds=_inward_effort,
        position_bounds=lambda x: (x.bounds["lower"], x.bounds["upper"]),
        inherited=("lower", "upper"),
        # outside its limits a joint must be able to brake in either direction
        saturates_while_stopping=False,
        reason="is at {position}, outside its limits {limit}; change the trajectory or joints.{joint}.limits",
        controlled_stop="left its limits {limit}",
        warning="position beyond its limits of {limit} (warned)",
        saturation="position beyond its limits of {limit}: commanded position clamped, outward effort cut",
    ),
    GuardLimit(
        "commanded_effort",
        "joint effort",
        meaning="greatest effort that a controller may command, either way, before anything is cut",
        default_action=STOP,
        stop_category=0,
        exceeded=lambda x, _: ops.abs(x.requested_effort) > x.bounds["commanded_effort"],
        real_default=lambda bounds: ABSURD * bounds["effort"],
        reason=(
            "is commanded {commanded_effort}, beyond its limit of {limit}, which cannot be meant; check the units and"
            " the stability of its controller or change joints.{joint}.limits"
        ),
        warning="commanded effort beyond its limit of {limit} (warned)",
    ),
    GuardLimit(
        "residual_energy",
        "J",
        meaning="greatest residual energy of the drive of a real joint, either way",
        default_action=STOP,
        stop_category=0,
        exceeded=lambda x, _: ops.abs(x.residual_energy) > x.bounds["residual_energy"],
        reason=(
            "has a residual energy of {residual_energy}, beyond its limit of {limit}; check the torque constant, ratio"
            " and friction of its drive and the age of its feedback, or change joints.{joint}.limits"
        ),
        warning="residual energy beyond its limit of {limit} (warned)",
    ),
    GuardLimit(
        "load_residual_energy",
        "J",
        meaning="greatest residual energy of the load motor of a joint, either way",
        default_action=STOP,
        stop_category=0,
        exceeded=lambda x, _: ops.abs(x.load_residual_energy) > x.bounds["load_residual_energy"],
        reason=(
            "has a load motor with a residual energy of {load_residual_energy}, beyond its limit of {limit}; check the"
            " torque constant, ratio, friction and delay of the load motor, or change joints.{joint}.limits"
        ),
        warning="residual energy of the load motor beyond its limit of {limit} (warned)",
    ),
    GuardLimit(
        "wall_energy",
        "J",
        meaning="greatest energy that the virtual contacts of a real joint give beyond what they took",
        default_action=STOP,
        stop_category=0,
        needs_wall=True,
        exceeded=lambda x, _: x.wall_energy > x.bounds["wall_energy"],
        real_default=lambda bounds: WALL_ENERGY * bounds["effort"] * _default_excursion(bounds),
        reason=(
            "feels virtual contacts that have given {wall_energy} more than they took, beyond the limit of {limit};"
            " lower their stiffness or schedule.step, or change joints.{joint}.limits"
        ),
        warning="virtual contacts give more energy than they took, beyond the limit of {limit} (warned)",
    ),
    GuardLimit(
        "reaction_force",
        "N",
        meaning="greatest resultant of the force that the joint transmits, by the model",
        default_action=STOP,
        stop_category=0,
        needs_reaction=True,
        exceeded=lambda x, _: x.reaction_force > x.bounds["reaction_force"],
        reason=(
            "transmits a force beyond its limit of {limit}; slow the trajectory down, lower the load or change"
            " joints.{joint}.limits"
        ),
        warning="transmitted force beyond its limit of {limit} (warned)",
    ),
    GuardLimit(
        "reaction_moment",
        "N*m",
        meaning="greatest resultant of the moment that the joint transmits, by the model",
        default_action=STOP,
        stop_category=0,
        needs_reaction=True,
        exceeded=lambda x, _: x.reaction_moment > x.bounds["reaction_moment"],
        reason=(
            "transmits a moment beyond its limit of {limit}; slow the trajectory down, lower the load or change"
            " joints.{joint}.limits"
        ),
        warning="transmitted moment beyond its limit of {limit} (warned)",
    ),
    GuardLimit(
        "shadow_drive",
        "joint effort",
        meaning="greatest effort of a real joint's drive beyond its twin's, either way",
        default_action=STOP,
        stop_category=0,
        needs_twin=True,
        exceeded=lambda x, _: ops.abs(x.shadow_drive) > x.bounds["shadow_drive"],
        reason=(
            "has a drive that exerts {shadow_drive} beside its twin, beyond its limit of {limit}; check the torque"
            " constant, the current limit and the supply of its drive, or change joints.{joint}.limits"
        ),
        warning="effort of the drive beside its twin beyond its limit of {limit} (warned)",
    ),
    GuardLimit(
        "shadow_effort",
        "joint effort",
        meaning="greatest effort on a real joint beyond its twin's, either way",
        default_action=STOP,
        stop_category=0,
        needs_twin=True,
        exceeded=lambda x, _: ops.abs(x.shadow_effort) > x.bounds["shadow_effort"],
        reason=(
            "moves as if {shadow_effort} acted on it beside its twin, beyond its limit of {limit}; check its load, its"
            " friction, for an obstruction, its coupling and its encoder, or change joints.{joint}.limits"
        ),
        warning="effort beside its twin beyond its limit of {limit} (warned)",
    ),
    GuardLimit(
        "shadow_slip",
        "joint position",
        meaning="greatest motion of the measured position beyond its measured velocity, either way",
        default_action=STOP,
        stop_category=0,
        needs_twin=True,
        exceeded=lambda x, _: ops.abs(x.shadow_slip) > x.bounds["shadow_slip"],
        reason=(
            "measures {shadow_slip} more motion than its measured velocity gives, beyond its limit of {limit}; check"
            " its encoder for drift and its coupling for slip, or change joints.{joint}.limits"
        ),
        warning="position and velocity contradict each other by more than {limit} (warned)",
    ),
    GuardLimit(
        "shadow_position",
        "joint position",
        meaning="greatest |measured − predicted position| of a sample of a real joint",
        default_action=STOP,
        stop_category=0,
        needs_twin=True,
        exceeded=lambda x, _: ops.abs(x.shadow_position) > x.bounds["shadow_position"],
        reason=(
            "is measured {shadow_position} from where its motion predicts it, beyond its limit of {limit}; check its"
            " encoder and its mounting, or change joints.{joint}.limits"
        ),
        warning="measured position further than {limit} from the predicted one (warned)",
    ),
    GuardLimit(
        "tracking",
        "joint position",
        meaning="greatest |reference − measured position|; needs a controller that follows positions",
        default_action=STOP,
        stop_category=0,
        reference="required",
        real_default=_default_excursion,
        exceeded=_loses_reference,
        position_bounds=lambda x: (x.position - x.bounds["tracking"], x.position + x.bounds["tracking"]),
        reason=(
            "is {tracking_error} from its reference, more than its limit of {limit}; check for an obstruction, slow"
            " the trajectory down, raise the controller gains or change joints.{joint}.limits"
        ),
        warning="tracking error beyond its limit of {limit} (warned)",
        saturation="tracking error beyond its limit of {limit}: commanded position clamped to it",
    ),
    GuardLimit(
        "stall",
        "s",
        meaning="longest time with full effort and without motion",
        default_action=STOP,
        stop_category=0,
        exceeded=lambda x, _: x.stalled_time > x.bounds["stall"],
        real_default=lambda bounds: STALL_TIME,
        needs_history=True,
        reason=(
            "has been at its effort limit for more than {limit} without moving; check for an obstruction and a closed"
            " brake, lower its load or change joints.{joint}.limits"
        ),
        warning="at its effort limit for more than {limit} without moving (warned)",
    ),
    GuardLimit(
        "frozen",
        "joint position",
        meaning="greatest path of reference or measured velocity while the measured position does not change",
        default_action=STOP,
        stop_category=0,
        exceeded=_is_frozen,
        real_default=lambda bounds: min(bounds["tracking"], _default_excursion(bounds)),
        reference="optional",
        needs_history=True,
        reason=(
            "has measured exactly {position} while it should have moved by {unseen_motion}; check its encoder, for an"
            " obstruction and a closed brake, or change joints.{joint}.limits"
        ),
        warning="measured position does not change over more than {limit} of motion (warned)",
    ),
    GuardLimit(
        "velocity",
        "joint velocity",
        meaning="greatest measured speed, either way",
        default_action=STOP,
        stop_category=0,
        exceeded=lambda x, _: ops.abs(x.velocity) > x.bounds["velocity"],
        effort_bounds=_velocity_bounds,
        inherited=("max_velocity",),
        reason=(
            "moves at {velocity}, above its limit of {limit}; slow the trajectory down, lower the controller gains or"
            " change joints.{joint}.limits"
        ),
        warning="velocity beyond its limit of {limit} (warned)",
        saturation="velocity beyond its limit of {limit}: accelerating effort cut",
    ),
    GuardLimit(
        "units",
        "1",
        meaning="greatest disagreement of the units of a real joint at its first motion, relative to the tolerance of"
        " the proof",
        default_action=STOP,
        stop_category=0,
        exceeded=lambda x, _: x.unit_disagreement > x.bounds["units"],
        real_default=lambda bounds: 1.0,
        listed="at the first motion within {limit} × their tolerance",
        reason="contradicts itself: it {units}; {units_check}, or change joints.{joint}.limits.units",
        warning="units disagree by more than {limit} of their tolerance (warned)",
    ),
)

LIMIT_OF: dict[str, GuardLimit] = {limit.key: limit for limit in LIMITS}
# fault codes in order of precedence; faults of the plant's state (`event_stepper.PlantFault`) come after NOT_FINITE
OK = 0
CODES: dict[str, int] = {limit.key: code for code, limit in enumerate(LIMITS, 1)}
STALE = len(LIMITS) + 1  # feedback is older than its limit
NOT_FINITE = STALE + 1  # a measurement or a command is not finite
BITS: dict[str, float] = {limit.key: 2.0**k for k, limit in enumerate(LIMITS)}  # of a mask of limits
