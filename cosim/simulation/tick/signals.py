"""The recorded signals of a rig, computed from the row that a tick leaves behind."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from functools import cached_property

import numpy as np

from cosim.control.bumpless_start import BumplessStart
from cosim.control.control_loop import ControlLoop
from cosim.control.load_emulation import METRICS, LoadMotor
from cosim.control.shadow import RESIDUALS
from cosim.core import ops
from cosim.core.errors import InputError
from cosim.core.layout import Layout
from cosim.core.types import Numeric, Signal, Signals, State
from cosim.simulation.plant.encoder import Encoders
from cosim.simulation.plant.plant import Plant
from cosim.simulation.plant.recorded_signals import OF_A_DOF, recorded_of
from cosim.simulation.plant.recorded_values import ReactionNames, RecordedSignals, in_si

# of joints that follow a reference
REFERENCES: Signals = {
    "reference_position": Signal((), "joint position", "position of the trajectory", "reference", "position"),
    "reference_velocity": Signal((), "joint velocity", "velocity of the trajectory", "reference", "velocity"),
    "reference_acceleration": Signal(
        (), "joint acceleration", "acceleration of the trajectory", "reference", "acceleration"
    ),
    "reference_effort": Signal(
        (), "joint effort", "effort of the trajectory, which the controller adds to its own", "reference", "effort"
    ),
    "command_effort": Signal(
        (),
        "joint effort",
        "commanded effort, feedback gains included, after the guard; before friction and losses of the drive",
        "command",
        "effort",
    ),
}
MEASURED: Signals = {
    "measured_position": Signal((), "joint position", "measured position", "measured", "position"),
    "measured_velocity": Signal((), "joint velocity", "measured velocity", "measured", "velocity"),
    "measured_error": Signal(
        (),
        "joint position",
        "reference − measured position, at the time of the sample",
        "error",
        "tracking error",
    ),
}
OF_A_REAL_JOINT: Signals = {
    "model_effort": Signal(
        (),
        "joint effort",
        "required effort of the estimated motion by the model; as noisy as the estimated acceleration",
        "estimate",
    ),
    "temperature": Signal(
        (), "degC", "temperature of the drive or its motor; NaN if the drive reports none", "measured"
    ),
    "age": Signal((), "s", "age of the feedback when the tick read it"),
    "sample_time": Signal(
        (), "s", "when the last sample was taken, on the time of the ticks; a change is a new sample"
    ),
    "power": Signal(
        (),
        "W",
        "reported effort · measured velocity by the last sample; the commanded effort where the drive reports none",
        "measured",
    ),
    "model_power": Signal((), "W", "model effort · estimated velocity", "estimate"),
    "residual_energy": Signal((), "J", "energy that the model has taken and the drive has not given since the start"),
    "unit_disagreement": Signal(
        (),
        "1",
        "largest disagreement of units that is sure, relative to its tolerance; 0 while nothing is known",
    ),
    "units_proven": Signal((), "1", "units that are proven: 1 velocity, 2 command, 4 model, added"),
    **{f"shadow_{name}": declared for name, declared in RESIDUALS.items()},
}
OF_A_HAPTIC_JOINT: Signals = {
    "wall_effort": Signal(
        (), "joint effort", "what is added to the command for virtual contacts, before the guard", "command", "effort"
    ),
    "wall_energy": Signal((), "J", "energy that all virtual contacts have given to real joints since the start"),
}
OF_A_LOAD_MOTOR: Signals = {
    "load_effort": Signal((), "joint effort", "commanded effort of the load motor", "load", "effort"),
    "load_measured_effort": Signal((), "joint effort", "effort that the load motor reports", "measured"),
    "load_measured_velocity": Signal((), "joint velocity", "measured velocity of the load motor", "measured"),
    "load_power": Signal((), "W", "commanded effort · measured velocity", "command"),
    "load_measured_power": Signal(
        (),
        "W",
        "reported effort · measured velocity; the commanded effort where the load motor reports none",
        "measured",
    ),
    "load_residual_energy": Signal(
        (), "J", "energy that the load motor has exerted beyond its commands since the start"
    ),
    **{f"load_{name}": declared for name, declared in METRICS.items()},
}
# `<joint>/<name>` of all that rigs record of joints, besides what actuators and controllers declare
JOINT_SIGNALS: Signals = {
    **OF_A_DOF,
    **REFERENCES,
    **MEASURED,
    **OF_A_REAL_JOINT,
    **OF_A_HAPTIC_JOINT,
    **OF_A_LOAD_MOTOR,
}


def reported_effort(joint: str, signals: Container[str]) -> str:
    """The signal of what the drive of a joint reports, which is what its commands and limits are of; without one in
    `signals`, the effort on the joint, which is the same."""
    measured = f"{joint}/measured_effort"
    return measured if measured in signals else f"{joint}/effort"


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
    coupled: Signals = dataclass_field(default_factory=dict)  # of parts and bonds, by full name

    def observe(self, start: Numeric, row: Numeric) -> Numeric:
        """All signals of a row as one vector, in the order of `names`; start: the flat BumplessStart of its run."""
        return ops.array([ops.array(value) for value in self.values(start, row).values()])

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(self.declared)

    @cached_property
    def declared(self) -> dict[str, Signal]:
        """The declarations of all signals by name, in their order, with units of SI."""
        return self._recorded(self.first_start, self.first_row).declared

    @cached_property
    def reactions(self) -> dict[str, ReactionNames]:
        """The signals of the reaction of each constraint, and of each joint whose reactions the rig names."""
        return self._recorded(self.first_start, self.first_row).reactions

    def values(self, start: Numeric, row: Numeric) -> State:
        """The signals of a row by name; start: see `observe`."""
        return self._recorded(start, row).values

    def _recorded(self, start: Numeric, row: Numeric) -> RecordedSignals:
        model, parts = self.plant.model, self.row.unpack(row)
        dofs, units, t = model.dof_names, model.dof_units, parts["t"]
        recorded = recorded_of(self.plant, t, parts["plant"], parts["request"])

        def add(k: int, values: Mapping[str, Numeric], declared: Signals) -> None:
            recorded.add(dofs[k], values, declared, units[k])

        for loop in self.loops:
            reference = BumplessStart.of(start, model.nv).at(loop.index).reference(loop.trajectory, t)
            followed = [name for name in ("position", "velocity", "acceleration") if loop.needs_reference(name)]
            for i, k in enumerate(loop.index):
                add(k, {f"reference_{name}": reference[name][i] for name in followed}, REFERENCES)
                if loop.feedforward[i]:
                    add(k, {"reference_effort": reference["effort"][i]}, REFERENCES)
                add(k, {"command_effort": parts["request"][k]}, REFERENCES)
        real = [model.dof_index(name) for name in self.plant.real]
        for k in np.union1d(np.flatnonzero(self.encoders.inexact), real).astype(int):
            add(k, {f"measured_{what}": parts["measured"][what][k] for what in ("position", "velocity")}, MEASURED)
        for k in real:
            if f"{dofs[k]}/reference_position" in recorded.values:
                error = _measured_error(recorded.values, dofs[k], t - parts["sample_time"][k])
                add(k, {"measured_error": error}, MEASURED)
            effort, velocity = (recorded.values[f"{dofs[k]}/{what}"] for what in ("effort", "velocity"))
            recorded.values[f"{dofs[k]}/effort"] = parts["measured_effort"][k]
            of_drive = {
                "model_effort": effort,
                **{name: parts[name][k] for name in ("temperature", "age", "sample_time")},
                "power": parts["drive_power"][k],
                "model_power": effort * velocity,
                "residual_energy": parts["residual_energy"][k],
                "unit_disagreement": parts["units"]["disagreement"][k],
                "units_proven": parts["units"]["proven"][k],
                **{f"shadow_{name}": values[k] for name, values in parts.get("shadow", {}).items()},
            }
            add(k, of_drive, OF_A_REAL_JOINT)
            if dofs[k] in self.plant.haptic:
                felt = {f"wall_{what}": parts["haptic"][what][k] for what in ("effort", "energy")}
                add(k, felt, OF_A_HAPTIC_JOINT)
        for i, load in enumerate(self.loads):
            powers = parts["load_power"]
            of_load = {
                "load_effort": parts["load_effort"][i],
                **{f"load_measured_{what}": values[i] for what, values in parts["load_measured"].items()},
                "load_power": powers[0, i],
                "load_measured_power": powers[1, i],
                "load_residual_energy": parts["load_residual_energy"][load.joint],
                **{f"load_{what}": values[i] for what, values in parts["load_tracking"].items()},
            }
            add(load.joint, of_load, OF_A_LOAD_MOTOR)
        for k, (name, signal) in enumerate(self.coupled.items()):
            recorded.values[name], recorded.declared[name] = parts["coupled"][k], signal
        self._record_controllers(recorded, parts["controller_signals"])
        return recorded

    def _record_controllers(self, recorded: RecordedSignals, values: State) -> None:
        """The signals that controllers declare: `<joint>/<name>` of one per joint, else `<controller>/<name>`."""
        dofs, units = self.plant.model.dof_names, self.plant.model.dof_units
        for loop in self.loops:
            for field, signal in loop.signals.items():
                of = values[loop.name][field]
                own = [(dofs[k], units[k], of[i]) for i, k in enumerate(loop.index)] if signal.shape else None
                for owner, unit, value in own or [(loop.name, "rad", of)]:
                    name = f"{owner}/{field}"
                    if name in recorded.values:
                        what = f"controller '{loop.name}' declares the signal '{field}'"
                        raise InputError(f"{what}, but the rig has '{name}' already; rename it", "controllers")
                    recorded.values[name] = value
                    recorded.declared[name] = in_si(replace(signal, shape=()), unit)


def _measured_error(signals: State, joint: str, age: Numeric) -> Numeric:
    """Reference − measured position at the time of the sample, `age` [s] before the tick. The reference then assumes
    constant acceleration."""
    q, v, a = (signals[f"{joint}/reference_{what}"] for what in ("position", "velocity", "acceleration"))
    return q - age * (v - 0.5 * age * a) - signals[f"{joint}/measured_position"]
