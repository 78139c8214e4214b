"""The Cartesian equations of every body and every joint, written out with their named entries, as text and LaTeX."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import sympy

from cosim.apps.derive.equations.components import Derivation
from cosim.apps.derive.equations.formulas import ComponentFormulas
from cosim.apps.derive.symbolic import Formula, as_text, formula_symbol
from cosim.apps.derive.tables import table

LARGEST_ENTRY = 5  # operations of an entry that stands in an equation itself, others by their names
LARGEST_MATRIX = 24  # rows of a descriptor matrix that is printed
LARGEST_CELL = 2  # operations of an entry that stands in the matrix


class WrittenEquation(NamedTuple):
    """`left = right`, and of what it is the equation."""

    about: str
    left: Formula
    right: Formula


class Entries:
    """The elements of the terms: 0, a short formula, or the name of a longer one, as `G[1,2]`."""

    def __init__(self, d: Derivation, found: Mapping[str, ComponentFormulas], largest: int = LARGEST_ENTRY) -> None:
        self._found, self._largest = found, largest

    def __call__(self, name: str, *place: int) -> Formula:
        """place: from 0."""
        if name not in self._found:
            return sympy.Integer(0)
        found = self._found[name]
        shape = found.component.shape
        at = place[0] if len(shape) == 1 else place[0] * shape[1] + place[1]
        formula = found.elements[at]
        steps = {symbol for symbol, _ in found.steps}
        if formula.is_Number or (not formula.free_symbols & steps and sympy.count_ops(formula) <= self._largest):
            return formula
        return formula_symbol(f"{found.component.letter}[{','.join(str(k + 1) for k in place)}]")


def equations_of_bodies(d: Derivation, found: Mapping[str, ComponentFormulas]) -> list[list[WrittenEquation]]:
    """Of each body, row by row M a = F + D u + Gᵀ λ."""
    system = d.cartesian
    assert system is not None
    entry, a = Entries(d, found), list(map(formula_symbol, system.accelerations))
    u, multipliers = _efforts(d, found), _multipliers(d)
    what = ("x", "y", "about z") if system.basis is not None else ("x", "y", "z", "about x", "about y", "about z")
    bodies = []
    for k, _ in enumerate(system.bodies):
        own = []
        for i in range(system.size * k, system.size * (k + 1)):
            left = sympy.Add(*(entry("mass_matrix", i, j) * a[j] for j in range(len(a))))
            right = sympy.Add(
                entry("forces", i),
                *(entry("effort_directions", i, j) * u[j] for j in range(len(u))),
                *(entry("constraint_jacobian", r, i) * x for r, x in enumerate(multipliers)),
            )
            own.append(WrittenEquation(what[i - system.size * k], left, right))
        bodies.append(own)
    return bodies


def equations_of_constraints(
    d: Derivation, found: Mapping[str, ComponentFormulas]
) -> Iterator[tuple[str, list[list[WrittenEquation]]]]:
    """(joint or constraint, of each of its rows: the equations at the levels of position, velocity, acceleration)."""
    system = d.cartesian
    assert system is not None
    entry, a = Entries(d, found), list(map(formula_symbol, system.accelerations))
    multipliers, zero = _multipliers(d), sympy.Integer(0)
    for owner, group in groupby(enumerate(system.rows), key=lambda item: item[1].owner):
        rows = []
        for r, row in group:
            left = sympy.Add(*(entry("constraint_jacobian", r, j) * x for j, x in enumerate(a)))
            left += entry("rotor_compliance", r, r) * multipliers[r]
            equations = [WrittenEquation("acceleration", left, entry("constraint_right_side", r))]
            if row.is_constraint:
                levels = {"position": "constraint_residual", "velocity": "constraint_rate"}
                shown = [(about, entry(name, r)) for about, name in levels.items()]
                equations = [*(WrittenEquation(about, x, zero) for about, x in shown if x != 0), *equations]
            rows.append(equations)
        yield owner, rows


def _efforts(d: Derivation, found: Mapping[str, ComponentFormulas]) -> list[Formula]:
    count = found["effort_directions"].component.shape[1] if "effort_directions" in found else 0
    return [formula_symbol(f"u{k + 1}") for k in range(count)]


def _multipliers(d: Derivation) -> list[Formula]:
    assert d.cartesian is not None
    return [formula_symbol(f"lambda{k + 1}") for k in range(len(d.cartesian.rows))]


def descriptor_matrix(d: Derivation, found: Mapping[str, ComponentFormulas]) -> list[list[Formula]]:
    """[M Gᵀ; G −C] with the right side as its last column."""
    system = d.cartesian
    assert system is not None
    entry = Entries(d, found, LARGEST_CELL)
    n, rows = range(len(system.accelerations)), range(len(system.rows))
    u = _efforts(d, found)
    upper = [
        [
            *(entry("mass_matrix", i, j) for j in n),
            *(entry("constraint_jacobian", r, i) for r in rows),
            _right(d, found, i, u),
        ]
        for i in n
    ]
    lower = [
        [
            *(entry("constraint_jacobian", r, j) for j in n),
            *(-entry("rotor_compliance", r, k) for k in rows),
            entry("constraint_right_side", r),
        ]
        for r in rows
    ]
    return [*upper, *lower]


def _right(d: Derivation, found: Mapping[str, ComponentFormulas], i: int, u: Sequence[Formula]) -> Formula:
    entry = Entries(d, found, LARGEST_CELL)
    return sympy.Add(entry("forces", i), *(entry("effort_directions", i, j) * x for j, x in enumerate(u)))


def cartesian_text(d: Derivation, found: Mapping[str, ComponentFormulas]) -> list[str]:
    """The equations of bodies and joints, and the descriptor matrix, with the entries that the terms before have."""
    system = d.cartesian
    assert system is not None
    lines = ["Newton and Euler for each body, M a = F + D u + G^T lambda:"]
    for k, (name, equations) in enumerate(zip(system.bodies, equations_of_bodies(d, found), strict=True), 1):
        lines += [f"  body {k}, {name}", *_rows((e.about, e) for e in equations)]
    lines += ["", "Constraints of each joint, g = 0, dg/dt = r = 0, G a + C lambda = b:"] if system.rows else []
    for owner, rows in equations_of_constraints(d, found):
        lines.append(f"  {owner}")
        lines += _rows((e.about, e) for equations in rows for e in equations)
    return [*lines, "", *_matrix_lines(d, found)]


def _rows(equations: Iterator[tuple[str, WrittenEquation]]) -> list[str]:
    return table([(f"    {about}:", f"{as_text(e.left)} = {as_text(e.right)}") for about, e in equations], "<<")


def _matrix_lines(d: Derivation, found: Mapping[str, ComponentFormulas]) -> list[str]:
    system = d.cartesian
    assert system is not None
    size = len(system.accelerations) + len(system.rows)
    head = f"Descriptor matrix [M G^T; G -C], {size} x {size}, of a and -lambda"
    if size > LARGEST_MATRIX:
        return [f"{head}: too wide to print ({LARGEST_MATRIX} at most); its entries are those of M, G and C above"]
    columns = [*system.accelerations, *(f"-lambda{k + 1}" for k in range(len(system.rows)))]
    rows = [
        ("  ", *("." if x == 0 else as_text(x) for x in row[:-1]), f"| {as_text(row[-1])}")
        for row in descriptor_matrix(d, found)
    ]
    return [f"{head}, and its right side:", *table([("  ", *columns, "|"), *rows], "<" * (size + 2))]
