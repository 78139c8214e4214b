"""What `cosim doctor` shows: lines and a histogram for people, JSON for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from cosim.doctor.assessment import Assessment, latency_statistics, max_rate
from cosim.doctor.latency import PERIOD_NS, PRIVILEGED
from cosim.doctor.machine import MachineFacts, cpu_list
from cosim.output.console import PIPE_WIDTH

# edges of the bins, ns: 0, then 1, 2, 5 · 10ⁿ µs up to 1 s; later ones are beyond
EDGES = [0, *(step * 10**n for n in range(3, 9) for step in (1, 2, 5)), 10**9]
BOOT_NOTE = (
    "note     options of the boot stand in GRUB_CMDLINE_LINUX of /etc/default/grub; then sudo update-grub and reboot"
)
# letters of the longest bar, and parts of a letter
BAR, EIGHTHS = 12, " ▏▎▍▌▋▊▉"


def print_report(diagnosis: Assessment) -> None:
    """Print what the machine is, how late it wakes up, the verdict and what to change."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True, markup=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    for line in facts(diagnosis):
        console.print(line)
    console.print(f"\nwake-ups at {1e9 / PERIOD_NS:g} Hz, each way beside a busy thread of Python")
    ways = diagnosis.wakes.late
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("late by", justify="right")
    for way in ways:
        table.add_column(way)
    rows = histogram(ways)
    for k, (label, cells) in enumerate(rows):
        table.add_row(label, *cells, end_section=k == len(rows) - 1)
    figures = [asdict(latency_statistics(late)) for late in ways.values()]
    for name in ("median", "p99", "max"):
        table.add_row(name, *(format_time(found[name]) for found in figures))
    console.print(table)
    console.print()
    for line in conclusion(diagnosis):
        console.print(line)


def facts(diagnosis: Assessment) -> list[str]:
    """What the machine is, in lines with a heading each."""
    machine = diagnosis.machine
    kind = (
        f"virtual, {format_percent(diagnosis.stolen)} of the time stolen by its host"
        if machine.virtual
        else "not virtual"
    )
    load = "" if machine.load is None else f"; load average {machine.load:g}"
    granted = [right.name for right in diagnosis.wakes.rights if right.granted]
    throttle = "no limit" if machine.throttle is None else f"at most {format_percent(machine.throttle)} of the time"
    return [
        f"kernel   {machine.kernel or 'not told'}, preemption: {machine.preemption or 'not told'}",
        f"machine  {kind}",
        f"CPUs     {len(machine.cpus)}, isolated: {cpu_list(machine.isolated) or 'none'}{load}",
        f"power    governor: {_governors(machine)}; idle states: {_idle(machine)}",
        f"clock    {machine.clock or 'not told'}, {format_time(diagnosis.clock_cost)} per reading",
        f"rights   {', '.join(granted) or 'none'}; fixed priority gets {throttle}",
    ]


def conclusion(diagnosis: Assessment) -> list[str]:
    """The verdict and what to change."""
    loop = diagnosis.loop
    word = {
        "yes": "fit for 1 kHz",
        "almost": "1 kHz with late ticks now and then",
        "no": "not fit for 1 kHz",
    }[diagnosis.fit]
    found = (
        f"{format_time(loop.p99)} late at p99, {format_time(loop.max)} at most,"
        f" of {loop.count:,} wake-ups with the rights"
    )
    verdict = f"verdict  {word}: {found}; loops are on time up to {format_frequency(diagnosis.rate)}"
    if diagnosis.fit != "yes" and max_rate(loop.p99) > diagnosis.rate:
        verdict += f", 99 of 100 ticks up to {format_frequency(max_rate(loop.p99))}"
    changes = [f"change   {change}" for change in diagnosis.changes]
    note = [BOOT_NOTE] if any("boot with" in change for change in changes) else []
    return [verdict, *(changes or ["change   nothing: this machine is as it should be"]), *note]


def histogram(ways: dict[str, np.ndarray]) -> list[tuple[str, list[str]]]:
    """(bin, one bar with its count per way), from the first bin that is not empty to the last one."""
    counts = np.array([_counts(late) for late in ways.values()])
    used = np.flatnonzero(counts.any(axis=0))
    most = counts.max(axis=1)
    return [
        (_bin(k), [_bar(n, top) for n, top in zip(counts[:, k], most, strict=True)])
        for k in range(used[0], used[-1] + 1)
    ]


def to_json(diagnosis: Assessment) -> dict[str, Any]:
    """All figures, ready for JSON: SI."""
    machine = asdict(diagnosis.machine)
    machine["governors"] = {str(cpu): governor for cpu, governor in diagnosis.machine.governors.items()}
    return {
        "machine": machine,
        "clock_read_s": diagnosis.clock_cost,
        "stolen": diagnosis.stolen,
        "cpu": diagnosis.cpu,
        "period_s": PERIOD_NS / 1e9,
        "rights": [asdict(right) for right in diagnosis.wakes.rights],
        "bins_from_s": [edge / 1e9 for edge in EDGES],
        "late": {
            way: {**_with_unit(asdict(latency_statistics(late))), "histogram": _counts(late).tolist()}
            for way, late in diagnosis.wakes.late.items()
        },
        "verdict": {"way": PRIVILEGED, "fit": diagnosis.fit, "rate_Hz": diagnosis.rate},
        "change": diagnosis.changes,
    }


def format_time(seconds: float) -> str:
    """Two digits or more, with a prefix that suits."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= 0.9995 * factor:  # what rounds up to 1 of the larger unit has that unit
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def format_frequency(hertz: float) -> str:
    return f"{hertz / 1e3:g} kHz" if hertz >= 1e3 else f"{hertz:g} Hz"


def format_percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _with_unit(found: dict[str, Any]) -> dict[str, Any]:
    return {name if name == "count" else f"{name}_s": value for name, value in found.items()}


def _counts(late: np.ndarray) -> np.ndarray:
    """How many in each bin; the last one has no end."""
    places = np.searchsorted(EDGES, late, side="right") - 1
    return np.bincount(np.maximum(places, 0), minlength=len(EDGES))


def _bin(k: int) -> str:
    if k == len(EDGES) - 1:
        return f"over {format_time(EDGES[k] / 1e9)}"
    first, last = format_time(EDGES[k] / 1e9), format_time(EDGES[k + 1] / 1e9)
    if k == 0:
        return f"under {last}"
    number, unit = first.split()
    return f"{number}–{last}" if last.endswith(f" {unit}") else f"{first} – {last}"


def _bar(count: int, most: int) -> str:
    """A bar that is as long as `BAR` where the count is the greatest, and never invisible."""
    if not count:
        return ""
    eighths = max(1, round(8 * BAR * count / most))
    bar = "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()
    return f"{bar:<{BAR}} {count:,}"


def _governors(machine: MachineFacts) -> str:
    return ", ".join(sorted(set(machine.governors.values()))) or "not told"


def _idle(machine: MachineFacts) -> str:
    used = [state for state in machine.idle if state.used]
    return ", ".join(f"{state.name} ({format_time(state.latency)})" for state in used) or "not told"
