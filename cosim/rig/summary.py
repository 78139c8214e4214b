"""The summary of a run: outcome, tracking and effort of the joints, energy balance, speed, engine; JSON-ready."""

from __future__ import annotations

import math
from typing import Any, TypedDict

import numpy as np

from cosim.errors import plural
from cosim.output.limit_alarms import AlarmCount
from cosim.rig.build.drivers import BusReport
from cosim.rig.outline import ConstraintOutline
from cosim.rig.recorded_run import RecordedRun

REST = 1e-12  # J
_ENERGIES = ("work", "dissipated", "stored", "kinetic")


class JointSummary(TypedDict):
    """Errors and positions [rad or m] over the whole run, speed [per s], efforts [N·m or N]; errors are None where
    there is no reference."""

    role: str
    error_rms: float | None
    error_max: float | None
    position_min: float
    position_max: float
    speed_max: float
    effort_rms: float
    effort_peak: float


class EventSummary(TypedDict):
    t_s: float
    name: str
    count: int
    energy_lost_J: float
    level: str


class EnergySummary(TypedDict):
    """The balance from start to end [J]: residual = work + work of force laws − dissipated − change of what is stored;
    relative to the largest of the flows that it balances, kinetic energy at its peak included."""

    work_in: float
    work_of_forces: float
    dissipated: float
    stored: float
    residual: float
    residual_relative: float


class SpeedSummary(TypedDict):
    ticks_per_second: float
    real_time_factor: float
    real_time_factor_with_output: float


class RunSummary(TypedDict):
    """See the reference of summaries for each field."""

    rig: str
    outcome: str
    duration_s: float
    ticks: int
    step_s: float
    integrator: str
    substeps: int
    parameters: dict[str, float | list[float]]
    joints: dict[str, JointSummary]
    constraints: dict[str, dict[str, Any]]
    redundant: list[str]
    immobile: str | None
    events: list[EventSummary]
    guard: dict[str, dict[str, AlarmCount]]
    energy: EnergySummary | None
    drivers: list[BusReport]
    speed: SpeedSummary | None
    timing: dict[str, Any] | None
    engine: dict[str, str]


def summary_of(run: RecordedRun) -> RunSummary:
    """The summary; `speed` is None for a run read from a recording, which does not know it."""
    rig = run.rig
    simulated = (len(run.t) - 1) * rig.step_ns * 1e-9
    speed: SpeedSummary | None = None
    if not math.isnan(run.busy):
        speed = {
            "ticks_per_second": len(run.t) / run.busy,
            "real_time_factor": simulated / run.busy,
            "real_time_factor_with_output": simulated / run.wall,
        }
    return {
        "rig": rig.name,
        "outcome": run.fault or "finished",
        "duration_s": simulated,
        "ticks": len(run.t) - 1,
        "step_s": rig.step_ns * 1e-9,
        "integrator": rig.integrator,
        "substeps": rig.substeps,
        "parameters": rig.parameters,
        "joints": {name: _joint(run, name) for name in rig.joints},
        "constraints": {name: _constraint(run, name, outline) for name, outline in rig.constraints.items()},
        "redundant": list(rig.redundant),
        "immobile": rig.immobile,
        "events": [
            {"t_s": e.t, "name": e.name, "count": e.occurrences, "energy_lost_J": e.lost, "level": e.level}
            for e in run.events
        ],
        "guard": {joint: dict(counts) for joint, counts in run.guard.items()},
        "energy": None if rig.hardware else _energy(run),  # measured motion does not conserve it
        "drivers": list(run.connections),
        "speed": speed,
        "timing": None if run.timing is None else run.timing.summary(),
        "engine": rig.engine,
    }


def speed_text(summary: RunSummary) -> str:
    """Ticks, step, integrator and speed in one line."""
    n = summary["ticks"]
    substeps = f", {summary['substeps']} substeps" if summary["substeps"] > 1 else ""
    ticks = f"{n} {plural(n, 'tick')} of {summary['step_s'] * 1e3:g} ms ({summary['integrator']}{substeps})"
    speed = summary["speed"]
    if speed is None or summary["timing"] is not None:  # the timing lines report the speed
        return ticks
    return f"{ticks}, {speed['ticks_per_second']:,.0f} ticks/s, {speed['real_time_factor']:,.1f} × real time"


def _joint(run: RecordedRun, name: str) -> JointSummary:
    position, effort = run[f"{name}/position"], run[f"{name}/effort"]
    reference = f"{name}/reference_position"
    error = run[reference] - position if reference in run else None
    return {
        "role": run.rig.roles[name],
        "error_rms": None if error is None else _rms(error),
        "error_max": None if error is None else _peak(error),
        "position_min": float(position.min()),
        "position_max": float(position.max()),
        "speed_max": _peak(run[f"{name}/velocity"]),
        "effort_rms": _rms(effort),
        "effort_peak": _peak(effort),
    }


def _constraint(run: RecordedRun, name: str, outline: ConstraintOutline) -> dict[str, Any]:
    """Largest violation [m, rad] and slip [per s], and the peaks of its reactions [N, N·m]."""
    drift = {f"{what}_max": _peak(run[f"{name}/{what}"]) for what in outline.drifts}
    return drift | {"reaction_peak": {row: _peak(run[f"{name}/{row}"]) for row in outline.rows}}


def _energy(run: RecordedRun) -> EnergySummary:
    work, lost, stored, kinetic = (run[f"energy/{name}"] for name in _ENERGIES)
    change = float(stored[-1] - stored[0])
    of_forces = float(run["energy/forces"][-1]) if "energy/forces" in run else 0.0
    residual = float(work[-1] - lost[-1]) + of_forces - change
    floor = max(REST, 1e-9 * float(np.abs(stored).max()))  # nothing moved: nothing is to be balanced
    scale = max(abs(float(work[-1])), abs(of_forces), float(lost[-1]), abs(change), float(kinetic.max()))
    return {
        "work_in": float(work[-1]),
        "work_of_forces": of_forces,
        "dissipated": float(lost[-1]),
        "stored": change,
        "residual": residual,
        "residual_relative": 0.0 if scale <= floor else abs(residual) / scale,
    }


def _peak(x: np.ndarray) -> float:
    return float(np.abs(x).max())


def _rms(x: np.ndarray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):  # of a run that diverged
        return float(np.sqrt(np.mean(x * x)))
