"""What the references of a rig require before it runs, and where that is beyond limits of joints or of their drives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cosim.control.control_loop import ControlLoop
from cosim.core.types import Array
from cosim.core.units import quantity_unit
from cosim.rig.wiring.wired_rig import WiredRig

REFERENCE_SAMPLES = 2000  # of a trajectory
LONGEST_MOTION = 60.0  # s of it that are looked at
REFERENCE_TOLERANCE = 1e-9  # of a reference at its limit
# samples of a stepping field per electrical turn: with fewer the speed at which it loses its steps is more than 5 %
# lower than that of a field that turns smoothly
FEWEST_SAMPLES = 20.0


class SampledReference(NamedTuple):
    """times: (k,) s; position, velocity: (k, n) of the joints of the loop, [rad or m] and per s."""

    loop: ControlLoop
    times: Array
    position: Array
    velocity: Array


def sampled_references(rig: WiredRig, followed: str) -> Iterator[SampledReference]:
    """Of the loops that follow this part of their reference, `position` or `velocity`."""
    for loop in rig.tick_model.loops:
        if not loop.needs_reference(followed):
            continue
        end = min(float(loop.trajectory.end), rig.spec.schedule.duration_ns * 1e-9, LONGEST_MOTION)
        times = np.linspace(0.0, end, REFERENCE_SAMPLES) if end > 0.0 else np.zeros(1)
        samples = [loop.trajectory.sample(float(t)) for t in times]
        position, velocity = (np.array([sample[what] for sample in samples]) for what in ("position", "velocity"))
        yield SampledReference(loop, times, position, velocity)


def references_beyond_limits(rig: WiredRig) -> Iterator[str]:
    """A line for each joint whose reference leaves its limits of position or velocity, and for one whose field is
    sampled too rarely."""
    limits, units = rig.limits, rig.plant.model.dof_units
    for loop, times, position, velocity in sampled_references(rig, "position"):
        for i, k in enumerate(loop.index):
            bounds = {
                "position": (position[:, i], limits.lower[k], limits.upper[k]),
                "velocity": (velocity[:, i], -limits.velocity[k], limits.velocity[k]),
            }
            for what, (values, lower, upper) in bounds.items():
                excess = np.maximum(values - upper, lower - values)
                worst = int(np.argmax(excess))
                if excess[worst] > REFERENCE_TOLERANCE:
                    unit = quantity_unit(f"joint {what}", units[k])
                    bound = upper if values[worst] > upper else lower
                    yield (
                        f"the {what} of the reference of joint '{rig.joints[k]}' is {values[worst]:.4g} {unit}"
                        f" at {times[worst]:.4g} s, its limit {bound:.4g} {unit}"
                    )
    yield from _coarse_fields(rig)


def _coarse_fields(rig: WiredRig) -> Iterator[str]:
    """A line for each joint whose step motor is to turn so fast that its field jumps in large angles."""
    for loop, _, _, velocity in sampled_references(rig, "velocity"):
        for i, k in enumerate(loop.index):
            samples_of = getattr(rig.plant.actuators.get(rig.joints[k]), "samples_per_turn", None)
            top = float(np.abs(velocity[:, i]).max())
            if samples_of is None or not (samples := samples_of(top)) < FEWEST_SAMPLES:
                continue
            unit = quantity_unit("joint velocity", rig.plant.model.dof_units[k])
            what = f"the field of joint '{rig.joints[k]}' has {samples:.3g} samples per electrical turn"
            enough = FEWEST_SAMPLES / samples * 1e-3 / rig.plant.periods[rig.joints[k]]
            fix = f"raise open_loop.rate to {enough:.3g} kHz"
            yield f"{what} at {top:.4g} {unit}, so that it loses steps earlier; {fix}"
