"""Whether the gate notices the mutants that everything notices.

    python -m tests.kit.gate_mutants FOLDER [--count 300] [--seed 0] [--jobs 2] [--least 0.98] [--write]

Random mutants of FOLDERS, of each as many: the tests of the gate that run the mutated lines run first, the room's
before the others, and where all pass the tests that are not in the gate. FOLDER: of `tests.kit.coverage_by_test`, which
says what they run; for code that leaves no lines, or runs when a module is imported, they are the room's and the ones
that run other lines of the module. The shortest run first, until one fails, in SECONDS. With `--write`, tests that
alone notice a mutant go to `tests/gate.json`. Exit code 1 if the gate notices less than `--least` of them.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import NamedTuple

from tests.kit.coverage_by_test import Measured, read
from tests.kit.gate import choice_of, read_choice, write_choice
from tests.kit.mutation import ROOT, Mutant, copy_of_checkout, number_of, numbered, stages, stopped_after
from tests.kit.run_listed import FAILED

FOLDERS = tuple(
    Path(folder)
    for folder in (
        "cosim/control",
        "cosim/simulation/plant",
        "cosim/simulation/tick",
        "cosim/execution/hardware",
        "cosim/core/compile",
        "cosim/mechanics/multibody",
        "cosim/mechanics/bondgraph",
        "cosim/execution",
        "drivers",
    )
)
SECONDS = 60.0  # of processor time: the tests of the gate for a mutant, and the others
HANGING = 1200.0  # s, of tests that wait for ever with a mutant
GATE, OTHERS, NOBODY = "gate", "others", "nobody"


class Noticed(NamedTuple):
    by: str  # GATE, OTHERS or NOBODY
    test: str  # "" for NOBODY, and where none ended in time


def chosen(count: int, seed: int) -> list[Mutant]:
    """As many of each folder."""
    found = list[Mutant]()
    for folder in FOLDERS:
        modules = [path.relative_to(ROOT) for path in sorted((ROOT / folder).rglob("*.py"))]
        each = [(module, k) for module in modules for k in range(number_of(module))]
        share = count * (FOLDERS.index(folder) + 1) // len(FOLDERS) - len(found)
        taken = random.Random(f"{seed} {folder}").sample(each, min(share, len(each)))
        for module in modules:
            found += numbered(module, [k for other, k in taken if other == module])
    return found


def runs_at_import(mutant: Mutant) -> bool:
    """Whether no call runs its lines: which tests did is by chance, they imported the module first."""
    bodies = [
        range(node.body[0].lineno, (node.end_lineno or 0) + 1)
        for node in ast.walk(ast.parse((ROOT / mutant.module).read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return not any(mutant.lines.start in body for body in bodies)


class Judge:
    """Runs tests on copies of the checkout."""

    def __init__(self, tests: Mapping[str, Measured]) -> None:
        self._tests, self._choice = tests, read_choice()
        self._unfit: dict[str, bool] = {}  # tests that fail on a copy without a mutant
        self._lock = Lock()

    def noticed(self, copy: Path, mutant: Mutant) -> Noticed:
        for by, tests in self._running(mutant):
            while tests:
                ended, failed = self._run(copy, tests, mutant)
                if not ended:
                    return Noticed(by, "")
                if failed == "":
                    break
                if self._fits(copy, failed):
                    return Noticed(by, failed)
                tests = [test for test in tests if test != failed]
        return Noticed(NOBODY, "")

    def _running(self, mutant: Mutant) -> list[tuple[str, list[str]]]:
        """Tests that run the mutated lines, in the order in which they run: of the gate, and others."""
        file, at_import = mutant.module.as_posix(), runs_at_import(mutant)
        bits = -1 if at_import else sum(1 << line for line in mutant.lines)  # -1: any line
        near = tuple(f"{stage[-1]}/" for stage in stages(mutant.module, ()))
        running = {test for test, row in self._tests.items() if row.lines.get(file, 0) & bits}
        if at_import or not running:
            running |= {test for test in self._tests if test.startswith(near)}
        found = sorted((test for test in running if not self._unfit.get(test)), key=lambda test: self._tests[test].cost)
        of_gate, others = [
            [test for test in found if self._choice.leaves_out(test) is left_out] for left_out in (False, True)
        ]
        far = [test for test in of_gate if not test.startswith(near)]
        return [
            (GATE, [test for test in of_gate if test.startswith(near)]),  # apart: a few files to read, not hundreds
            (GATE, far),
            (OTHERS, sorted(others, key=lambda test: not test.startswith(near))),
        ]

    def _run(self, copy: Path, tests: Sequence[str], mutant: Mutant | None) -> tuple[bool, str]:
        """(whether they ended in time, the test that failed or "")"""
        place = copy / mutant.module if mutant else None
        original = place.read_text(encoding="utf-8") if place else ""
        listed, printed = copy / "listed.json", copy / "output.txt"
        listed.write_text(json.dumps(tests))
        compiled = mutant is not None and "machine_code" in original
        with tempfile.TemporaryDirectory() as fresh:
            environment = os.environ | {
                "PYTHONPATH": str(copy),
                "NUMBA_CACHE_DIR": fresh if compiled else str(copy / "numba"),
            }
            command = [sys.executable, "-m", "tests.kit.run_listed", str(listed), str(SECONDS)]
            if mutant is not None and place is not None:
                place.write_text(mutant.source, encoding="utf-8")
            try:
                code = stopped_after(HANGING, command, copy, environment, printed)
            finally:
                if place is not None:
                    place.write_text(original, encoding="utf-8")
        said = [line.removeprefix(FAILED) for line in printed.read_text().splitlines() if line.startswith(FAILED)]
        if code is None:
            return False, ""
        # without a test that failed, the mutant ended the process or a file of tests cannot be imported
        return True, "" if code == 0 else said[0] if said else tests[0]

    def _fits(self, copy: Path, test: str) -> bool:
        """Whether it passes without a mutant."""
        with self._lock:
            known = self._unfit.get(test)
        if known is None:
            known = self._run(copy, [test], None) != (True, "")
            with self._lock:
                self._unfit[test] = known
        return not known


def main(arguments: Sequence[str]) -> int:
    options = argparse.ArgumentParser(
        prog="python -m tests.kit.gate_mutants", description="Mutants that the gate notices."
    )
    options.add_argument("folder", type=Path, help="of tests.kit.coverage_by_test")
    options.add_argument("--count", type=int, default=300)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options.add_argument("--least", type=float, default=0.98, help="of the mutants that everything notices")
    options.add_argument("--write", action="store_true", help="tests that alone notice a mutant to tests/gate.json")
    given = options.parse_args(arguments)
    tests = read(given.folder)
    judge, every = Judge(tests), chosen(given.count, given.seed)
    rooms: dict[str, Counter[str]] = {}
    needed = set[str]()
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(given.jobs) as workers:
        copies: SimpleQueue[Path] = SimpleQueue()
        for k in range(given.jobs):
            copies.put(copy_of_checkout(Path(place, str(k))))

        def tried(mutant: Mutant) -> Noticed:
            copy = copies.get()
            try:
                return judge.noticed(copy, mutant)
            finally:
                copies.put(copy)

        for mutant, (by, test) in zip(every, workers.map(tried, every), strict=True):
            folder = next(folder for folder in FOLDERS if mutant.module.is_relative_to(folder))
            rooms.setdefault(folder.name, Counter())[by] += 1
            needed |= {test} if by == OTHERS and test else set()
            print(f"{by:8}{mutant.module}:{mutant.lines.start}: {mutant.what}  {test}", flush=True)
    total = sum(rooms.values(), Counter())
    for room, count in [*rooms.items(), ("all", total)]:
        print(f"{room:12}" + "".join(f"{count[by]:5} {by}" for by in (GATE, OTHERS, NOBODY)))
    if given.write and needed:
        before = read_choice()
        gate = {test for test in tests if not before.leaves_out(test)} | needed
        write_choice(choice_of(tests, gate, [*before.needed, *needed]))
    share = total[GATE] / max(total[GATE] + total[OTHERS], 1)
    print(f"the gate notices {share:.1%} of what everything notices")
    return 0 if share >= given.least else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
