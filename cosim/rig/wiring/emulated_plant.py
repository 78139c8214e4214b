"""The rig behind emulated drives, its plant without controllers, in steps that its actuators allow; and the drives of
real joints simulated beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from cosim.control.limits import LIMITS
from cosim.core.errors import InputErrors
from cosim.core.servo.cascade import ServoLoops
from cosim.core.types import Actuator, Array
from cosim.core.units import format_seconds, show_time
from cosim.mechanics.integrators.methods import INTEGRATORS
from cosim.rig.reading.contracts import load_actuator
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.joints import JointSpec
from cosim.rig.sections.rig_spec import RigSpec
from cosim.rig.sections.schedule import ScheduleSpec
from cosim.simulation.plant.sampling import samples_per_tick

LONGEST_STEP_NS = 1_000_000  # of the emulated drives
# rate · step of the fastest actuator; the explicit integrators are stable up to 2
LARGEST_STEP = 1.5
MOST_SUBSTEPS = 50  # each is traced
# limits that need the reference of a controller
UNCHECKED = {key: math.inf for row in LIMITS if row.reference == "required" for key in row.bound_keys}


def emulated_plant(spec: RigSpec) -> RigSpec:
    """The rig without controllers and events, for `cosim emulate`.

    Virtual contacts are left out. Joints with a simulated motor beside the real ones are latched; joints without a
    motor move freely. The step is the emulated drives': at most 1 ms, with as many substeps as their actuators need.
    Raises InputErrors at an actuator that is too fast.
    """
    spec = _without_virtual_contacts(spec)
    real = {name for driver in spec.drivers for name in driver.joints}
    simulated = {name for controller in spec.controllers for name in controller.joints} - real
    still = {"latched": True, "initial_velocity": 0.0, "actuator": None}
    joints = {
        name: replace(joint, **still) if name in simulated else current_controlled(joint)
        for name, joint in spec.joints.items()
    }
    joints = {name: replace(joint, limits=joint.limits | UNCHECKED) for name, joint in joints.items()}
    rig = replace(spec, joints=joints, drivers=(), controllers=(), events=())
    return replace(rig, schedule=_schedule(rig))


def _without_virtual_contacts(spec: RigSpec) -> RigSpec:
    """What the drives exert is not on the bench as well."""
    mechanism = spec.mechanism
    contacts = tuple(contact for contact in mechanism.description.contacts if not contact.virtual)
    if len(contacts) == len(mechanism.description.contacts):
        return spec
    return replace(spec, mechanism=replace(mechanism, description=replace(mechanism.description, contacts=contacts)))


def current_controlled(joint: JointSpec) -> JointSpec:
    """Drives with a protocol control the current: with a voltage of 0, a motor that is off would brake."""
    plugin = joint.actuator
    loops = servo_loops(joint)
    if loops is not None:  # the position and velocity loops are in the emulated drives
        changes: dict[str, object] = {"loops": replace(loops, mode="effort", encoder=None)}
    elif plugin is not None and getattr(plugin.params, "drive", None) == "voltage":
        changes = {"drive": "current"}
    else:
        return joint
    assert plugin is not None
    params = replace(plugin.params, **changes)
    return replace(joint, actuator=plugin._replace(params=params))


def _schedule(spec: RigSpec) -> ScheduleSpec:
    """The schedule in equal parts of its step."""
    given = spec.schedule
    unit = _samples(spec)
    parts = -(-given.step_ns // (LONGEST_STEP_NS * unit)) * unit
    step_ns, substeps = given.step_ns // parts, -(-given.substeps // parts)
    if not INTEGRATORS[given.integrator].implicit:  # which is stable at any step
        substeps = max(substeps, needed_substeps(spec, spec.joints, step_ns))
    return replace(given, step_ns=step_ns, substeps=substeps)


def servo_loops(joint: JointSpec) -> ServoLoops | None:
    """The sampled loops of the drive of a joint."""
    return getattr(joint.actuator.params, "loops", None) if joint.actuator else None


def _samples(spec: RigSpec) -> int:
    """Parts of the step at which all velocity loops are sampled. Raises InputErrors for a period that fits no part."""
    reading, step_ns, counts = Reading(spec.source.place, [], spec.path.parent), spec.schedule.step_ns, [1]
    for name, joint in spec.joints.items():
        loops = servo_loops(joint)
        if loops is None or loops.velocity is None:
            continue
        count = samples_per_tick(1.0 / loops.velocity.rate, step_ns)
        if count is None or step_ns % count:
            at = ("joints", name, "actuator", "loops", "velocity", "rate")
            every, step = format_seconds(1.0 / loops.velocity.rate), show_time(step_ns)
            what = f"a step of {step} is no whole number of its samples, {every} each, in whole nanoseconds"
            reading.fail(at, f"{what}; change the rate to emulate the drive")
        else:
            counts.append(count)
    if reading.errors:
        raise InputErrors(reading.errors)
    return math.lcm(*counts)


def needed_substeps(spec: RigSpec, joints: Iterable[str], step_ns: int) -> int:
    """With which an explicit integrator follows the actuators of these joints. Raises InputErrors at one that is too
    fast."""
    reading, needed = Reading(spec.source.place, [], spec.path.parent), 1
    for name in joints:
        joint = spec.joints[name]
        path = ("joints", name, "actuator")
        actuator = load_actuator(joint.actuator, path, reading) if joint.actuator else None
        rate = fastest_rate(actuator) if actuator else 0.0
        substeps = math.ceil(rate * step_ns * 1e-9 / LARGEST_STEP - 1e-9)
        if substeps > MOST_SUBSTEPS:
            what = f"its fastest time constant of {1e6 / rate:.3g} µs is too short to be emulated in real time"
            reading.fail(path, f"{what}; lower its bandwidth, or use schedule.integrator: rosenbrock")
        needed = max(needed, substeps)
    if reading.errors:
        raise InputErrors(reading.errors)
    return needed


def fastest_rate(actuator: Actuator) -> float:
    """The largest eigenvalue [1/s] of an actuator at rest, from the differences of its flow."""
    rest = {name: np.asarray(value, dtype=float) for name, value in actuator.initial(0.0, 0.0).items()}
    held = {"position": 0.0, "velocity": 0.0, "request": 0.0}

    def flow(x: Array) -> Array:
        state, at = {}, 0
        for name, value in rest.items():
            state[name], at = x[at : at + value.size].reshape(value.shape), at + value.size
        rates, _ = actuator.flow(0.0, actuator.params, state, held)
        return np.concatenate([np.ravel(rates[name]) for name in rest])

    start = np.concatenate([np.ravel(value) for value in rest.values()]) if rest else np.zeros(0)
    if not start.size:
        return 0.0
    step = 1e-6
    columns = [(flow(start + step * row) - flow(start - step * row)) / (2.0 * step) for row in np.eye(start.size)]
    return float(np.abs(np.linalg.eigvals(np.stack(columns, axis=1))).max())


def twins_of(spec: RigSpec, real: Iterable[str], reading: Reading) -> dict[str, Actuator]:
    """By real joint that has an actuator in the rig; none without `guard.shadow`. Records a drive that is solved
    together with the mechanism, which a twin is not."""
    if spec.guard.shadow is None:
        return {}
    twins = {}
    for name in real:
        drive = current_controlled(spec.joints[name]).actuator
        at = ("joints", name, "actuator")
        twin = None if drive is None else load_actuator(drive, at, reading)
        if getattr(twin, "is_inertial", False):
            what = "it depends on the acceleration of the joint, which its twin does not know"
            reading.fail(at, f"{what}; make its gear elastic, or take 'shadow' out of 'guard'")
        if twin is not None:
            twins[name] = twin
    return twins


def with_twins(spec: RigSpec, twins: Iterable[str]) -> RigSpec:
    """The rig with the substeps that the twins of these joints need. Raises InputErrors at one that is too fast."""
    schedule = spec.schedule
    if INTEGRATORS[schedule.integrator].implicit or schedule.adaptive:
        return spec
    substeps = max(schedule.substeps, needed_substeps(spec, twins, schedule.step_ns))
    return replace(spec, schedule=replace(schedule, substeps=substeps))
