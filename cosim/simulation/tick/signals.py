"""The recorded signals of a rig, computed from the row that a tick leaves behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import cached_property

import numpy as np

from cosim.control.bumpless_start import BumplessStart
from cosim.control.control_loop import ControlLoop
from cosim.control.load_emulation import LoadMotor
from cosim.core import ops
from cosim.core.errors import InputError
from cosim.core.layout import Layout
from cosim.core.types import Numeric, State
from cosim.simulation.plant.encoder import Encoders
from cosim.simulation.plant.plant import Plant


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
    coupled: Mapping[str, str] = dataclass_field(default_factory=dict)  # signal of parts and bonds -> its unit

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
            signals |= _measured_error(signals, dofs[k], t - parts["sample_time"][k])
            signals[f"{dofs[k]}/model_effort"] = signals[f"{dofs[k]}/effort"]
            signals[f"{dofs[k]}/effort"] = parts["measured_effort"][k]
            signals |= {f"{dofs[k]}/{name}": parts[name][k] for name in ("temperature", "age", "sample_time")}
            signals[f"{dofs[k]}/power"] = parts["drive_power"][k]
            signals[f"{dofs[k]}/model_power"] = signals[f"{dofs[k]}/model_effort"] * signals[f"{dofs[k]}/velocity"]
            signals[f"{dofs[k]}/residual_energy"] = parts["residual_energy"][k]
            signals[f"{dofs[k]}/unit_disagreement"] = parts["units"]["disagreement"][k]
            signals[f"{dofs[k]}/units_proven"] = parts["units"]["proven"][k]
            signals |= {f"{dofs[k]}/shadow_{name}": values[k] for name, values in parts.get("shadow", {}).items()}
        for k, load in enumerate(self.loads):
            name, powers = dofs[load.joint], parts["load_power"]
            signals[f"{name}/load_effort"] = parts["load_effort"][k]
            signals |= {f"{name}/load_measured_{what}": values[k] for what, values in parts["load_measured"].items()}
            signals |= {f"{name}/load_power": powers[0, k], f"{name}/load_measured_power": powers[1, k]}
            signals[f"{name}/load_residual_energy"] = parts["load_residual_energy"][load.joint]
            signals |= {f"{name}/load_{what}": values[k] for what, values in parts["load_tracking"].items()}
        signals |= {name: parts["coupled"][k] for k, name in enumerate(self.coupled)}
        own = self._of_controllers(parts["controller_signals"])
        for name in own.keys() & signals.keys():
            loop, field, _ = self._declared[name]
            what = f"controller '{loop.name}' declares the signal '{field}', but the rig has '{name}' already"
            raise InputError(f"{what}; rename it", "controllers")
        return signals | own

    def _of_controllers(self, values: State) -> State:
        """The signals that controllers declare."""
        return {
            name: values[loop.name][field] if i is None else values[loop.name][field][i]
            for name, (loop, field, i) in self._declared.items()
        }

    @cached_property
    def _declared(self) -> dict[str, tuple[ControlLoop, str, int | None]]:
        """`<joint>/<name>` of a signal per joint, else `<controller>/<name>` -> its loop, name and place."""
        dofs, found = self.plant.model.dof_names, {}
        for loop in self.loops:
            for field, signal in loop.signals.items():
                if signal.shape:
                    found |= {f"{dofs[k]}/{field}": (loop, field, i) for i, k in enumerate(loop.index)}
                else:
                    found[f"{loop.name}/{field}"] = loop, field, None
        return found

    @property
    def declared_units(self) -> dict[str, str]:
        """Signal of a controller, a part or a bond -> its unit as declared."""
        of_controllers = {name: loop.signals[field].unit for name, (loop, field, _) in self._declared.items()}
        return of_controllers | dict(self.coupled)


def _measured_error(signals: State, joint: str, age: Numeric) -> State:
    """`<joint>/measured_error`: reference − measured position at the time of the sample, `age` [s] before the tick. The
    reference then assumes constant acceleration; nothing of a joint that has no reference."""
    if f"{joint}/reference_position" not in signals:
        return {}
    q, v, a = (signals[f"{joint}/reference_{what}"] for what in ("position", "velocity", "acceleration"))
    return {f"{joint}/measured_error": q - age * (v - 0.5 * age * a) - signals[f"{joint}/measured_position"]}
