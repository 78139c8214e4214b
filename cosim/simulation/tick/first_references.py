"""How references begin: from where the joints are into their trajectories.

Pure, on numbers and on symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cosim.control.bumpless_start import VECTORS, BumplessStart
from cosim.control.start_blend import BlendBounds, blended
from cosim.core import ops
from cosim.core.types import Numeric
from cosim.core.units import TURN

if TYPE_CHECKING:
    from cosim.control.control_loop import ControlLoop
    from cosim.simulation.tick.tick_functions import TickFunctions


class Start(NamedTuple):
    """How the references begin; too_fast, outside (nv,): see `Blend`."""

    references: BumplessStart
    too_fast: Numeric
    outside: Numeric


def start_of(
    model: TickFunctions,
    blend: float,
    t: Numeric,
    position: Numeric,
    velocity: Numeric,
    loops: Sequence[ControlLoop] | None = None,
) -> Start:
    """The references of a start at t [s] from the measured position and velocity (nv,); blend [s]: see `fading`; loops:
    whose references blend, all by default.

    A continuous joint with a real motor takes the nearest turn."""
    found = BumplessStart.none(model.nv)._replace(t=t, duration=model.step)
    too_fast, outside = np.zeros(model.nv), np.zeros(model.nv)
    for loop in model.loops if loops is None else loops:
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


def blend_bounds(model: TickFunctions, loop: ControlLoop) -> BlendBounds:
    """The bounds of the references of a loop."""
    limits, k = model.limits, loop.index
    return BlendBounds(limits.lower[k], limits.upper[k], limits.velocity[k], model.blend_acceleration[k])
