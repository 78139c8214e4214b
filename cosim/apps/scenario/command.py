"""`cosim scenario`: run the scenarios of a rig, print a table, write JUnit XML and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from cosim.apps.scenario.junit import details, junit_of
from cosim.apps.scenario.result import ScenarioResult
from cosim.apps.scenario.runs import Progress, ScenarioFiles, run_scenarios
from cosim.core.errors import InputError, RunError, plural
from cosim.core.units import format_seconds
from cosim.output import console
from cosim.output.output_files import check_output, identity, write_error, write_file
from cosim.rig.reading.yaml_source import Override

NAMED = 5  # failed scenarios in the last line


def scenario_rig(
    rig: Path,
    files: Sequence[Path],
    overrides: Sequence[Override],
    only: Sequence[str],
    jobs: int | None,
    junit: Path | None,
    json_file: Path | None,
    record: Path | None,
) -> None:
    """Print the table, and write the files. Raises InputErrors, and RunError if a scenario failed."""
    if jobs is not None and jobs < 1:
        raise InputError(f"{jobs} is no number of processes; give 1 or more", "--jobs")
    inputs = {identity(path): "the rig itself" if path == rig else "a file with scenarios" for path in (rig, *files)}
    for path, option, suffix in ((junit, "--junit", ".xml"), (json_file, "--json", ".json")):
        if path is not None and str(path) != "-":
            check_output(path, option, (suffix,), inputs)
    if record is not None:
        try:
            record.mkdir(parents=True, exist_ok=True)
        except OSError as cause:
            raise write_error(record, "recordings", cause) from cause
    given = ScenarioFiles(rig, tuple(files), tuple(overrides))
    with _shown(rig.stem) as progress:
        results = run_scenarios(given, only, jobs, record, progress)
    if str(json_file) != "-":
        print_results(results)
    if junit is not None:
        write_file(junit, junit_of(rig.stem, results), "JUnit XML")
    if json_file is not None:
        text = json.dumps([asdict(result) | {"ok": result.ok} for result in results], indent=2) + "\n"
        if str(json_file) == "-":
            print(text, end="")
        else:
            write_file(json_file, text.encode(), "results")
    if failed := [result.name for result in results if not result.ok]:
        names = ", ".join(failed[:NAMED]) + (", …" if len(failed) > NAMED else "")
        raise RunError(f"{len(failed)} of {len(results)} {plural(len(results), 'scenario')} failed: {names}", str(rig))


@contextmanager
def _shown(name: str) -> Iterator[Progress]:
    """On a terminal one line that changes, nothing in a pipe."""
    terminal = sys.stderr.isatty()

    def show(done: int, total: int) -> None:
        if terminal:
            console.write_line(f"{name}: {done}/{total} scenarios")

    try:
        yield show
    finally:
        if terminal:
            console.write_line("")


def print_results(results: Sequence[ScenarioResult]) -> None:
    """A table, and under it what led to each failure."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    width = None if sys.stdout.isatty() else 160
    out, table = Console(highlight=False, width=width), Table(box=SIMPLE_HEAD)
    for heading in ("scenario", "faults", "expected", "what happened"):
        table.add_column(heading, overflow="fold")
    table.add_column("reaction", justify="right", no_wrap=True)
    table.add_column("result", no_wrap=True)
    for result in results:
        cells = (result.name, "\n".join(result.faults), "\n".join(result.expected), result.happened, _reaction(result))
        table.add_row(*map(escape, cells), "[green]ok[/]" if result.ok else "[bold red]FAILED[/]")
    out.print(table)
    for result in (each for each in results if not each.ok):
        print(f"{result.name}: {'; '.join(result.failures)}")
        for line in details(result)[len(result.expected) :]:
            print(f"  {line}")


def _reaction(result: ScenarioResult) -> str:
    if result.reaction is None or result.reaction_ticks is None:
        return "–"
    return f"{result.reaction_ticks} {plural(result.reaction_ticks, 'tick')}, {format_seconds(result.reaction)}"
