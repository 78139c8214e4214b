"""Laws as text: `0.2 * tanh(flow / 0.01)` becomes a `Law` of the signals that it names.

Arithmetic, comparisons, the constant `pi` and functions of `cosim.core.ops`; nothing else of Python.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cosim.core import ops
from cosim.core.errors import did_you_mean, shortened
from cosim.core.types import Numeric
from cosim.mechanics.bondgraph.elements import Law

FUNCTIONS: dict[str, tuple[Callable[..., Numeric], int]] = {
    **{
        name: (getattr(ops, name), 1)
        for name in (
            "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "sign", "floor",
        )
    },
    "abs": (ops.abs, 1),
    "atan2": (ops.atan2, 2),
    "min": (ops.minimum, 2),
    "max": (ops.maximum, 2),
    "smooth_sign": (ops.smooth_sign, 2),
    "clip": (ops.clip, 3),
    "where": (ops.where, 3),
}  # fmt: skip
OPERATORS: dict[type, Callable[[Numeric, Numeric], Numeric]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
LONGEST_TEXT = 2000  # characters

Evaluate = Callable[[Mapping[str, Numeric]], Numeric]


def law(text: str, constants: Mapping[str, float]) -> Law:
    """The law that an expression writes. Names are `constants`, then signals (see `Law`).

    Raises ValueError with a message for the user.
    """
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"an expression has at most {LONGEST_TEXT} characters, this one {len(text)}")
    try:
        tree = ast.parse(text.strip().replace("^", "**"), mode="eval")
        uses: dict[str, None] = {}
        evaluate = _compiled(tree.body, constants, uses)
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"'{shortened(text)}' is no expression, such as 0.2 * tanh(flow / 0.01)") from None
    names = tuple(uses)
    return Law(lambda *signals: evaluate(dict(zip(names, signals, strict=True))), names)


def _compiled(node: ast.AST, constants: Mapping[str, float], uses: dict[str, None]) -> Evaluate:
    """The node as a function of its signals, whose names are added to `uses`."""
    own: dict[str, None] = {}
    evaluate = _node(node, constants, own)
    uses |= own
    if not own:
        _check_constant(node, evaluate)
    return evaluate


def _check_constant(node: ast.AST, evaluate: Evaluate) -> None:
    try:
        with np.errstate(all="ignore"):
            finite = np.isfinite(evaluate({}))
    except ZeroDivisionError:
        finite = False
    if not finite:
        raise ValueError(f"'{shortened(ast.unparse(node))}' is not finite")


def _node(node: ast.AST, constants: Mapping[str, float], uses: dict[str, None]) -> Evaluate:
    def parts(*nodes: ast.AST) -> list[Evaluate]:
        return [_compiled(part, constants, uses) for part in nodes]

    match node:
        case ast.Constant(value=bool() | str() | None):
            pass
        case ast.Constant(value=int() | float() as number):
            return lambda _: float(number)
        case ast.Name() | ast.Attribute():
            return _named(_dotted(node), constants, uses)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            (value,) = parts(operand)
            return lambda s: -value(s)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return parts(operand)[0]
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(left, right, parts)
        case ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right]) if (
            type(op) in OPERATORS
        ):
            apply = OPERATORS[type(op)]
            in_right: dict[str, None] = {}
            a, b = _compiled(left, constants, uses), _compiled(right, constants, in_right)
            uses |= in_right
            if isinstance(op, ast.Div) and not in_right and b({}) == 0.0:
                raise ValueError(f"'{shortened(ast.unparse(node))}' divides by 0")
            return lambda s: apply(a(s), b(s))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return _call(name, parts(*arguments))
    raise ValueError(f"'{shortened(ast.unparse(node))}' is not allowed here; use arithmetic, comparisons and functions")


def _dotted(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{_dotted(value)}.{name}"
    raise ValueError(f"'{ast.unparse(node)}' is no name of a signal")


def _named(name: str, constants: Mapping[str, float], uses: dict[str, None]) -> Evaluate:
    known = {"pi": math.pi, **constants}
    if name in known:
        value = known[name]
        return lambda _: value
    uses[name] = None
    return lambda s: s[name]


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


def _call(name: str, arguments: Sequence[Evaluate]) -> Evaluate:
    if name not in FUNCTIONS:
        raise ValueError(f"there is no function '{name}'{did_you_mean(name, FUNCTIONS)}")
    fn, count = FUNCTIONS[name]
    if len(arguments) != count:
        raise ValueError(f"{name} takes {count} {'value' if count == 1 else 'values'}, got {len(arguments)}")
    return lambda s: fn(*(value(s) for value in arguments))
