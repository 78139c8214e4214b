"""Expressions of casadi as polynomials of sines, cosines and symbols, in a normal form: equal ones look the same.

Angles about parallel axes are a group: a term has one sine or cosine of a sum of its angles, as products become sums of
such. Powers of the sine of another angle are replaced by sin² = 1 − cos². So nothing is left that cancels. `short_form`
writes a polynomial in several ways and takes the shortest.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Any, TypeAlias, cast

import sympy
from sympy import QQ

from cosim.apps.derive.equations.code import Instruction
from cosim.apps.derive.symbolic import Formula, applied, exact

MOST_TERMS = 300  # of a polynomial that anybody reads
MOST_TURNS = 4  # a multiple of an angle
MOST_PRODUCTS = 20_000  # of terms in one multiplication
MOST_SQUARED = 10  # terms of the square of a sum of four
NEGLIGIBLE = QQ(1, 10**14)  # of the largest coefficient of a polynomial: rounding of constants
CANCELLED = QQ(1, 10**13)  # of two coefficients that are added: what rounding leaves of them
COMPOSED = (
    *("SQRT", "DIV", "INV", "EXP", "LOG", "POW", "CONSTPOW"),
    *("TAN", "TANH", "ATAN2", "ASIN", "ACOS", "ATAN", "FABS"),
)  # what is a factor of its own

Angle: TypeAlias = Any  # a symbol, or of a group ((symbol, multiple), …)
Coefficient: TypeAlias = Any  # a fraction of sympy
Factor: TypeAlias = tuple[str, Angle]  # ("sin", angle), ("cos", angle) or ("", anything)
Monomial: TypeAlias = tuple[tuple[Factor, int], ...]  # factors with their powers, sorted
Groups: TypeAlias = Mapping[Formula, int]  # an angle that belongs to a group -> its group


class NotPolynomial(Exception):
    """Too long, or a choice between cases."""


@dataclass
class Polynomial:
    """A sum of monomials with exact coefficients, none of them 0."""

    terms: dict[Monomial, Coefficient] = field(default_factory=dict)

    @staticmethod
    def constant(value: Coefficient) -> Polynomial:
        return Polynomial({(): value} if value else {})

    @staticmethod
    def of(factor: Factor) -> Polynomial:
        return Polynomial({((factor, 1),): QQ(1)})

    def __add__(self, other: Polynomial) -> Polynomial:
        terms = dict(self.terms)
        for monomial, c in other.terms.items():
            _accumulate(terms, monomial, c)
        return Polynomial(terms)

    def scaled(self, by: Coefficient) -> Polynomial:
        return Polynomial({monomial: c * by for monomial, c in self.terms.items()} if by else {})

    def __mul__(self, other: Polynomial) -> Polynomial:
        """Raises NotPolynomial for too many terms."""
        if len(self.terms) * len(other.terms) > MOST_PRODUCTS:
            raise NotPolynomial
        terms: dict[Monomial, Coefficient] = {}
        for m1, c1 in self.terms.items():
            for m2, c2 in other.terms.items():
                for monomial, c in _product(m1, m2):
                    _accumulate(terms, monomial, c * c1 * c2)
        if len(terms) > MOST_TERMS:
            raise NotPolynomial
        return Polynomial(terms)

    @property
    def value(self) -> Coefficient | None:
        """Of a constant."""
        return self.terms.get((), QQ(0)) if not set(self.terms) - {()} else None

    def rounded(self) -> Polynomial:
        """Without the terms that the rounding of constants leaves."""
        largest = max(map(abs, self.terms.values()), default=QQ(0))
        return Polynomial({m: c for m, c in self.terms.items() if abs(c) > NEGLIGIBLE * largest})


def _accumulate(terms: dict[Monomial, Coefficient], monomial: Monomial, c: Coefficient) -> None:
    known = terms.get(monomial, QQ(0))
    total = known + c
    if total and abs(total) > CANCELLED * abs(c):  # so small beside one, it is small beside both
        terms[monomial] = total
    else:
        terms.pop(monomial, None)


def _product(first: Monomial, second: Monomial) -> list[tuple[Monomial, Coefficient]]:
    """As a sum of monomials in normal form."""
    powers: dict[Factor, int] = defaultdict(int)
    waves: dict[int, Factor] = {}  # of each group
    found: list[tuple[dict[Factor, int], Coefficient]] = [(powers, QQ(1))]
    for factor, power in chain(first, second):
        if not _is_wave(factor):
            powers[factor] += power
    for factor, _ in first:
        if _is_wave(factor):
            waves[factor[1][0]] = factor
    for factor, _ in second:
        if _is_wave(factor):
            sums = _wave_product(waves.pop(factor[1][0]), factor) if factor[1][0] in waves else [(factor, QQ(1))]
            found = [({**p, **({wave: 1} if wave else {})}, c * x) for p, c in found for wave, x in sums]
    found = [(p | dict.fromkeys(waves.values(), 1), c) for p, c in found]
    return [(monomial, c * x) for p, c in found for monomial, x in _without_squares(p)]


def _is_wave(factor: Factor) -> bool:
    return bool(factor[0]) and isinstance(factor[1], tuple)


def _wave(kind: str, group: int, multiples: Mapping[Formula, int]) -> tuple[Factor | None, int]:
    """(the factor of sin or cos of a sum of angles, its sign); no factor for cos 0, sign 0 for sin 0."""
    kept = tuple((q, multiples[q]) for q in sorted(multiples, key=_number) if multiples[q])
    if not kept:
        return None, int(kind == "cos")
    if kept[-1][1] > 0:
        return (kind, (group, kept)), 1
    return (kind, (group, tuple((q, -k) for q, k in kept))), 1 if kind == "cos" else -1


def _number(symbol: Formula) -> tuple[int, str]:
    return len(symbol.name), symbol.name


def _wave_product(first: Factor, second: Factor) -> list[tuple[Factor | None, Coefficient]]:
    """The product of two sines or cosines of one group as a sum."""
    (kind, (group, a)), (other, (_, b)) = first, second
    if kind == "cos" and other == "sin":
        return _wave_product(second, first)
    sums = [_wave_sum(dict(a), dict(b), sign) for sign in (1, -1)]
    both = "cos" if kind == other else "sin"
    signs = (-1, 1) if (kind, other) == ("sin", "sin") else (1, 1)
    waves = [(_wave(both, group, total), sign) for total, sign in zip(sums, signs, strict=True)]
    return [(wave, QQ(sign * own, 2)) for (wave, own), sign in waves if own]


def _wave_sum(a: Mapping[Formula, int], b: Mapping[Formula, int], sign: int) -> dict[Formula, int]:
    return {q: a.get(q, 0) + sign * b.get(q, 0) for q in a.keys() | b.keys()}


def _without_squares(powers: Mapping[Factor, int]) -> list[tuple[Monomial, Coefficient]]:
    """With no power of a sine above 1."""
    found: list[tuple[dict[Factor, int], Coefficient]] = [(dict(powers), QQ(1))]
    for (kind, angle), power in powers.items():
        if kind == "sin" and power > 1:
            squares, sine, cosine = power // 2, (kind, angle), ("cos", angle)
            replaced = []
            for p, c in found:
                for k in range(squares + 1):  # (1 − cos²)^squares
                    changed = {**p, sine: power % 2, cosine: p.get(cosine, 0) + 2 * k}
                    replaced.append((changed, c * math.comb(squares, k) * (-1) ** k))
            found = replaced
    return [(tuple(sorted(((f, n) for f, n in p.items() if n), key=_order)), c) for p, c in found]


def _order(item: tuple[Factor, int]) -> tuple[str, str, int]:
    (kind, of), power = item
    return kind, str(of), power


def polynomials(
    steps: Sequence[Instruction], inputs: Sequence[Sequence[Formula]], parallel: Iterable[Sequence[Formula]] = ()
) -> list[Polynomial]:
    """Of the outputs of the steps; inputs: the symbols of each input; parallel: groups of angles about parallel axes.

    Raises NotPolynomial for long ones, and for choices between cases.
    """
    groups = {angle: k for k, group in enumerate(parallel) if len(group) > 1 for angle in group}
    found: dict[int, Polynomial] = {}
    outputs: dict[int, Polynomial] = {}
    for step in steps:
        operands = [found[k] for k in step.operands] if step.name not in ("INPUT", "CONST") else []
        match step.name:
            case "INPUT":
                found[step.result] = Polynomial.of(("", inputs[step.operands[0]][step.operands[1]]))
            case "CONST":
                found[step.result] = _constant(step.value)
            case "OUTPUT":
                outputs[step.result] = operands[0].rounded()
            case _:
                found[step.result] = _applied(step.name, operands, groups)
    return [outputs[k] for k in sorted(outputs)]


def _constant(value: float) -> Polynomial:
    number = exact(value)
    turns = number / sympy.pi
    if value and turns.is_Rational:
        return Polynomial.of(("", sympy.pi)).scaled(QQ(turns.p, turns.q))
    if not number.is_Rational:
        raise NotPolynomial
    return Polynomial.constant(QQ(number.p, number.q))


def _applied(name: str, operands: Sequence[Polynomial], groups: Groups) -> Polynomial:
    first, *others = operands
    match name:
        case "ADD":
            return first + others[0]
        case "SUB":
            return first + others[0].scaled(QQ(-1))
        case "MUL":
            return first * others[0]
        case "SQ":
            return first * first
        case "NEG":
            return first.scaled(QQ(-1))
        case "TWICE":
            return first.scaled(QQ(2))
        case "DIV" if others[0].value:
            return first.scaled(1 / others[0].value)
        case "SIN" | "COS":
            return _of_sum(name.lower(), first, groups)
        case _ if name in COMPOSED:
            return _composed(name, operands)
        case _:
            raise NotPolynomial


def _composed(name: str, operands: Sequence[Polynomial]) -> Polynomial:
    """What is no polynomial of its operands is a factor of its own."""
    formula = applied(name, [short_form(operand) for operand in operands])
    if formula.is_Rational:
        return Polynomial.constant(QQ(formula.p, formula.q))
    return Polynomial.of(("", formula))


def _of_sum(kind: str, angle: Polynomial, groups: Groups) -> Polynomial:
    """sin or cos of a sum of whole multiples of symbols, in sines and cosines of the groups and of single symbols."""
    parts: list[dict[Formula, int]] = []
    of_group: dict[int, dict[Formula, int]] = {}
    for monomial, c in angle.terms.items():
        symbol = monomial[0][0][1] if len(monomial) == 1 and monomial[0][1] == 1 and monomial[0][0][0] == "" else None
        if symbol is None or not symbol.is_Symbol or c.denominator != 1 or abs(c) > MOST_TURNS:
            return _composed(kind.upper(), [angle])
        if symbol in groups:
            of_group.setdefault(groups[symbol], {})[symbol] = int(c)
        else:
            parts += [{symbol: 1 if c > 0 else -1}] * int(abs(c))
    sine, cosine = Polynomial(), Polynomial.constant(QQ(1))
    pairs = [_pair(group, multiples) for group, multiples in of_group.items()]
    for s, c in [*pairs, *(_pair(None, part) for part in parts)]:
        sine, cosine = sine * c + cosine * s, cosine * c + (sine * s).scaled(QQ(-1))
    return sine if kind == "sin" else cosine


def _pair(group: int | None, multiples: Mapping[Formula, int]) -> tuple[Polynomial, Polynomial]:
    """(sin, cos) of a sum of angles of a group, or of a single angle or its negative."""
    if group is None:
        ((symbol, sign),) = multiples.items()
        return Polynomial.of(("sin", symbol)).scaled(QQ(sign)), Polynomial.of(("cos", symbol))
    (sine, sign), (cosine, _) = _wave("sin", group, multiples), _wave("cos", group, multiples)
    assert sine is not None and cosine is not None
    return Polynomial.of(sine).scaled(QQ(sign)), Polynomial.of(cosine)


# --- the shortest way to write one -----------------------------------------------------------------------


def short_form(polynomial: Polynomial) -> Formula:
    """The shortest of several forms; with powers of sines and cosines of single angles, or with multiples of them."""
    if not polynomial.terms:
        return sympy.Integer(0)
    powers = any(kind and power > 1 for m in polynomial.terms for (kind, _), power in m)
    forms = [_trigonometric(polynomial, False)] + [_trigonometric(polynomial, True)] * powers
    written = [form for terms in forms for form in _arrangements(terms)]
    return min(written, key=sympy.count_ops)


Term: TypeAlias = tuple[Formula, Formula]  # (sines and cosines, the rest without its number)


def _trigonometric(polynomial: Polynomial, multiples: bool) -> dict[Term, Formula]:
    """The polynomial by terms; multiples: in place of powers and products of the sine and cosine of one angle."""
    found: dict[Term, Coefficient] = defaultdict(lambda: QQ(0))
    for monomial, c in polynomial.terms.items():
        rest, waves = sympy.Integer(1), [(sympy.Integer(1), QQ(1))]
        singles: dict[Formula, list[int]] = {}
        for (kind, of), power in monomial:
            if kind and multiples and not isinstance(of, tuple):
                singles.setdefault(of, [0, 0])[kind == "cos"] += power
            elif kind:
                angle = sum(k * q for q, k in of[1]) if isinstance(of, tuple) else of
                function = (sympy.sin if kind == "sin" else sympy.cos)(angle) ** power
                waves = [(trig * function, x) for trig, x in waves]
            else:
                rest = rest * cast(Formula, of) ** power
        for angle, (sines, cosines) in singles.items():
            waves = [(trig * t, x * y) for trig, x in waves for t, y in _multiples(angle, sines, cosines)]
        for trig, x in waves:
            found[trig, rest] += c * x
    return {term: sympy.Rational(int(c.numerator), int(c.denominator)) for term, c in found.items() if c}


def _multiples(angle: Formula, sines: int, cosines: int) -> list[tuple[Formula, Coefficient]]:
    """sin^a cos^b as a sum of sines or cosines of multiples of the angle."""
    total = Polynomial.constant(QQ(1))
    for kind in ["sin"] * sines + ["cos"] * cosines:
        total = total * Polynomial.of((kind, (0, ((angle, 1),))))
    return [(trig, QQ(int(c.p), int(c.q))) for (trig, _), c in _trigonometric(total, False).items()]


def _arrangements(terms: Mapping[Term, Formula]) -> list[Formula]:
    """A plain sum, and sums with common sines and cosines, or common other factors, taken out."""
    by_trig: dict[Formula, Formula] = defaultdict(lambda: sympy.Integer(0))
    by_rest: dict[Formula, Formula] = defaultdict(lambda: sympy.Integer(0))
    for (trig, rest), c in terms.items():
        by_trig[trig] += c * rest
        by_rest[rest] += c * trig
    plain = sympy.Add(*(c * trig * rest for (trig, rest), c in terms.items()))
    grouped = [
        sympy.Add(*(outer * _factored(inner) for outer, inner in groups.items())) for groups in (by_trig, by_rest)
    ]
    forms = dict.fromkeys((plain, *grouped))  # often one and the same
    return [*forms, *map(_factored, forms)]


@lru_cache(maxsize=1024)  # the elements of a component have sums in common
def _factored(formula: Formula) -> Formula:
    """With what all terms have in common outside; numbers stay where they are, but whole ones."""
    if not isinstance(formula, sympy.Add):
        return formula
    common = sympy.gcd_terms(cast(Formula, formula)) if _whole(formula) else _without_numbers(formula)
    return min((formula, common, *_power_of_sum(formula)), key=sympy.count_ops)


def _power_of_sum(formula: Formula) -> list[Formula]:
    """One such as m*(v1 + v2)**2, of a sum without sines and cosines; none of others."""
    if not 3 <= len(formula.args) <= MOST_SQUARED or formula.has(sympy.sin, sympy.cos):
        return []
    product = cast(Formula, sympy.factor(formula))
    has_power = any(isinstance(f, sympy.Pow) and f.base.is_Add for f in sympy.Mul.make_args(product))
    return [product] if has_power else []


def _whole(formula: Formula) -> bool:
    return all(number.is_Integer for number in formula.atoms(sympy.Rational))


def _without_numbers(formula: Formula) -> Formula:
    """Common symbols outside, numbers as if they were symbols."""
    numbers = {r: sympy.Dummy(positive=True) for r in {abs(r) for r in formula.atoms(sympy.Rational) if r.q > 1}}
    hidden = formula.xreplace(numbers | {-r: -d for r, d in numbers.items()})
    return cast(Formula, sympy.gcd_terms(hidden)).xreplace({d: r for r, d in numbers.items()})
