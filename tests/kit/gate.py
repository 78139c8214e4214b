"""The choice of the gate by evidence: which tests a change passes first, of all that there are.

    python -m tests.kit.gate FOLDER

takes what `tests.kit.coverage_by_test` has left in the folder and writes `tests/gate.json`. In the gate are, in this
order, tests that alone notice a mutant (`needed`, from `tests.kit.gate_mutants`), a case of each function that is not
long, and those that run lines which few others run, for the least time, until in each room the gate runs SHARE of the
lines that any test runs. Rows of tables that take no time stay.

The file holds the functions that are not whole in the gate with the cases that are. A function that it does not name,
such as a new one, is in the gate.
"""

from __future__ import annotations

import argparse
import heapq
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.kit.coverage_by_test import Measured, read

FILE = Path(__file__).parents[1] / "gate.json"
SHORT = 0.02  # s: cases up to here are rows of a table
LONG = 0.2  # s: functions whose shortest case is longer must run lines that others do not
TIMES = 3  # a line that so many tests run gains nothing by another one
SHARE = 0.995
WORTH = (1.0, 0.1, 0.03)  # of the first, second, third test that runs a line


class Choice(NamedTuple):
    """What the file holds."""

    needed: list[str]  # tests
    cases: dict[str, list[str]]  # by function: its tests in the gate

    def leaves_out(self, test: str) -> bool:
        function = function_of(test)
        return function in self.cases and test not in self.cases[function]


def function_of(test: str) -> str:
    return test.partition("[")[0]


def read_choice() -> Choice:
    if not FILE.exists():
        return Choice([], {})
    data = json.loads(FILE.read_text())
    cases = {function: [function + case for case in kept] for function, kept in data["cases"].items()}
    return Choice(data["needed"], cases)


def write_choice(choice: Choice) -> None:
    """Cases without the name of their function."""
    cases = {function: [test.removeprefix(function) for test in kept] for function, kept in choice.cases.items()}
    FILE.write_text(json.dumps({"needed": choice.needed, "cases": cases}, indent=0, sort_keys=True) + "\n")


class Cover:
    """How often the lines of files are run, up to TIMES."""

    def __init__(self) -> None:
        self._levels: dict[str, list[int]] = defaultdict(lambda: [0] * TIMES)
        self.lines: Counter[str] = Counter()  # by room: how many are run

    def gain(self, lines: Mapping[str, int]) -> float:
        gain = 0.0
        for file, bits in lines.items():
            for worth, level in zip(WORTH, self._levels[file], strict=True):
                gain += worth * (bits & ~level).bit_count()
                bits &= level
        return gain

    def rooms(self, lines: Mapping[str, int]) -> set[str]:
        """Those with a line that no other test runs."""
        return {room_of(file) for file, bits in lines.items() if bits & ~self._levels[file][0]}

    def add(self, lines: Mapping[str, int]) -> None:
        for file, bits in lines.items():
            levels = self._levels[file]
            self.lines[room_of(file)] += (bits & ~levels[0]).bit_count()
            for k in range(TIMES):
                levels[k], bits = levels[k] | bits, levels[k] & bits


def room_of(file: str) -> str:
    """The room, or the part of a room, of a file of the program."""
    folders = Path(file).parent.parts
    return "/".join(folders[: 3 if folders[0] == "cosim" else 1])


def all_lines(tests: Iterable[Measured]) -> Counter[str]:
    """By room: how many lines they run."""
    cover = Cover()
    for test in tests:
        cover.add(test.lines)
    return cover.lines


def choose(tests: Mapping[str, Measured], needed: Iterable[str]) -> set[str]:
    """The tests of the gate."""
    chosen, cover, whole = set[str](), Cover(), all_lines(tests.values())

    def take(names: Iterable[str]) -> None:
        for name in names:
            if name not in chosen:
                chosen.add(name)
                cover.add(tests[name].lines)

    functions: dict[str, list[str]] = defaultdict(list)
    for test in sorted(tests, key=lambda test: tests[test].cost):
        functions[function_of(test)].append(test)
    take(needed)
    take(cases[0] for cases in functions.values() if tests[cases[0]].cost <= LONG)
    take(test for test, row in tests.items() if row.cost <= SHORT)
    # a gain only falls as others are chosen: the greatest of the queue is the greatest of all if it has not changed
    queue = [(-cover.gain(row.lines) / row.cost, test) for test, row in tests.items() if test not in chosen]
    heapq.heapify(queue)
    while queue:
        _, test = heapq.heappop(queue)
        row = tests[test]
        value = -cover.gain(row.lines) / row.cost
        if queue and value > queue[0][0]:
            heapq.heappush(queue, (value, test))
            continue
        if any(cover.lines[room] < SHARE * whole[room] for room in cover.rooms(row.lines)):
            take([test])
    return chosen


def choice_of(tests: Mapping[str, Measured], chosen: set[str], needed: Sequence[str]) -> Choice:
    functions: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        functions[function_of(test)].append(test)
    partly = {name: cases for name, cases in functions.items() if not chosen.issuperset(cases)}
    return Choice(sorted(needed), {name: sorted(chosen & set(cases)) for name, cases in sorted(partly.items())})


def main(arguments: Sequence[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m tests.kit.gate", description="Choose the gate by evidence.")
    options.add_argument("folder", type=Path, help="of tests.kit.coverage_by_test")
    given = options.parse_args(arguments)
    tests, before = read(given.folder), read_choice()
    needed = [test for test in before.needed if test in tests]
    chosen = choose(tests, needed)
    write_choice(choice_of(tests, chosen, needed))
    whole, own = (sum(row.cost for test, row in tests.items() if test in some) for some in (set(tests), chosen))
    all_of, of_gate = all_lines(tests.values()), all_lines(tests[test] for test in chosen)
    for room, count in sorted(all_of.items()):
        print(f"{room:22}{count:7} lines, of which the gate runs {of_gate[room] / count:.1%}")
    print(f"{FILE.name}: {len(chosen)} of {len(tests)} tests, {own:.0f} of {whole:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
