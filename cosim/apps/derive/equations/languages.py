"""The languages of derived code: how numbers, operations, functions and files are written in each.

An operation of casadi is a template of its operands with its precedence; an operand of a lower one gets parentheses.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain, count

MATLAB_KEYWORDS = {
    *("break", "case", "catch", "classdef", "continue", "else", "elseif", "end", "for", "function", "global", "if"),
    *("otherwise", "parfor", "persistent", "return", "spmd", "switch", "try", "while"),
}
# precedences
CHOICE, OR, AND, NOT, COMPARISON, SUM, PRODUCT, SIGN, ATOM = range(9)


@dataclass(frozen=True)
class Operation:
    """`needs`: the least precedence of each operand."""

    template: str
    precedence: int
    needs: tuple[int, ...]


def _call(name: str, operands: int = 1) -> Operation:
    places = ", ".join(["{}"] * operands)
    return Operation(f"{name}({places})", ATOM, (CHOICE,) * operands)


def _calls(names: Mapping[str, str], operands: int = 1) -> dict[str, Operation]:
    return {operation: _call(name, operands) for operation, name in names.items()}


# the same in all languages
ARITHMETIC = {
    "ASSIGN": Operation("{}", SIGN, (SIGN,)),
    "NEG": Operation("-{}", SIGN, (ATOM,)),
    "ADD": Operation("{} + {}", SUM, (SUM, PRODUCT)),
    "SUB": Operation("{} - {}", SUM, (SUM, PRODUCT)),
    "MUL": Operation("{} * {}", PRODUCT, (PRODUCT, SIGN)),
    "DIV": Operation("{} / {}", PRODUCT, (PRODUCT, ATOM)),
    "SQ": Operation("{0} * {0}", PRODUCT, (ATOM,)),
    "TWICE": Operation("2.0 * {}", PRODUCT, (SIGN,)),
    "INV": Operation("1.0 / {}", PRODUCT, (ATOM,)),
    "LT": Operation("{} < {}", COMPARISON, (SUM, SUM)),
    "LE": Operation("{} <= {}", COMPARISON, (SUM, SUM)),
    "EQ": Operation("{} == {}", COMPARISON, (SUM, SUM)),
}
FUNCTIONS = ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh")
OTHERS = ("sqrt", "exp", "log", "log1p", "expm1", "erf", "floor", "ceil")
OF_TWO = ("atan2", "hypot")


@dataclass(frozen=True)
class Language:
    """How derived code is written in one language. helpers: the functions that the language lacks, by the name of the
    operation that needs them. in_comment: what ends or changes a comment -> what is written there."""

    suffix: str
    in_comment: Mapping[str, str]
    operations: Mapping[str, Operation]
    helpers: Mapping[str, str]
    number: Callable[[float], str]
    element: Callable[[str, int], str]  # of a vector
    assign: str  # a name and its value
    set_result: Callable[[str, int, str], str]

    def commented(self, text: str) -> str:
        """As a line of a comment."""
        line = " ".join(text.splitlines())
        for end, harmless in self.in_comment.items():
            line = line.replace(end, harmless)
        return line.rstrip()


def _number(infinity: str, nan: str) -> Callable[[float], str]:
    def written(value: float) -> str:
        if math.isnan(value):
            return nan
        if math.isinf(value):
            return infinity if value > 0 else f"-{infinity}"
        return repr(float(value))

    return written


C = Language(
    suffix=".c",
    in_comment={"/*": "/ *", "*/": "* /"},
    operations={
        **ARITHMETIC,
        **_calls({name.upper(): name for name in (*FUNCTIONS, *OTHERS)}),
        **_calls({"FABS": "fabs", "SIGN": "sign_of"}),
        **_calls({name.upper(): name for name in OF_TWO}, 2),
        **_calls({"POW": "pow", "CONSTPOW": "pow", "FMIN": "fmin", "FMAX": "fmax"}, 2),
        **_calls({"FMOD": "fmod", "COPYSIGN": "copysign", "REMAINDER": "remainder"}, 2),
        "NE": Operation("{} != {}", COMPARISON, (SUM, SUM)),
        "NOT": Operation("!{}", SIGN, (ATOM,)),
        "AND": Operation("{} && {}", AND, (NOT, NOT)),
        "OR": Operation("{} || {}", OR, (AND, AND)),
        "IF_ELSE_ZERO": Operation("({} ? {} : 0.0)", ATOM, (OR, OR)),
    },
    helpers={"SIGN": "static double sign_of(double x)\n{\n    return (double)((x > 0.0) - (x < 0.0));\n}"},
    number=_number("INFINITY", "NAN"),
    element=lambda name, k: f"{name}[{k}]",
    assign="const double {} = {};",
    set_result=lambda name, k, value: f"{name}[{k}] = {value};",
)

PYTHON = Language(
    suffix=".py",
    in_comment={"\\": "\\\\", '"': r"\""},
    operations={
        **ARITHMETIC,
        **_calls({name.upper(): f"math.{name}" for name in (*FUNCTIONS, *OTHERS)}),
        **_calls({"FABS": "abs", "SIGN": "_sign"}),
        **_calls({name.upper(): f"math.{name}" for name in OF_TWO}, 2),
        **_calls({"POW": "math.pow", "CONSTPOW": "math.pow", "FMIN": "min", "FMAX": "max"}, 2),
        **_calls({"FMOD": "math.fmod", "COPYSIGN": "math.copysign", "REMAINDER": "math.remainder"}, 2),
        "NE": Operation("{} != {}", COMPARISON, (SUM, SUM)),
        "NOT": Operation("not {}", NOT, (COMPARISON,)),
        "AND": Operation("{} and {}", AND, (NOT, NOT)),
        "OR": Operation("{} or {}", OR, (AND, AND)),
        "IF_ELSE_ZERO": Operation("({1} if {0} else 0.0)", ATOM, (OR, OR)),
    },
    helpers={"SIGN": "def _sign(x):\n    return float((x > 0.0) - (x < 0.0))"},
    number=_number("math.inf", "math.nan"),
    element=lambda name, k: f"{name}[{k}]",
    assign="{} = {}",
    set_result=lambda name, k, value: f"{name}[{k}] = {value}",
)

MATLAB = Language(
    suffix=".m",
    in_comment={},
    operations={
        **ARITHMETIC,
        **_calls({name.upper(): name for name in (*FUNCTIONS, *OTHERS)}),
        **_calls({"FABS": "abs", "SIGN": "sign"}),
        **_calls({name.upper(): name for name in OF_TWO}, 2),
        **_calls({"POW": "power", "CONSTPOW": "power", "FMIN": "min", "FMAX": "max"}, 2),
        **_calls({"FMOD": "rem", "COPYSIGN": "copysign", "IF_ELSE_ZERO": "if_else_zero"}, 2),
        "NE": Operation("{} ~= {}", COMPARISON, (SUM, SUM)),
        "NOT": Operation("~{}", SIGN, (ATOM,)),
        "AND": Operation("{} && {}", AND, (NOT, NOT)),
        "OR": Operation("{} || {}", OR, (AND, AND)),
    },
    helpers={
        "COPYSIGN": """\
function y = copysign(x, s)
  y = abs(x);
  if s < 0 || (s == 0 && 1 / s < 0)
    y = -y;
  end
end""",
        "IF_ELSE_ZERO": """\
function y = if_else_zero(condition, x)
  y = 0;
  if condition
    y = x;
  end
end""",
    },
    number=_number("Inf", "NaN"),
    element=lambda name, k: f"{name}({k + 1})",
    assign="{} = {};",
    set_result=lambda name, k, value: f"{name}({k + 1}) = {value};",
)


class Identifiers:
    """Names that are identifiers in C, Python and MATLAB, each once."""

    def __init__(self) -> None:
        self._taken = set[str]()
        self._of = dict[str, str]()

    def of(self, text: str) -> str:
        """The identifier of a text: always the same."""
        if text not in self._of:
            self._of[text] = self.new(text)
        return self._of[text]

    def new(self, text: str) -> str:
        name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "x"
        name = f"x{name}" if name[0].isdigit() else name
        numbered = (f"{name}_{k}" for k in count(2))
        found = next(n for n in chain([name], numbered) if n not in self._taken)
        self._taken.add(found)
        return found


def matlab_name(text: str) -> str:
    """An identifier that is no word of MATLAB."""
    name = Identifiers().new(text)
    return f"{name}_model" if name in MATLAB_KEYWORDS else name
