"""This program and its peers, measured side by side in one run on this machine, and the ratios."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.paired_timing import FULL, QUICK
from benchmarks.robots import sample_rig
from benchmarks.rows import BenchCase, BenchRow, measure_case
from cosim.core.compile import interpreting
from cosim.core.compile.compiled import INTERPRET_VARIABLE
from cosim.core.errors import InputError, RunError, did_you_mean
from cosim.output import console
from cosim.output.output_files import write_file

ROWS = "rows_"  # with which the modules begin that have CASES


def _found() -> Iterator[BenchCase]:
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith(ROWS):
            yield from import_module(f"{__name__}.{module.name}").CASES


CASES: tuple[BenchCase, ...] = tuple(_found())


def main(json: Path, only: str | None = None, quick: bool = False) -> None:
    """Measure the cases whose name contains `only`, print a table and write JSON to `json` (- for stdout
    instead of the table); the file has each row as soon as it is measured.

    Raises InputError when no case has such a name, the sample rig is not found or the file cannot be written; RunError,
    after all rows, when a target was missed or the measurement of a row failed.
    """
    console.check_targets([], json)
    if interpreting():
        raise InputError("is set, but the bench measures compiled code; unset it", INTERPRET_VARIABLE)
    cases, budget = select(CASES, only), QUICK if quick else FULL
    sample_rig()
    # before the bench itself loads the machine
    machine, rows = report.machine(), []
    to_file = str(json) != "-"
    with console.progress("bench") as shown:
        for k, case in enumerate(cases, 1):
            rows.append(measure_case(case, budget))
            if to_file:
                write_file(json, as_json(report.document(machine, rows, quick)), "figures")
            if shown is not None:
                shown(k / len(cases))
    if to_file:
        report.print_table(rows)
        print(f"wrote    {json}")
    else:
        print(as_json(report.document(machine, rows, quick)).decode(), end="")
    _judge(rows)


def _judge(rows: Sequence[BenchRow]) -> None:
    """Raises RunError for rows that failed, and for targets that were missed."""
    broken = [row.case.name for row in rows if row.broken]
    missed = [row.case.name for row in rows if row.met is False]
    targets = sum(row.met is not None for row in rows)
    parts = [f"{len(broken)} of {len(rows)} rows failed: {', '.join(broken)}"] if broken else []
    parts += [f"{len(missed)} of {targets} targets missed: {', '.join(missed)}"] if missed else []
    if parts:
        raise RunError("; ".join(parts), "bench")


def select(cases: Sequence[BenchCase], only: str | None) -> list[BenchCase]:
    """The cases whose name contains `only`, in upper or lower case; for None all but those on request. Raises
    InputError when there are none."""
    chosen = [case for case in cases if (not case.on_request if only is None else only.lower() in case.name.lower())]
    if not chosen:
        words = sorted({word for case in cases for word in case.name.split()})
        raise InputError(f"no row has '{only}' in its name{did_you_mean(only or '', words)}", "--only")
    return chosen


def as_json(document: dict[str, Any]) -> bytes:
    import orjson

    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
