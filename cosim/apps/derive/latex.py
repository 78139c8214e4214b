"""Pieces of LaTeX: names, numbers, units, rows of `align*`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from cosim.core.units import unit_sign

LONGEST_LINE = 90  # characters of a formula, about as many as a page is wide
SIGNS = re.compile(r"\\left|\\right|\\mathrm|\\dd?ot|[{}_^\s]")  # what is not set as a character


def word(name: str) -> str:
    return rf"\mathrm{{{name}}}".replace("_", r"\_")


def number(value: float) -> str:
    digits, _, power = f"{value:.6g}".partition("e")
    return rf"{digits} \cdot 10^{{{int(power)}}}" if power else digits


def unit_formula(unit: str) -> str:
    words = unit_sign(unit).replace("·", r"\,").replace("Ω", r"\Omega")
    for power, sign in (("2", "²"), ("3", "³"), ("4", "⁴")):
        words = words.replace(sign, f"^{power}")
    return rf"$\mathrm{{{words}}}$" if words else ""


def align(rows: Sequence[tuple[str, str]]) -> list[str]:
    """An `align*` of left and right sides; long right sides are broken between terms."""
    lines = [
        rf"{left} &= {part}" if not k else rf"&\quad {part}"
        for left, right in rows
        for k, part in enumerate(broken(right))
    ]
    return [r"\begin{align*}", *(rf"{line} \\" for line in lines[:-1]), *lines[-1:], r"\end{align*}"]


def broken(formula: str) -> list[str]:
    """The lines of a sum: each up to a page wide, but its terms stay whole."""
    lines = [""]
    for term in _terms(formula):
        if lines[-1] and _width(lines[-1]) + _width(term) > LONGEST_LINE:
            lines.append("")
        lines[-1] = f"{lines[-1]} {term}".lstrip()
    return lines


def _terms(formula: str) -> Iterable[str]:
    """With their signs before them."""
    depth, start = 0, 0
    for at, sign in enumerate(formula):
        depth += (sign in "{(") - (sign in "})")
        if depth == 0 and sign in "+-" and at and formula[at - 1] == " " and "cases" not in formula:
            yield formula[start:at].rstrip()
            start = at
    yield formula[start:]


def _width(formula: str) -> int:
    return len(SIGNS.sub("", formula))
