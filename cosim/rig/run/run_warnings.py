"""What a finished run warns of, one sentence each, and when its results are invalid: the one policy of Python and the
command line, see docs/reference/warnings.md."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence

from cosim.core.errors import RunError, RunWarning
from cosim.mechanics.multibody.contact.contact_solver import SolverBounds
from cosim.rig.run.contact_figures import contact_warnings
from cosim.rig.run.drive_figures import warnings_of_drives
from cosim.rig.run.link_voltages import supply_warnings
from cosim.rig.run.recorded_run import RecordedRun
from cosim.rig.run.summary import RunSummary

# relative energy residual, of the whole or of a bond, above which a run warns
COARSE = 0.01
# relative energy residual above which the results of a run are invalid
INVALID = 0.2
# violation of a constraint [m or rad, of velocities per s] above which a run warns: a hundredth of what stops it
VIOLATED = 1e-4
DEFLECTED = 0.25  # of the length of an elastic link, from which on it is warned of
TURNED = 0.95 * math.pi  # rad, from which on a torsion spring may have jumped to the other way round
MOST_SUBSTEPS = 1000  # that a warning recommends
OFTEN = 0.01  # steps of the drives without convergence, per tick
NOT_KNOWN = "its cause is not known; compare with half the schedule.step, or with cosim run --reference"


def warnings_of(run: RecordedRun, summary: RunSummary) -> list[str]:
    """All warnings of a run: of its rig before, of what failed beside it, and of its results."""
    stream = summary["stream"]
    lost = [stream_failure(stream["failure"])] if stream and stream["failure"] else []
    return [*run.unstable, *run.misfits, *lost, *event_warnings(summary), *result_warnings(run, summary)]


def give(lines: Iterable[str], callers: int = 4) -> None:
    """Give warnings to the program. callers: calls from there to here; the default is for `Rig.run`."""
    for line in lines:
        warnings.warn(line, RunWarning, stacklevel=callers)


def result_warnings(run: RecordedRun, summary: RunSummary) -> list[str]:
    """What makes the results of a run doubtful."""
    return [
        *balance_warnings(run, summary),
        *violation_warnings(run, summary),
        *step_error_warnings(summary),
        *contact_warnings(summary["contact_solver"], SolverBounds(tolerance=run.rig.contact_tolerance)),
        *coarse_coupling_warnings(summary),
        *deflection_warnings(summary, run.rig.full_deflection),
        *torsion_warnings(summary),
        *supply_warnings(summary["supplies"], run.rig.supplies),
        *warnings_of_drives(summary["temperatures"], summary["lost_steps"]),
    ]


# --- the energy balance ---


def closes(summary: RunSummary) -> bool:
    """Whether the energy balance closes, or there is none."""
    energy = summary["energy"]
    return energy is None or energy["residual_relative"] <= COARSE


def balance_warnings(run: RecordedRun, summary: RunSummary) -> list[str]:
    """A warning where the energy balance does not close, with the cause that was found."""
    if closes(summary):
        return []
    if (invalid := invalid_results(run, summary)) is not None:
        return [invalid.what]
    return [f"the energy balance does not close: {_cause(run)}"]


def invalid_results(run: RecordedRun, summary: RunSummary) -> RunError | None:
    """What makes the results of a finished run invalid, if anything."""
    energy = summary["energy"]
    if run.fault or not energy or energy["residual_relative"] <= INVALID:
        return None
    what = "the run is unstable" if run.unstable else "the energy balance does not close"
    return RunError(f"{what} and its results are invalid: {_cause(run)}", run.rig.path)


def _cause(run: RecordedRun) -> str:
    """What is known to be unstable, else what a comparison of two steps has found."""
    return "; ".join(run.unstable) or run.cause or NOT_KNOWN


# --- violated constraints ---


def violations(run: RecordedRun, summary: RunSummary) -> Iterator[tuple[str, float]]:
    """(signal, its largest value) of each constraint that is violated by more than it may be."""
    for name, constraint in run.rig.constraints.items():
        figures = summary["constraints"].get(name, {})
        for what, allowed in ("violation", constraint.allowed), ("slip", 0.0):
            if (largest := figures.get(f"{what}_max")) is not None and not largest <= VIOLATED + allowed:
                yield f"{name}/{what}", largest


def violation_warnings(run: RecordedRun, summary: RunSummary) -> list[str]:
    """Each violated constraint of a finished run with the cause that was found; one that is stopped has a reason."""
    if run.fault:
        return []
    return [
        f"constraint '{signal.rpartition('/')[0]}' is violated by up to {largest:.2g} {run.rig.units[signal]}:"
        f" {run.causes_of_violations.get(signal) or NOT_KNOWN}"
        for signal, largest in violations(run, summary)
    ]


# --- steps, couplings, elastic links ---


def step_error_warnings(summary: RunSummary) -> list[str]:
    """Where the estimated error of a step is above the tolerance, or steps of the drives failed too often."""
    if (unconverged := summary["unconverged"]) and unconverged > OFTEN * summary["ticks"]:
        what = f"{unconverged} of the implicit steps of the drives did not converge"
        return [f"{what}; use more schedule.substeps, or compare with cosim run --reference"]
    error = summary["step_error"]
    if error is None or error["max"] <= 1.0:
        return []
    what = f"estimated error of joint '{error['joint']}'"
    needed = error["substeps_needed"]
    # of a motion that diverged no number would do
    fix = f"use schedule.substeps: {f'{needed} or ' if needed <= MOST_SUBSTEPS else ''}auto, or a larger tolerance"
    return [f"the step is too coarse: the {what} is {error['max']:.3g} times schedule.tolerance; {fix}"]


def coarse_coupling_warnings(summary: RunSummary) -> list[str]:
    """Bonds of parts whose residual energy is a large part of what went through them."""
    fix = "try a smaller schedule.step, a couplings.correction or another couplings.order"
    return [
        f"the coupling is too coarse: bond '{name}' has created or lost"
        f" {bond['residual_relative']:.2g} of the energy that went through it, or more; {fix}"
        for name, bond in summary["bonds"].items()
        if not bond["residual_relative"] <= COARSE
    ]


def deflection_warnings(summary: RunSummary, full_deflection: Mapping[str, float]) -> list[str]:
    """Each elastic link that bends more than its modes are for, in a run whose results are not invalid.
    full_deflection: see `Model.full_deflection`."""
    energy, worst = summary["energy"], dict[str, tuple[float, str]]()
    if energy and not energy["residual_relative"] <= INVALID:
        return []
    for mode, length in full_deflection.items():
        joint, (link, _, own) = summary["joints"][mode], mode.rpartition(".")
        part = max(abs(joint["position_min"]), abs(joint["position_max"])) / length
        worst[link] = max(worst.get(link, (0.0, "")), (part, own))
    fix = "more than its modes are for; check the units of its stiffness, such as youngs_modulus, or use several links"
    return [
        f"elastic link '{link}' deflects by {part:.0%} of its length in {own}, {fix}"
        for link, (part, own) in worst.items()
        if part > DEFLECTED
    ]


def torsion_warnings(summary: RunSummary) -> list[str]:
    """Each torsion spring that was turned so far that its moment may have jumped."""
    what = "at 180 deg, where the shorter way round changes, its moment jumps and its results mean nothing"
    return [
        f"the torsion spring '{name}' is turned by {math.degrees(spring['angle_max']):.4g} deg; {what}; "
        "use a stiffer spring or a smaller motion"
        for name, spring in summary["torsion_springs"].items()
        if spring["angle_max"] > TURNED
    ]


# --- what failed beside the run ---


def stream_failure(failure: str) -> str:
    """Of telemetry that ended before the run."""
    return f"no telemetry to the end: {failure}"


def event_warnings(summary: RunSummary) -> list[str]:
    """What failed beside the run; limits, telemetry and the outcome have lines of their own."""
    limits = {count["what"] for kinds in summary["guard"].values() for count in kinds.values()}
    telemetry = (summary["stream"] or {}).get("failure") or summary["outcome"]
    return [
        f"{event['t_s']:.6g} s  {what}"
        for event in summary["events"]
        if event["level"] == "warning"
        and (what := event["name"]) not in limits
        and what not in summary["outcome"]
        and not what.startswith(telemetry)
    ]


def lines_of(found: Sequence[str]) -> list[str]:
    """Warnings as lines of a summary."""
    return [f"warning  {text}" for text in found]
