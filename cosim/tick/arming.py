"""Arming: what the memory of a tick holds when the joints begin to follow their trajectories from a measured state.

Pure, on numbers and on symbols: engines call it with what they measure, other machines run it as machine code.
"""

from __future__ import annotations

import numpy as np

from cosim import ops
from cosim.control.bumpless_start import BumplessStart
from cosim.control.controlled_stop import ControlledStop
from cosim.control.limits import CODES, STOP
from cosim.control.observer import at_start
from cosim.control.plausibility import starts_moving, starts_outside
from cosim.tick.tick_model import TickModel
from cosim.types import Numeric

# top speed of a quintic of unit length in unit time
QUINTIC_SPEED = 1.875
# of a joint's velocity limit, for the blend to the trajectory; the rest is for the trajectory itself and for overshoot
BLEND_SPEED = 0.5


def armed(
    model: TickModel, blend: float, t: Numeric, x: Numeric, position: Numeric, velocity: Numeric
) -> dict[tuple[str, ...], Numeric]:
    """Path in the memory -> its flat value: controllers and trajectories as at their beginning, and references that
    blend from the measured state to the trajectory within `blend` [s], or longer where that would be too fast.

    t: of the first tick [s]; x (nx,): the plant's state; position, velocity (nv,): as measured. Raises InputError if
    the loops of a mechanism with real joints cannot close.
    """
    nv, found = model.nv, {}
    offset = {"position": np.zeros(nv), "velocity": np.zeros(nv)}
    for loop in model.loops:
        found |= {
            ("controllers", loop.name): loop.layout.pack(loop.initial()),
            ("fallback_active", loop.name): loop.fallback_active,
            ("controller_commands", loop.name): np.zeros(model.layout.place("controller_commands", loop.name).shape),
        }
        if loop.needs_reference("position"):
            sample, measured = loop.trajectory.sample(0.0), {"position": position, "velocity": velocity}
            offset = {
                name: ops.with_elements(offset[name], loop.index, measured[name][loop.index] - sample[name])
                for name in offset
            }
    for name in ("command", "request", "guard_fault", "fault"):
        found[name,] = np.zeros(model.layout.place(name).shape)
    if model.plant.real:
        real = [model.plant.model.dof_index(name) for name in model.plant.real]
        state = model.plant.start_from_measured(model.plant.layout.unpack(x), position[real], velocity[real])
        found["plant",] = model.plant.layout.pack(state)
        for name, value in at_start(position[real], velocity[real])._asdict().items():
            found["estimate", name] = value
    start = BumplessStart(t, _blend_length(model, blend, offset["position"]), offset["position"], offset["velocity"])
    stop = ControlledStop.inactive(nv) if model.has_controlled_stop else np.zeros(0)
    found["bumpless_start",] = ops.concatenate([ops.array([start.t, start.duration]), *start[2:4], stop])
    for name in ("requested", "reason", "first_guard_fault"):
        found["controlled_stop", name] = np.zeros(model.layout.place("controlled_stop", name).shape)
    return found


def _blend_length(model: TickModel, blend: float, offset: Numeric) -> Numeric:
    """s, at least one step."""
    longest = 0.0
    for needed in ops.absolute(offset) / (BLEND_SPEED * model.limits.velocity):
        longest = ops.maximum(longest, needed)
    return ops.maximum(max(blend, model.step), QUINTIC_SPEED * longest)


def refused(model: TickModel, position: Numeric, velocity: Numeric) -> Numeric:
    """(nv,) by real joint the fault code for which the guard would stop the first tick; 0 for others.

    position, velocity (nv,): as measured."""
    limits, codes = model.guard.limits, np.zeros(model.nv)
    real = [name in model.plant.real for name in model.plant.model.dof_names]
    for key, wrong in (
        ("velocity", starts_moving(velocity, limits.velocity)),
        ("position", starts_outside(position, limits.lower, limits.upper)),
    ):
        judged = np.logical_and(real, model.guard.has_action(STOP, key))
        codes = ops.where(ops.logical_and(judged, wrong), float(CODES[key]), codes)
    return codes
