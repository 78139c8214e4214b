"""Which tests are in the gate, and which run with `--full` alone."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.kit.levels import OPTION, covering, full, leave_out

TESTS = {"test_products[x-1]": False, "test_products[x-2]": True, "test_long": True, "TestIn::test_one": True}


def in_gate(cases):
    return [case.values for case in cases if not case.marks]


def test_every_value_of_a_product_is_in_the_gate():
    cases = covering(product("abc", (1, 2)))
    assert len(cases) == 6
    assert in_gate(cases) == [("a", 1), ("b", 2), ("c", 1)]


def test_features_are_covered_by_cheap_cases():
    has = {"large": {1, 2, 3}, "small": {1, 2}, "other": {3}, "same": {3}}
    cost = {"large": 10.0, "small": 1.0, "other": 2.0, "same": 2.0}
    assert in_gate(covering(has, has.get, cost.get)) == [("small",), ("other",)]
    assert in_gate(covering(has, has.get)) == [("large",)]
    assert covering([], has.get) == []


@pytest.mark.parametrize(
    ("arguments", "expression", "everything", "run"),
    [
        ([], "", False, ["test_products[x-1]"]),
        ([], "", True, list(TESTS)),
        ([], "full and not slow", False, list(TESTS)),
        (["test_it.py"], "", False, ["test_products[x-1]"]),
        (["test_it.py::test_long"], "", False, ["test_products[x-1]", "test_long"]),
        (["test_other.py::test_long"], "", False, ["test_products[x-1]"]),
        (["test_it.py::test_products"], "", False, ["test_products[x-1]", "test_products[x-2]"]),
        (["../a/test_it.py::test_products[x-2]"], "", False, ["test_products[x-1]", "test_products[x-2]"]),
        (["test_it.py::TestIn"], "", False, ["test_products[x-1]", "TestIn::test_one"]),
    ],
)
def test_what_is_left_out(arguments, expression, everything, run):
    """`-m` selects afterwards, and pytest collects only what an argument names."""
    folder, left_out = Path("/checkout/tests/a"), []
    options = {OPTION: everything, "markexpr": expression}
    config = SimpleNamespace(
        getoption=options.__getitem__,
        args=arguments,
        invocation_params=SimpleNamespace(dir=folder),
        hook=SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items)),
    )
    items = [
        SimpleNamespace(
            nodeid=f"tests/a/test_it.py::{name}",
            path=folder / "test_it.py",
            get_closest_marker={full.name: full if marked else None}.get,
        )
        for name, marked in TESTS.items()
    ]
    every = {item.nodeid for item in items}
    leave_out(config, items)
    assert [item.nodeid.partition("::")[2] for item in items] == run
    assert {item.nodeid for item in (*items, *left_out)} == every and len(items) + len(left_out) == len(TESTS)
