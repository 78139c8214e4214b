"""Why the guard stopped a run, in one sentence with the mend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cosim import guard

if TYPE_CHECKING:
    from cosim.rig import Rig


def explain(rig: Rig, tick: int, row: np.ndarray) -> str:
    """`row` is what the tick left behind; its verdicts are not all FINE."""
    parts = rig.simulation.row.unpack(row)
    k = int(np.argmax(parts["verdict"]))
    name, kind = rig.joints[k], rig.plant.model.joints[k].kind
    unit = "m" if kind == "prismatic" else "rad"
    position, velocity = (float(parts["measured"][what][k]) for what in ("position", "velocity"))
    lower, upper = rig.limits.lower[k], rig.limits.upper[k]
    at = f"stopped at tick {tick} (t = {tick * rig.simulation.step:.6g} s): joint '{name}'"
    return {
        guard.POSITION: (
            f"{at} is at {position:.6g} {unit}, outside its limits {lower:.6g} to {upper:.6g} {unit};"
            f" change the trajectory or joints.{name}.limits"
        ),
        guard.VELOCITY: (
            f"{at} moves at {velocity:.6g} {unit}/s, above its limit of {rig.limits.velocity[k]:.6g} {unit}/s;"
            f" slow the trajectory down, soften the controller or change joints.{name}.limits"
        ),
        guard.NOT_FINITE: (
            f"{at} is not finite (position {position:.6g} {unit}, velocity {velocity:.6g} {unit}/s);"
            " try a smaller schedule.step, more schedule.substeps or schedule.integrator: rosenbrock"
        ),
    }[int(parts["verdict"][k])]
