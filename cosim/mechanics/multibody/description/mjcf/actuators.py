"""Actuators of a compiled model: what of them is passive, the effort limits of joints, and the actuators of a rig that
equal them.

The force on the length l = g q of the transmission is gain · w + bias, gain and bias affine in l and l̇, with the
control or the activation w, limited; the effort on the joint is g times the force (documentation of MuJoCo, "Actuation
model").
On the joint, with the control as position, velocity or effort there, the same is an actuator `affine_servo`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from cosim.mechanics.multibody.description.mjcf.compiled import CompiledModel
from cosim.mechanics.multibody.description.mjcf.tendons import weights_of
from cosim.mechanics.multibody.description.robot_file import FileActuator
from cosim.mechanics.multibody.mechanism import Mimic

AFFINE = 3  # numbers of an affine gain or bias: constant, per length, per rate
Range = tuple[float, float]
UNLIMITED: Range = (-math.inf, math.inf)
GROUPS = 31  # of actuators that an option can disable
ELSEWHERE = {  # transmission -> why it moves no joint of one coordinate
    "TRN_JOINT": "it acts on a joint of several dofs",
    "TRN_JOINTINPARENT": "it acts on a joint of several dofs",
    "TRN_SLIDERCRANK": "it acts through a slider-crank",
    "TRN_SITE": "it acts at a site",
    "TRN_BODY": "it is an adhesion",
}
REFUSED = {"MUSCLE": "a muscle", "USER": "one of a plugin", "PID": "a PID loop", "SO3": "one of orientations"}


def on_joint(compiled: CompiledModel, number: int) -> int:
    """The joint of one coordinate that an actuator acts on directly, -1 if there is none."""
    model = compiled.model
    direct = compiled.is_a(model.actuator_trntype[number], "mjtTrn", "TRN_JOINT", "TRN_JOINTINPARENT")
    joint = int(model.actuator_trnid[number][0])
    return joint if direct and compiled.is_single(joint) else -1


def gear_of(compiled: CompiledModel, number: int) -> float:
    return float(compiled.model.actuator_gear[number][0])


def _of_joint(compiled: CompiledModel, joint: int) -> Iterator[int]:
    return (k for k in range(compiled.model.nu) if on_joint(compiled, k) == joint)


def inertia_on(compiled: CompiledModel, joint: int) -> float:
    """The inertia of the rotors of actuators at the joint."""
    return sum(gear_of(compiled, k) ** 2 * compiled.number("actuator_armature", k) for k in _of_joint(compiled, joint))


def damping_on(compiled: CompiledModel, joint: int, terms: int) -> np.ndarray:
    """(terms,) the damping of actuators at the joint, constant and per power of its speed."""
    found = np.zeros(terms)
    for k in _of_joint(compiled, joint):
        own = np.append(compiled.number("actuator_damping", k), compiled.array("actuator_dampingpoly", k))
        found[: own.size] += gear_of(compiled, k) ** 2 * own[:terms]
    return found


def actuated_joints(compiled: CompiledModel) -> set[str]:
    """The joints that an actuator acts on directly."""
    return {compiled.joint(joint) for k in range(compiled.model.nu) if (joint := on_joint(compiled, k)) >= 0}


# --- limits ---


def effort_limit(compiled: CompiledModel, joint: int) -> float:
    """The limit of the effort of all actuators of a joint in both directions, infinite where there is none: the smaller
    one where they differ; the other one of a joint that is only pushed."""
    able = [bound for bound in np.multiply(_effort_range(compiled, joint), (-1.0, 1.0)).tolist() if bound > 0.0]
    return min(able, default=0.0)


def one_sided(compiled: CompiledModel) -> dict[str, Range]:
    """Joint -> the range of its effort, where it differs by direction."""
    single = [joint for joint in range(compiled.model.njnt) if compiled.is_single(joint)]
    found = {compiled.joint(joint): _effort_range(compiled, joint) for joint in single}
    return {name: (lower, upper) for name, (lower, upper) in found.items() if -lower != upper}


def _effort_range(compiled: CompiledModel, joint: int) -> Range:
    ranges = [_force_range(compiled, k) for k in _of_joint(compiled, joint)]
    total = (sum(lower for lower, _ in ranges), sum(upper for _, upper in ranges)) if ranges else UNLIMITED
    return _within(total, joint_range(compiled, joint))


def joint_range(compiled: CompiledModel, joint: int) -> Range:
    """The limits of a joint for the efforts of all its actuators."""
    if not getattr(compiled.model, "jnt_actfrclimited", np.zeros(compiled.model.njnt))[joint]:
        return UNLIMITED
    lower, upper = map(float, compiled.model.jnt_actfrcrange[joint])
    return lower, upper


def _within(bounds: Range, outer: Range) -> Range:
    """The range of what is limited by the one and then by the other."""
    lower, upper = (float(min(max(bound, outer[0]), outer[1])) for bound in bounds)
    return lower, upper


def scaled(bounds: Range, factor: float) -> Range:
    if not factor:
        return 0.0, 0.0
    lower, upper = sorted(float(bound * factor) for bound in bounds)
    return lower, upper


def _force_range(compiled: CompiledModel, number: int) -> Range:
    """The range of the effort at the joint: of the force, and of the control where the force follows from it alone."""
    model, found = compiled.model, UNLIMITED
    fixed = compiled.is_a(model.actuator_gaintype[number], "mjtGain", "GAIN_FIXED")
    alone = fixed and compiled.is_a(model.actuator_biastype[number], "mjtBias", "BIAS_NONE")
    integrates = compiled.is_a(model.actuator_dyntype[number], "mjtDyn", "DYN_INTEGRATOR")
    if alone and not integrates:
        found = scaled(control_range(compiled, number), float(model.actuator_gainprm[number][0]))
    if model.actuator_forcelimited[number]:
        lower, upper = map(float, model.actuator_forcerange[number])
        found = _within(found, (lower, upper))
    return scaled(found, gear_of(compiled, number))


def control_range(compiled: CompiledModel, number: int) -> Range:
    if not compiled.model.actuator_ctrllimited[number] or compiled.disables("CLAMPCTRL"):
        return UNLIMITED
    lower, upper = map(float, compiled.model.actuator_ctrlrange[number])
    return lower, upper


# --- actuators of a rig ---


@dataclass(frozen=True)
class _Transmission:
    """The length g q + l₀ of an actuator on one joint."""

    joint: str
    gear: float
    offset: float = 0.0


def actuators_of(compiled: CompiledModel, mimics: Mapping[str, Mimic]) -> tuple[FileActuator, ...]:
    """The actuators of the file; those without a type have no equal here, which is warned of."""
    if compiled.disables("ACTUATION"):
        return ()
    model = compiled.model
    groups = int(getattr(model.opt, "disableactuator", 0))
    found: dict[str, FileActuator] = {}
    lost = []
    for number in range(model.nu):
        group = int(model.actuator_group[number])
        if 0 <= group < GROUPS and groups & (1 << group):
            continue
        name = compiled.name("ACTUATOR", number)
        place, gears = compiled.place("actuator", name), _gears(compiled, number)
        on = gears if isinstance(gears, str) else _through(mimics, gears)
        made = on if isinstance(on, str) else _keys(compiled, number, on)
        if not isinstance(on, str) and not isinstance(made, str):
            if on.joint not in found:
                found[on.joint] = FileActuator(name, {on.joint: on.gear}, str(made.pop("type")), made, place)
                continue
            made = f"it is a second one on joint '{on.joint}'"
        acts_on = {} if isinstance(gears, str) else gears
        lost.append(FileActuator(name, acts_on, place=place, lost=str(made)))
    return (*found.values(), *lost)


def _gears(compiled: CompiledModel, number: int) -> dict[str, float] | str:
    """Joint of one coordinate -> effort there per force of an actuator, or why it acts on none."""
    model, gear = compiled.model, gear_of(compiled, number)
    kind = model.actuator_trntype[number]
    if (joint := on_joint(compiled, number)) >= 0:
        return {compiled.joint(joint): gear}
    if compiled.is_a(kind, "mjtTrn", "TRN_TENDON"):
        weights = weights_of(compiled, int(model.actuator_trnid[number][0]))
        acts = "it acts on a spatial tendon"
        return acts if weights is None else {name: gear * weight for name, weight in weights.items()}
    found = (words for name, words in ELSEWHERE.items() if compiled.is_a(kind, "mjtTrn", name))
    return next(found, "it acts on nothing known")


def _through(mimics: Mapping[str, Mimic], gears: Mapping[str, float]) -> _Transmission | str:
    """The transmission to joints that all follow one of them, or why there is none."""
    total: dict[str, float] = {}
    offset = 0.0
    for name, gear in gears.items():
        while (mimic := mimics.get(name)) is not None:
            offset, name, gear = offset + gear * mimic.offset, mimic.joint, gear * mimic.multiplier
        total[name] = total.get(name, 0.0) + gear
    if len(total) > 1:
        return f"it acts on several joints, {', '.join(total)}"
    ((name, gear),) = total.items()
    return _Transmission(name, gear, offset) if gear else "its gear is 0"


def _keys(compiled: CompiledModel, number: int, on: _Transmission) -> dict[str, float | str] | str:
    """The actuator of a rig that equals one of the file on a joint, with its `type`; or why there is none."""
    model, g = compiled.model, on.gear
    for word, what in REFUSED.items():
        kinds = ("gaintype", "mjtGain", "GAIN"), ("biastype", "mjtBias", "BIAS"), ("dyntype", "mjtDyn", "DYN")
        if any(compiled.is_a(getattr(model, f"actuator_{a}")[number], e, f"{p}_{word}") for a, e, p in kinds):
            return f"it is {what}"
    if compiled.number("actuator_delay", number):
        return "its control is delayed"
    limits = _effort_limits(compiled, number, on)
    if compiled.is_a(model.actuator_gaintype[number], "mjtGain", "GAIN_DCMOTOR"):
        return _dc_motor(compiled, number, on, limits)
    gain, bias = np.zeros(AFFINE), np.zeros(AFFINE)
    affine = compiled.is_a(model.actuator_gaintype[number], "mjtGain", "GAIN_AFFINE")
    gain[: AFFINE if affine else 1] = model.actuator_gainprm[number][: AFFINE if affine else 1]
    if compiled.is_a(model.actuator_biastype[number], "mjtBias", "BIAS_AFFINE"):
        bias = np.array(model.actuator_biasprm[number][:AFFINE], dtype=float)
    for terms in (gain, bias):  # of the length g q + l₀
        terms[0] += terms[1] * on.offset
    dynamics = _dynamics(compiled, number)
    if isinstance(dynamics, str):
        return dynamics
    if on.offset and dynamics.get("activation"):
        return "it has an activation, and its joint follows another with an offset"
    mode = _mode(gain, bias, dynamics)
    per = {"position": g, "velocity": g, "effort": 1.0 / (g * gain[0]) if gain[0] and not affine else 1.0}[mode]
    if mode == "position" and on.offset:
        bias[0] += gain[0] * on.offset  # the control is a length: g q_s + l₀
    numbers = dict(
        zip(("gain", "gain_position", "gain_velocity"), np.multiply(gain, (g, g * g, g * g)) * per, strict=True)
    )
    numbers |= dict(zip(("bias", "bias_position", "bias_velocity"), np.multiply(bias, (g, g * g, g * g)), strict=True))
    numbers = {key: float(value) for key, value in numbers.items() if value or key == "gain"}
    shift = on.offset if mode == "position" else 0.0
    controls = _moved(control_range(compiled, number), shift, per)
    activations = _moved(dynamics.pop("range"), shift, per)
    if mode == "effort" and not dynamics and numbers == {"gain": 1.0}:
        lower, upper = _within(controls, limits)
        if -lower == upper:
            return {"type": "ideal", **({} if math.isinf(upper) else {"max_effort": upper})}
    bounds = _bounds(control=controls, activation=activations, effort=limits)
    return {"type": "affine_servo", "mode": mode, **numbers, **dynamics, **bounds}


def _effort_limits(compiled: CompiledModel, number: int, on: _Transmission) -> Range:
    """The limits of the force at the joint: of the actuator, of its tendon, and of the joint."""
    model, force = compiled.model, UNLIMITED
    if model.actuator_forcelimited[number]:
        lower, upper = map(float, model.actuator_forcerange[number])
        force = lower, upper
    tendon = int(model.actuator_trnid[number][0])
    on_tendon = compiled.is_a(model.actuator_trntype[number], "mjtTrn", "TRN_TENDON")
    if on_tendon and compiled.number("tendon_actfrclimited", tendon):
        gear = gear_of(compiled, number)
        lower, upper = compiled.model.tendon_actfrcrange[tendon]
        force = _within(force, scaled((lower, upper), 1.0 / gear))
    joint = next(k for k in range(model.njnt) if compiled.joint(k) == on.joint)
    return _within(scaled(force, on.gear), joint_range(compiled, joint))


def _bounds(**ranges: Range) -> dict[str, float]:
    """The finite limits as keys of an actuator."""
    ends = (
        (f"{end}_{what}", bound) for what, r in ranges.items() for end, bound in zip(("min", "max"), r, strict=True)
    )
    return {key: bound for key, bound in ends if math.isfinite(bound)}


def _moved(bounds: Range, shift: float, per: float) -> Range:
    """Bounds of a control c = per · u + shift as bounds of u."""
    return scaled((bounds[0] - shift, bounds[1] - shift), 1.0 / per)


def _dynamics(compiled: CompiledModel, number: int) -> dict | str:
    """The keys of the activation, and its `range`; or why it has none."""
    model = compiled.model
    kinds = {"DYN_NONE": "", "DYN_INTEGRATOR": "integrator", "DYN_FILTER": "filter", "DYN_FILTEREXACT": "filter"}
    kind = model.actuator_dyntype[number]
    found = [word for name, word in kinds.items() if compiled.is_a(kind, "mjtDyn", name)]
    if not found:
        return "its activation is not known"
    limited = found[0] and model.actuator_actlimited[number]
    lower, upper = model.actuator_actrange[number] if limited else UNLIMITED
    keys: dict = {"range": (float(lower), float(upper))}
    if found[0]:
        keys["activation"] = found[0]
    if found[0] == "filter":
        keys["time_constant"] = float(model.actuator_dynprm[number][0])
        if not keys["time_constant"]:
            return "its filter has no time constant"
    return keys


def _mode(gain: np.ndarray, bias: np.ndarray, dynamics: Mapping) -> str:
    """What of a command is the control: a position or a velocity where the force at it, at rest or in that motion, is
    as without it, else an effort."""
    integrates = dynamics.get("activation") == "integrator"
    if gain[0] and not gain[1:].any():
        if bias[1] == -gain[0]:
            return "velocity" if integrates else "position"
        if bias[2] == -gain[0] and not bias[1] and not integrates:
            return "velocity"
    return "effort"


def _dc_motor(compiled: CompiledModel, number: int, on: _Transmission, limits: Range) -> dict[str, float | str] | str:
    """A winding with resistance R, motor constant K and inductance L on a voltage: K i, L i̇ = u − R i − K g q̇."""
    model, g = compiled.model, on.gear
    R, K, *others = map(float, model.actuator_gainprm[number])
    delay, *more = map(float, model.actuator_dynprm[number])
    if any(others) or any(more) or np.any(model.actuator_biasprm[number]) or on.offset:
        return "it is a DC motor with more than resistance, inductance and motor constant"
    lower, upper = control_range(compiled, number)
    if not delay:
        bounds = _bounds(control=scaled((lower, upper), g * K / R), effort=limits)
        return {"type": "affine_servo", "mode": "effort", "gain": 1.0, "bias_velocity": -g * g * K * K / R, **bounds}
    if math.isfinite(limits[0]) or math.isfinite(limits[1]) or -lower != upper or g < 0.0:
        return "it is a DC motor with an inductance, and limits of its force or a voltage that differs by direction"
    volts = {} if math.isinf(upper) else {"voltage_limit": upper}
    keys = {"resistance": R, "inductance": delay * R, "torque_constant": K, "rotor_inertia": 0.0, "ratio": g, **volts}
    return {"type": "dc_motor", "drive": "voltage", **keys}
