"""The plant against the integrator: the fastest motion of the linearised plant, and whether a step can follow it."""

from __future__ import annotations

import math

import numpy as np

from cosim.core.types import Array
from cosim.execution.rig_state import MAX_SIZE, ROUNDING, Cause, RigState
from cosim.mechanics.integrators.methods import INTEGRATORS, System
from cosim.simulation.plant.plant import Plant

MOST_SUBSTEPS = 1 << 16  # that are worth trying
RESOLVED = 1.0  # rad of a mode per substep, in those that are proposed
TINY = 1e-300  # whose logarithm is finite
DETAILED = 5  # states of a drive from which on it has more than a current and an elastic gear


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

    def growth(substeps: int) -> float:
        """Per tick, beyond the growth of the motion itself."""
        h = tick_model.step / substeps
        own = math.exp(min(tick_model.step * max(0.0, float(np.real(rates).max())), 700.0))
        largest = np.max(np.abs(np.linalg.eigvals(_one_step(tick_model.integrator, A, coordinates, h))))
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
    steps = f"schedule.substeps: {needed} or " if needed < MOST_SUBSTEPS else ""
    substeps = "" if tick_model.substeps == 1 else f" in {tick_model.substeps} substeps"
    wrong = f"{part} has a time constant of {1e6 / abs(rate):.3g} us, too short for a step of {stop.step_ms}"
    fix = f"use {steps}schedule.integrator: {_stable(plant)}"
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
    return "multirate" if detailed and not plant.model.constraint_rows else "rosenbrock"


def _linearised(stop: RigState) -> tuple[Array, list[int]] | None:
    """(∂f/∂x (n, n) of the plant, the indices (n,) of x in its flat state); None for a plant that is too large, or
    whose motion is prescribed."""
    tick_model, plant = stop.tick_model, stop.tick_model.plant
    if plant.layout.size > MAX_SIZE:
        return None
    t, x = stop.tick * tick_model.step, plant.layout.pack(stop.state)
    moving = [
        i
        for path, (where, _) in plant.layout.places.items()
        if path[0] in ("position", "velocity", "actuators", "bristles")
        for i in range(where.start, where.stop)
    ]
    if not moving:
        return None
    request = stop.window[-1]["request"] if stop.window else np.zeros(tick_model.nv)
    request = np.where(np.isfinite(request), request, 0.0)
    at = np.asarray(tick_model.integration.flow(t, x, request), dtype=float)[moving]
    A = np.zeros((len(moving), len(moving)))
    for j, i in enumerate(moving):
        change = x.copy()
        change[i] += (width := 1e-6 * max(1.0, abs(x[i])))
        A[:, j] = (np.asarray(tick_model.integration.flow(t, change, request), dtype=float)[moving] - at) / width
    if not np.isfinite(A).all():
        return None
    return A, moving


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
            return names.index(name), f"the drive of joint '{name}'"
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
