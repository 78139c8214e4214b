"""`cosim doctor`: measures whether this machine can run real-time loops and recommends changes. It changes nothing."""

from __future__ import annotations

import sys
from pathlib import Path

from cosim.apps.doctor.assessment import Assessment
from cosim.apps.doctor.host import cpu_list, read_host, steal_time
from cosim.apps.doctor.latency import HostInstruments, Instruments, ReportProgress
from cosim.core.errors import InputError, RunError
from cosim.output.output_files import write_json

# s
SHORTEST_DURATION, LONGEST_DURATION = 0.05, 600.0


def main(duration: str, cpu: int | None, json: Path | None) -> None:
    """Measure this machine for `duration`; print the rates it is suitable for and what to change.

    Raises InputError when the options are wrong, RunError where there is no Linux.
    """
    from cosim.apps.doctor.report import print_report, to_json
    from cosim.output import console

    seconds = _seconds(duration)
    console.check_targets([], json)
    with console.progress("doctor") as shown:
        assessment = assess(Path("/"), seconds, cpu, HostInstruments(), shown)
    quiet = json is not None and str(json) == "-"
    if not quiet:
        print_report(assessment)
    if json is not None and write_json(json, to_json(assessment), "figures"):
        print(f"wrote      {json}")


def assess(
    root: Path, seconds: float, cpu: int | None, instruments: Instruments, progress: ReportProgress | None = None
) -> Assessment:
    """The machine whose system files are below `root`, measured for so many seconds; cpu: of the loop.

    Raises InputError when there is no such CPU, RunError where there is no Linux.
    """
    if sys.platform != "linux":
        raise RunError("cosim doctor needs Linux, the only system with real-time loops")
    host = read_host(root)
    if cpu is not None and cpu not in host.cpus:
        n = len(host.cpus)
        has = f"{n} CPU{'s' * (n > 1)}, {cpu_list(host.cpus)}"
        raise InputError(f"there is no CPU {cpu}; this machine has {has}", "--cpu")
    cost, before = instruments.clock_cost(), steal_time(root)
    wakeups = instruments.wakeups(seconds, cpu, progress)
    stolen, elapsed = (after - first for after, first in zip(steal_time(root), before, strict=True))
    return Assessment(host, cost, stolen / elapsed if elapsed > 0 else 0.0, wakeups, cpu)


def _seconds(duration: str) -> float:
    from cosim.output.console import duration_of

    return duration_of(duration, SHORTEST_DURATION, LONGEST_DURATION, "50 ms to 10 min")
