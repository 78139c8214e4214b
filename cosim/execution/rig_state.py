"""A rig at a tick, as the searches for causes of instability look at it: a stopped one, or one after its first tick."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cosim.control.control_loop import ControlLoop
from cosim.core.layout import zeros_like
from cosim.core.types import Array, State
from cosim.core.units import quantity_unit
from cosim.simulation.tick.tick_model import TickModel

# an unstable mode is the cause if it had the time to grow by this factor; a run that stops at once gets these ticks
GROWTH, FIRST_TICKS = 2.0, 10
# by which an amplification of 1 may be exceeded: rounding of the double eigenvalues of free motion
ROUNDING = 1e-6
# s and ticks before the stop, the longer time, in which saturation and references are looked at
WINDOW, MIN_TICKS = 0.1, 20
MAX_SAMPLES = 50  # ticks of the window that are looked at
# rad, m or per s: a larger state has no use for the inertia
PLAUSIBLE = 1e6
# states and controlled dofs of a rig, above which the eigenvalues take too long
MAX_SIZE = 100


class Cause(NamedTuple):
    """What is wrong with a joint, and the fix. joint: its index."""

    joint: int
    text: str


@dataclass(frozen=True)
class RigState:
    """A rig at the end of a tick. parts: its memory then; rows (k, nr): the ticks up to it; joint: index of that
    with a fault, -1: of none in particular."""

    tick_model: TickModel
    tick: int
    parts: State
    rows: Array
    joint: int

    def explains(self, growth: float) -> bool:
        """Whether a mode with this growth per tick explains the divergence since arming."""
        ticks = self.tick - round(float(self.parts["bumpless_start"][0]) / self.tick_model.step)
        return growth > 1.0 + ROUNDING and max(ticks, FIRST_TICKS) * math.log(growth) > math.log(GROWTH)

    @cached_property
    def followed(self) -> tuple[ControlLoop, int] | None:
        """The loop that follows a position of the joint, and the place of the joint in it."""
        loops = [loop for loop in self.tick_model.loops if loop.needs_reference("position")]
        places = [(loop, int(i)) for loop in loops for i in np.flatnonzero(loop.index == self.joint)]
        return places[0] if places else None

    @property
    def step_ms(self) -> str:
        return f"{self.tick_model.step * 1e3:g} ms"

    def name(self, k: int) -> str:
        return self.tick_model.plant.model.dof_names[k]

    def show(self, value: float, what: str, k: int) -> str:
        """A number of joint k with the unit of `joint <what>`."""
        unit = quantity_unit(f"joint {what}", self.tick_model.plant.model.dof_units[k])
        return f"{float(f'{value:.3g}'):.6g} {unit}"

    @cached_property
    def window(self) -> list[State]:
        """Some of the last rows, unpacked."""
        count = max(round(WINDOW / self.tick_model.step), MIN_TICKS)
        rows = self.rows[-count:]
        return [self.tick_model.row.unpack(row) for row in rows[:: -(-len(rows) // MAX_SAMPLES) or 1]]

    @cached_property
    def state(self) -> State:
        """The last plausible state of the plant, else the initial one."""
        layout = self.tick_model.plant.layout
        for state in (self.parts["plant"], *(row["plant"] for row in reversed(self.window))):
            if np.all(np.abs(layout.pack({**state, "energy": zeros_like(state["energy"])})) < PLAUSIBLE):
                return state
        return self.tick_model.plant.initial()


def predicted(tick_model: TickModel, parts: State, ticks: int) -> RigState:
    """A rig after its first tick as if it had stopped after so many `ticks`; parts: its memory."""
    start = np.array(parts["bumpless_start"], dtype=float)
    start[0] = -ticks * tick_model.step
    rows = np.zeros((0, tick_model.row.size))
    return RigState(tick_model, 0, {**parts, "bumpless_start": start}, rows, -1)
