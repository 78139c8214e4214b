"""Drives that work against each other: in closed loops more of them follow references than joints are independent.

Efforts may be shared by more drives than that, on purpose; controllers that follow neither positions nor velocities do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cosim.core.errors import listed, plural
from cosim.core.types import Array
from cosim.mechanics.multibody.loop_motions import coupled_loops
from cosim.rig.wiring.wired_rig import WiredRig


def drives_against_each_other(rig: WiredRig) -> Iterator[str]:
    """A line for each set of coupled loops in which more joints follow references than move independently."""
    plant = rig.plant
    followed = {
        int(k)
        for loop in rig.tick_model.loops
        if loop.needs_reference("position") or loop.needs_reference("velocity")
        for k in loop.index
    }
    if not followed or not plant.model.constraint_rows:
        return
    for loops in coupled_loops(plant.model, plant.start.q, movable(rig)):
        actuated = [k for k in loops.dofs.tolist() if k in followed]
        independent = loops.independent_among(actuated)
        if len(actuated) > independent:
            where = f"{plural(len(loops.constraints), 'loop')} {listed([repr(name) for name in loops.constraints])}"
            joints = listed([repr(rig.joints[k]) for k in actuated])
            motions = f"{independent} independent {plural(independent, 'motion')} {'is' if independent == 1 else 'are'}"
            what = f"{motions} left for the {plural(len(actuated), 'drive')} of {joints}, and all follow references"
            fix = "let the others follow without a controller, or share efforts by passthrough with interface: effort"
            yield f"in {where} {what}, so that they work against each other; {fix}"


def movable(rig: WiredRig) -> Array:
    """(nv,) dofs that are neither latched at the start nor prescribed."""
    plant = rig.plant
    _, locked = np.asarray(plant.locks(plant.initial()))
    given = [plant.model.dof_index(name) for name in plant.prescribed_dofs]
    return (locked < 0.5) & ~np.isin(np.arange(plant.model.nv), given)
