"""Whether the emulation of each load is stable on its bench, by the inertias at the start."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from cosim.control.load_stability import is_stable, largest_ratio
from cosim.core.units import JOINT_DIMENSIONS
from cosim.rig.wiring.wired_rig import WiredRig

DELAY_STEPS = 2  # from a measurement to the effort exerted for it, where the rig gives no time


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
        emulated = _inertia(rig, load.joint) - load.rotor
        if is_stable((emulated - load.inertia) / shaft, bandwidth, step, steps):
            continue
        unit = JOINT_DIMENSIONS["joint inertia"][rig.plant.model.dof_units[load.joint] == "m"]
        most = load.inertia + shaft * largest_ratio(bandwidth, step, steps)
        yield (
            f"the load motor of joint '{name}' is to play {emulated:.4g} {unit} on a shaft of {shaft:.4g} {unit} with a"
            f" delay of {steps * step * 1e3:.4g} ms, which is stable up to {most:.4g} {unit}; add inertia to the shaft,"
            " or lower the delay of the load motor or the step"
        )


def _inertia(rig: WiredRig, joint: int) -> float:
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
