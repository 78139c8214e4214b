"""The error of a run's steps: the same run with steps that are chosen for a tight tolerance, and how far it is away."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cosim.cli.comparison_report import differing_signals, signals_table
from cosim.errors import InputError, RunError
from cosim.output import console
from cosim.rig.comparison import compare
from cosim.rig.rig import Rig, load_rig
from cosim.rig.run import Run, StoppedRun

INTEGRATOR, TOLERANCE = "rodas4", 1e-9
SETTINGS = (
    f"schedule.integrator={INTEGRATOR}",
    "schedule.substeps=auto",
    f"schedule.tolerance={TOLERANCE:g}",
    "schedule.realtime=false",
)


def check_has_reference(rig: Rig) -> None:
    """Raises InputError for a rig whose reference would not be the same experiment."""
    if rig.hardware:
        raise InputError("real motors have no reference; run the rig without its drivers", "--reference")


def print_errors(run: Run, path: Path, overrides: Sequence[str], interpret: bool | None) -> None:
    """Print how far the signals of a finished run are from those of its reference. Raises RunError where the reference
    stops."""
    with console.busy("running the reference"):
        rig = load_rig(path, [*overrides, *SETTINGS], interpret)
        try:
            reference = rig.run(float(run.t[-1]))
        except StoppedRun as stopped:
            raise RunError(f"the reference stops before the run: {stopped}", "--reference") from None
    comparison = compare(reference, run)
    print(f"reference  {INTEGRATOR} with steps for a tolerance of {TOLERANCE:g}, {_cost(run, reference)}")
    if not differing_signals(comparison):
        print("every signal is within 1e-9 of its size")
        return
    print(*signals_table(comparison, "error RMS").lines(), sep="\n")


def _cost(run: Run, reference: Run) -> str:
    """How much longer the reference took."""
    speeds = [simulated.summary["speed"] for simulated in (run, reference)]
    assert speeds[0] and speeds[1]  # of runs of this process
    return f"{speeds[0]['ticks_per_second'] / speeds[1]['ticks_per_second']:.3g} × the time of the run"
