"""Why the guard stopped a run, in one sentence with the mend."""

from __future__ import annotations

import numpy as np

from cosim import guard
from cosim.simulation import Simulation

# a joint that moves within this is not what made an effort overflow
SENSIBLE = 1e100


def explain(simulation: Simulation, tick: int, row: np.ndarray) -> str:
    """`row` is what the tick left behind; its verdicts are not all FINE."""
    parts, limits = simulation.row.unpack(row), simulation.limits
    k = int(np.argmax(parts["verdict"]))
    model = simulation.plant.model
    name, unit = model.dof_names[k], model.dof_units[k]
    position, velocity = (float(parts["measured"][what][k]) for what in ("position", "velocity"))
    at = f"stopped at tick {tick} (t = {tick * simulation.step:.6g} s): joint '{name}'"
    return {
        guard.POSITION: (
            f"{at} is at {position:.6g} {unit}, outside its limits {limits.lower[k]:.6g} to {limits.upper[k]:.6g}"
            f" {unit}; change the trajectory or joints.{name}.limits"
        ),
        guard.VELOCITY: (
            f"{at} moves at {velocity:.6g} {unit}/s, above its limit of {limits.velocity[k]:.6g} {unit}/s;"
            f" slow the trajectory down, soften the controller or change joints.{name}.limits"
        ),
        guard.NOT_FINITE: (
            f"{at} is commanded an effort that is not finite (at {position:.6g} {unit}, {velocity:.6g} {unit}/s);"
            " look at its controller"
            if max(abs(position), abs(velocity)) < SENSIBLE
            else f"{at} is not finite (position {position:.6g} {unit}, velocity {velocity:.6g} {unit}/s);"
            " try a smaller schedule.step, more schedule.substeps or schedule.integrator: rosenbrock"
        ),
    }[int(parts["verdict"][k])]
