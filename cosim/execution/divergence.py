"""The likely causes of a run that diverged or left its limits, found after the stop from the memory and the last rows.

Coordinates that are singular nearby, of a formulation that chose them; else gains that are unstable at the step, else a
plant too stiff for the integrator; a reference beyond the limits of its joint. Where there is none of these it may be a
drive that was saturated, which instability causes too. Causes at the joint that stopped the run come first. The loop
itself computes nothing of this.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from cosim.control.bumpless_start import BumplessStart
from cosim.control.limits import BITS, LIMIT_OF, SATURATE
from cosim.core.types import State
from cosim.execution.drive_loops import unstable_gains
from cosim.execution.rig_state import MAX_SAMPLES, MIN_TICKS, WINDOW, Cause, RigState
from cosim.execution.stiffness import stiff_plant
from cosim.mechanics.formulations import SEPARATE_BODIES, dependent_row

# what is left of a row of the constraints, relative to it, below which a step may reach the singular configuration
NEARLY_DEPENDENT = 0.1
# fraction of the window from which on saturation is the cause
OFTEN = 0.5


def likely_cause(stop: RigState) -> str:
    """What is wrong, and the fix; empty where nothing is found."""
    with np.errstate(all="ignore"):
        found = _found(_singular, stop) or [*_found(_unstable, stop), *_found(_reference_too_far, stop)]
        found = found or _found(_saturated, stop)
    found.sort(key=lambda cause: cause.joint != stop.joint)
    return "; ".join(cause.text for cause in found)


def _found(find: Callable[[RigState], list[Cause]], stop: RigState) -> list[Cause]:
    """The state comes from a failed run, and trajectories may be a user's: the stop reason is reported in any case."""
    with suppress(Exception):
        return find(stop)
    return []


def _singular(stop: RigState) -> list[Cause]:
    plant, t = stop.tick_model.plant, stop.tick * stop.tick_model.step
    q = np.asarray(plant.motion(t, stop.state)[0], dtype=float)
    row = dependent_row(plant.other_formulation, q, t, NEARLY_DEPENDENT)
    if row is None:
        return []
    what = f"{row} depends on the other rows of the constraints in the coordinates that '{plant.formulation}' chose"
    return [Cause(stop.joint, f"{what}; use mechanism.formulation: {SEPARATE_BODIES}")]


def _unstable(state: RigState) -> list[Cause]:
    return unstable_gains(state) or stiff_plant(state)


def instability(state: RigState) -> list[str]:
    """Gains that are unstable at the step, else a plant that is too stiff for it, and the fix."""
    with np.errstate(all="ignore"):
        return [cause.text for cause in _unstable(state)]


def _reference_too_far(stop: RigState) -> list[Cause]:
    """Whether the reference of the joint is beyond its limits of velocity or position, shortly before or after."""
    if stop.followed is None:
        return []
    k, limits = stop.joint, stop.tick_model.limits
    loop, i = stop.followed
    armed = BumplessStart.of(stop.parts["bumpless_start"], stop.tick_model.nv)
    end, bounds = stop.tick * stop.tick_model.step, f"joints.{stop.name(k)}.limits"
    for t in np.linspace(max(float(armed.t), end - WINDOW), end + WINDOW, MAX_SAMPLES):
        sample = armed.at(loop.index).reference(loop.trajectory, float(t))
        position, velocity = float(sample["position"][i]), float(sample["velocity"][i])
        if abs(velocity) > limits.velocity[k]:
            what = f"its reference moves at {stop.show(velocity, 'velocity', k)} at t = {t:.3g} s"
            return [Cause(k, f"{what}; slow the trajectory down or change {bounds}")]
        if not limits.lower[k] <= position <= limits.upper[k]:
            what = f"its reference is at {stop.show(position, 'position', k)} at t = {t:.3g} s"
            return [Cause(k, f"{what}; change the trajectory or {bounds}")]
    return []


def _saturated(stop: RigState) -> list[Cause]:
    """Whether the effort of a joint that follows a position was at its limit most of the time: of the guard, or of the
    drive."""
    k, guard = stop.joint, stop.tick_model.guard
    if stop.followed is None or not stop.window:
        return []
    cut = np.mean([_is_cut(stop, row) for row in stop.window])
    stuck = np.mean([_is_stuck(stop, row) for row in stop.window])
    if max(cut, stuck) < OFTEN:
        return []
    span = min(len(stop.rows), max(round(WINDOW / stop.tick_model.step), MIN_TICKS)) * stop.tick_model.step
    limit = f" of {LIMIT_OF['effort'].show([guard.bounds['effort'][k]], stop.tick_model.plant.model.dof_units[k])}"
    what = (
        f"its effort was at its limit{limit if cut >= stuck else ''} in {max(cut, stuck):.0%} of the last {span:.3g} s"
    )
    fix = "slow the trajectory down, reduce the load, or " + (
        f"raise joints.{stop.name(k)}.limits" if cut >= stuck else f"use a stronger joints.{stop.name(k)}.actuator"
    )
    return [Cause(k, f"{what}; {fix}")]


def _is_cut(stop: RigState, row: State) -> bool:
    """Whether the guard cut the effort of the joint to its limit."""
    guard, k = stop.tick_model.guard, stop.joint
    return bool(guard.has_action(SATURATE, "effort")[k] and int(row["warned"][k]) & int(BITS["effort"]))


def _is_stuck(stop: RigState, row: State) -> bool:
    """Whether the drive of the joint gives no more when more is requested."""
    plant, k = stop.tick_model.plant, stop.joint
    actuator, request = plant.actuators.get(stop.name(k)), float(row["request"][k])
    if actuator is None or not request or not np.isfinite(request):
        return False
    if stop.name(k) in plant.periods:  # it takes a request at its samples only
        return False
    t, x = float(row["t"]), row["plant"]
    q, v, _ = plant.motion(t, x)
    inputs = {"position": plant.model.equations.chart(q)[k], "velocity": v[k]}
    answers = [
        [np.ravel(list(part.values())) for part in actuator.flow(t, actuator.params, x["actuators"][stop.name(k)], u)]
        for u in ({**inputs, "request": request}, {**inputs, "request": 1.01 * request})
    ]
    return all(np.array_equal(a, b) for a, b in zip(*answers, strict=True))
