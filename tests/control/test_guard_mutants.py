"""Each mutant of the guard, its table of limits and its plausibility checks fails a battery of checks on numbers."""

import ast
import dataclasses
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import pytest

from cosim.compile import ArrayPort
from cosim.compile import compile as compiling
from cosim.compile.routine import Routine
from cosim.control import guard, limits, plausibility
from cosim.types import COMMAND
from tests.control import guard_battery

SOURCES = {m.__name__: Path(m.__file__ or "").read_text(encoding="utf-8") for m in (guard, limits, plausibility)}
LIMIT = 40.0  # s of processor time for all mutants of a module
MESSAGES = ("meaning", "reason", "warning", "saturation", "controlled_stop")  # fields of a row

# --- mutants ----------------------------------------------------------------------------------------

OPERATORS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
# functions that are exchanged; those that are left out, with the place of the argument that stays
SWAPPED = {"minimum": "maximum", "maximum": "minimum", "logical_and": "logical_or", "logical_or": "logical_and"}
SWAPPED |= {"any": "all"}
LEFT_OUT = {"absolute": (0,), "clip": (0,), "where": (1, 2), "logical_and": (0, 1), "logical_or": (0, 1)}
LEFT_OUT |= {"minimum": (0, 1), "maximum": (0, 1)}


def variants(node: ast.AST) -> Iterator[ast.AST]:
    """The node with one mistake in it; none for most nodes."""
    if isinstance(node, ast.Compare):
        for other in OPERATORS.get(type(node.ops[0]), ()):
            yield ast.Compare(node.left, [other()], node.comparators)
    elif isinstance(node, ast.BinOp):
        for other in OPERATORS.get(type(node.op), ()):
            yield ast.BinOp(node.left, other(), node.right)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        x = node.value
        yield from (ast.Constant(other) for other in ((x + 1, x - 1) if x in (0, 1) else (2 * x, x / 2, -x)))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield ast.Constant(f"{node.value}?")
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name, arguments = node.func.attr, node.args
        if name == "where":
            yield ast.Call(node.func, [arguments[0], arguments[2], arguments[1]], [])
        if name in SWAPPED:
            yield ast.Call(ast.Attribute(node.func.value, SWAPPED[name], ast.Load()), arguments, node.keywords)
        yield from (arguments[k] for k in LEFT_OUT.get(name, ()))
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.If):
        yield ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
        yield ast.Pass()


def prose(tree: ast.Module) -> set[int]:
    """The nodes that are docstrings, types or messages."""
    found: set[int] = set()
    for node in ast.walk(tree):
        parts = [node.annotation] if isinstance(node, (ast.AnnAssign, ast.arg)) and node.annotation else []
        parts += [node.returns] if isinstance(node, ast.FunctionDef) and node.returns else []
        parts += [node.value] if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) else []
        parts += [node.value] if isinstance(node, ast.keyword) and node.arg in MESSAGES else []
        parts += [node] if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("Literal[") else []
        for part in parts:
            found |= {id(inner) for inner in ast.walk(part)}
    return found


def mutants(source: str) -> Iterator[tuple[str, ast.Module]]:
    """(name, code): `place: before -> after`, numbered where there are several."""
    tree = ast.parse(source)
    words = prose(tree)
    places: list[tuple[str, list[tuple[str, int | None]]]] = []

    def visit(node: ast.AST, name: str, path: list[tuple[str, int | None]]) -> None:
        name = node.name if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else name
        if id(node) not in words:
            places.append((name, path))
        for field, value in ast.iter_fields(node):
            for k, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(child, ast.AST):
                    visit(child, name, [*path, (field, k)])

    visit(tree, "module", [])
    seen: Counter[str] = Counter()
    for name, path in places[1:]:
        node = at(tree, path)
        for variant in variants(node):
            parent, (field, k) = at(tree, path[:-1]), path[-1]
            what = f"{name}: {ast.unparse(node)} -> {ast.unparse(variant)}"
            seen[what] += 1
            put(parent, field, k, variant)
            yield what if seen[what] == 1 else f"{what} ({seen[what]})", ast.fix_missing_locations(tree)
            put(parent, field, k, node)


def put(parent: ast.AST, field: str, k: int | None, child: ast.AST) -> None:
    if k is None:
        setattr(parent, field, child)
    else:
        getattr(parent, field)[k] = child


def at(node: Any, path: list[tuple[str, int | None]]) -> Any:
    for field, k in path:
        node = getattr(node, field) if k is None else getattr(node, field)[k]
    return node


def loaded(name: str, code: ast.Module) -> ModuleType:
    module = ModuleType(name)
    with mock.patch.dict(sys.modules, {name: module}):
        exec(compile(code, name, "exec"), vars(module))
    return module


def guard_with(table: ModuleType) -> ModuleType:
    """The guard with this table of limits."""
    with mock.patch.dict(sys.modules, {limits.__name__: table}):
        return loaded(guard.__name__, ast.parse(SOURCES[guard.__name__]))


# --- the battery ------------------------------------------------------------------------------------

ENDS = np.array([1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf, math.nan])
ACTIONS = ("warn", "saturate", "stop")
KEYS = tuple(guard_battery.LIMITS)
# one limit each, and its action
SINGLE = [{"bounds": {}}, *({"bounds": bounds} for bounds in ({"lower": -1.0}, {"upper": 2.0}))]
SINGLE += [{"bounds": {"lower": -1.0, "upper": 2.0}}, {"bounds": {"stale": 1.0}}]
SINGLE += [{"bounds": {"lower": -1.0, "upper": 2.0}, "actions": {"position": "saturate"}}]
SINGLE += [
    {"bounds": {key: 1.0}, "actions": {key: do}}
    for key in KEYS
    if key in guard_battery.BOUNDS
    for do in guard_battery.CHOICES[key]
]
# names of fields of a row in the table of cases -> in the product
FIELDS = {"unit": "unit", "keys": "bound_keys", "positive": "positive", "inherited": "inherited"}
FIELDS |= {"action": "default_action", "stop_category": "stop_category"}
FIELDS |= {name: name for name in ("saturates_while_stopping", "needs_reference")}


class Checks:
    """What a guard must do, as a function of the modules."""

    def __init__(self, battery: ModuleType) -> None:
        self.battery = battery
        self.groups = [
            (
                group,
                battery.guard_fields(group, soft),
                battery.feedback(group) | {"armed": armed},
                battery.command(group),
            )
            for soft, armed, group in battery.groups()
        ]
        self.costs = self.operations(guard)

    def guard(self, m: ModuleType) -> None:
        assert m.is_finite(ENDS).tolist() == [True, True, False, False, False]
        for cases, fields, feedback, command in self.groups:
            self.battery.verify(cases, *m.check(m.Guard(**fields), feedback, command))
        self.actions(m)
        self.uncommanded(m)
        assert self.operations(m) == self.costs

    def limits(self, m: ModuleType) -> None:
        """The table, and the guard with it."""
        for row, (key, expected) in zip(m.LIMITS, self.battery.LIMITS.items(), strict=True):
            found = {name: getattr(row, field) for name, field in FIELDS.items()}
            found |= {name: list(value) for name, value in found.items() if isinstance(value, tuple)}
            assert (row.key, found) == (key, {name: expected[name] for name in FIELDS})
        assert list(m.LIMIT_OF) == list(KEYS)
        assert all(m.LIMIT_OF[key] is row for key, row in zip(KEYS, m.LIMITS, strict=True))
        assert all(row.actions == self.battery.CHOICES[key] for key, row in zip(KEYS, m.LIMITS, strict=True))
        codes = {"ok": m.OK, **m.CODES, "stale": m.STALE, "not_finite": m.NOT_FINITE}
        assert list(codes.items()) == [(name, code) for code, name in enumerate(self.battery.VERDICTS)]
        assert {key: 2.0**k for k, key in enumerate(KEYS)} == m.BITS
        assert (m.WARN, m.SATURATE, m.STOP) == ACTIONS
        self.row(m)
        self.guard(guard_with(m))

    def row(self, m: ModuleType) -> None:
        """A row by itself: its defaults and its units."""
        fields = dict.fromkeys(("meaning", "default_action", "stop_category", "exceeded", "reason", "warning"), "")
        row = m.GuardLimit("stiffness", "joint stiffness", **fields)
        assert row.bound_keys == ("stiffness",) and row.actions == ("warn", "stop")
        assert (row.inherited, row.positive, row.controlled_stop, row.saturates_while_stopping) == ((), True, "", True)
        assert (row.effort_bounds, row.slew_bounds, row.position_bounds, row.derating) == (None,) * 4
        assert not row.needs_reference
        assert [row.unit_of(unit) for unit in ("rad", "m")] == ["N*m/rad", "N/m"]
        assert [m.LIMIT_OF["power"].unit_of(unit) for unit in ("rad", "m")] == ["W", "W"]
        assert m.LIMIT_OF["position"].show([-math.pi, 1.0], "rad") == "-3.14159 to 1 rad"
        assert m.LIMIT_OF["velocity"].show([math.pi], "m", 3) == "3.14 m/s"
        assert all(cls.__dataclass_params__.frozen for cls in (m.GuardLimit, m.GuardInputs))
        with pytest.raises(TypeError):
            m.GuardLimit("stiffness", "joint stiffness", "positional", **fields)

    def plausibility(self, m: ModuleType) -> None:
        for case in self.battery.DATA["plausibility"]:
            (name, arguments), (_, expected) = case.items()
            assert bool(getattr(m, name)(*map(np.float64, arguments))) == expected, case

    def actions(self, m: ModuleType) -> None:
        """Which limits have a bound, and their actions."""
        held = m.Guard(**self.battery.guard_fields(SINGLE))
        assert m.Guard.__dataclass_params__.frozen
        expected = (held.bounds[key] for key in ("lower", "upper", "velocity", "effort"))
        assert all(a is b for a, b in zip(vars(held.limits).values(), expected, strict=True))
        checked = {key for row in self.battery.LIMITS.values() if row["needs_reference"] for key in row["keys"]}
        assert held.needs_reference.tolist() == [bool(checked & set(case["bounds"])) for case in SINGLE]
        rows = [dataclasses.replace(row, needs_reference=True) for row in m.LIMITS]
        with mock.patch.object(m, "LIMITS", rows):
            assert held.needs_reference.tolist() == [bool(set(case["bounds"]) - {"stale"}) for case in SINGLE]
        for key in KEYS:
            default, names = self.battery.ACTIONS[key], set(self.battery.LIMITS[key]["keys"])
            found = [c.get("actions", {}).get(key, default) if names & set(c["bounds"]) else None for c in SINGLE]
            for action in ACTIONS:
                assert held.has_action(action, key).tolist() == [action == each for each in found]
            assert held.raises_alarm(key).tolist() == [each in ("warn", "saturate") for each in found]

    def uncommanded(self, m: ModuleType) -> None:
        """A joint without controller: its command is all zeros, and terms with it vanish."""
        names, zeros = ("position", "velocity"), dict.fromkeys(COMMAND, np.zeros(1))
        free, rest = m.Guard(**self.battery.guard_fields([{}])), {name: np.zeros(1) for name in self.battery.FEEDBACK}

        def fault_codes(*values: Any) -> Any:
            return m.check(free, {**rest, **dict(zip(names, values, strict=True)), "armed": 0.0}, zeros)[1]

        compiled = compiling(fault_codes, [ArrayPort(name, (1,)) for name in names], interpret=False)
        for values in ((math.nan, 0.0), (math.inf, 0.0), (0.0, math.nan), (0.0, -math.inf), (math.nan, math.nan)):
            assert compiled(*np.array(values)[:, None]).tolist() == [self.battery.VERDICTS.index("not_finite")]
        assert compiled(*np.zeros((2, 1))).tolist() == [0.0]

    def operations(self, m: ModuleType) -> list[int]:
        """Of each limit in machine code: one without a bound costs nothing."""
        n, found = len(self.battery.FEEDBACK), []
        for case in SINGLE:
            single = m.Guard(**self.battery.guard_fields([case]))

            def judge(*values: Any, single: Any = single) -> Any:
                feedback = dict(zip(self.battery.FEEDBACK, values, strict=False)) | {"armed": 0.0}
                safe, *rest = m.check(single, feedback, dict(zip(COMMAND, values[n:], strict=True)))
                return *safe.values(), *rest

            found.append(Routine(judge, [(1,)] * (n + len(COMMAND)), "guard").operations)
        return found


@pytest.fixture(scope="module")
def checks(battery):
    return Checks(battery)


MODULES = {guard: 180, limits: 200, plausibility: 25}  # least number of mutants


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_mutant_is_detected(checks, module):
    name, begun, alive, count = module.__name__, time.process_time(), [], 0
    verify = getattr(checks, name.rpartition(".")[2])
    with np.errstate(all="ignore"):
        verify(loaded(name, ast.parse(SOURCES[name])))
        for what, code in mutants(SOURCES[name]):
            count += 1
            try:
                verify(loaded(name, code))
            except Exception:
                continue
            alive.append(what)
    assert alive == []  # a mutant that no check can detect is code that is not needed
    assert count > MODULES[module]
    assert time.process_time() - begun < LIMIT
