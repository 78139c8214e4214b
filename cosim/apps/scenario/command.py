"""`cosim scenario`: run the scenarios of a rig and of further files, print a table, write JUnit XML and JSON.

They run in processes over the cores; results come in order.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from cosim.apps.scenario.processes import Children, Tokens, each_in_turn
from cosim.apps.scenario.result import ScenarioResult, details, junit_of
from cosim.apps.scenario.scenario_batch import BAD_INPUT, ScenarioBatch
from cosim.core.errors import ErrorList, InputError, InputErrors, RunError, did_you_mean, plural
from cosim.core.units import format_seconds
from cosim.output import console
from cosim.output.output_files import check_output, identity, write_error, write_file
from cosim.rig.reading.schema import Reading
from cosim.rig.reading.yaml_source import Override, YamlSource, load_yaml, overrides_in
from cosim.rig.run.run_warnings import give
from cosim.rig.sections.rig_spec import RigSpec, read_rig
from cosim.rig.sections.scenario import ScenarioSpec, read_scenarios

NAMED = 5  # failed scenarios in the last line
PAUSE = 0.05  # s between looks at the results
SECTION = "scenario"
Progress = Callable[[int, int], object]  # results so far, of how many


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
    give(dict.fromkeys(line for result in results for line in result.warnings))
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


@dataclass(frozen=True)
class ScenarioFiles:
    """A rig, further files with scenarios and with values that replace the rig's, and overrides."""

    rig: Path
    files: tuple[Path, ...] = ()
    overrides: tuple[Override, ...] = ()

    def sources(self) -> list[YamlSource]:
        return [load_yaml(path, least="a 'scenario'") for path in self.files]

    def read(self, further: Sequence[Override] = ()) -> tuple[RigSpec, tuple[ScenarioSpec, ...]]:
        """The rig with all overrides, and all scenarios. Raises InputErrors."""
        sources = self.sources()
        values = [each for source in sources for each in overrides_in(source, but=SECTION)]
        spec = read_rig(self.rig, [*values, *self.overrides, *further])
        errors, found = ErrorList(), list(spec.scenarios)
        for source in sources:
            reading = Reading(source.place, errors, Path(source.file).parent)
            found += read_scenarios(source.data.get(SECTION), spec.scenario_context, reading)
        known: dict[str, ScenarioSpec] = {}
        for scenario in found:
            if (first := known.setdefault(scenario.name, scenario)) is not scenario:
                what = f"there is a scenario '{scenario.name}' already, at {first.place(first.key)}"
                errors.append(InputError(f"{what}; give this one another name", scenario.place(scenario.key)))
        if errors:
            raise InputErrors(errors)
        return spec, tuple(found)


def run_scenarios(
    files: ScenarioFiles,
    only: Sequence[str] = (),
    jobs: int | None = None,
    record: Path | None = None,
    progress: Progress = lambda done, total: None,
) -> list[ScenarioResult]:
    """only: names, all by default; jobs: processes that compute at a time, one per core by default; record: an existing
    folder for the recordings of those that fail.

    Raises InputErrors for mistakes in the files, InputError for names that do not exist and on a system without fork.
    """
    if not hasattr(os, "fork"):
        raise InputError("scenarios run in forked processes; use Linux or macOS", "cosim scenario")
    _, scenarios = files.read()
    if not scenarios:
        raise InputError("there are no scenarios; add a section 'scenario', or name a file with one", str(files.rig))
    names = [scenario.name for scenario in scenarios]
    for name in only:
        if name not in names:
            raise InputError(f"there is no scenario '{name}'{did_you_mean(name, names)}", "--only")
    chosen = {k: name for k, name in enumerate(names) if not only or name in only}
    groups: dict[tuple[Override, ...], list[int]] = {}
    for k, scenario in enumerate(scenarios):
        groups.setdefault(scenario.overrides, []).append(k)
    folder, tokens = Path(tempfile.mkdtemp(prefix="cosim-scenario-")), Tokens(jobs or _cores())
    try:
        work = []
        for number, (overrides, members) in enumerate(groups.items()):
            if not any(k in chosen for k in members):
                continue
            spec, found = files.read(overrides)
            by_name = {each.name: each for each in found}
            batch = ScenarioBatch(spec, folder, tokens, record)
            mine = {k: by_name[names[k]] for k in members if k in chosen}
            job = partial(batch.run, [by_name[names[k]] for k in members], mine)
            work.append((job, folder / f"batch{number}.error"))
        _run(work, tokens, lambda: progress(len(list(folder.glob("[0-9]*.json"))), len(chosen)))
        if (wrong := folder / BAD_INPUT).exists():
            raise InputErrors([InputError(line) for line in json.loads(wrong.read_text())])
        failures = [path.read_text() for path in sorted(folder.glob("batch*.error"))]
        return [_result(folder, k, scenarios[k], failures) for k in chosen]
    finally:
        tokens.close()
        shutil.rmtree(folder, ignore_errors=True)


def _cores() -> int:
    """That this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _run(work: list[tuple[Callable[[], object], Path]], tokens: Tokens, look: Callable[[], object]) -> None:
    children = Children(tokens)
    try:
        for _ in each_in_turn(children, tokens, work, PAUSE):
            look()
    except BaseException:
        children.kill()
        raise


def _result(folder: Path, number: int, spec: ScenarioSpec, failures: Sequence[str]) -> ScenarioResult:
    path, error = folder / f"{number}.json", folder / f"{number}.error"
    if path.exists():
        return ScenarioResult.of(json.loads(path.read_text()))
    what = error.read_text() if error.exists() else next(iter(failures), "its process ended without a result")
    expected = tuple(each.text for each in spec.expect)
    return ScenarioResult(spec.name, (), expected, "crashed", what, (f"crashed: {what}",), None, None, (), 0.0)
