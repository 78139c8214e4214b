"""The output of `cosim check`: mechanism, actuators and controllers, task order, real-time settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.cli.contact_lines import collisions_without_contacts, contact_lines
from cosim.control.control_loop import ControlLoop
from cosim.control.input_shaping import ShapedTrajectory
from cosim.core.types import Trajectory
from cosim.core.units import show_percent, show_time
from cosim.mechanics.formulations import SEPARATE_BODIES
from cosim.mechanics.multibody.part_names import whole_of
from cosim.plugins.actuators._supplied_drives import SuppliedDrives
from cosim.plugins.actuators.drive import largest_voltage
from cosim.rig.inspection import first_tick, limits_of_walls, masses, time_constants, warnings
from cosim.rig.moving_motors import bus_lines, joined, real_limits, stop_lines
from cosim.rig.parameter_table import table_of
from cosim.rig.references import reference_samples
from cosim.rig.sections.controllers import ControllerSpec, by_priority
from cosim.rig.sections.joints import bound_reason
from cosim.rig.sections.schedule import ScheduleSpec
from cosim.rig.wiring.drivers import missing_connections
from cosim.simulation.coupling import PowerBond, Wire
from cosim.simulation.loop.pacing import Pacing, Trigger

if TYPE_CHECKING:
    from cosim.rig.rig import Rig
    from cosim.simulation.tick.coupled_plant import Coupling

MOST_MASSES = 12  # that are listed


def describe(rig: Rig) -> None:
    """Print the description of a valid rig."""
    state = first_tick(rig)
    missing = missing_connections(rig.spec.drivers, rig.contexts)
    notes = (
        *time_constants(rig, state),
        *limits_of_walls(rig)[0],
        *(f"warning: {line}" for line in (*rig.spec.mechanism.warnings, *warnings(rig, state), *missing)),
    )
    print(f"{rig.spec.path}: OK")
    for line in (*_mechanism(rig), *_parts(rig), *notes, *_tick(rig), *(stop_lines(rig) if rig.hardware else ())):
        print(f"  {line}")


def _mechanism(rig: Rig) -> Iterator[str]:
    spec, description = rig.spec, rig.spec.mechanism.description
    if spec.description:
        yield spec.description
    if not rig.joints:
        yield "no mechanism, parts only"
        return
    gravity = ", ".join(f"{g:g}" for g in spec.mechanism.gravity)
    joints = len(rig.plant.full_model.joint_names)
    parts = {"joint": joints, "dof": len(rig.joints) if len(rig.joints) != joints else 0}
    parts |= {"loop": len(description.loops), "constraint": len(description.constraints)}
    parts |= {"spring": len(description.springs), "torsion spring": len(description.torsion_springs)}
    parts |= {"force law": len(description.forces), "coupled rotor": len(description.rotors)}
    parts |= {"contact": len(description.contacts)}
    counts = ", ".join(f"{n} {word}" + "s" * (n != 1) for word, n in parts.items() if n or word == "joint")
    yield f"mechanism {description.name}: {counts}, gravity ({gravity}) m/s^2"
    if spec.mechanism.formulation != SEPARATE_BODIES:
        yield f"  equations of motion: {spec.mechanism.formulation}"
    by_link = masses(rig)
    few = ", ".join(f"{name} {mass:.4g} kg" for name, mass in list(by_link.items())[:MOST_MASSES])
    more = len(by_link) - MOST_MASSES
    yield f"  mass {sum(by_link.values()):.4g} kg: {few}{f' and {more} more' if more > 0 else ''}"
    if spec.mechanism.taken:
        yield f"  of the robot file: {'; '.join(spec.mechanism.taken)}"
    for note in (*description.notes, *collisions_without_contacts(spec.mechanism), *filter(None, [rig.plant.immobile])):
        yield f"  note: {note}"


def _parts(rig: Rig) -> Iterator[str]:
    """Joints, loops, constraints, drivers, controllers and events, one by one."""
    spec, description = rig.spec, rig.spec.mechanism.description
    starts = zip(rig.plant.start_positions, rig.plant.model.dof_units, strict=True)
    closes, parameters = bool(rig.plant.model.constraint_rows), rig.parameters
    for (name, joint), (position, unit) in zip(spec.joints.items(), starts, strict=True):
        shared = (f"'{drive}'" for drive, of in rig.plant.shared.items() if name in of.joints.values())
        kind = joint.actuator.name if joint.actuator else next(shared, "")
        role = "prescribed" if name in rig.plant.prescribed_dofs else f"actuated by {kind}" if kind else "passive"
        if name in rig.plant.real:
            yield f"  {name}: real, {real_limits(rig, name)}"
            continue
        latched = ", latched" if rig.joints.index(name) in rig.plant.modes.latched else ""
        found = " (computed)" if closes and not joint.initial_given[0] and role != "prescribed" else ""
        stops = "".join(f", {'upper' if side > 0 else 'lower'} stop at {at:g} {unit}" for side, at in joint.stops)
        given = real_limits(rig, name)
        limits = f"; limits: {given}" if given else ""
        yield f"  {name}: {role}{latched}, from {position:.6g} {unit}{found}{stops}{limits}"
        if name in rig.plant.prescribed:
            yield from _shaping(rig.plant.prescribed[name])
    yield from _supplies(rig)
    for loop in description.loops:
        kept = ", keeps its coordinates" if loop.coordinates else ""
        yield f"  loop {loop.joint.name}: {loop.joint.kind} from {loop.joint.parent} to {loop.joint.child}{kept}"
    for constraint in description.constraints:
        rows = ", ".join(row.name for row in constraint.law.rows)
        yield f"  constraint {constraint.name}: {rows}"
    yield from (f"  {line}" for line in contact_lines(description))
    if rig.plant.start.redundant:
        rows = ", ".join(rig.plant.full_model.constraint_rows[r] for r in rig.plant.start.redundant)
        yield f"  redundant: {rows}"
    yield from bus_lines(rig)
    yield from _coupled(rig)
    for controller in spec.controllers:
        yield f"controller {_controller(controller)}"
        head = f"{controller.name}."
        values = {
            name.removeprefix(head): value
            for name, value in parameters.items()
            if name.startswith(head) and np.isfinite(value).any()  # others are limits that are not set
        }
        if values:
            yield f"  {', '.join(f'{name} {_numbers(value)}' for name, value in values.items())}"
        for loop in rig.tick_model.loops:
            if loop.name == controller.name:
                yield from _shaping(loop.trajectory)
                yield from _reference(rig, controller, loop)
        if why := rig.tick_model.untraceable.get(controller.name):
            yield f"  in Python: {why}"
    yield from _left_out(rig)
    for event in spec.events:
        bound = f"{event.signal} {'above' if event.factor > 0 else 'below'} {event.bound:g}"
        yield f"event {event.name}: {f'at {event.at:g} s' if event.at is not None else f'on {bound}'}"


def _supplies(rig: Rig) -> Iterator[str]:
    """Links, and what their drives get of them."""
    for drive in rig.spec.bond_graphs:
        if isinstance(of := drive.plugin.params, SuppliedDrives):
            nominal = of.link.source.params.nominal
            yield f"  supply {drive.name}: {of.link.source.type}, {nominal:.4g} V without load"
            for joint, params in of.drives.items():
                limit, given = params.control.voltage_limit, largest_voltage(params, nominal)
                if given is not None and given < limit < np.inf:
                    what = f"its voltage_limit of {limit:.4g} V is above the {given:.4g} V that the link gives"
                    yield f"    {joint}: {what} as amplitude of a phase"


def _coupled(rig: Rig) -> Iterator[str]:
    """Parts that are integrated apart, and their couplings."""
    spec, model = rig.spec, rig.tick_model
    if model.coupling is None:
        return
    for part in spec.parts:
        yield f"part {part.name}: {part.describe(spec.schedule.step_ns)}"
        yield from _parameters_of_part(rig, part.name)
        if why := model.coupling.in_python.get(part.name):
            yield f"  in Python: {why}"
    scheme = model.coupling.scheme
    master = "Gauss–Seidel" if scheme.sequential else "Jacobi"
    yield f"couplings: {master}, extrapolation of order {scheme.order}{_coupling_steps(model.coupling)}"
    for member in spec.couplings.members:
        yield f"  {member}{_transformation(member)}"


def _transformation(member: PowerBond | Wire) -> str:
    if isinstance(member, PowerBond) or (member.factor in (None, 1.0) and not member.offset):
        return ""
    factor = 1.0 if member.factor is None else member.factor
    return f", times {factor:.6g}" + (f", plus {member.offset:.6g}" if member.offset else "")


def _coupling_steps(coupling: Coupling) -> str:
    """How a tick is divided, where it is."""
    if coupling.first_step is None:
        return ""
    first, control = show_time(coupling.first_step * 1e9), coupling.scheme.control
    if control is None:
        return f", steps of {first}"
    bounds = f"{show_time(control.shortest * 1e9)} to {show_time(control.longest * 1e9)}"
    again = ", repeated where it is too large" if control.repeats else ""
    return f", steps of {bounds} by the residual energy{again}, the first of {first}"


def _shaping(trajectory: Trajectory | None) -> Iterator[str]:
    """What input shaping does to a motion."""
    change, part = 0.0, trajectory
    while part is not None:
        change = max(change, getattr(part, "change", 0.0))
        if isinstance(part, ShapedTrajectory):
            frequencies = ", ".join(f"{frequency:.4g}" for frequency in part.frequencies)
            ends = f" and ends at {part.end:.4g} s" if np.isfinite(part.end) else ""
            speed = f", its speed changes by up to {show_percent(change, 2)}" if change else ""
            yield f"    shaped for {frequencies} Hz: the motion is longer by {part.times[-1]:.3g} s{ends}{speed}"
        part = getattr(part, "trajectory", None)


def _reference(rig: Rig, controller: ControllerSpec, loop: ControlLoop) -> Iterator[str]:
    """The largest values of a reference, beside the limits of its joints."""
    if controller.trajectory is None or not loop.needs_reference("position"):
        return
    found = reference_samples(rig, loop)
    for n, k in enumerate(loop.index):
        unit = rig.plant.model.dof_units[k]
        lowest, highest = found.position[:, n].min(), found.position[:, n].max()
        velocity, acceleration = (np.abs(values[:, n]).max() for values in (found.velocity, found.acceleration))
        jerk = "jumps of acceleration" if np.isinf(found.jerk[n]) else f"{found.jerk[n]:.4g} {unit}/s^3"
        limit = f" of {rig.limits.velocity[k]:.4g}" if np.isfinite(rig.limits.velocity[k]) else ""
        span = f"{lowest:.4g} to {highest:.4g} {unit}, up to {velocity:.4g}{limit} {unit}/s"
        yield f"  reference of {rig.joints[k]}: {span}, {acceleration:.4g} {unit}/s^2, {jerk}"


def _numbers(value: float | list[float]) -> str:
    """One number where all are equal."""
    values = value if isinstance(value, list) else [value]
    shown = [f"{x:.6g}" for x in (values if len(set(values)) > 1 else values[:1])]
    return f"[{', '.join(shown)}]" if len(shown) > 1 else shown[0]


def _parameters_of_part(rig: Rig, part: str) -> Iterator[str]:
    """In SI, those that are given."""
    fixed, head = table_of(rig).fixed.values(), f"{part}."
    given = {one.name.removeprefix(head): one.given for one in fixed if one.name.startswith(head)}
    if shown := [f"{name} {_value(value)}" for name, value in given.items() if value is not None]:
        yield f"  {', '.join(shown)}"


def _value(value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:.6g}" if is_number else str(value)


def _left_out(rig: Rig) -> Iterator[str]:
    """The joints that defaults for all joints do not reach, and drives that act against each other in loops."""
    spec, data = rig.spec, rig.spec.source.data
    items = zip(spec.controllers, data.get("controllers") or [], strict=True)
    reaching = ["joints.all"] * bool((data.get("joints") or {}).get("all"))
    reaching += [f"controller {controller.name}" for controller, item in items if item.get("joints") is None]
    if not reaching:
        return
    why = [
        f"{joint if whole_of(joint) == joint else f'the modes of {whole_of(joint)}'} (several dofs: by name, such as"
        f" {next(dof for dof in spec.joints if spec.owners[dof] == joint)})"
        for joint in spec.multi_dof_joints
    ]
    why += [f"{joint.name} ({bound_reason(joint)})" for joint in spec.mechanism.description.joints if joint.mimic]
    if why:
        yield f"{joined(reaching, 'and')} leave{'s' * (len(reaching) == 1)} out {joined(why, 'and')}"
    driven = len(rig.plant.actuated) + len(rig.plant.real)
    constrained = len(rig.plant.full_model.constraint_rows) - len(rig.plant.start.redundant)
    independent = rig.plant.full_model.nv - constrained
    if driven > independent:
        what = f"{driven} joints are driven and {independent} dof{'s are' if independent != 1 else ' is'} independent"
        yield f"note: {what}; if not all of them have a motor, name those that do in joints and controllers"


def _tick(rig: Rig) -> Iterator[str]:
    """The task order of a tick, and the real-time settings."""
    spec, schedule = rig.spec, rig.spec.schedule
    called = [controller.name for controller in by_priority(spec.controllers)]
    order = (name for task in schedule.order for name in (called if task == "controllers" else [task]))
    yield f"each tick of {show_time(schedule.step_ns)}: {' → '.join(order)}"
    sampled = any(np.isfinite(period) for period in rig.plant.periods.values())
    duration = f"run of {schedule.duration_ns / 1e9:g} s"
    count = (
        f"as many per tick as a tolerance of {schedule.tolerance:g} needs"
        if schedule.adaptive
        else f"{schedule.substeps} per tick{', a multiple of the samples of drives' if sampled else ''}"
    )
    yield f"step: {schedule.integrator}, {count}; {duration}" if rig.joints else duration
    if times := [
        f"{task} {show_time(schedule.deadlines[task])}" for task in schedule.order if task in schedule.deadlines
    ]:
        yield f"deadlines: {', '.join(times)}"
    if schedule.pacing is not None:
        yield f"real time: {_real_time(schedule, schedule.pacing)}"


def _controller(controller: ControllerSpec) -> str:
    step_ns = controller.period_ns // controller.ticks
    parts = [controller.plugin.name, f"every {show_time(controller.period_ns)}"]
    if controller.phase:
        parts.append(f"from {show_time(controller.phase * step_ns)}")
    if controller.deadline_ns is not None:
        parts.append(f"done within {show_time(controller.deadline_ns)}")
    if controller.fallback is not None:
        parts.append(f"fallback {controller.fallback.name}")
    return f"{controller.name}: {', '.join(parts)}"


def _real_time(schedule: ScheduleSpec, pacing: Pacing) -> str:
    return f"{_clock(schedule, pacing)}, {_overruns(pacing)}; {_warm_up(pacing)}; {', '.join(_thread(pacing))}"


def _clock(schedule: ScheduleSpec, pacing: Pacing) -> str:
    if pacing.trigger is not None:
        return f"external trigger {_trigger(pacing.trigger)}, timeout {show_time(pacing.trigger.timeout * 1e9)}"
    if pacing.rate == 1.0:
        return "rate 1"
    return (
        f"scaled to rate {pacing.rate:g}, a tick every {show_time(round(schedule.step_ns / pacing.rate))} of the clock"
    )


def _trigger(trigger: Trigger) -> str:
    return trigger.file or f"message {trigger.id:#x} on {trigger.interface} {trigger.channel}"


def _overruns(pacing: Pacing) -> str:
    n = pacing.max_consecutive
    words = {
        "skip": "missed periods skipped",
        "catch_up": f"overruns caught up with, at most {n} tick{'s' * (n > 1)}",
        "stop": f"stopped by {n} late ticks in a row" if n > 1 else "stopped by the first late tick",
    }
    return words[pacing.overrun]


def _warm_up(pacing: Pacing) -> str:
    return f"warm-up {show_time(pacing.warm_up * 1e9)}" if pacing.warm_up else "no warm-up"


def _thread(pacing: Pacing) -> Iterator[str]:
    yield f"thread priority {pacing.priority}"
    if pacing.cpu is not None:
        yield f"CPU {pacing.cpu}"
    if pacing.spin:
        yield f"spinning the last {show_time(pacing.spin * 1e9)}"
    if pacing.strict:
        yield "strict"
