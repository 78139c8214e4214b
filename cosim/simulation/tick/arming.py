"""Arming: what the memory of a tick holds when the joints begin to follow their trajectories from a measured state.

Pure, on numbers and on symbols: engines call it with what they measure, other machines run it as machine code.
"""

from __future__ import annotations

import numpy as np

from cosim.control.bumpless_start import BumplessStart
from cosim.control.controlled_stop import ControlledStop
from cosim.control.limits import CODES, STOP
from cosim.control.observer import at_start
from cosim.control.plausibility import starts_moving, starts_outside
from cosim.core import ops
from cosim.core.types import Numeric
from cosim.simulation.tick.first_references import Start
from cosim.simulation.tick.tick_model import TickModel


def armed(
    model: TickModel, start: BumplessStart, x: Numeric, position: Numeric, velocity: Numeric
) -> dict[tuple[str, ...], Numeric]:
    """Path in the memory -> its flat value: controllers and trajectories as at their beginning, and references that
    start from the measured state.

    start: see `start_of`; x (nx,): the plant's state; position, velocity (nv,): as measured. Raises InputError if the
    loops of a mechanism with real joints cannot close.
    """
    found: dict[tuple[str, ...], Numeric] = {}
    for loop in model.loops:
        found |= {
            ("controllers", loop.name): loop.layout.pack(loop.initial()),
            ("fallback_active", loop.name): loop.fallback_active,
            ("controller_commands", loop.name): np.zeros(model.layout.place("controller_commands", loop.name).shape),
        }
    for name in ("command", "request", "guard_fault", "fault"):
        found[name,] = np.zeros(model.layout.place(name).shape)
    if model.plant.real:
        real = [model.plant.model.dof_index(name) for name in model.plant.real]
        state = model.plant.start_from_measured(model.plant.layout.unpack(x), position[real], velocity[real])
        found["plant",] = model.plant.layout.pack(state)
        for name, value in at_start(position[real], velocity[real])._asdict().items():
            found["estimate", name] = value
    stop = ControlledStop.inactive(model.nv) if model.has_controlled_stop else np.zeros(0)
    found["bumpless_start",] = ops.concatenate([start.flat, stop])
    for name in ("requested", "reason", "first_guard_fault"):
        found["controlled_stop", name] = np.zeros(model.layout.place("controlled_stop", name).shape)
    return found


def refused(model: TickModel, start: Start, position: Numeric, velocity: Numeric) -> Numeric:
    """(nv,) by real joint the fault code for which motors must stay off: the limit for which the guard would stop the
    first tick, or which the reference would leave while it blends into its trajectory; 0 for others.

    position, velocity (nv,): as measured."""
    limits, codes = model.guard.limits, np.zeros(model.nv)
    real = np.isin(model.plant.model.dof_names, model.plant.real)
    for key, wrong, leaves in (
        ("velocity", starts_moving(velocity, limits.velocity), start.too_fast > 0.0),
        ("position", starts_outside(position, limits.lower, limits.upper), start.outside > 0.0),
    ):
        judged = np.logical_and(real, model.guard.has_action(STOP, key))
        code = ops.logical_or(ops.logical_and(judged, wrong), ops.logical_and(real, leaves))
        codes = ops.where(code, float(CODES[key]), codes)
    return codes


def depths_at_start(model: TickModel, x: Numeric, position: Numeric, velocity: Numeric) -> dict[str, Numeric]:
    """Virtual contact that real drives exert -> its depth [m] in the measured state (nv,), below 0 where it is open.
    Where one is not the motors must stay off: its force would be a blow. x (nx,): the plant's state."""
    plant = model.plant
    if not plant.haptic:
        return {}
    real = [plant.model.dof_index(name) for name in plant.real]
    state = plant.start_from_measured(plant.layout.unpack(x), position[real], velocity[real])
    return plant.contacts.virtual_depths(plant.model.equations, 0.0, plant.motion(0.0, state)[0])
