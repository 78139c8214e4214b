"""The report of `python -m benchmarks`: a table, and JSON."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks import cyclictest
from benchmarks.rows import BenchRow

PACKAGES = ("cosim", "numpy", "casadi", "llvmlite", "pin", "mujoco", "drake", "exudyn", "mosaik", "example-robot-data")
UNMEASURED = {True: "[red]failed[/red]", False: "[yellow]not measured[/yellow]"}
OUTCOMES = {True: "[green]met[/green]", False: "[red]missed[/red]", None: ""}


def print_table(rows: Sequence[BenchRow]) -> None:
    """Print the results, a line per row, and below them what each row compares."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console, shown = Console(highlight=False), Table(box=SIMPLE_HEAD, pad_edge=False)
    shown.add_column("row", no_wrap=True)
    for heading in ("ours", "other", "ratio", "target"):
        shown.add_column(heading, justify="right", no_wrap=True)
    shown.add_column("", no_wrap=True)
    for row in rows:
        outcome = OUTCOMES[row.met] if row.ours is not None else UNMEASURED[row.broken]
        shown.add_row(row.case.name, *row_cells(row), outcome)
    console.print(shown)
    for row in rows:
        console.print(f"[bold]{row.case.name}[/bold]: {escape(describe_row(row))}", soft_wrap=True)


def row_cells(row: BenchRow) -> list[str]:
    """ours, other, ratio, target as text; empty if not available."""
    unit, target = row.case.unit.replace("us", "µs"), row.case.target
    times = [f"{value:.3g} {unit}" if value is not None else "" for value in (row.ours, row.other)]
    ratio = f"{row.ratio:.2f} ×" if row.ratio is not None else ""
    if target is None:
        return [*times, ratio, ""]
    sign, of = "≤" if target.at_most else "≥", unit if target.figure == "ours" else "×"
    return [*times, ratio, f"{sign} {target.bound:g} {of}"]


def describe_row(row: BenchRow) -> str:
    """What was compared, the difference of the results, the note."""
    case = row.case
    parts = [case.about, f"other: {case.against}" if case.against else "", row.note]
    if row.agreement is not None:
        parts.insert(2, f"agree to {row.agreement:.0e}")
    return "; ".join(part for part in parts if part)


def document(machine: dict[str, Any], rows: Sequence[BenchRow], quick: bool) -> dict[str, Any]:
    """A run of the bench as JSON-ready data."""
    figures = [row.figures() for row in rows]
    return {"machine": machine, "versions": versions(), "quick": quick, "rows": figures}


def machine() -> dict[str, Any]:
    """The machine and its present load."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "processors": os.cpu_count(),
        "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
    }


def _processor() -> str:
    """The model name of the processor, if known."""
    table = Path("/proc/cpuinfo")
    lines = table.read_text().splitlines() if table.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def versions() -> dict[str, str | None]:
    """Versions of Python and of the packages and programs that are measured; None if not installed."""
    found: dict[str, str | None] = {"python": platform.python_version(), cyclictest.PROGRAM: cyclictest.version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found
