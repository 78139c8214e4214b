"""The result of a run: signals over time and their summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cosim.errors import RunError, did_you_mean
from cosim.multibody.constraint_set import BodyConstraint
from cosim.output.events import RunEvent
from cosim.output.limit_alarms import AlarmCount
from cosim.rig.build.drivers import BusReport
from cosim.rig.build.wired_rig import WiredRig
from cosim.timing.deadlines import DeadlineRecord
from cosim.units import JOINT_DIMENSIONS

REST = 1e-12  # J
OF_DRIVES = {"temperature": "degC", "age": "s"}  # units of further signals of real drives
_ENERGIES = ("work", "dissipated", "stored", "kinetic")


def signal_units(rig: WiredRig) -> dict[str, str]:
    """The unit of every signal of a rig, in the order of its signals."""
    model = rig.plant.model
    sliding = {name for name, unit in zip(model.dof_names, model.dof_units, strict=True) if unit == "m"}
    moved = [joint.name for joint, kind in zip(model.joints, model.kinds, strict=True) if not kind.nv]  # by time alone
    sliding |= {f"{name}.{axis}" for name in moved for axis in "xyz"}
    known = {"energy": "J"}
    known |= {
        f"{name}/position": unit for name, unit in zip(model.coordinate_names, model.coordinate_units, strict=True)
    }
    for coupling in model.equations.constraints.members:
        rows = coupling.law.rows
        known |= {f"{coupling.name}/{row.name}": row.unit for row in rows}
        known |= {f"{coupling.name}/violation": rows[0].residual_unit, f"{coupling.name}/slip": rows[-1].residual_unit}
    units = {}
    for name in rig.tick_model.signals.names:
        part, what = name.rsplit("/", 1)
        actuator = rig.plant.actuators.get(part)
        if name in known or part in known:
            unit = known.get(name, known.get(part, ""))
        elif actuator is not None and what in actuator.outputs:
            unit = actuator.outputs[what].unit
        else:
            unit = OF_DRIVES.get(what) or f"joint {what.rsplit('_', 1)[-1]}"
        units[name] = JOINT_DIMENSIONS[unit][part in sliding] if unit in JOINT_DIMENSIONS else unit
    return units


@dataclass
class Run:
    """Signals of a finished or stopped run: `run.t` in s, `run["elbow_joint/position"]`, `run.summary`."""

    rig: WiredRig
    t: np.ndarray  # (k,)
    values: np.ndarray  # (k, number of signals)
    signals: tuple[str, ...]
    busy: float  # s of processor time in ticks
    wall: float  # s of the whole run, recording and telemetry included
    fault: str = ""
    events: tuple[RunEvent, ...] = ()
    timing: DeadlineRecord | None = None  # of a run in real time
    guard: Mapping[str, Mapping[str, AlarmCount]] = field(default_factory=dict)  # joint -> limit -> its alarms
    connections: tuple[BusReport, ...] = ()  # traffic of the connections of real drives

    def __getitem__(self, name: str) -> np.ndarray:
        """One signal (k,). Raises KeyError naming the signals that exist."""
        if name not in self.signals:
            raise KeyError(f"no signal '{name}'{did_you_mean(name, self.signals)}")
        return self.values[:, self.signals.index(name)]

    def __contains__(self, name: str) -> bool:
        return name in self.signals

    @cached_property
    def summary(self) -> dict[str, Any]:
        """JSON-ready: outcome, tracking and effort per joint, energy balance, speed, engine."""
        rig, schedule = self.rig, self.rig.spec.schedule
        ticks = len(self.t) - 1
        simulated = ticks * schedule.step_ns * 1e-9
        return {
            "rig": rig.spec.name,
            "outcome": self.fault or "finished",
            "duration_s": simulated,
            "ticks": ticks,
            "step_s": schedule.step_ns * 1e-9,
            "integrator": schedule.integrator,
            "substeps": schedule.substeps,
            "joints": {name: self._joint(name) for name in rig.joints},
            "constraints": {c.name: self._constraint(c) for c in rig.plant.model.equations.constraints.members},
            "redundant": [rig.plant.model.constraint_rows[r] for r in rig.plant.start.redundant],
            "immobile": rig.plant.immobile,
            "events": [
                {"t_s": e.t, "name": e.name, "count": e.occurrences, "energy_lost_J": e.lost, "level": e.level}
                for e in self.events
            ],
            "guard": dict(self.guard),
            "energy": None if rig.hardware else self._energy(),  # measured motion does not conserve it
            "drivers": list(self.connections),
            "speed": {
                "ticks_per_second": len(self.t) / self.busy,
                "real_time_factor": simulated / self.busy,
                "real_time_factor_with_output": simulated / self.wall,
            },
            "timing": None if self.timing is None else self.timing.summary(),
            "engine": self._engine(),
        }

    def _joint(self, name: str) -> dict[str, Any]:
        """Errors and positions [rad or m] over the whole run, speed [per s], efforts [N·m or N]; errors are None
        where there is no reference."""
        position, effort = self[f"{name}/position"], self[f"{name}/effort"]
        error = None
        if f"{name}/reference_position" in self:
            error = self[f"{name}/reference_position"] - position
        return {
            "role": self._role(name),
            "error_rms": None if error is None else _rms(error),
            "error_max": None if error is None else _peak(error),
            "position_min": float(position.min()),
            "position_max": float(position.max()),
            "speed_max": _peak(self[f"{name}/velocity"]),
            "effort_rms": _rms(effort),
            "effort_peak": _peak(effort),
        }

    def _constraint(self, constraint: BodyConstraint) -> dict[str, Any]:
        """Largest violation [m, rad] and slip [per s], and the peaks of its reactions [N, N·m]."""
        peaks = {what: f"{constraint.name}/{what}" for what in ("violation", "slip")}
        drift = {f"{what}_max": _peak(self[name]) for what, name in peaks.items() if name in self}
        names = [row.name for row in constraint.law.rows]
        return drift | {"reaction_peak": {name: _peak(self[f"{constraint.name}/{name}"]) for name in names}}

    def _role(self, name: str) -> str:
        if name in self.rig.plant.prescribed:
            return "prescribed"
        if name in self.rig.plant.real:
            return "real"
        return "actuated" if name in self.rig.plant.actuators else "passive"

    def _energy(self) -> dict[str, float]:
        """The balance from start to end [J]: residual = work − dissipated − change of what is stored; relative
        to the largest of the flows that it balances, kinetic energy at its peak included."""
        work, lost, stored, kinetic = (self[f"energy/{name}"] for name in _ENERGIES)
        change = float(stored[-1] - stored[0])
        residual = float(work[-1] - lost[-1]) - change
        floor = max(REST, 1e-9 * float(np.abs(stored).max()))  # nothing moved: nothing is to be balanced
        scale = max(abs(float(work[-1])), float(lost[-1]), abs(change), float(kinetic.max()))
        return {
            "work_in": float(work[-1]),
            "dissipated": float(lost[-1]),
            "stored": change,
            "residual": residual,
            "residual_relative": 0.0 if scale <= floor else abs(residual) / scale,
        }

    def _engine(self) -> dict[str, str]:
        """Which parts ran compiled, and which in Python and why."""
        tick_model = self.rig.tick_model
        if self.rig.interpret:
            return {"everything": "Python, as requested"}
        where = {"plant": "compiled"}
        for loop in tick_model.loops:
            why = tick_model.untraceable.get(loop.name)
            where[f"controller {loop.name}"] = f"Python: {why}" if why else "compiled"
        where["loop"] = "compiled" if self.rig.native else "Python"
        return where


class StoppedRun(RunError):
    """A run stopped by the guard, a failed part or Ctrl-C; `run` holds everything up to then."""

    def __init__(self, run: Run) -> None:
        super().__init__(run.fault, str(run.rig.spec.path))
        self.run = run


def _peak(x: np.ndarray) -> float:
    return float(np.abs(x).max())


def _rms(x: np.ndarray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):  # of a run that diverged
        return float(np.sqrt(np.mean(x * x)))
