"""Arming: what the memory of a tick holds when the joints begin to follow their trajectories from a measured state.

Pure, on numbers and on symbols: engines call it with what they measure, other machines run it as machine code.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim.control.bumpless_start import VECTORS, BumplessStart
from cosim.control.control_loop import ControlLoop
from cosim.control.controlled_stop import ControlledStop
from cosim.control.limits import CODES, STOP
from cosim.control.observer import at_start
from cosim.control.plausibility import starts_moving, starts_outside
from cosim.control.start_blend import BlendBounds, blended
from cosim.core import ops
from cosim.core.types import Numeric
from cosim.core.units import TURN
from cosim.simulation.tick.tick_model import TickModel


class Start(NamedTuple):
    """How the references begin; too_fast, outside (nv,): see `Blend`."""

    references: BumplessStart
    too_fast: Numeric
    outside: Numeric


def start_of(model: TickModel, blend: float, t: Numeric, position: Numeric, velocity: Numeric) -> Start:
    """The references of a start at t [s] from the measured position and velocity (nv,); blend [s]: see `fading`.

    A continuous joint with a real motor takes the nearest turn."""
    found = BumplessStart.none(model.nv)._replace(t=t, duration=model.step)
    too_fast, outside = np.zeros(model.nv), np.zeros(model.nv)
    for loop in model.loops:
        if not loop.needs_reference("position"):
            continue
        k, sample, bounds = loop.index, loop.trajectory.sample(0.0), blend_bounds(model, loop)
        offset = position[k] - sample["position"]
        turns = ops.where(model.turns_freely[k], TURN * ops.floor(offset / TURN + 0.5), 0.0)
        offsets = offset - turns, velocity[k] - sample["velocity"]
        own = blended(loop.trajectory, loop.samples(model.step, model.compiled), *offsets, bounds, blend, model.step)
        parts = own.start._replace(turns=turns)
        vectors = {name: ops.set_at(getattr(found, name), k, getattr(parts, name)) for name in VECTORS}
        found = found._replace(duration=ops.maximum(found.duration, parts.duration), **vectors)
        too_fast, outside = ops.set_at(too_fast, k, own.too_fast), ops.set_at(outside, k, own.outside)
    return Start(found, too_fast, outside)


def blend_bounds(model: TickModel, loop: ControlLoop) -> BlendBounds:
    """The bounds of the references of a loop."""
    limits, k = model.limits, loop.index
    return BlendBounds(limits.lower[k], limits.upper[k], limits.velocity[k], model.blend_acceleration[k])


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
