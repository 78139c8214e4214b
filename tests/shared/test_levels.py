"""Which tests are in the gate, and which run with `--full` alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.kit import gate, messages
from tests.kit.levels import OPTION, chosen, leave_out

FOLDER = Path("/checkout/tests/a")


class Item:
    """A collected test, with what the choice asks of one."""

    def __init__(self, name):
        self.name, self.nodeid, self.path = name, f"tests/a/test_it.py::{name}", FOLDER / "test_it.py"
        self._marks = {}
        self.get_closest_marker = self._marks.get

    def add_marker(self, mark):
        self._marks[mark.name] = mark


def that_run(items, arguments=(), expression="", everything=False):
    """The names of those that are not left out; that is the whole of what happens to the others."""
    items, left_out = list(items), []
    every = list(items)
    config = SimpleNamespace(
        getoption={OPTION: everything, messages.OPTION: False, "markexpr": expression}.__getitem__,
        args=list(arguments),
        invocation_params=SimpleNamespace(dir=FOLDER),
        hook=SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items)),
    )
    leave_out(config, items)
    assert sorted(map(id, (*items, *left_out))) == sorted(map(id, every))
    return [item.name for item in items]


def test_features_are_covered_by_cheap_cases():
    has = {"large": {1, 2, 3}, "small": {1, 2}, "other": {3}, "same": {3}}
    cost = {"large": 10.0, "small": 1.0, "other": 2.0, "same": 2.0}
    assert chosen(has, has.__getitem__, cost.__getitem__) == ["small", "other"]
    assert chosen(has, has.__getitem__) == ["large"]
    assert chosen([], has.__getitem__) == []
    assert chosen([("a", 1), ("b", 1)], set) == [("a", 1), ("b", 1)]


NAMES = ["test_products[x-1]", "test_products[x-2]", "test_long", "TestIn::test_one"]
KEPT = {"test_products": ["test_products[x-1]"], "test_long": [], "TestIn::test_one": []}


@pytest.fixture(autouse=True)
def choice(monkeypatch):
    """The first one of NAMES is in the gate."""
    place = "tests/a/test_it.py::"
    cases = {place + function: [place + case for case in cases] for function, cases in KEPT.items()}
    monkeypatch.setattr(gate, "read_choice", lambda: gate.Choice([], cases))


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
    assert that_run(map(Item, NAMES), arguments) == run


def test_all_run_on_request():
    for request in ({"everything": True}, {"expression": "full and not slow"}):
        assert that_run(map(Item, NAMES), **request) == NAMES
