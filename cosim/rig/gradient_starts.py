"""How the memory of a run at t = 0 depends on initial positions and velocities.

The memory follows from them by the search for a consistent start, which is made again a little beside: without closed
loops the memory is linear in them and differences are exact to rounding, with loops the start is a smooth function, and
the differences are of fourth order.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cosim.core.errors import InputError
from cosim.core.types import Array
from cosim.rig.parameter_arrays import ParameterArrays
from cosim.rig.rollouts import Starts, first_memories, read_starts
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.tick.tick_model import TickModel

STEP = 1e-3  # of a value, at least of 1 m, rad, m/s or rad/s
# places and weights of a difference of fourth order
PLACES, WEIGHTS = np.array([-2.0, -1.0, 1.0, 2.0]), np.array([1.0, -8.0, 8.0, -1.0]) / 12.0


def present_starts(rig: WiredRig, names: list[str]) -> dict[str, Array]:
    """`<joint>/position` or `<joint>/velocity` -> its value in the rig, (1,). Raises InputErrors for other names."""
    read_starts(rig, rig.tick_model, {name: np.zeros(1) for name in names})  # for its errors
    start, model = rig.plant.start, rig.plant.full_model
    found = dict[str, Array]()
    for name in names:
        joint, _, what = name.rpartition("/")
        at = start.q[model.coordinate_names.index(joint)] if what == "position" else start.v[model.dof_index(joint)]
        found[name] = np.array([float(at)])
    return found


def start_slopes(rig: WiredRig, model: TickModel, given: ParameterArrays, starts: Starts) -> dict[str, Array]:
    """Name of an initial value -> the derivative of the memories of k runs with respect to it, (k, size)."""
    return {name: _slope(rig, model, given, starts, name) for name in starts.values}


def _slope(rig: WiredRig, model: TickModel, given: ParameterArrays, starts: Starts, name: str) -> Array:
    present = starts.values[name]
    steps = STEP * np.maximum(np.abs(present), 1.0)
    total = np.zeros((len(starts), model.layout.size))
    for place, weight in zip(PLACES, WEIGHTS, strict=True):
        moved: Mapping[str, Array] = {**starts.values, name: present + place * steps}
        try:
            memory = first_memories(rig, model, given, read_starts(rig, model, moved))(slice(0, len(starts)))
        except InputError as error:
            raise InputError(f"{error.what}: there is no start a little beside", f"initial '{name}'") from None
        # what is not known, such as a temperature, is NaN and does not move
        total += weight * np.nan_to_num(memory)
    return total / steps[:, None]
