"""The report of `cosim doctor`: text with a histogram, and JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from cosim.apps.doctor.assessment import Assessment, latency_statistics, max_rate
from cosim.apps.doctor.host import HostFacts, cpu_list
from cosim.apps.doctor.latency import PERIOD_NS, PRIVILEGED
from cosim.core.units import show_percent
from cosim.output.console import PIPE_WIDTH

# edges of the bins, ns: 0, then 1, 2, 5 · 10ⁿ µs up to 1 s; the last bin has no end
EDGES = [0, *(step * 10**n for n in range(3, 9) for step in (1, 2, 5)), 10**9]
BOOT_NOTE = "add boot options to GRUB_CMDLINE_LINUX in /etc/default/grub, then run sudo update-grub and reboot"
# letters of the longest bar, and parts of a letter
BAR, EIGHTHS = 12, " ▏▎▍▌▋▊▉"


def print_report(assessment: Assessment) -> None:
    """Print the properties of the machine, its wake-up latencies, the result and what to change."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True, markup=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    for line in facts(assessment):
        console.print(line)
    console.print(f"\nwake-up latency at {1e9 / PERIOD_NS:g} Hz, each method beside a busy Python thread")
    methods = assessment.wakeups.latency
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("latency", justify="right")
    for method in methods:
        table.add_column(method)
    rows = histogram(methods)
    for k, (label, cells) in enumerate(rows):
        table.add_row(label, *cells, end_section=k == len(rows) - 1)
    figures = [asdict(latency_statistics(late)) for late in methods.values()]
    for name in ("median", "p99", "max"):
        table.add_row(name, *(format_time(found[name]) for found in figures))
    console.print(table)
    console.print()
    for line in conclusion(assessment):
        console.print(line)


def facts(assessment: Assessment) -> list[str]:
    """The properties of the machine, a line each."""
    host = assessment.host
    kind = f"virtual, {format_percent(assessment.steal_fraction)} steal time" if host.virtual else "not virtual"
    load = "" if host.load_average is None else f"; load average {host.load_average:g}"
    granted = [privilege.name for privilege in assessment.wakeups.privileges if privilege.granted]
    fraction = host.realtime_fraction
    limit = "not throttled" if fraction is None else f"throttled above {format_percent(fraction)} of the time"
    return [
        _line("kernel", f"{host.kernel or 'unknown'}, preemption: {host.preemption or 'unknown'}"),
        _line("machine", kind),
        _line("CPUs", f"{len(host.cpus)}, isolated: {cpu_list(host.isolated) or 'none'}{load}"),
        _line("power", f"governor: {_governors(host)}; idle states: {_idle(host)}"),
        _line("clock", f"{host.clock_source or 'unknown'}, {format_time(assessment.clock_cost)} per reading"),
        _line("privileges", f"{', '.join(granted) or 'none'}; real-time threads {limit}"),
    ]


def conclusion(assessment: Assessment) -> list[str]:
    """The result and what to change."""
    loop = assessment.loop
    word = {
        "yes": "suitable for 1 kHz",
        "almost": "1 kHz with occasional late ticks",
        "no": "not suitable for 1 kHz",
    }[assessment.suitable]
    found = (
        f"latency p99 {format_time(loop.p99)}, max {format_time(loop.max)} of {loop.count:,} wake-ups with privileges"
    )
    result = f"{word}: {found}; real time up to {format_frequency(assessment.rate)}"
    if assessment.suitable != "yes" and max_rate(loop.p99) > assessment.rate:
        result += f", 99 of 100 ticks up to {format_frequency(max_rate(loop.p99))}"
    changes = [_line("change", change) for change in assessment.recommendations]
    note = [_line("note", BOOT_NOTE)] if any("boot with" in change for change in changes) else []
    return [_line("result", result), *(changes or [_line("change", "nothing")]), *note]


def histogram(latencies: dict[str, np.ndarray]) -> list[tuple[str, list[str]]]:
    """(bin, a bar with its count per method), from the first to the last bin that is not empty."""
    counts = np.array([_counts(late) for late in latencies.values()])
    used = np.flatnonzero(counts.any(axis=0))
    largest = counts.max(axis=1)
    return [
        (_bin(k), [_bar(n, top) for n, top in zip(counts[:, k], largest, strict=True)])
        for k in range(used[0], used[-1] + 1)
    ]


def to_json(assessment: Assessment) -> dict[str, Any]:
    """The assessment as JSON-ready data, SI."""
    host = asdict(assessment.host)
    host["governors"] = {str(cpu): governor for cpu, governor in assessment.host.governors.items()}
    return {
        "machine": host,
        "clock_read_s": assessment.clock_cost,
        "steal_fraction": assessment.steal_fraction,
        "cpu": assessment.cpu,
        "period_s": PERIOD_NS / 1e9,
        "privileges": [asdict(privilege) for privilege in assessment.wakeups.privileges],
        "bin_edges_s": [edge / 1e9 for edge in EDGES],
        "latency": {
            method: {**_with_unit(asdict(latency_statistics(late))), "histogram": _counts(late).tolist()}
            for method, late in assessment.wakeups.latency.items()
        },
        "result": {"method": PRIVILEGED, "suitable": assessment.suitable, "rate_Hz": assessment.rate},
        "recommendations": assessment.recommendations,
    }


def format_time(seconds: float) -> str:
    """Three significant digits with an SI prefix."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= 0.9995 * factor:  # rounds up to 1 of this unit
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def format_frequency(hertz: float) -> str:
    return f"{hertz / 1e3:g} kHz" if hertz >= 1e3 else f"{hertz:g} Hz"


def format_percent(fraction: float) -> str:
    return show_percent(fraction, 2)


def _line(label: str, text: str) -> str:
    return f"{label:<10} {text}"


def _with_unit(statistics: dict[str, Any]) -> dict[str, Any]:
    return {name if name == "count" else f"{name}_s": value for name, value in statistics.items()}


def _counts(late: np.ndarray) -> np.ndarray:
    """The number of values in each bin; the last bin has no end."""
    bins = np.searchsorted(EDGES, late, side="right") - 1
    return np.bincount(np.maximum(bins, 0), minlength=len(EDGES))


def _bin(k: int) -> str:
    if k == len(EDGES) - 1:
        return f"over {format_time(EDGES[k] / 1e9)}"
    first, last = format_time(EDGES[k] / 1e9), format_time(EDGES[k + 1] / 1e9)
    if k == 0:
        return f"under {last}"
    number, unit = first.split()
    return f"{number}–{last}" if last.endswith(f" {unit}") else f"{first} – {last}"


def _bar(count: int, largest: int) -> str:
    """A bar of length `BAR` for the largest count, visible for every count but 0."""
    if not count:
        return ""
    eighths = max(1, round(8 * BAR * count / largest))
    bar = "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()
    return f"{bar:<{BAR}} {count:,}"


def _governors(host: HostFacts) -> str:
    return ", ".join(sorted(set(host.governors.values()))) or "unknown"


def _idle(host: HostFacts) -> str:
    used = [state for state in host.idle_states if state.enabled]
    return ", ".join(f"{state.name} ({format_time(state.latency)})" for state in used) or "unknown"
