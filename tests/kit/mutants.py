"""Mutants of a Python source: the same code with one mistake in it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

MESSAGES = ("meaning", "reason", "warning", "saturation", "controlled_stop")  # fields of a row

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
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
# functions that are exchanged; those that are left out, with the place of the argument that stays
SWAPPED = {"minimum": "maximum", "maximum": "minimum", "logical_and": "logical_or", "logical_or": "logical_and"}
SWAPPED |= {"any": "all"}
LEFT_OUT = {"abs": (0,), "clip": (0,), "where": (1, 2), "logical_and": (0, 1), "logical_or": (0, 1)}
LEFT_OUT |= {"minimum": (0, 1), "maximum": (0, 1)}


def variants(node: ast.AST) -> Iterator[ast.AST]:
    """The node with one mistake in it: another operator, constant or function, or left out; none for most nodes."""
    if isinstance(node, ast.Compare):
        for other in OPERATORS.get(type(node.ops[0]), ()):
            yield ast.Compare(node.left, [other()], node.comparators)
    elif isinstance(node, ast.BinOp):
        for other in OPERATORS.get(type(node.op), ()):
            yield ast.BinOp(node.left, other(), node.right)
    elif isinstance(node, ast.BoolOp):
        for other in OPERATORS[type(node.op)]:
            yield ast.BoolOp(other(), node.values)
    elif isinstance(node, ast.AugAssign):
        for other in OPERATORS.get(type(node.op), ()):
            yield ast.AugAssign(node.target, other(), node.value)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
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
        if name == "where" and len(arguments) == 3:
            yield ast.Call(node.func, [arguments[0], arguments[2], arguments[1]], [])
        if name in SWAPPED:
            yield ast.Call(ast.Attribute(node.func.value, SWAPPED[name], ast.Load()), arguments, node.keywords)
        yield from (arguments[k] for k in LEFT_OUT.get(name, ()) if k < len(arguments))
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.If):
        yield ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    elif (isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        yield ast.Pass()


def prose(tree: ast.Module) -> set[int]:
    """The nodes that are docstrings, types or messages; a text with a space is a message."""
    found: set[int] = set()
    for node in ast.walk(tree):
        parts = [node.annotation] if isinstance(node, (ast.AnnAssign, ast.arg)) and node.annotation else []
        parts += [node.returns] if isinstance(node, ast.FunctionDef) and node.returns else []
        parts += [node.value] if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) else []
        parts += [node.value] if isinstance(node, ast.keyword) and node.arg in MESSAGES else []
        parts += [node] if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("Literal[") else []
        parts += [node] if isinstance(node, ast.Constant) and " " in str(node.value) else []
        parts += [node] if isinstance(node, ast.JoinedStr) else []
        for part in parts:
            found |= {id(inner) for inner in ast.walk(part)}
    return found


class Mutated(NamedTuple):
    """what: `place: before -> after`, numbered where there are several. code: the same tree each time, valid until the
    next mutant. lines: of the statement in the source, without its body."""

    what: str
    code: ast.Module
    lines: range


def mutants(source: str) -> Iterator[Mutated]:
    tree = ast.parse(source)
    words = prose(tree)
    places: list[tuple[str, range, list[tuple[str, int | None]]]] = []

    def visit(node: ast.AST, name: str, lines: range, path: list[tuple[str, int | None]]) -> None:
        name = node.name if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else name
        lines = head(node) if isinstance(node, ast.stmt) else lines
        if id(node) not in words:
            places.append((name, lines, path))
        for field, value in ast.iter_fields(node):
            for k, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(child, ast.AST):
                    visit(child, name, lines, [*path, (field, k)])

    visit(tree, "module", range(0), [])
    seen: Counter[str] = Counter()
    for name, lines, path in places[1:]:
        node = at(tree, path)
        for variant in variants(node):
            parent, (field, k) = at(tree, path[:-1]), path[-1]
            what = f"{name}: {ast.unparse(node)} -> {ast.unparse(variant)}"
            seen[what] += 1
            # of the variant alone: the whole tree's take longer than most checks of a mutant
            put(parent, field, k, ast.fix_missing_locations(ast.copy_location(variant, node)))
            yield Mutated(what if seen[what] == 1 else f"{what} ({seen[what]})", tree, lines)
            put(parent, field, k, node)


def head(statement: ast.stmt) -> range:
    """Its lines; of a compound statement those before its body."""
    body: list[ast.stmt] = getattr(statement, "body", [])
    end = max(body[0].lineno - 1, statement.lineno) if body else statement.end_lineno or statement.lineno
    return range(statement.lineno, end + 1)


def put(parent: ast.AST, field: str, k: int | None, child: ast.AST) -> None:
    if k is None:
        setattr(parent, field, child)
    else:
        getattr(parent, field)[k] = child


def at(node: Any, path: list[tuple[str, int | None]]) -> Any:
    for field, k in path:
        node = getattr(node, field) if k is None else getattr(node, field)[k]
    return node
