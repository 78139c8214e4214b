"""How many mutants of a module its tests notice.

    python -m tests.kit.mutation cosim/simulation/plant/encoder.py drivers/odrive/axis.py [--count 12] [--seed 0]
    [--jobs 2]

Takes `count` random mutants of each module, runs the tests on a copy of the checkout and prints the mutants that got
away. The fast tests of the room run first, then the slow ones, until one fails; `--tests 'PATHS OPTIONS'` runs these
instead. A mutant that reaches the time limit is noticed. Look at each that got away: a test is missing, or the mutant
changes nothing. Exit code 1 if fewer than `--least` (0.98) of all are noticed.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tests.kit.mutants import mutants

ROOT = Path(__file__).parents[2]
PYTEST = (sys.executable, "-m", "pytest", "-n0", "-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=line")
NO_TESTS = 5  # exit code of pytest: the marker or the folder selects none
LIMIT = 600.0  # s for one stage of tests
# tests of a room that stand in another folder
ELSEWHERE = {"multibody": "tests/oracle", "drivers": "tests/conformance"}

Stage = tuple[str, ...]  # arguments of pytest


@dataclass(frozen=True)
class Mutant:
    """A module, relative to the root, with one mistake in it."""

    module: Path
    what: str
    source: str
    lines: range  # of the statement


def number_of(module: Path) -> int:
    """How many mutants it has."""
    return sum(1 for _ in mutants((ROOT / module).read_text(encoding="utf-8")))


def numbered(module: Path, numbers: Collection[int]) -> list[Mutant]:
    """The mutants of a module with these numbers."""
    every = enumerate(mutants((ROOT / module).read_text(encoding="utf-8")))
    return [Mutant(module, what, ast.unparse(code), lines) for k, (what, code, lines) in every if k in numbers]


def chosen(module: Path, count: int, seed: int) -> list[Mutant]:
    """`count` random mutants of a module, or all if there are fewer."""
    number = number_of(module)
    return numbered(module, random.Random(f"{seed} {module}").sample(range(number), min(count, number)))


def stages(module: Path, tests: Sequence[str]) -> list[Stage]:
    """The tests that may notice a mutant of this module, the fastest and nearest first."""
    if tests:
        return [tuple(tests)]
    inside = module.parts[module.parts[0] == "cosim" : -1]
    # tests of a room, or of a part of a room
    named = [Path("tests", *inside[first:until]) for until in range(len(inside), 0, -1) for first in range(until)]
    near = next((folder for folder in named if (ROOT / folder).is_dir()), None)
    rooms = ["tests/shared" if near is None else near.as_posix()]
    rooms += [folder for room, folder in ELSEWHERE.items() if room in inside]
    return [("--full", "-m", speed, room) for room in rooms for speed in ("not slow", "slow")]


def copy_of_checkout(folder: Path) -> Path:
    """The files under version control, and those that are new, in this folder."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target, follow_symlinks=False)
    return folder


def stopped_after(
    seconds: float, command: Sequence[str], folder: Path, environment: Mapping[str, str], printed: Path
) -> int | None:
    """The exit code of a command, None if it did not end by itself; its output goes to a file."""
    with printed.open("w") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=output, start_new_session=True
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def passes(copy: Path, stage: Stage) -> bool:
    """Whether these tests pass in the copy within the time limit."""
    environment = os.environ | {"PYTHONPATH": str(copy)}
    return stopped_after(LIMIT, [*PYTEST, *stage], copy, environment, copy / "output.txt") in (0, NO_TESTS)


def noticed(copy: Path, mutant: Mutant, tests: Sequence[str]) -> bool:
    """Whether a test fails with this mutant in the copy."""
    place = copy / mutant.module
    original = place.read_text(encoding="utf-8")
    place.write_text(mutant.source, encoding="utf-8")
    try:
        return not all(passes(copy, stage) for stage in stages(mutant.module, tests))
    finally:
        place.write_text(original, encoding="utf-8")


def check_unchanged(copy: Path, modules: Sequence[Path], tests: Sequence[str]) -> None:
    """Exit with the output of the tests that fail without a mutant."""
    for stage in dict.fromkeys(stage for module in modules for stage in stages(module, tests)):
        if not passes(copy, stage):
            print((copy / "output.txt").read_text())
            sys.exit(f"the tests fail without a mutant: {' '.join(stage)}")


def main(arguments: Sequence[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m tests.kit.mutation", description="Mutants that tests notice.")
    options.add_argument("modules", nargs="+", type=Path)
    options.add_argument("--count", type=int, default=12, help="mutants of each module")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options.add_argument("--tests", default="", help="paths and options of pytest, in quotes, instead of the room's")
    options.add_argument("--least", type=float, default=0.98, help="fraction of the mutants that tests must notice")
    given = options.parse_args(arguments)
    tests = shlex.split(given.tests)
    modules = [Path(os.path.relpath(module.absolute(), ROOT)) for module in given.modules]
    every = [mutant for module in modules for mutant in chosen(module, given.count, given.seed)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.jobs) as workers:
        copies: SimpleQueue[Path] = SimpleQueue()
        for k in range(given.jobs):
            copies.put(copy_of_checkout(Path(folder, str(k))))
        copy = copies.get()
        check_unchanged(copy, modules, tests)
        copies.put(copy)

        def tried(mutant: Mutant) -> bool:
            copy = copies.get()
            try:
                return noticed(copy, mutant, tests)
            finally:
                copies.put(copy)

        found = 0
        for mutant, was_noticed in zip(every, workers.map(tried, every), strict=True):
            found += was_noticed
            if not was_noticed:
                print(f"{mutant.module}: {mutant.what}", flush=True)
    print(f"{found} of {len(every)} mutants noticed, {found / len(every):.1%}")
    return 0 if found >= given.least * len(every) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
