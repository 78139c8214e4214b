"""The error of a run's steps: the same run with steps that are chosen for a tight tolerance, and how far it is away."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cosim.cli.comparison_report import SMALLEST, differing_signals, signals_table
from cosim.core.errors import InputError, RunError
from cosim.core.units import format_seconds
from cosim.mechanics.integrators.methods import OF_CONTACTS
from cosim.output import console
from cosim.rig.reading.yaml_source import Override
from cosim.rig.rig import Rig, load_rig
from cosim.rig.run.comparison import compare
from cosim.rig.run.run import Run, StoppedRun

INTEGRATOR, TOLERANCE = "rodas4", 1e-9
TOLERANCE_WITH_CONTACTS = 1e-6  # of the integrator that contacts take, which is of order 1


MOTION = "position", "velocity"
ROUNDING = 1e-9  # of the range of a motion


def check_has_reference(rig: Rig, option: str) -> None:
    """Raises InputError for a rig whose reference would not be the same experiment."""
    if rig.hardware:
        raise InputError("real motors have no reference; run the rig without its drivers", option)
    if not rig.joints:
        what = "the reference has other steps of the mechanism, and this rig has parts only"
        raise InputError(f"{what}; set their steps, and use cosim compare", option)


def reference_of(run: Run, path: Path, overrides: Sequence[Override], interpret: bool | None, option: str) -> Run:
    """The same run with steps for a tight tolerance. Raises RunError where it stops."""
    integrator, tolerance = _method(run)
    with console.busy("running the reference"):
        rig = load_rig(path, [*overrides, *settings(integrator, tolerance)], interpret)
        try:
            return rig.run(float(run.t[-1]), keep="all")
        except StoppedRun as stopped:
            raise RunError(f"the reference stops before the run: {stopped}", option) from None


def settings(integrator: str = INTEGRATOR, tolerance: float = TOLERANCE) -> tuple[str, ...]:
    """The overrides that make a rig its reference."""
    steps = f"schedule.integrator={integrator}", "schedule.substeps=auto", f"schedule.tolerance={tolerance:g}"
    return (*steps, "schedule.realtime=false")


def _method(run: Run) -> tuple[str, float]:
    """The integrator of the reference of a run, and its tolerance."""
    with_contacts = "contacts/residual" in run.signals
    return (OF_CONTACTS, TOLERANCE_WITH_CONTACTS) if with_contacts else (INTEGRATOR, TOLERANCE)


def print_errors(run: Run, reference: Run) -> None:
    """Print how far the signals of a finished run are from its reference."""
    comparison = compare(reference, run)
    integrator, tolerance = _method(run)
    print(f"reference  {integrator} with steps for a tolerance of {tolerance:g}, {_cost(run, reference)}")
    if not differing_signals(comparison):
        print("every signal is within 1e-9 of its size")
        return
    print(*signals_table(comparison, "error RMS").lines(), sep="\n")


def step_line(run: Run, reference: Run) -> str:
    """What the steps of a finished run cost, and how wrong a motion is."""
    summary = run.summary
    substeps = summary["substeps"]
    times = "" if substeps == 1 else f" in {substeps} substeps"
    speed = summary["speed"]
    assert speed is not None  # of a run of this process
    cost = f"{1e6 / speed['ticks_per_second']:.3g} us per tick, {speed['real_time_factor']:,.4g} × real time"
    steps = f"{summary['integrator']}, {format_seconds(summary['step_s'])}{times}"
    return f"steps    {steps}: {cost}; {_worst(run, reference)}"


def _worst(run: Run, reference: Run) -> str:
    differences = compare(reference, run).signals
    found = {}
    for name in (f"{joint}/{what}" for joint in run.rig.joints for what in MOTION):
        if (extent := float(np.ptp(reference[name]))) > SMALLEST:
            found[name] = differences[name].max / extent
    name = max(found, key=lambda name: found[name], default=None)
    if name is None or found[name] < ROUNDING:
        return f"no motion is wrong by more than {ROUNDING:g} of its range"
    return f"largest error {found[name]:.2g} of the range of {name}, at {differences[name].t:.6g} s"


def _cost(run: Run, reference: Run) -> str:
    """How much longer the reference took."""
    speeds = [simulated.summary["speed"] for simulated in (run, reference)]
    assert speeds[0] and speeds[1]  # of runs of this process
    return f"{speeds[0]['ticks_per_second'] / speeds[1]['ticks_per_second']:.3g} × the time of the run"
