"""The likely causes of a run that diverged or left its limits, found after the stop from the memory and the last rows.

Coordinates that are singular nearby, of a formulation that chose them; else gains that are unstable at the step, else a
plant too stiff for the integrator, whose step cannot follow the fastest motion of the linearised plant; a reference
beyond the limits of its joint. Where there is none of these it may be a drive that was saturated, which instability
causes too. Causes at the joint that stopped the run come first. The loop itself computes nothing of this.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from cosim.control.bumpless_start import BumplessStart
from cosim.control.limits import BITS, LIMIT_OF, SATURATE
from cosim.core.types import Array, State
from cosim.execution.drive_loops import unstable_gains
from cosim.execution.rig_state import MAX_SAMPLES, MAX_SIZE, MIN_TICKS, ROUNDING, WINDOW, Cause, RigState
from cosim.execution.servo_loops import unstable_servo_loops
from cosim.mechanics.formulations import SEPARATE_BODIES, dependent_row
from cosim.mechanics.integrators.methods import INTEGRATORS, System
from cosim.simulation.plant.contact_step import ContactStep
from cosim.simulation.plant.plant import Plant

# what is left of a row of the constraints, relative to it, below which a step may reach the singular configuration
NEARLY_DEPENDENT = 0.1
# fraction of the window from which on saturation is the cause
OFTEN = 0.5


MOST_SUBSTEPS = 1 << 16  # that are worth trying
RESOLVED = 1.0  # rad of a mode per substep, in those that are proposed
TINY = 1e-300  # whose logarithm is finite
DETAILED = 5  # states of a drive from which on it has more than a current and an elastic gear


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
    return [*unstable_gains(state), *unstable_servo_loops(state)] or stiff_plant(state)


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


# --- the plant against the integrator ---


def fastest_plant(stop: RigState) -> tuple[str, float] | None:
    """(the part, time constant [s]) of the fastest motion of the linearised plant."""
    found = _linearised(stop)
    if found is None:
        return None
    A, moving = found
    rate, element = _fastest(A)
    if not abs(rate) > ROUNDING:
        return None
    return _part_of(stop, moving[element])[1], 1.0 / abs(rate)


def stiff_plant(stop: RigState) -> list[Cause]:
    """The fastest motion of the linearised plant that the integrator amplifies although it decays."""
    if (found := _linearised(stop)) is None:
        return []
    tick_model, plant, (A, moving) = stop.tick_model, stop.tick_model.plant, found
    coordinates = np.flatnonzero(np.isin(moving, plant.coordinates))
    rates = np.linalg.eigvals(A)
    if plant.moreau and not (tick_model.substeps and plant.model.equations.constraints.acts_between_bodies):
        return []  # all else is implicit there
    step = ContactStep(plant, compiled=False)

    def one_step(h: float) -> Array:
        if not plant.moreau:
            return _one_step(tick_model.integrator, A, coordinates, h)
        _, _, request = _about(stop)
        before = plant.layout.place("contacts", "acceleration").where  # by which dampers look ahead
        states = [*moving, *range(before.start, before.stop)]
        return _slopes(stop, lambda t, x: step.without_contacts(t, x, request, h), states)

    def growth(substeps: int) -> float:
        """Per tick, beyond the growth of the motion itself."""
        h = tick_model.step / substeps
        own = math.exp(min(tick_model.step * max(0.0, float(np.real(rates).max())), 700.0))
        largest = np.max(np.abs(np.linalg.eigvals(one_step(h))))
        return math.exp(min(substeps * math.log(max(float(largest), TINY)), 700.0)) / own

    if not stop.explains(growth(tick_model.substeps)):
        return []
    rate, element = _fastest(A)
    joint, part = _part_of(stop, moving[element])
    needed = tick_model.substeps
    # a mode of an elastic link is excited by the loads that it carries: its step is not only to be stable
    angle = tick_model.step * abs(rate.imag) if joint in plant.model.elastic_dofs else 0.0
    while (growth(needed) > 1.0 + ROUNDING or angle > RESOLVED * needed) and needed < MOST_SUBSTEPS:
        needed *= 2
    fixes = [f"schedule.substeps: {needed}"] if needed < MOST_SUBSTEPS else []
    fixes += ["softer springs"] if plant.contacts else [f"schedule.integrator: {_stable(plant)}"]
    substeps = "" if tick_model.substeps == 1 else f" in {tick_model.substeps} substeps"
    wrong = f"{part} has a time constant of {1e6 / abs(rate):.3g} us, too short for a step of {stop.step_ms}"
    fix = f"use {' or '.join(fixes)}"
    return [Cause(joint, f"{wrong}{substeps} with {tick_model.integrator}; {fix}")]


def _fastest(A: Array) -> tuple[complex, int]:
    """(the rate of the fastest motion of ẋ = A x, the element of x that takes part in it most).

    It is that with the largest participation factor, the product of its elements of the left and the right eigenvector
    (Pérez-Arriaga, Verghese and Schweppe, 1982), which the units of the states do not change.
    """
    rates, modes = np.linalg.eig(A)
    fastest = int(np.argmax(np.abs(rates)))
    same, left = np.linalg.eig(A.T)
    adjoint = left[:, int(np.argmin(np.abs(same - rates[fastest])))]
    return complex(rates[fastest]), int(np.argmax(np.abs(adjoint * modes[:, fastest])))


def _stable(plant: Plant) -> str:
    """The integrator for a stiff plant: of detailed drives, whose backlash and stiction change within a step, the one
    that iterates."""
    detailed = any(len(actuator.initial(0.0, 0.0)) >= DETAILED for actuator in plant.drives.values())
    return "multirate" if detailed and not (plant.model.constraint_rows or plant.shared) else "rosenbrock"


def _linearised(stop: RigState) -> tuple[Array, list[int]] | None:
    """(∂f/∂x (n, n) of the plant, the indices (n,) of x in its flat state); None for a plant that is too large, or
    whose motion is prescribed."""
    tick_model, plant = stop.tick_model, stop.tick_model.plant
    if plant.layout.size > MAX_SIZE:
        return None
    moving = [
        i
        for path, (where, _) in plant.layout.places.items()
        if path[0] in ("position", "velocity", "actuators", "bristles")
        for i in range(where.start, where.stop)
    ]
    if not moving:
        return None
    _, _, request = _about(stop)
    A = _slopes(stop, lambda t, x: tick_model.integration.flow(t, x, request), moving)
    return (A, moving) if np.isfinite(A).all() else None


def _about(stop: RigState) -> tuple[float, Array, Array]:
    """(time, flat state, requests to the drives) about which the plant is linearised."""
    tick_model = stop.tick_model
    request = stop.window[-1]["request"] if stop.window else np.zeros(tick_model.nv)
    state = tick_model.plant.layout.pack(stop.state)
    return stop.tick * tick_model.step, state, np.where(np.isfinite(request), request, 0.0)


def _slopes(stop: RigState, fn: Callable[[float, Array], Array], moving: list[int]) -> Array:
    """(n, n) ∂fn/∂x of these elements of the state by each other."""
    t, x, _ = _about(stop)
    at = np.asarray(fn(t, x), dtype=float)[moving]
    found = np.zeros((len(moving), len(moving)))
    for j, i in enumerate(moving):
        change = x.copy()
        change[i] += (width := 1e-6 * max(1.0, abs(x[i])))
        found[:, j] = (np.asarray(fn(t, change), dtype=float)[moving] - at) / width
    return found


def _one_step(integrator: str, A: Array, coordinates: Array, h: float) -> Array:
    """P (n, n): x(t + h) = P x(t) by the integrator for ẋ = A x."""
    zero = np.zeros(len(A))
    system = System(lambda t, x: A @ x, coordinates, lambda t, x: (A @ x)[coordinates], lambda t, x, rate: (A, zero))
    return np.column_stack(
        [np.asarray(INTEGRATORS[integrator].step(system, 0.0, e, h)[0], dtype=float) for e in np.eye(len(A))]
    )


def _part_of(state: RigState, index: int) -> tuple[int, str]:
    """(index of the joint, what the element `index` of the flat state of the plant belongs to)."""
    plant, names = state.tick_model.plant, state.tick_model.plant.model.dof_names
    for name in plant.drives:
        own = plant.layout.place("actuators", name).where
        if own.start <= index < own.stop:
            what = "the drive" if name in plant.shared else "the drive of joint"
            return next(iter(plant.joints_of[name].values())), f"{what} '{name}'"
    for where, dof in zip(plant.layout.index("bristles") if plant.bristles else (), plant.bristles.dofs, strict=True):
        if where == index:
            return dof, f"the friction of joint '{state.name(dof)}'"
    velocity = plant.layout.place("velocity").where
    if velocity.start <= index < velocity.stop:
        dof = int(np.flatnonzero(plant.unprescribed)[index - velocity.start])
        return dof, f"{'mode' if dof in plant.model.elastic_dofs else 'joint'} '{state.name(dof)}'"
    name = plant.state_coordinate_names[index - plant.layout.place("position").where.start]
    dof = names.index(name) if name in names else -1
    return dof, f"{'mode' if dof in plant.model.elastic_dofs else 'joint'} '{name}'"
