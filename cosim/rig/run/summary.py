"""The summary of a run: outcome, tracking and effort of the joints, energy balance, speed, engine; JSON-ready."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from cosim.core.errors import plural
from cosim.mechanics.bondgraph.power_account import ELECTRICAL, ENERGY, LOSSES, RETURNED
from cosim.output.events import AlarmCount
from cosim.output.signal_statistics import BLOCK, SignalFigures, SignalStatistics
from cosim.rig.run.contact_figures import (
    ContactSolverSummary,
    ContactSummary,
    contact_solver,
    contacts,
    followed_of_contacts,
    timed_of_contacts,
)
from cosim.rig.run.drive_figures import (
    LostStepsSummary,
    TemperatureSummary,
    followed_of_drives,
    lost_steps,
    temperatures,
)
from cosim.rig.run.link_voltages import SupplySummary, link_voltages, links_of
from cosim.rig.run.proven_units import SIGNAL, UnitsSummary, proven_units
from cosim.rig.run.recorded_run import RecordedRun, StreamSummary
from cosim.rig.run.run_metadata import ConstraintMetadata, RunMetadata

if TYPE_CHECKING:
    from cosim.execution.hardware.manager import BusReport

LEAST_ENERGY = 1e-12  # J
SAFE_RATIO = 1.5  # by which an estimated error should be below its tolerance
_ENERGIES = ("work", "dissipated", "stored", "kinetic")
_MOTION = ("position", "velocity", "effort")
_FORCES, _PARTS = "forces", "parts"  # energy of force laws, of parts beside the mechanism
_ERROR = "position_error"  # reference − position
# of a real joint, what of it is measured: for its error, and in place of the estimated motion
_MEASURED_ERROR = "measured_error"
_MEASURED = {"position": "measured_position", "velocity": "measured_velocity", "effort": "effort"}
_SAMPLE_TIME = "sample_time"
_STEP_ERROR = "step_error"
_STEPS = ("steps/count", "steps/total")
_UNCONVERGED = "steps/unconverged"
_BOND = ("residual_energy", "power")
# of the drive of a real joint, of a load motor: residual energy, power and effort by their samples
_DRIVE = ("residual_energy", "power", "effort")
_LOAD = ("load_residual_energy", "load_measured_power", "load_measured_effort")
_TRACKING = ("load_error", "load_delay", "load_inertia_error", "load_damping_error")
# residuals of a real joint against its twin
_SHADOW = ("shadow_effort", "shadow_drive", "shadow_position", "shadow_slip")
_TORSION = ("spring_angle", "spring_moment", "spring_energy")
_COUPLING_STEPS = ("coupling/steps", "coupling/repeated")


Figures = Mapping[str, SignalFigures]


class JointSummary(TypedDict):
    """Errors and positions [rad or m] over the whole run, speed [per s], efforts [N·m or N]; errors are None where
    there is no reference. Of a real joint they are from its samples, at the times at which these were taken."""

    role: str
    error_rms: float | None
    error_max: float | None
    position_min: float
    position_max: float
    speed_max: float
    effort_rms: float
    effort_peak: float


class PeakSummary(TypedDict):
    """The largest absolute value of a signal, and when it was first there [s]; None in runs that did not follow it."""

    peak: float
    t_s: float | None


class EventSummary(TypedDict):
    """An event that occurred `count` times in one tick, the last time at `t_s`."""

    t_s: float
    name: str
    count: int
    energy_lost_J: float
    level: str


class EnergySummary(TypedDict):
    """The balance from start to end [J]: residual = work + work of force laws + work of parts − dissipated − change of
    what is stored; relative to the largest of the flows that it balances, kinetic energy at its peak included."""

    work_in: float
    work_of_forces: float
    work_of_parts: float
    dissipated: float
    stored: float
    residual: float
    residual_relative: float


class BondSummary(TypedDict):
    """Residual energy [J] at the end and at most, without sign, and the largest power [W]."""

    residual: float
    residual_max: float
    power_max: float


class PartBondSummary(BondSummary):
    """The bond of two parts. residual_relative: the largest residual energy relative to RMS power times duration, which
    is at least the energy that went through the bond."""

    residual_relative: float


class DriveBondSummary(BondSummary):
    """The bond of a drive. effort: `reported`, or `commanded` if the drive reported none at times."""

    effort: str


class LoadBondSummary(DriveBondSummary):
    """The bond of a load motor. error_rms, error_max: of the exerted effort against its command [N·m or N]; delay [s];
    inertia_error, damping_error: what the errors add to the emulated load."""

    error_rms: float
    error_max: float
    delay: float
    inertia_error: float
    damping_error: float


class ShadowSummary(TypedDict):
    """The largest residuals of a real joint against its twin, without sign [N·m or N, rad or m]."""

    effort_max: float
    drive_max: float
    position_max: float
    slip_max: float


class CouplingStepsSummary(TypedDict):
    """Steps of the coupling of parts, where a tick has several: those made, and those made again with a shorter one."""

    count: int
    repeated: int


class StepErrorSummary(TypedDict):
    """The largest estimated error of a step over the tolerance, its joint, and substeps per tick that would keep the
    tolerance."""

    max: float
    joint: str
    substeps_needed: int


class StepCountSummary(TypedDict):
    """Steps per tick where the tolerance chooses them."""

    mean: float
    max: int


class TorsionSpringSummary(TypedDict):
    """The largest angle [rad], moment [N·m] and stored energy [J] of a torsion spring."""

    angle_max: float
    moment_max: float
    energy_max: float


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
    integrator: str | None
    substeps: int | str | None
    step_error: StepErrorSummary | None
    step_count: StepCountSummary | None
    unconverged: int | None
    parameters: dict[str, float | list[float]]
    joints: dict[str, JointSummary]
    constraints: dict[str, dict[str, Any]]
    reactions: dict[str, dict[str, PeakSummary]]
    torsion_springs: dict[str, TorsionSpringSummary]
    contacts: dict[str, ContactSummary]
    contact_solver: ContactSolverSummary | None
    redundant: list[str]
    immobile: str | None
    events: list[EventSummary]
    guard: dict[str, dict[str, AlarmCount]]
    energy: EnergySummary | None
    powers: dict[str, dict[str, float]]
    supplies: dict[str, SupplySummary]
    temperatures: dict[str, dict[str, TemperatureSummary]]
    lost_steps: dict[str, LostStepsSummary]
    bonds: dict[str, PartBondSummary]
    real_joints: dict[str, DriveBondSummary]
    load_motors: dict[str, LoadBondSummary]
    shadows: dict[str, ShadowSummary]
    units: dict[str, UnitsSummary]
    coupling_steps: CouplingStepsSummary | None
    drivers: list[BusReport]
    stream: StreamSummary | None
    speed: SpeedSummary | None
    timing: dict[str, Any] | None
    engine: dict[str, str]
    formulation: str


def summary_of(run: RecordedRun) -> RunSummary:
    """The summary; `speed` is None for a run read from a recording, which does not know it."""
    rig, statistics = run.rig, statistics_of(run)
    count, signals = statistics.count, statistics.by_name()
    simulated = (count - 1) * rig.step_ns * 1e-9
    speed: SpeedSummary | None = None
    if run.busy > 0.0 and run.wall > 0.0:  # not known of a recording
        speed = {
            "ticks_per_second": count / run.busy,
            "real_time_factor": simulated / run.busy,
            "real_time_factor_with_output": simulated / run.wall,
        }
    return {
        "rig": rig.name,
        "outcome": run.fault or "finished",
        "duration_s": simulated,
        "ticks": count - 1,
        "step_s": rig.step_ns * 1e-9,
        "integrator": rig.integrator,
        "substeps": rig.substeps,
        "step_error": _step_error(rig, signals),
        "step_count": _step_count(signals, count),
        "unconverged": int(signals[_UNCONVERGED].last) if _UNCONVERGED in signals else None,
        "parameters": rig.parameters,
        "joints": {name: _joint(rig, signals, name) for name in rig.joints if _has_motion(rig, signals, name)},
        "constraints": {
            name: _constraint(signals, name, constraint, rig.step_ns)
            for name, constraint in rig.constraints.items()
            if _has(signals, name, (*constraint.drifts, *constraint.rows))
        },
        "reactions": {joint: _peaks(signals, sizes, rig.step_ns) for joint, sizes in rig.reactions.items()},
        "torsion_springs": {
            name: _torsion_spring(signals, name) for name in _torsion_springs(rig) if _has(signals, name, _TORSION)
        },
        "contacts": contacts(rig, signals, simulated),
        "contact_solver": contact_solver(rig, signals, count - 1),
        "redundant": list(rig.redundant),
        "immobile": rig.immobile,
        "events": [
            {"t_s": e.t, "name": e.name, "count": e.occurrences, "energy_lost_J": e.lost, "level": e.level}
            for e in run.events
        ],
        "guard": {joint: dict(counts) for joint, counts in run.guard.items()},
        # measured motion does not conserve it
        "energy": _energy(signals) if not rig.hardware and _has(signals, "energy", _ENERGIES) else None,
        "powers": _powers(rig, signals),
        "supplies": link_voltages(rig, signals),
        "temperatures": temperatures(rig, signals),
        "lost_steps": lost_steps(rig, signals),
        "bonds": {name: _part_bond(signals, name, simulated) for name in rig.bonds if _has(signals, name, _BOND)},
        "real_joints": {name: _drive(signals, name, _DRIVE) for name in rig.joints if _has(signals, name, _DRIVE)},
        "load_motors": {name: _load(signals, name) for name in rig.joints if _has(signals, name, (*_LOAD, *_TRACKING))},
        "shadows": {name: _shadow(signals, name) for name in rig.joints if _has(signals, name, _SHADOW)},
        "units": {
            name: proven_units(signals[f"{name}/{SIGNAL}"].last)
            for name in rig.joints
            if _has(signals, name, (SIGNAL,))
        },
        "coupling_steps": _coupling_steps(signals),
        "drivers": list(run.connections),
        "stream": run.stream,
        "speed": speed,
        "timing": None if run.timing is None else run.timing.summary(),
        "engine": rig.engine,
        "formulation": rig.formulation,
    }


def speed_text(summary: RunSummary) -> str:
    """Ticks, step, integrator and speed in one line."""
    n = summary["ticks"]
    count, chosen = summary["substeps"], summary["step_count"]
    substeps = "" if count == 1 else f", {count} substeps"
    if chosen is not None:
        mean = f"{chosen['mean']:.3g}" if chosen["mean"] < 999.5 else f"{chosen['mean']:,.0f}"
        substeps = f", {mean} substeps on average, {chosen['max']} at most"
    how = "" if summary["integrator"] is None else f" ({summary['integrator']}{substeps})"
    ticks = f"{n} {plural(n, 'tick')} of {summary['step_s'] * 1e3:g} ms{how}"
    speed = summary["speed"]
    if speed is None or summary["timing"] is not None:  # the timing lines report the speed
        return ticks
    return f"{ticks}, {speed['ticks_per_second']:,.0f} ticks/s, {speed['real_time_factor']:,.1f} × real time"


def followed_signals(rig: RunMetadata, signals: Container[str]) -> dict[str, tuple[str, str | None]]:
    """The signals whose figures over the run are in its summary."""
    followed: dict[str, tuple[str, str | None]] = {}
    for name in rig.joints:
        if _is_sampled(name, signals):
            measured = (*_MEASURED.values(), _MEASURED_ERROR)
            followed |= {f"{name}/{what}": (f"{name}/{what}", None) for what in measured}
            continue
        followed |= {f"{name}/{what}": (f"{name}/{what}", None) for what in _simulated(rig, name).values()}
        if (reference := f"{name}/reference_position") in rig.units:
            followed[f"{name}/{_ERROR}"] = reference, f"{name}/position"
    for name, constraint in rig.constraints.items():
        followed |= {f"{name}/{what}": (f"{name}/{what}", None) for what in (*constraint.drifts, *constraint.rows)}
    followed |= {name: (name, None) for name in timed_signals(rig)}
    followed |= {f"{name}/{what}": (f"{name}/{what}", None) for name in rig.bonds for what in _BOND}
    further = [*(f"energy/{what}" for what in (*_ENERGIES, _FORCES, _PARTS)), *_STEPS, _UNCONVERGED, *_COUPLING_STEPS]
    further += [f"{name}/{what}" for name in _torsion_springs(rig) for what in _TORSION]
    further += [*_energies_of_parts(rig), *followed_of_contacts(rig)]
    further += [
        f"{name}/{what}" for name in rig.joints for what in (_STEP_ERROR, *_DRIVE, *_LOAD, *_TRACKING, *_SHADOW, SIGNAL)
    ]
    followed |= {name: (name, None) for name in further}
    return {name: pair for name, pair in followed.items() if all(part is None or part in signals for part in pair)}


def timed_signals(rig: RunMetadata) -> tuple[str, ...]:
    """The signals whose peaks have a time: sizes of reactions, voltages of links, figures of drives, forces of
    contacts."""
    of_constraints = (name for constraint in rig.constraints.values() for name in constraint.sizes)
    of_joints = (name for sizes in rig.reactions.values() for name in sizes)
    others = (*links_of(rig).values(), *followed_of_drives(rig), *timed_of_contacts(rig))
    return (*of_constraints, *of_joints, *others)


def sampled_signals(rig: RunMetadata, signals: Container[str]) -> dict[str, str]:
    """The `followed_signals` that count once per sample -> the signal with the time of their samples."""
    measured = (*_MEASURED.values(), _MEASURED_ERROR)
    joints = [name for name in rig.joints if _is_sampled(name, signals)]
    return {f"{name}/{what}": f"{name}/{_SAMPLE_TIME}" for name in joints for what in measured}


def _is_sampled(joint: str, signals: Container[str]) -> bool:
    """Whether the motion of a joint is known by samples of a drive: it is real, and its measurements were kept."""
    measured = (*_MEASURED.values(), _SAMPLE_TIME)
    return all(f"{joint}/{what}" in signals for what in measured)


def _simulated(rig: RunMetadata, joint: str) -> dict[str, str]:
    """`_MOTION` -> the signal of a simulated joint: the effort is the drive's, which has limits."""
    effort = "measured_effort" if f"{joint}/measured_effort" in rig.units else "effort"
    return {"position": "position", "velocity": "velocity", "effort": effort}


def _has(signals: Figures, name: str, whats: Sequence[str]) -> bool:
    """Not of what a killed run did not keep."""
    return all(f"{name}/{what}" in signals for what in whats)


def _has_motion(rig: RunMetadata, signals: Figures, name: str) -> bool:
    return _has(signals, name, tuple(_simulated(rig, name).values())) or _has(signals, name, tuple(_MEASURED.values()))


def statistics_of(run: RecordedRun) -> SignalStatistics:
    """The statistics of a run; of its ticks, if it comes from a file without statistics."""
    if run.statistics is not None:
        return run.statistics
    followed, sampled = followed_signals(run.rig, run.signals), sampled_signals(run.rig, run.signals)
    statistics = SignalStatistics(run.signals, followed, sampled, timed_signals(run.rig))
    for begin in range(0, len(run.values), BLOCK):
        statistics.add(run.values[begin : begin + BLOCK])
    return statistics


def _step_error(rig: RunMetadata, signals: Figures) -> StepErrorSummary | None:
    """None for an integrator without an estimate."""
    followed = {name: signals.get(f"{name}/{_STEP_ERROR}") for name in rig.joints}
    peaks = {name: error.max for name, error in followed.items() if error is not None}
    if not peaks:
        return None
    joint = max(peaks, key=lambda name: peaks[name])
    from cosim.mechanics.integrators.methods import INTEGRATORS

    assert rig.integrator is not None  # of joints
    order, needed = INTEGRATORS[rig.integrator].estimate, rig.substeps
    assert order is not None and isinstance(needed, int)
    if 1.0 < peaks[joint] < math.inf:
        needed = math.ceil(needed * (SAFE_RATIO * peaks[joint]) ** (1.0 / (order + 1)))
    return {"max": peaks[joint], "joint": joint, "substeps_needed": needed}


def _step_count(signals: Figures, ticks: int) -> StepCountSummary | None:
    count, total = (signals.get(name) for name in _STEPS)
    if count is None or total is None:
        return None
    return {"mean": total.last / max(ticks - 1, 1), "max": int(count.max)}


def _joint(rig: RunMetadata, signals: Figures, name: str) -> JointSummary:
    # nobody knows where a real joint is between its samples
    measured = _has(signals, name, tuple(_MEASURED.values()))
    names = _MEASURED if measured else _simulated(rig, name)
    position, velocity, effort = (signals[f"{name}/{names[what]}"] for what in _MOTION)
    error = signals.get(f"{name}/{_MEASURED_ERROR if measured else _ERROR}")
    return {
        "role": rig.roles[name],
        "error_rms": None if error is None else error.rms,
        "error_max": None if error is None else error.peak,
        "position_min": position.min,
        "position_max": position.max,
        "speed_max": velocity.peak,
        "effort_rms": effort.rms,
        "effort_peak": effort.peak,
    }


def _constraint(signals: Figures, name: str, constraint: ConstraintMetadata, step_ns: int) -> dict[str, Any]:
    """Largest violation [m, rad] and slip [per s], the peaks of the components of its reaction and of its size [N,
    N·m]."""
    drift = {f"{what}_max": signals[f"{name}/{what}"].peak for what in constraint.drifts}
    components = {row: signals[f"{name}/{row}"].peak for row in constraint.rows}
    return drift | {"reaction_peak": components, "largest": _peaks(signals, constraint.sizes, step_ns)}


def _torsion_springs(rig: RunMetadata) -> list[str]:
    """Of these or of joints with one in them."""
    return [name.removesuffix(last) for name in rig.units if name.endswith(last := f"/{_TORSION[0]}")]


def _torsion_spring(signals: Figures, name: str) -> TorsionSpringSummary:
    angle, moment, energy = (signals[f"{name}/{what}"].peak for what in _TORSION)
    return {"angle_max": angle, "moment_max": moment, "energy_max": energy}


def _peaks(signals: Figures, names: Sequence[str], step_ns: int) -> dict[str, PeakSummary]:
    """Of the signals that were kept."""
    found: dict[str, PeakSummary] = {}
    for name in names:
        if name in signals:
            tick = signals[name].peak_tick
            found[name] = {"peak": signals[name].peak, "t_s": None if tick is None else tick * step_ns * 1e-9}
    return found


def _bond(signals: Figures, name: str, whats: Sequence[str]) -> BondSummary:
    """whats: of its residual energy and its power."""
    residual, power = (signals[f"{name}/{what}"] for what in whats)
    return {"residual": residual.last, "residual_max": residual.peak, "power_max": power.peak}


def _part_bond(signals: Figures, name: str, duration: float) -> PartBondSummary:
    """duration: s."""
    bond = _bond(signals, name, _BOND)
    # ∫ |P| dt is at most this, by the inequality of Cauchy and Schwarz
    most = signals[f"{name}/{_BOND[1]}"].rms * duration
    return {**bond, "residual_relative": bond["residual_max"] / most if most > LEAST_ENERGY else 0.0}


def _drive(signals: Figures, name: str, whats: Sequence[str]) -> DriveBondSummary:
    """whats: of its residual energy, its power and the effort that it reports."""
    reported = not math.isnan(signals[f"{name}/{whats[-1]}"].peak)
    return {**_bond(signals, name, whats[:-1]), "effort": "reported" if reported else "commanded"}


def _load(signals: Figures, name: str) -> LoadBondSummary:
    error, delay, inertia, damping = (signals[f"{name}/{what}"] for what in _TRACKING)
    return {
        **_drive(signals, name, _LOAD),
        "error_rms": error.rms,
        "error_max": error.peak,
        "delay": delay.last,
        "inertia_error": inertia.last,
        "damping_error": damping.last,
    }


def _shadow(signals: Figures, name: str) -> ShadowSummary:
    effort, drive, position, slip = (signals[f"{name}/{what}"].peak for what in _SHADOW)
    return {"effort_max": effort, "drive_max": drive, "position_max": position, "slip_max": slip}


def _coupling_steps(signals: Figures) -> CouplingStepsSummary | None:
    count, repeated = (signals.get(name) for name in _COUPLING_STEPS)
    if count is None or repeated is None:
        return None
    return {"count": int(count.last), "repeated": int(repeated.last)}


def _energies_of_parts(rig: RunMetadata) -> list[str]:
    """The signals of energies of the parts of drives and supplies."""
    found = {f"{part}{ENERGY}" for part in (ELECTRICAL, RETURNED, *LOSSES)}
    return [name for name in rig.units if name.rpartition("/")[2] in found]


def _powers(rig: RunMetadata, signals: Figures) -> dict[str, dict[str, float]]:
    """Drive or supply -> part -> energy over the run [J]."""
    found: dict[str, dict[str, float]] = {}
    for name in (name for name in _energies_of_parts(rig) if name in signals):
        owner, _, what = name.rpartition("/")
        found.setdefault(owner, {})[what.removesuffix(ENERGY)] = signals[name].last
    return found


def _energy(signals: Figures) -> EnergySummary:
    work, lost, stored, kinetic = (signals[f"energy/{name}"] for name in _ENERGIES)
    change = stored.last - stored.first
    others = (signals.get(f"energy/{name}") for name in (_FORCES, _PARTS))
    of_forces, of_parts = (0.0 if other is None else other.last for other in others)
    residual = work.last - lost.last + of_forces + of_parts - change
    floor = max(LEAST_ENERGY, 1e-9 * stored.peak)  # nothing moved: nothing is to be balanced
    scale = max(abs(work.last), abs(of_forces), abs(of_parts), lost.last, abs(change), kinetic.max)
    return {
        "work_in": work.last,
        "work_of_forces": of_forces,
        "work_of_parts": of_parts,
        "dissipated": lost.last,
        "stored": change,
        "residual": residual,
        "residual_relative": 0.0 if scale <= floor else abs(residual) / scale,
    }
