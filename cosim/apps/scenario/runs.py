"""The scenarios of a rig and of further files: read, run in processes over the cores, and their results in order."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cosim.apps.scenario.processes import Children, each_in_turn
from cosim.apps.scenario.result import ScenarioResult
from cosim.apps.scenario.scenario_batch import BAD_INPUT, ScenarioBatch
from cosim.apps.scenario.tokens import Tokens
from cosim.core.errors import ErrorList, InputError, InputErrors, did_you_mean
from cosim.rig.reading.schema import Reading
from cosim.rig.reading.yaml_source import Override, YamlSource, load_yaml, overrides_in
from cosim.rig.sections.rig_spec import RigSpec, read_rig
from cosim.rig.sections.scenario import ScenarioSpec, read_scenarios

PAUSE = 0.05  # s between looks at the results
SECTION = "scenario"

Progress = Callable[[int, int], object]  # results so far, of how many


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
