"""The recorded signals of a rig, computed from the row that a tick leaves behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cosim import ops
from cosim.control.bumpless_start import BumplessStart
from cosim.control.control_loop import ControlLoop
from cosim.control.load_emulation import LoadMotor
from cosim.layout import Layout
from cosim.plant.encoder import Encoders
from cosim.plant.plant import Plant
from cosim.types import Numeric, State


@dataclass(frozen=True, eq=False)
class SignalMap:
    """From a row (nr,) to the signals `<joint>/<interface>` and `energy/…`."""

    plant: Plant
    encoders: Encoders
    loops: Sequence[ControlLoop]
    loads: Sequence[LoadMotor]
    row: Layout
    first_row: np.ndarray  # (nr,) at t = 0
    first_start: np.ndarray  # the flat BumplessStart at t = 0

    def observe(self, start: Numeric, row: Numeric) -> Numeric:
        """All signals of a row as one vector, in the order of `names`; start: the flat BumplessStart of its run."""
        return ops.array([ops.array(value) for value in self.values(start, row).values()])

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(self.values(self.first_start, self.first_row))

    def values(self, start: Numeric, row: Numeric) -> State:
        """The signals of a row by name; start: see `observe`."""
        dofs, nv = self.plant.model.dof_names, self.plant.model.nv
        parts = self.row.unpack(row)
        t = parts["t"]
        signals = self.plant.observe(t, parts["plant"], parts["request"])
        for loop in self.loops:
            reference = BumplessStart.of(start, nv).at(loop.index).reference(loop.trajectory, t)
            followed = [name for name in ("position", "velocity", "acceleration") if loop.needs_reference(name)]
            for i, k in enumerate(loop.index):
                signals |= {f"{dofs[k]}/reference_{name}": reference[name][i] for name in followed}
                if loop.feedforward[i]:
                    signals[f"{dofs[k]}/reference_effort"] = reference["effort"][i]
                signals[f"{dofs[k]}/command_effort"] = parts["request"][k]
        real = [self.plant.model.dof_index(name) for name in self.plant.real]
        for k in np.union1d(np.flatnonzero(self.encoders.inexact), real).astype(int):
            signals[f"{dofs[k]}/measured_position"] = parts["measured"]["position"][k]
            signals[f"{dofs[k]}/measured_velocity"] = parts["measured"]["velocity"][k]
        for k in real:
            signals[f"{dofs[k]}/model_effort"] = signals[f"{dofs[k]}/effort"]
            signals[f"{dofs[k]}/effort"] = parts["measured_effort"][k]
            signals |= {f"{dofs[k]}/{name}": parts[name][k] for name in ("temperature", "age")}
        for k, load in enumerate(self.loads):
            signals[f"{dofs[load.joint]}/load_effort"] = parts["load_effort"][k]
        return signals
