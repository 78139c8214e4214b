"""Expressions of casadi as formulas of sympy: every output of a traced function, in the names of its inputs.

Numbers are exact fractions of what their shortest decimals say, or simple multiples of π, so that simplification does
not round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, cast

import sympy
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanAtom, BooleanFunction
from sympy.printing.str import StrPrinter

from cosim.core.compile.operations import casadi_names
from cosim.core.compile.trace import column
from cosim.core.errors import CompileError
from cosim.core.types import Numeric

LONGEST = 20_000  # operations of an expression
LARGEST_SIMPLIFIED = 1000  # operations of a formula beyond which it stays as it is
LARGEST_EXPANDED = 200  # operations of a formula whose products of sums are written as sums
LARGEST_CANCELLED = 400  # operations of a formula whose common factors are searched for
SHORT_DIGITS = 6  # of numbers in short texts
SHORTEST_SHARED = 4  # operations of a term that is given a name because it occurs several times
LARGEST_KEPT_DENOMINATOR = 10  # of a fraction that is printed as such: x/5, but 0.4 x and 0.02 x

Formula = Any  # sympy's classes have no useful types
TRUTH_VALUES = Relational, BooleanFunction, BooleanAtom


class Min(sympy.Function):
    """The smaller of two. sympy's own compares its arguments whenever it is built, which takes most of the time of a
    derivation; printers know it by its name."""

    nargs = 2

    def _eval_is_real(self) -> bool | None:
        return all(argument.is_real for argument in cast(Formula, self.args)) or None


class Max(Min):
    """The larger of two."""


def formula_symbol(name: str) -> Formula:
    """The symbol of a real variable."""
    return sympy.Symbol(name, real=True)


def formulas(inputs: Mapping[Formula, Numeric], expressions: Sequence[Numeric]) -> list[Formula]:
    """The expressions (scalars) as formulas. inputs: symbol of sympy -> symbol of casadi, a scalar.

    Raises CompileError for an operation without a formula, and for expressions that are too long when each of their
    parts is written out wherever it is used.
    """
    import casadi

    f = casadi.Function(
        "f", [column(x) for x in inputs.values()], [casadi.densify(column(e)) for e in expressions],
        {"live_variables": False},
    )  # fmt: skip
    names, symbols = casadi_names(), list(inputs)
    value, size = dict[int, Formula](), dict[int, int]()
    found: list[Formula] = [sympy.Integer(0)] * len(expressions)
    for k in range(f.n_instructions()):
        name, operands, results = names[f.instruction_id(k)], f.instruction_input(k), f.instruction_output(k)
        match name:
            case "INPUT":
                value[results[0]] = symbols[operands[0]]
            case "CONST":
                value[results[0]] = exact(f.instruction_constant(k))
            case "OUTPUT":
                found[results[0]] = _number(value[operands[0]])
            case _:
                size[results[0]] = 1 + sum(size.get(i, 1) for i in operands)
                if size[results[0]] > LONGEST:
                    what = f"a law has more than {LONGEST:,} operations when it is written out"
                    raise CompileError(f"{what}, as tables and their like have; formulas of it are of no use")
                value[results[0]] = applied(name, [value[i] for i in operands])
    return found


def applied(name: str, operands: Sequence[Formula]) -> Formula:
    """The formula of an operation of casadi. Raises CompileError for one without a formula."""
    if name not in OPERATIONS:
        raise CompileError(f"the operation {name.lower()} has no formula; write it with others of cosim.plugin.ops")
    return OPERATIONS[name](*operands)


def simplified(formula: Formula) -> Formula:
    """The shortest of the formula, its common fraction, and this without common factors. Fractions stay together, as if
    they were symbols: common denominators of numbers make no formula shorter. Long formulas stay as they are."""
    if formula.is_Atom or sympy.count_ops(formula) > LARGEST_SIMPLIFIED:
        return formula
    fractions = {
        r: sympy.Dummy(positive=True) for r in sorted({abs(r) for r in formula.atoms(sympy.Rational) if r.q > 1})
    }
    named = formula.xreplace(fractions | {-r: -symbol for r, symbol in fractions.items()})
    common = sympy.factor_terms(cast(Formula, sympy.together(named)))
    forms = [named, common]
    fraction = sympy.fraction(common)[1] != 1 and not named.has(sympy.Piecewise, Min, Max)
    if fraction and sympy.count_ops(common) < LARGEST_CANCELLED:
        forms.append(sympy.factor_terms(sympy.cancel(common)))
    above, below = sympy.fraction(min(forms, key=sympy.count_ops))
    if below.could_extract_minus_sign():
        above, below = -above, -below
    return (above / below).xreplace({symbol: r for r, symbol in fractions.items()})


def shared(
    formulas: Sequence[Formula], names: Iterator[str]
) -> tuple[list[list[tuple[Formula, Formula]]], list[Formula]]:
    """(by formula, the terms that occur several times and that it is the first one to use, with the symbols that
    replace them; the formulas with these symbols). names: of the symbols."""
    found, rewritten = sympy.cse(list(formulas), sympy.numbered_symbols("_", sympy.Dummy, real=True), order="none")
    known: dict[Formula, Formula] = {}  # what replaces each symbol of sympy: one of ours, or a short term
    terms: list[tuple[Formula, Formula]] = []
    for symbol, term in found:
        term = cast(Formula, term).xreplace(known)
        if not isinstance(term, sympy.Expr) or sympy.count_ops(term) < SHORTEST_SHARED:  # conditions stay in place
            known[symbol] = term
        else:
            known[symbol] = formula_symbol(next(names))
            terms.append((known[symbol], term))
    rewritten = [cast(Formula, formula).xreplace(known) for formula in rewritten]
    by_formula, defined = [], set[Formula]()
    for formula in rewritten:
        used, own = set(formula.free_symbols), []
        for symbol, term in reversed(terms):  # each uses earlier ones
            if symbol in used - defined:
                used |= term.free_symbols
                own.insert(0, (symbol, term))
        defined |= {symbol for symbol, _ in own}
        by_formula.append(own)
    return by_formula, rewritten


def expanded(formula: Formula) -> Formula:
    """Without parentheses and common terms that cancel; long formulas stay as they are."""
    return formula if sympy.count_ops(formula) > LARGEST_EXPANDED else sympy.expand(formula)


def as_text(formula: Formula) -> str:
    """In the syntax of Python."""
    return _TextPrinter({"full_prec": False}).doprint(_with_decimals(formula))


class _TextPrinter(StrPrinter):
    def _print_Abs(self, expr: Formula) -> str:
        return f"abs({self._print(expr.args[0])})"


def as_short_text(formula: Formula) -> str:
    """As people write it: `min(x, 1)`, `x^2`, `a if x > 0 else b`, numbers of six digits."""
    rounded = _with_decimals(formula, SHORT_DIGITS)
    return _ShortPrinter({"full_prec": False}).doprint(rounded).replace("**", "^")


class _ShortPrinter(_TextPrinter):
    def _print_Min(self, expr: Formula) -> str:
        return f"min({self.stringify(expr.args, ', ')})"

    def _print_Max(self, expr: Formula) -> str:
        return f"max({self.stringify(expr.args, ', ')})"

    def _print_Piecewise(self, expr: Formula) -> str:
        *others, (last, _) = expr.args
        choices = "".join(f"{self._print(value)} if {self._print(condition)} else " for value, condition in others)
        return f"({choices}{self._print(last)})"


def as_latex(formula: Formula, names: Mapping[Formula, str]) -> str:
    """names: the LaTeX of each symbol."""
    return sympy.latex(_with_decimals(formula), symbol_names=dict(names), full_prec=False)


def _with_decimals(formula: Formula, digits: int = 15) -> Formula:
    """Fractions as decimals, but 1/5 and 3/2."""
    fractions = {r for r in formula.atoms(sympy.Rational) if r.q > 2}
    kept = {r for r in fractions if abs(r.p) == 1 and r.q <= LARGEST_KEPT_DENOMINATOR}
    return formula.xreplace({r: sympy.Float(r, digits) for r in fractions - kept})


def exact(number: float) -> Formula:
    if turns := _multiple_of_pi(number):
        return turns * sympy.pi
    if not math.isfinite(number):
        return sympy.nan if math.isnan(number) else sympy.oo * (1 if number > 0 else -1)
    return sympy.Rational(repr(number))


def _multiple_of_pi(number: float) -> Formula:
    """The simple fraction k such that the number is k π to rounding; 0 of others."""
    turns = (
        Fraction(number / math.pi).limit_denominator(LARGEST_KEPT_DENOMINATOR) if math.isfinite(number) else Fraction(0)
    )
    return sympy.Rational(turns) if abs(float(turns) * math.pi - number) <= 2 * math.ulp(number) else sympy.Integer(0)


# --- operations: conditions are numbers in casadi, 1 or 0, and truth values in sympy ---------------------


def _number(x: Formula) -> Formula:
    return sympy.Piecewise((1, x), (0, True)) if isinstance(x, TRUTH_VALUES) else x


def _condition(x: Formula) -> Formula:
    return x if isinstance(x, TRUTH_VALUES) else sympy.Ne(x, 0)


def _of_numbers(operation: Callable[..., Formula]) -> Callable[..., Formula]:
    return lambda *operands: operation(*map(_number, operands))


def _of_conditions(operation: Callable[..., Formula]) -> Callable[..., Formula]:
    return lambda *operands: operation(*map(_condition, operands))


def _sum(a: Formula, b: Formula) -> Formula:
    """casadi writes a choice as (c ? a : 0) + (!c ? b : 0)."""
    chosen, condition = _if_else_zero(a)
    other, otherwise = _if_else_zero(b)
    if condition is not None and otherwise is not None and sympy.Not(condition) == otherwise:
        return sympy.Piecewise((chosen, condition), (other, True))
    return a + b


def _if_else_zero(x: Formula) -> tuple[Formula, Formula]:
    """(value, condition) of a choice between a value and 0; no condition for others."""
    if isinstance(x, sympy.Piecewise) and len(x.args) == 2 and x.args[1] == (0, True):
        chosen, condition = x.args[0].args
        return chosen, condition
    return x, None


def _copysign(size: Formula, x: Formula) -> Formula:
    """|size| with the sign of x; `ops.reciprocal` writes 1/x so."""
    return size if size * x == 1 else sympy.Abs(size) * sympy.sign(x)


def _fmod(x: Formula, y: Formula) -> Formula:
    """x − y·trunc(x / y)"""
    return x - y * sympy.sign(x / y) * sympy.floor(sympy.Abs(x / y))


OPERATIONS: dict[str, Callable[..., Formula]] = {
    **{
        name: _of_numbers(operation)
        for name, operation in {
            "ASSIGN": lambda x: x,
            "NEG": lambda x: -x,
            "ADD": _sum,
            "SUB": lambda a, b: a - b,
            "MUL": lambda a, b: a * b,
            "DIV": lambda a, b: a / b,
            "SQ": lambda x: x**2,
            "TWICE": lambda x: 2 * x,
            "INV": lambda x: 1 / x,
            "POW": lambda x, y: x**y,
            "CONSTPOW": lambda x, y: x**y,
            "SQRT": sympy.sqrt,
            "EXP": sympy.exp,
            "LOG": sympy.log,
            "EXPM1": lambda x: sympy.exp(x) - 1,
            "LOG1P": lambda x: sympy.log(1 + x),
            "SIN": sympy.sin,
            "COS": sympy.cos,
            "TAN": sympy.tan,
            "ASIN": sympy.asin,
            "ACOS": sympy.acos,
            "ATAN": sympy.atan,
            "ATAN2": sympy.atan2,
            "SINH": sympy.sinh,
            "COSH": sympy.cosh,
            "TANH": sympy.tanh,
            "ASINH": sympy.asinh,
            "ACOSH": sympy.acosh,
            "ATANH": sympy.atanh,
            "ERF": sympy.erf,
            "HYPOT": lambda x, y: sympy.sqrt(x**2 + y**2),
            "FABS": sympy.Abs,
            "SIGN": sympy.sign,
            "FLOOR": sympy.floor,
            "CEIL": sympy.ceiling,
            "FMIN": Min,
            "FMAX": Max,
            "FMOD": _fmod,
            "COPYSIGN": _copysign,
            "LT": sympy.Lt,
            "LE": sympy.Le,
            "EQ": sympy.Eq,
            "NE": sympy.Ne,
        }.items()
    },
    "NOT": _of_conditions(sympy.Not),
    "AND": _of_conditions(sympy.And),
    "OR": _of_conditions(sympy.Or),
    "IF_ELSE_ZERO": lambda c, x: sympy.Piecewise((_number(x), _condition(c)), (0, True)),
}
