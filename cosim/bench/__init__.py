"""`cosim bench`: this program and its peers, measured side by side in one run on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cosim.bench import (
    report,
    rows_batch,
    rows_chain,
    rows_compile,
    rows_coupling,
    rows_dashboard,
    rows_deploy,
    rows_deploy_page,
    rows_drives,
    rows_dynamics,
    rows_elastic,
    rows_exported,
    rows_fmu_export,
    rows_fmu_parts,
    rows_formulations,
    rows_gradient,
    rows_hardware,
    rows_identification,
    rows_loops,
    rows_margins,
    rows_operation_counts,
    rows_parts,
    rows_precision,
    rows_python,
    rows_realtime,
    rows_recordings,
    rows_rollouts,
    rows_runs,
    rows_scenarios,
    rows_start,
    rows_stream,
    rows_tick,
    rows_tuning,
)
from cosim.bench.paired_timing import FULL, QUICK
from cosim.bench.robots import sample_rig
from cosim.bench.rows import BenchCase, BenchRow, measure_case
from cosim.compile import interpreting
from cosim.compile.compiled import INTERPRET_VARIABLE
from cosim.errors import InputError, RunError, did_you_mean
from cosim.output import console
from cosim.output.output_files import write_file

CASES: tuple[BenchCase, ...] = (
    *rows_dynamics.CASES,
    *rows_exported.CASES,
    *rows_tick.CASES,
    *rows_fmu_export.CASES,
    *rows_deploy.CASES,
    *rows_fmu_parts.CASES,
    *rows_python.CASES,
    *rows_precision.CASES,
    *rows_coupling.CASES,
    *rows_parts.CASES,
    *rows_drives.CASES,
    *rows_elastic.CASES,
    *rows_batch.CASES,
    *rows_rollouts.CASES,
    *rows_gradient.CASES,
    *rows_tuning.CASES,
    *rows_margins.CASES,
    *rows_identification.CASES,
    *rows_runs.CASES,
    *rows_recordings.CASES,
    *rows_stream.CASES,
    *rows_chain.CASES,
    *rows_loops.CASES,
    *rows_formulations.CASES,
    *rows_operation_counts.CASES,
    *rows_realtime.CASES,
    *rows_hardware.CASES,
    *rows_scenarios.CASES,
    *rows_start.CASES,
    *rows_dashboard.CASES,
    *rows_deploy_page.CASES,
    *rows_compile.CASES,
)


def main(json: Path, only: str | None = None, quick: bool = False) -> None:
    """Measure the cases whose name contains `only`, print a table and write JSON to `json` (- for stdout
    instead of the table).

    Raises InputError when no case has such a name or the sample rig is not found; RunError, after the output is
    written, when a target was missed.
    """
    console.check_targets([], json)
    if interpreting():
        raise InputError("is set, but the bench measures compiled code; unset it", INTERPRET_VARIABLE)
    cases, budget = select(CASES, only), QUICK if quick else FULL
    sample_rig()
    # before the bench itself loads the machine
    machine, rows = report.machine(), []
    with console.progress("bench") as shown:
        for k, case in enumerate(cases, 1):
            rows.append(measure_case(case, budget))
            if shown is not None:
                shown(k / len(cases))
    write(json, report.document(machine, rows, quick), rows)
    missed = [row.case.name for row in rows if row.met is False]
    if missed:
        targets = sum(row.met is not None for row in rows)
        raise RunError(f"{len(missed)} of {targets} targets missed: {', '.join(missed)}", "bench")


def select(cases: Sequence[BenchCase], only: str | None) -> list[BenchCase]:
    """The cases whose name contains `only`, in upper or lower case; for None all but those on request. Raises
    InputError when there are none."""
    chosen = [case for case in cases if (not case.on_request if only is None else only.lower() in case.name.lower())]
    if not chosen:
        known = did_you_mean(only or "", [case.name for case in cases])
        raise InputError(f"no row is named '{only}'{known}", "--only")
    return chosen


def write(json: Path, document: dict[str, Any], rows: Sequence[BenchRow]) -> None:
    """Print the table and write the file, or print only the JSON on stdout."""
    import orjson

    text = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if str(json) == "-":
        print(text.decode(), end="")
        return
    report.print_table(rows)
    write_file(json, text, "figures")
    print(f"wrote    {json}")
