"""The comparison of two runs on the command line."""

from __future__ import annotations

import math
from typing import Any

from cosim.core.errors import shortened
from cosim.core.units import format_seconds, show_percent, unit_sign
from cosim.output.text_table import TextTable
from cosim.rig.run.comparison import Comparison, partings, size_of
from cosim.rig.run.measured_log import MeasuredLog

MOST_SIGNALS, MOST_FIELDS, MOST_PARTINGS = 12, 24, 3  # that are listed
LONGEST_VALUE = 40  # characters of the text of a field
ROUNDING = 1e-9  # relative to the size of a signal: smaller differences are summed up in a line
# what rounding leaves of a signal that is 0 is below both: relative to the largest signal of the same unit, and in SI
NOISE, SMALLEST = 1e-15, 1e-10


def print_comparison(comparison: Comparison, a: str, b: str) -> None:
    """Print what differs: fields of the summaries, then signals, the largest difference relative to the signal first.

    a, b: names of the runs.
    """
    print(f"a  {a}  {comparison.a.rig.name}, {comparison.a.t[-1]:.6g} s")
    print(f"b  {b}  {comparison.b.rig.name}, {comparison.b.t[-1]:.6g} s")
    for name, run in ((a, comparison.a), (b, comparison.b)):
        if run.lacks:
            print(f"warning  {name}: {run.lacks}")
        if isinstance(run, MeasuredLog):
            for note in run.notes:
                print(f"note     {name}: {note}")
    if comparison.shift:
        print(
            f"b is compared {format_seconds(abs(comparison.shift))} {'later' if comparison.shift > 0.0 else 'earlier'}"
        )
    if comparison.identical and not comparison.changed:
        print("the runs are equal, to the bit")
        return

    fields = {name: pair for name, pair in comparison.changed.items() if not name.startswith("joints.")}
    if fields:
        shown = _table("summary", "a", "b", "b / a")
        for name, (first, second) in list(fields.items())[:MOST_FIELDS]:
            shown.add_row(name, _value(first), _value(second), _ratio(first, second))
        _print(shown)
        if (more := len(fields) - MOST_FIELDS) > 0:
            print(f"… and {more} more")
    if any(name.startswith("joints.") for name in comparison.changed):
        _print(_joints(comparison))
    for parting in partings(comparison)[:MOST_PARTINGS]:
        size = f"{parting.difference:+.3g} {unit_sign(parting.unit)}"
        print(
            f"parts    at {parting.t:.6g} s: {parting.signal} by {size}, {show_percent(parting.relative)} of its size"
        )
    differing = differing_signals(comparison)
    if differing:
        _print(signals_table(comparison, "RMS of b − a"))
    shown_signals = min(len(differing), MOST_SIGNALS)
    rest = len(comparison.signals) - shown_signals
    if not differing:
        print(f"signals  all {rest} equal within {ROUNDING:g} of their size up to t = {comparison.end:.6g} s")
    elif rest:
        larger = len(differing) - shown_signals
        equal = f"{rest - larger} equal within 1e-9 of their size"
        print(f"{rest} more signals: {equal}" + (f", {larger} with smaller differences" if larger else ""))
    for which, names in (("a", comparison.only_a), ("b", comparison.only_b)):
        if names:
            listed = ", ".join(names[:MOST_SIGNALS]) + (" …" if len(names) > MOST_SIGNALS else "")
            print(f"only in {which}: {listed}")


def differing_signals(comparison: Comparison) -> dict[str, float]:
    """The signals that differ -> the largest difference relative to their size, the largest first; infinite where that
    is."""
    sizes = {name: size_of(comparison, name) for name in comparison.signals}
    largest: dict[str, float] = {}
    for name, difference in comparison.signals.items():
        if math.isfinite(sizes[name]):
            largest[difference.unit] = max(largest.get(difference.unit, 0.0), sizes[name])
    relative = {
        name: d.max / sizes[name] if math.isfinite(sizes[name]) else math.inf
        for name, d in comparison.signals.items()
        if d.max > max(NOISE * largest.get(d.unit, 0.0), SMALLEST) or not math.isfinite(d.max)
    }
    return {name: r for name, r in sorted(relative.items(), key=lambda item: -item[1]) if r > ROUNDING}


def signals_table(comparison: Comparison, rms: str) -> TextTable:
    """The signals that differ most; rms: heading of the column."""
    table = _table("signal", rms, "largest", "at", "of its size")
    for name, relative in list(differing_signals(comparison).items())[:MOST_SIGNALS]:
        d = comparison.signals[name]
        unit = unit_sign(d.unit)
        size = f"{100.0 * relative:.1f} %" if relative >= 1e-3 else f"{relative:.1e}"
        size = size if math.isfinite(relative) else "–"
        table.add_row(name, f"{d.rms:.4g} {unit}", f"{d.max:.4g} {unit}", f"{d.t:.6g} s", size)
    return table


def _joints(comparison: Comparison) -> TextTable:
    """Errors and efforts of the joints of both runs, side by side."""
    keys = {"error RMS": "error_rms", "effort RMS": "effort_rms"}
    shown = _table("joint", *(heading for name in keys for heading in (f"{name} a", "b", "b / a")))
    a, b = (run.summary["joints"] for run in (comparison.a, comparison.b))
    for joint in (joint for joint in a if joint in b):
        cells = []
        for key in keys.values():
            first, second = a[joint][key], b[joint][key]
            cells += [_value(first), _value(second), _ratio(first, second)]
        shown.add_row(joint, *cells)
    return shown


def _table(heading: str, *columns: str) -> TextTable:
    return TextTable([heading], columns)


def _print(table: TextTable) -> None:
    print(*table.lines(), sep="\n")


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return _value(value[0]) if len(value) == 1 else f"[{', '.join(map(_value, value))}]"
    return "–" if value is None else shortened(str(value), LONGEST_VALUE)


def _ratio(a: Any, b: Any) -> str:
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b) == 1:  # of the only joint
        return _ratio(a[0], b[0])
    numbers = [float(x) for x in (a, b) if isinstance(x, int | float) and not isinstance(x, bool)]
    return f"{numbers[1] / numbers[0]:.4g}" if len(numbers) == 2 and a else ""
