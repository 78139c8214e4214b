"""Which tests are in the gate, and which run with `--full` alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.kit.levels import OPTION, covering, full, leave_out, one_of_each

FOLDER = Path("/checkout/tests/a")


class Item:
    """A collected test, with what the choice asks of one."""

    def __init__(self, name, *marks, **parameters):
        self.name, self.nodeid, self.path = name, f"tests/a/test_it.py::{name}", FOLDER / "test_it.py"
        self.callspec = SimpleNamespace(params=parameters)
        self._marks = {mark.name: mark for mark in marks}
        self.get_closest_marker = self._marks.get

    def add_marker(self, mark):
        self._marks[mark.name] = mark


def that_run(items, arguments=(), expression="", everything=False):
    """The names of those that are not left out; that is the whole of what happens to the others."""
    left_out, every = [], list(items)
    config = SimpleNamespace(
        getoption={OPTION: everything, "markexpr": expression}.__getitem__,
        args=list(arguments),
        invocation_params=SimpleNamespace(dir=FOLDER),
        hook=SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items)),
    )
    leave_out(config, items)
    assert sorted(map(id, (*items, *left_out))) == sorted(map(id, every))
    return [item.name for item in items]


def test_every_value_of_a_product_is_in_the_gate():
    def product():
        return [Item(f"test_it[{a}-{b}]", one_of_each, a=a, b=b) for b in (1, 2) for a in "xyz"]

    others = [Item(f"test_other[{a}]", a=a, b=1) for a in "xy"]
    few = ["test_it[x-1]", "test_it[z-1]", "test_it[y-2]", "test_other[x]", "test_other[y]"]
    assert that_run([*product(), *others]) == few
    assert len(that_run([*product(), *others], everything=True)) == 8
    more = that_run([*product(), *others], expression="full")
    assert len(more) == 8  # of which pytest selects those with the mark, as it has them by then
    items = product()
    that_run(items, expression="full")
    assert [item.name for item in items if item.get_closest_marker("full")] == [
        "test_it[y-1]", "test_it[x-2]", "test_it[z-2]"
    ]  # fmt: skip


def test_features_are_covered_by_cheap_cases():
    def in_gate(*arguments):
        return [case.values for case in covering(*arguments) if not case.marks]

    has = {"large": {1, 2, 3}, "small": {1, 2}, "other": {3}, "same": {3}}
    cost = {"large": 10.0, "small": 1.0, "other": 2.0, "same": 2.0}
    assert in_gate(has, has.get, cost.get) == [("small",), ("other",)]
    assert in_gate(has, has.get) == [("large",)]
    assert in_gate([], has.get) == []
    assert in_gate([("a", 1), ("b", 1)], set) == [("a", 1), ("b", 1)]


NAMES = ["test_products[x-1]", "test_products[x-2]", "test_long", "TestIn::test_one"]


@pytest.mark.parametrize(
    ("arguments", "run"),
    [
        ([], NAMES[:1]),
        (["test_it.py"], NAMES[:1]),
        (["test_it.py::test_long"], [NAMES[0], NAMES[2]]),
        (["test_other.py::test_long"], NAMES[:1]),
        (["test_it.py::test_products"], NAMES[:2]),
        (["../a/test_it.py::test_products[x-2]"], NAMES[:2]),
        (["test_it.py::TestIn"], [NAMES[0], NAMES[3]]),
    ],
)
def test_what_the_command_line_names_runs(arguments, run):
    items = [Item(NAMES[0]), *(Item(name, full) for name in NAMES[1:])]
    assert that_run(items, arguments) == run


def test_all_run_on_request():
    for request in ({"everything": True}, {"expression": "full and not slow"}):
        assert that_run([Item(NAMES[0]), *(Item(name, full) for name in NAMES[1:])], **request) == NAMES
