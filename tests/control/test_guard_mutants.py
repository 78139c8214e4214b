"""Every small mistake in the guard is noticed: each mutant of its code fails a battery of checks on plain numbers."""

import ast
import math
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from cosim.compile import ArrayPort
from cosim.compile import compile as compiling
from cosim.compile.routine import Routine
from cosim.control import guard
from cosim.types import COMMAND

SOURCE = Path(guard.__file__).read_text(encoding="utf-8")
LIMIT = 20.0  # s of processor time for all mutants

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
# functions that stand for each other; those that are left out, with the place of the argument that stays
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
    """The nodes that are words for people: docstrings and annotations."""
    found: set[int] = set()
    for node in ast.walk(tree):
        parts = [node.annotation] if isinstance(node, (ast.AnnAssign, ast.arg)) and node.annotation else []
        parts += [node.returns] if isinstance(node, ast.FunctionDef) and node.returns else []
        parts += [node.value] if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) else []
        for part in parts:
            found |= {id(inner) for inner in ast.walk(part)}
    return found


def mutants() -> Iterator[tuple[str, ast.Module]]:
    """(name, code): `place: what stood there -> what stands there`, numbered where there are several."""
    tree = ast.parse(SOURCE)
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

    visit(tree, "guard", [])
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


def loaded(code: ast.Module) -> ModuleType:
    module = ModuleType("cosim.control.guard")
    exec(compile(code, "guard.py", "exec"), vars(module))
    return module


# --- the battery ------------------------------------------------------------------------------------

ENDS = np.array([1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf, math.nan])
KINDS = ("effort", "rate", "power", "temperature", "position", "tracking", "velocity")
ACTIONS = ("warn", "saturate", "stop")
# one limit each, and what it does
SINGLE = [{"held": {}}, {"held": {"lower": -1.0}}, {"held": {"upper": 2.0}}, {"held": {"lower": -1.0, "upper": 2.0}}]
SINGLE += [{"held": {"stale": 1.0}}, {"held": {"lower": -1.0, "upper": 2.0}, "do": {"position": "saturate"}}]
SINGLE += [{"held": {kind: 1.0}, "do": {kind: do}} for kind in KINDS if kind != "position" for do in ACTIONS]


class Checks:
    """What a guard must do, as a function on the module."""

    def __init__(self, battery: ModuleType) -> None:
        self.battery = battery
        self.groups = [
            (cases, battery.held(cases, soft), battery.seen(cases) | {"armed": armed}, battery.command(cases))
            for soft, armed, cases in battery.groups()
        ]
        self.codes = {name.upper(): code for code, name in enumerate(battery.VERDICTS)}
        self.costs = self.operations(guard)

    def __call__(self, m: ModuleType) -> None:
        assert KINDS == m.KINDS and {name: getattr(m, name) for name in self.codes} == self.codes
        assert {kind: 2.0**k for k, kind in enumerate(KINDS)} == m.BITS
        assert m.is_finite(ENDS).tolist() == [True, True, False, False, False]
        for cases, held, seen, command in self.groups:
            self.battery.verify(cases, *m.check(m.Guard(**held), seen, command))
        self.held(m)
        self.uncommanded(m)
        assert self.operations(m) == self.costs

    def held(self, m: ModuleType) -> None:
        """Which limits there are, and what they do."""
        held = m.Guard(**self.battery.held(SINGLE))
        assert m.Guard.__dataclass_params__.frozen
        assert held.bound("position").tolist()[:4] == [math.inf, 1.0, 2.0, 1.0]
        for kind in KINDS:
            default = self.battery.DATA["defaults"][kind]
            names = {"lower", "upper"} if kind == "position" else {kind}
            found = [c.get("do", {}).get(kind, default) if names & set(c["held"]) else None for c in SINGLE]
            for action in ACTIONS:
                assert held.does(action, kind).tolist() == [action == each for each in found]
            assert held.tells(kind).tolist() == [each in ("warn", "saturate") for each in found]

    def uncommanded(self, m: ModuleType) -> None:
        """A joint without controller: its command is nothing but zeros, and what is made of them vanishes."""
        names, zeros = ("position", "velocity"), dict.fromkeys(COMMAND, np.zeros(1))
        held, rest = m.Guard(**self.battery.held([{}])), {name: np.zeros(1) for name in self.battery.SEEN}

        def verdict(*values: Any) -> Any:
            return m.check(held, {**rest, **dict(zip(names, values, strict=True)), "armed": 0.0}, zeros)[1]

        compiled = compiling(verdict, [ArrayPort(name, (1,)) for name in names], interpret=False)
        for values in ((math.nan, 0.0), (math.inf, 0.0), (0.0, math.nan), (0.0, -math.inf), (math.nan, math.nan)):
            assert compiled(*np.array(values)[:, None]).tolist() == [self.codes["NOT_FINITE"]]
        assert compiled(*np.zeros((2, 1))).tolist() == [0.0]

    def operations(self, m: ModuleType) -> list[int]:
        """Of each limit in machine code: those that are not there cost nothing."""
        shapes, found = [(1,)] * (len(self.battery.SEEN) + len(COMMAND)), []
        for case in SINGLE:
            held = m.Guard(**self.battery.held([case]))

            def judge(*values: Any, held: Any = held) -> Any:
                seen = dict(zip(self.battery.SEEN, values, strict=False)) | {"armed": 0.0}
                safe, *rest = m.check(held, seen, dict(zip(COMMAND, values[len(self.battery.SEEN) :], strict=True)))
                return *safe.values(), *rest

            found.append(Routine(judge, shapes, "guard").operations)
        return found


@pytest.fixture(scope="module")
def verify(battery):
    return Checks(battery)


def test_the_guard_passes_its_battery(verify):
    with np.errstate(all="ignore"):
        verify(loaded(ast.parse(SOURCE)))


def test_every_mutant_is_noticed(verify):
    begun, alive, count = time.process_time(), [], 0
    with np.errstate(all="ignore"):
        for name, code in mutants():
            count += 1
            try:
                verify(loaded(code))
            except Exception:
                continue
            alive.append(name)
    assert alive == []  # one that nobody could notice is code that is not needed
    assert count > 300
    assert time.process_time() - begun < LIMIT
