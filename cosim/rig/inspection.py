"""What can be known of a rig before it runs: masses, its first tick, time constants, references beyond limits, motors
that do not fit its motion, and emulated loads that are unstable on their bench."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator
from contextlib import suppress

import numpy as np

from cosim.control.load_emulation import is_stable, largest_ratio
from cosim.core.compile.process_exits import user_code
from cosim.core.errors import CosimError, InputError, InputErrors, describe_exception, where_raised
from cosim.core.types import COMMAND, Array
from cosim.core.units import format_seconds, quantity_unit
from cosim.execution.crash import crash_in_words
from cosim.execution.divergence import fastest_plant, instability
from cosim.execution.drive_loops import fastest_loop
from cosim.execution.rig_state import RigState, predicted
from cosim.mechanics.multibody.description.inertia import IMPOSSIBLE
from cosim.rig.contact_doubts import doubts_of_contacts
from cosim.rig.drive_commands import commands_without_effect
from cosim.rig.loop_drives import drives_against_each_other
from cosim.rig.loop_reach import loops_beyond_reach
from cosim.rig.references import LONGEST_MOTION, doubts_of_references
from cosim.rig.wiring.wall_limits import wall_limits
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.tick.tick_model import TickTask

BEFORE_STEP = "guard"  # the last task that changes what the step takes


MOTION_SAMPLES = 50
EFFORT_TOLERANCE = 1e-6  # by which a required effort may exceed its limit
# a rotor with this many times the largest inertia of the links is a mistake of its unit or its ratio
LARGEST_ROTOR = 1000.0

DELAY_STEPS = 2  # from a measurement to the effort exerted for it, where the rig gives no time


def masses(rig: WiredRig) -> dict[str, float]:
    """Link -> mass [kg], of links that have one."""
    links = rig.spec.mechanism.description.links
    return {link.name: link.mass for link in links if link.mass > 0.0}


def first_tick(rig: WiredRig, last: str = "publish", besides: Container[str] = ()) -> RigState:
    """The rig in its first tick, before the step, which may diverge; in plain Python without its drivers: every
    function of the user is called. last: the task after which it ends; besides: controllers that are not called.

    Raises InputError for a part that fails or commands values that are not finite.
    """
    model = rig.tick_model
    memory = before = model.memory()
    with np.errstate(all="ignore"), user_code(), crash_in_words():
        for task in model.tasks:
            if task.loop is None or task.loop.name not in besides:
                _run(rig, task, memory)
            if task.name == BEFORE_STEP:
                before = memory.copy()
            if task.name == last:
                break
    ticks = max(rig.spec.schedule.duration_ns // rig.spec.schedule.step_ns, 1)
    return predicted(model, model.layout.unpack(before), ticks)


def _run(rig: WiredRig, task: TickTask, memory: np.ndarray) -> None:
    """Make the calls of a task that is due in the first tick."""
    number = next((k for k, loop in enumerate(rig.tick_model.loops) if loop is task.loop), None)
    place = rig.spec.source.place(("mechanism",) if number is None else ("controllers", number))
    for call in task.calls if task.phase == 0 else ():
        try:
            results = call.fn(*(memory[where].reshape(shape).copy() for where, shape in call.inputs))
        except CosimError as error:
            if error.place is not None or isinstance(error, InputErrors):
                raise
            raise InputError(f"{error.what} ({where_raised(error)})", place) from error
        except (Exception, SystemExit) as error:  # code of a user may raise anything
            raise InputError(f"fails in its first call: {describe_exception(error)}", place) from error
        for (where, _), result in zip(call.outputs, results if isinstance(results, tuple) else (results,), strict=True):
            memory[where] = np.ravel(np.asarray(result, dtype=float))
    if task.loop is None or task.phase:
        return
    for name in COMMAND:
        where, _ = rig.tick_model.layout.place("controller_commands", task.loop.name, name)
        if not np.isfinite(memory[where]).all():
            raise InputError(f"its command '{name}' is not finite in its first call; check its arithmetic", place)


def time_constants(rig: WiredRig, state: RigState) -> Iterator[str]:
    """The fastest motions of drives and loops against the step, and what is unstable."""
    schedule = rig.spec.schedule
    step, substep = schedule.step_ns * 1e-9, schedule.step_ns * 1e-9 / schedule.substeps
    with np.errstate(all="ignore"):
        plant, loop = fastest_plant(state), fastest_loop(state)
    found = []
    if plant is not None:
        word = "substeps" if schedule.substeps > 1 else "steps"
        found.append(f"{plant[0]} {format_seconds(plant[1])}, {plant[1] / substep:.3g} {word}")
    if loop is not None:
        found.append(f"closed loop of joint '{loop[0]}' {format_seconds(loop[1])}, {loop[1] / step:.3g} steps")
    if found:
        yield f"fastest time constants at the start: {'; '.join(found)}"


def warnings(rig: WiredRig, state: RigState) -> Iterator[str]:
    """What is unstable, and what does not fit."""
    yield from instability(state)
    yield from _misfits(rig, state)


def _misfits(rig: WiredRig, state: RigState) -> Iterator[str]:
    yield from rig.plant.misaligned
    yield from doubts_of_drives(rig)
    yield from drives_against_each_other(rig)
    yield from loops_beyond_reach(rig)
    yield from commands_without_effect(rig)
    yield from doubts_of_references(rig)
    yield from unstable_loads(rig)
    yield from limits_of_walls(rig)[1]
    yield from doubts_of_contacts(rig)
    with np.errstate(all="ignore"):
        yield from motors_that_do_not_fit(rig, state)


def warnings_before_run(rig: WiredRig) -> tuple[list[str], list[str]]:
    """(what is unstable, what does not fit) in a rig that is about to run. Controllers in Python are not called, for
    they may keep hidden state, and a first tick that fails is the matter of the run."""
    mechanism = rig.spec.mechanism
    impossible = [*(note for note in mechanism.description.notes if IMPOSSIBLE in note), *mechanism.warnings]
    if rig.interpret or rig.tick_model.untraceable:
        beside = (*commands_without_effect(rig), *doubts_of_references(rig), *unstable_loads(rig))
        beside += (*limits_of_walls(rig)[1], *doubts_of_contacts(rig))
        of_drives = (*doubts_of_drives(rig), *drives_against_each_other(rig), *loops_beyond_reach(rig))
        return [], [*impossible, *rig.plant.misaligned, *of_drives, *beside]
    with suppress(Exception):
        state = first_tick(rig, last=BEFORE_STEP)
        return instability(state), [*impossible, *_misfits(rig, state)]
    return [], impossible


def doubts_of_drives(rig: WiredRig) -> Iterator[str]:
    """What the drives of joints warn of in their own parameters."""
    for name, actuator in rig.plant.actuators.items():
        for line in getattr(actuator, "doubts", ()):
            yield f"joint '{name}': {line}"
    for shared in rig.plant.shared.values():
        yield from getattr(shared.actuator, "doubts", ())


def motors_that_do_not_fit(rig: WiredRig, state: RigState) -> Iterator[str]:
    """A line for each joint whose motor or encoder does not fit. state: after the first tick."""
    times, required = _required_efforts(rig)
    yield from _weak_motors(rig, state, times, required)
    yield from _large_rotors(rig, state)
    yield from _coarse_encoders(rig, state, required)


def _required_efforts(rig: WiredRig) -> tuple[Array, Array]:
    """(times (k,), efforts (k, nv)) by inverse dynamics along the references, with friction and springs; NaN for joints
    that follow none. Of a mechanism with loops or with joints that move freely nothing is known: k = 0.
    """
    plant, loops = rig.plant, [loop for loop in rig.tick_model.loops if loop.needs_reference("position")]
    nv = plant.model.nv
    followed = np.isin(np.arange(nv), [k for loop in loops for k in loop.index])
    known = followed | np.asarray(plant.locked_or_imposed(plant.initial()), dtype=bool)
    if not loops or not known.all() or plant.model.constraint_rows or rig.hardware:
        return np.zeros(0), np.zeros((0, nv))
    end = min(max(float(loop.trajectory.end) for loop in loops), rig.spec.schedule.duration_ns * 1e-9, LONGEST_MOTION)
    times, equations = np.linspace(0.0, end, MOTION_SAMPLES), plant.controller_model.equations
    efforts = np.full((MOTION_SAMPLES, nv), np.nan)
    for row, t in zip(efforts, times.tolist(), strict=True):
        _, v, a = (np.asarray(part, dtype=float) for part in plant.motion(t, plant.initial()))
        chart = np.array(plant.start_positions)
        for name, trajectory in plant.prescribed_by_dof.items():
            chart[plant.model.dof_index(name)] = trajectory.sample(t)["position"][0]
        for loop in loops:
            sample = loop.trajectory.sample(t)
            chart[loop.index], v[loop.index] = sample["position"], sample["velocity"]
            a[loop.index] = sample["acceleration"]
        q = equations.coordinates(chart)
        # machine code of many bodies is a loop, sooner made than they are evaluated in Python
        compiled = (equations.rolled or equations.copies is not None) and not rig.interpret
        load = plant.controller_model.inverse_dynamics(q, v, a) if compiled else equations.inverse_dynamics(q, v, a, t)
        effort = load + equations.friction_effort(v)
        row[followed] = np.asarray(effort, dtype=float)[followed]
    return times, efforts


def _weak_motors(rig: WiredRig, state: RigState, times: Array, required: Array) -> Iterator[str]:
    """Joints whose motion needs more effort than their limit allows."""
    for k, name in enumerate(rig.joints if len(times) else ()):
        worst = int(np.argmax(np.abs(required[:, k])))
        effort, limit = abs(required[worst, k]), rig.limits.effort[k]
        if effort > limit * (1.0 + EFFORT_TOLERANCE):
            needs = f"the motion of joint '{name}' needs {state.show(effort, 'effort', k)} at {times[worst]:.3g} s"
            fix = f"raise joints.{name}.limits or slow the trajectory down"
            yield f"{needs}, its limit is {state.show(limit, 'effort', k)}; {fix}"


def _large_rotors(rig: WiredRig, state: RigState) -> Iterator[str]:
    """Joints whose reflected inertia is out of all proportion to the links."""
    plant = rig.plant
    rotors = plant.rotor_inertias
    if not rotors:
        return
    reflected = np.array([float(rotors.get(name, 0.0)) for name in plant.model.dof_names])
    inertias = np.asarray(plant.full_model.equations.mass_diagonal(plant.start.q, 0.0), dtype=float)
    links, units = inertias - reflected, np.array(plant.model.dof_units)
    for k, name in enumerate(plant.model.dof_names):
        largest = float(links[units == units[k]].max())
        if reflected[k] > LARGEST_ROTOR * largest > 0.0:
            what = (
                f"the rotor of joint '{name}' has an inertia of {state.show(reflected[k], 'inertia', k)} at the joint"
            )
            beside = f"the links at most {state.show(largest, 'inertia', k)}"
            yield f"{what}, {beside}; check rotor_inertia, which is that at the motor's shaft, and ratio"


def _coarse_encoders(rig: WiredRig, state: RigState, required: Array) -> Iterator[str]:
    """Joints where one count of the encoder requests more effort than the motion: they chatter at standstill."""
    resolution, T = rig.tick_model.encoders.params.resolution, rig.tick_model.step
    for k, name in enumerate(rig.joints if len(required) else ()):
        kd = float(np.nan_to_num(state.parts["command"]["kd"][k]))
        effort, peak = kd * resolution[k] / T, float(np.abs(required[:, k]).max())
        if effort > peak > 0.0:
            what = f"one count of the encoder of joint '{name}' in a step of {format_seconds(T)} requests"
            much = f"{state.show(effort, 'effort', k)} by kd, its motion at most {state.show(peak, 'effort', k)}"
            yield f"{what} {much}; lower kd or raise encoder.cpr"


def unstable_loads(rig: WiredRig) -> Iterator[str]:
    """A line for each load motor whose emulation is unstable."""
    model, step = rig.tick_model, rig.tick_model.step
    delays = [load.delay for spec in rig.spec.drivers for load in spec.loads.values()]
    for load, delay in zip(model.loads, delays, strict=True):
        shaft, name = load.rotor + load.inertia, rig.joints[load.joint]
        if shaft <= 0.0:  # the inertia of the bench is not known
            continue
        bandwidth = float(model.bandwidths[rig.plant.real.index(name)])
        steps = DELAY_STEPS if delay is None else math.ceil(delay / step - 1e-9)
        emulated = _inertia_at_start(rig, load.joint) - load.rotor
        if is_stable((emulated - load.inertia) / shaft, bandwidth, step, steps):
            continue
        unit = quantity_unit("joint inertia", rig.plant.model.dof_units[load.joint])
        most = load.inertia + shaft * largest_ratio(bandwidth, step, steps)
        yield (
            f"the load motor of joint '{name}' is to play {emulated:.4g} {unit} on a shaft of {shaft:.4g} {unit} with a"
            f" delay of {steps * step * 1e3:.4g} ms, which is stable up to {most:.4g} {unit}; add inertia to the shaft,"
            " or lower the delay of the load motor or the step"
        )


def limits_of_walls(rig: WiredRig) -> tuple[list[str], list[str]]:
    """(up to which stiffness contacts of real joints are stable, of which this is not known), a line each."""
    found = list(wall_limits(rig.spec, rig.plant, rig.contexts, rig.bus_loads)) if rig.hardware else []
    return [str(limit) for limit in found if not limit.unknown], [str(limit) for limit in found if limit.unknown]


def _inertia_at_start(rig: WiredRig, joint: int) -> float:
    """Effort that an acceleration of 1 takes at the start, rotor included; other simulated joints move freely."""
    plant = rig.plant
    state, k = plant.initial(), list(plant.real).index(rig.joints[joint])
    efforts = []
    for acceleration in (0.0, 1.0):
        given = np.zeros(len(plant.real))
        given[k] = acceleration
        solution = plant.efforts(0.0, state | {"real": given}, np.zeros(plant.model.nv))
        efforts.append(float(np.asarray(solution["effort"], dtype=float)[joint]))
    return efforts[1] - efforts[0]
