"""What can be known of a rig before it runs: masses, its first tick, time constants, references beyond limits."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import suppress

import numpy as np

from cosim.core.compile.process_exits import user_code
from cosim.core.errors import CosimError, InputError, InputErrors, describe_exception, where_raised
from cosim.core.types import COMMAND
from cosim.core.units import JOINT_DIMENSIONS, format_seconds
from cosim.execution.crash import crash_in_words
from cosim.execution.divergence import instability
from cosim.execution.drive_loops import fastest_loop
from cosim.execution.rig_state import RigState, predicted
from cosim.execution.stiffness import fastest_plant
from cosim.mechanics.multibody.description.inertia import IMPOSSIBLE
from cosim.rig.motor_sizing import motors_that_do_not_fit, unstable_loads
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.tick.tick_model import TickTask

SAMPLES = 2000  # of a trajectory
LONGEST = 60.0  # s of it that are looked at
BEFORE_STEP = "guard"  # the last task that changes what the step takes
TOLERANCE = 1e-9  # of a reference at its limit


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
    yield from references_beyond_limits(rig)
    yield from unstable_loads(rig)
    with np.errstate(all="ignore"):
        yield from motors_that_do_not_fit(rig, state)


def warnings_before_run(rig: WiredRig) -> tuple[list[str], list[str]]:
    """(what is unstable, what does not fit) in a rig that is about to run. Controllers in Python are not called, for
    they may keep hidden state, and a first tick that fails is the matter of the run."""
    impossible = [note for note in rig.spec.mechanism.description.notes if IMPOSSIBLE in note]
    if rig.interpret or rig.tick_model.untraceable:
        return [], [*impossible, *references_beyond_limits(rig), *unstable_loads(rig)]
    with suppress(Exception):
        state = first_tick(rig, last=BEFORE_STEP)
        return instability(state), [*impossible, *_misfits(rig, state)]
    return [], impossible


def references_beyond_limits(rig: WiredRig) -> Iterator[str]:
    """A line for each joint whose reference leaves its limits of position or velocity."""
    limits, units = rig.limits, rig.plant.model.dof_units
    for loop in rig.tick_model.loops:
        if not loop.needs_reference("position"):
            continue
        end = min(float(loop.trajectory.end), rig.spec.schedule.duration_ns * 1e-9, LONGEST)
        times = np.linspace(0.0, end, SAMPLES) if end > 0.0 else np.zeros(1)
        samples = [loop.trajectory.sample(float(t)) for t in times]
        position, velocity = (np.array([sample[what] for sample in samples]) for what in ("position", "velocity"))
        for i, k in enumerate(loop.index):
            bounds = {
                "position": (position[:, i], limits.lower[k], limits.upper[k]),
                "velocity": (velocity[:, i], -limits.velocity[k], limits.velocity[k]),
            }
            for what, (values, lower, upper) in bounds.items():
                excess = np.maximum(values - upper, lower - values)
                worst = int(np.argmax(excess))
                if excess[worst] > TOLERANCE:
                    unit = JOINT_DIMENSIONS[f"joint {what}"][units[k] == "m"]
                    bound = upper if values[worst] > upper else lower
                    yield (
                        f"the {what} of the reference of joint '{rig.joints[k]}' is {values[worst]:.4g} {unit}"
                        f" at {times[worst]:.4g} s, its limit {bound:.4g} {unit}"
                    )
