"""Can this machine keep loops on time, and what would help: `cosim doctor`. Nothing on the machine is changed."""

from __future__ import annotations

import sys
from pathlib import Path

from cosim.doctor.diagnosis import Diagnosis
from cosim.doctor.latency import Instruments, RealInstruments, Tell
from cosim.doctor.machine import ranges, read_machine, stolen_ticks
from cosim.errors import InputError, RunError

# s
SHORTEST, LONGEST = 0.05, 600.0


def main(duration: str, cpu: int | None, json: Path | None) -> None:
    """Measure this machine for `duration` and print what it is fit for and what to change.

    Raises InputError when the options are wrong, RunError where there is no Linux.
    """
    from cosim.doctor.show import figures, show
    from cosim.output import console

    seconds = _seconds(duration)
    console.check_targets([], json)
    with console.progress("doctor") as shown:
        diagnosis = diagnose(Path("/"), seconds, cpu, RealInstruments(), shown)
    quiet = json is not None and str(json) == "-"
    if not quiet:
        show(diagnosis)
    if json is None:
        return
    import orjson

    text = orjson.dumps(figures(diagnosis), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if quiet:
        print(text.decode(), end="")
    else:
        json.write_bytes(text)
        print(f"wrote    figures {json}")


def diagnose(
    root: Path, seconds: float, cpu: int | None, instruments: Instruments, tell: Tell | None = None
) -> Diagnosis:
    """What is below `root` and what the instruments measure for so long; cpu: where the loop is to run.

    Raises InputError when there is no such CPU, RunError where there is no Linux.
    """
    if sys.platform != "linux":
        raise RunError("cosim doctor needs Linux: it is the only system with loops on time")
    machine = read_machine(root)
    if cpu is not None and cpu not in machine.cpus:
        n = len(machine.cpus)
        has = f"{n} CPU{'s' * (n > 1)}, {ranges(machine.cpus)}"
        raise InputError(f"there is no CPU {cpu}; this machine has {has}", "--cpu")
    cost, before = instruments.clock_cost(), stolen_ticks(root)
    wakes = instruments.wakes(seconds, cpu, tell)
    stolen, passed = (after - first for after, first in zip(stolen_ticks(root), before, strict=True))
    return Diagnosis(machine, cost, stolen / passed if passed > 0 else 0.0, wakes, cpu)


def _seconds(duration: str) -> float:
    from cosim.output.console import duration_of

    seconds = duration_of(duration)
    if not SHORTEST <= seconds <= LONGEST:
        raise InputError(f"expected 50 ms to 10 min, got '{duration}'", "--duration")
    return seconds
