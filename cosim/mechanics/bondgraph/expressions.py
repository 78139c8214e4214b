"""Laws as text: `0.2 * tanh(flow / 0.01)` becomes a `Law` of the signals that it names.

Arithmetic, conditions, the constant `pi`, numbers with a unit such as `30 deg`, functions and tables; nothing else of
Python. A condition is 1 where it holds and 0 elsewhere.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise

import numpy as np

from cosim.core import ops
from cosim.core.errors import did_you_mean, shortened
from cosim.core.interpolation import LookupTable
from cosim.core.types import Numeric
from cosim.core.units import unit_at
from cosim.mechanics.bondgraph.elements import Law

MANY = -1  # number of values of a function that takes two or more


def _modulo(a: Numeric, b: Numeric) -> Numeric:
    """a − b ⌊a / b⌋, with the sign of b."""
    return a - b * ops.floor(a / b)


def _rounded(x: Numeric) -> Numeric:
    """The next whole number, of two the even one."""
    below = ops.floor(x)
    rest, odd = x - below, below - 2.0 * ops.floor(0.5 * below)
    return below + _truth(ops.logical_or(rest > 0.5, ops.logical_and(rest >= 0.5, odd > 0.5)))


def _hypot(a: Numeric, b: Numeric) -> Numeric:
    return ops.sqrt(a * a + b * b)


def _of_many(fn: Callable[[Numeric, Numeric], Numeric]) -> Callable[..., Numeric]:
    return lambda *values: reduce(fn, values)


FUNCTIONS: dict[str, tuple[Callable[..., Numeric], int]] = {
    **{
        name: (getattr(ops, name), 1)
        for name in (
            *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "sign"),
            *("floor", "ceil"),
        )
    },
    "abs": (ops.abs, 1),
    "round": (_rounded, 1),
    "atan2": (ops.atan2, 2),
    "hypot": (_hypot, 2),
    "mod": (_modulo, 2),
    "min": (_of_many(ops.minimum), MANY),
    "max": (_of_many(ops.maximum), MANY),
    "smooth_sign": (ops.smooth_sign, 2),
    "clip": (ops.clip, 3),
    "where": (ops.where, 3),
}  # fmt: skip
OPERATORS: dict[type, Callable[[Numeric, Numeric], Numeric]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: lambda a, b: ops.floor(a / b),
    ast.Mod: _modulo,
}
COMPARISONS: dict[type, Callable[[Numeric, Numeric], Numeric]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
DIVISIONS = (ast.Div, ast.FloorDiv, ast.Mod)
LONGEST_TEXT = 2000  # characters
KEYWORDS = ("if", "else", "and", "or", "not", "in", "is", "for")

_NUMBER = re.compile(r"(?<![\w.])(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+|(?![eE][-+]?[0-9]))(?= ?[^\W\d_]| ?°)")
_WORD = re.compile(r"[^\W_]+")

Evaluate = Callable[[Mapping[str, Numeric]], Numeric]


@dataclass(frozen=True)
class Names:
    """What a law may name beside signals."""

    constants: Mapping[str, Numeric] = field(default_factory=dict)
    tables: Mapping[str, LookupTable] = field(default_factory=dict)

    def extended(self, constants: Mapping[str, float], tables: Mapping[str, LookupTable]) -> Names:
        return Names({**self.constants, **constants}, {**self.tables, **tables})

    def without(self, signals: Collection[str]) -> Names:
        """The names with those constants taken out that are names of signals."""
        return Names({name: value for name, value in self.constants.items() if name not in signals}, self.tables)


NO_NAMES = Names()


def law(text: str, names: Names = NO_NAMES) -> Law:
    """The law that an expression writes. Names are constants, then signals (see `Law`).

    Raises ValueError with a message for the user.
    """
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"an expression has at most {LONGEST_TEXT} characters, this one {len(text)}")
    written = _without_units(text.strip()).replace("^", "**")
    try:
        tree = ast.parse(written, mode="eval")
        uses: dict[str, None] = {}
        compiler = _Compiler(names)
        evaluate = compiler.compiled(tree.body, uses)
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"'{shortened(text)}' is no expression, such as 0.2 * tanh(flow / 0.01)") from None
    used, constants = tuple(uses), {name: names.constants[name] for name in compiler.constants}

    def remade(values: Mapping[str, Numeric]) -> Law:
        return law(text, replace(names, constants={**names.constants, **values}))

    return Law(lambda *signals: evaluate(dict(zip(used, signals, strict=True))), used, constants, remade)


def _without_units(text: str) -> str:
    """The text with SI numbers in place of those with a unit: the longest one that follows without a space in it.

    Raises ValueError for a word after a number that is no unit.
    """
    found, done = [], 0
    for number in _NUMBER.finditer(text):
        if number.start() < done:
            continue
        begin = number.end() + (text[number.end()] == " ")
        word = _WORD.match(text, begin)
        if word and (word[0] in KEYWORDS or (number[0] == "0" and begin == number.end() and word[0][0] in "xXbBoO")):
            continue
        end, factor = unit_at(text, begin)
        found += [text[done : number.start()], repr(float(number[0]) * factor)]
        done = end
    return "".join([*found, text[done:]])


def _truth(condition: Numeric) -> Numeric:
    """1 or 0, also of numbers."""
    return condition if ops.is_symbolic(condition) else 1.0 * condition


class _Compiler:
    """Nodes of Python's syntax as functions of the signals, whose names are added to `uses`. constants: those met."""

    def __init__(self, names: Names) -> None:
        self._names, self.constants = names, dict[str, None]()

    def compiled(self, node: ast.AST, uses: dict[str, None]) -> Evaluate:
        own: dict[str, None] = {}
        evaluate = self._node(node, own)
        uses |= own
        if not own:
            _check_constant(node, evaluate)
        return evaluate

    def _node(self, node: ast.AST, uses: dict[str, None]) -> Evaluate:
        def parts(*nodes: ast.AST) -> list[Evaluate]:
            return [self.compiled(part, uses) for part in nodes]

        match node:
            case ast.Constant(value=bool() | str() | None):
                pass
            case ast.Constant(value=int() | float() as number):
                return lambda _: float(number)
            case ast.Name() | ast.Attribute():
                return self._named(_dotted(node), uses)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                (value,) = parts(operand)
                return lambda s: -value(s)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return parts(operand)[0]
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                (holds,) = self._conditions(uses, operand)
                return lambda s: _truth(ops.logical_not(holds(s)))
            case ast.BoolOp(op=op, values=values):
                apply = ops.logical_and if isinstance(op, ast.And) else ops.logical_or
                each = self._conditions(uses, *values)
                return lambda s: _truth(reduce(apply, [holds(s) for holds in each]))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                (holds,) = self._conditions(uses, test)
                first, second = parts(body, orelse)
                return lambda s: ops.where(holds(s), first(s), second(s))
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return _power(left, right, parts)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return self._binary(node, left, op, right, uses)
            case ast.Compare(left=left, ops=signs, comparators=others) if all(type(op) in COMPARISONS for op in signs):
                return _comparison(signs, parts(left, *others))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self._call(name, node, parts(*arguments))
            case ast.List() | ast.Tuple() | ast.Subscript():
                what = f"'{shortened(ast.unparse(node))}' is not allowed here"
                raise ValueError(f"{what}; write a table under 'tables' and use it by its name, such as curve(flow)")
        raise ValueError(
            f"'{shortened(ast.unparse(node))}' is not allowed here; use arithmetic, conditions and functions"
        )

    def _conditions(self, uses: dict[str, None], *nodes: ast.expr) -> list[Evaluate]:
        """Whether each holds; a number holds where it is not 0."""

        def condition(node: ast.expr) -> Evaluate:
            value = self.compiled(node, uses)
            if isinstance(node, ast.Compare | ast.BoolOp) or (
                isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
            ):
                return value
            return lambda s: _truth(value(s) != 0.0)

        return [condition(node) for node in nodes]

    def _named(self, name: str, uses: dict[str, None]) -> Evaluate:
        known = {"pi": math.pi, **self._names.constants}
        if name in known:
            value = known[name]
            if name in self._names.constants:
                self.constants[name] = None
            return lambda _: value
        if name in self._names.tables:
            raise ValueError(f"'{name}' is a table; give it a value, such as {name}(flow)")
        uses[name] = None
        return lambda s: s[name]

    def _binary(
        self, node: ast.AST, left: ast.AST, op: ast.operator, right: ast.AST, uses: dict[str, None]
    ) -> Evaluate:
        apply = OPERATORS[type(op)]
        in_right: dict[str, None] = {}
        a, b = self.compiled(left, uses), self.compiled(right, in_right)
        uses |= in_right
        if isinstance(op, DIVISIONS) and not in_right and ops.is_zero(b({})):
            raise ValueError(f"'{shortened(ast.unparse(node))}' divides by 0")
        return lambda s: apply(a(s), b(s))

    def _call(self, name: str, node: ast.Call, arguments: Sequence[Evaluate]) -> Evaluate:
        tables = self._names.tables
        if name not in tables and name not in FUNCTIONS:
            known = [*FUNCTIONS, *tables]
            raise ValueError(f"there is no function or table '{name}'{did_you_mean(name, known)}")
        fn, count = (tables[name], len(tables[name].points)) if name in tables else FUNCTIONS[name]
        if count == MANY and len(arguments) < 2:
            raise ValueError(f"{name} takes two values or more, got {len(arguments)}")
        if count not in (MANY, len(arguments)):
            raise ValueError(f"{name} takes {count} {'value' if count == 1 else 'values'}, got {len(arguments)}")
        if name == "clip":
            self._check_bounds(node)
        return lambda s: fn(*(value(s) for value in arguments))

    def _check_bounds(self, node: ast.Call) -> None:
        """Raises ValueError for constant bounds of which the lower one is above the upper one."""
        uses: dict[str, None] = {}
        lower, upper = (self.compiled(bound, uses) for bound in node.args[1:])
        bounds = () if uses else (lower({}), upper({}))
        if bounds and not any(map(ops.is_symbolic, bounds)) and bounds[0] > bounds[1]:
            raise ValueError(
                f"'{shortened(ast.unparse(node))}' has its bounds the wrong way round; give the lower first"
            )


def _check_constant(node: ast.AST, evaluate: Evaluate) -> None:
    try:
        with np.errstate(all="ignore"):
            value = evaluate({})
            finite = ops.is_symbolic(value) or np.isfinite(value)
    except ZeroDivisionError:
        finite = False
    if not finite:
        raise ValueError(f"'{shortened(ast.unparse(node))}' is not finite")


def _dotted(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name() | ast.Attribute() as value, attr=name):
            return f"{_dotted(value)}.{name}"
    raise ValueError(f"'{shortened(ast.unparse(node))}' is no name of a signal")


def _comparison(signs: Sequence[ast.cmpop], values: Sequence[Evaluate]) -> Evaluate:
    """Of two values, or of several one after the other: a < b < c is a < b and b < c."""

    def holds(s: Mapping[str, Numeric]) -> Numeric:
        numbers = [value(s) for value in values]
        each = [COMPARISONS[type(op)](a, b) for op, (a, b) in zip(signs, pairwise(numbers), strict=True)]
        return _truth(reduce(ops.logical_and, each))

    return holds


def _power(base: ast.AST, exponent: ast.AST, parts: Callable[..., list[Evaluate]]) -> Evaluate:
    """A small whole power is a product, of any sign; others are `ops.power`."""
    match exponent:
        case ast.Constant(value=int() as n) if 1 <= n <= 4:
            (value,) = parts(base)

            def product(s: Mapping[str, Numeric]) -> Numeric:
                factor = value(s)
                return math.prod([factor] * n)

            return product
    a, b = parts(base, exponent)
    return lambda s: ops.power(a(s), b(s))
