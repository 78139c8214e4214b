"""The equations of motion in LaTeX."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cosim.apps.derive.equations.cartesian_text import (
    LARGEST_MATRIX,
    descriptor_matrix,
    equations_of_bodies,
    equations_of_constraints,
)
from cosim.apps.derive.equations.components import Derivation, EquationTerm
from cosim.apps.derive.equations.formulas import ComponentFormulas, component_formulas, symbols_of
from cosim.apps.derive.equations.header import header, operation_table
from cosim.apps.derive.equations.text import check_readable, printed
from cosim.apps.derive.latex import align, number, unit_formula, word
from cosim.apps.derive.symbolic import Formula, as_latex, formula_symbol

GREEK = {"phi": r"\varphi", "alpha": r"\alpha", "lambda": r"\lambda", "tau": r"\tau", "w": r"\omega"}
CARTESIAN = (
    r"M a = F + D u + G^{T} \lambda, \quad G a + C \lambda = b, \qquad "
    r"\begin{bmatrix} M & G^{T} \\ G & -C \end{bmatrix} \begin{bmatrix} a \\ -\lambda \end{bmatrix} "
    r"= \begin{bmatrix} F + D u \\ b \end{bmatrix}"
)
SPECIAL = {"_": r"\_", "&": r"\&", "%": r"\%", "#": r"\#", "$": r"\$", "^": r"\^{}", "{": r"\{", "}": r"\}"}


def latex_lines(d: Derivation) -> list[str]:
    """The equation of motion, a table of the parameters, and a paragraph with an `align*` for each component.

    Raises InputError for equations too long to print."""
    check_readable(d)
    letters, names = _letters(d), dict[Formula, str]()
    symbols, by_component = symbols_of(d), operation_table(d)
    for key in d.names:
        names |= {symbol: cartesian_symbol(symbol.name) for symbol in symbols[key]}
    for key, letter in letters.items() if not d.names else ():
        names |= {symbol: f"{letter}_{{{k}}}" for k, symbol in enumerate(symbols.get(key, ()), 1)}
    names |= {symbol: _name(symbol.name) for symbol in symbols.get("p", ())}
    equation = [r"\[", CARTESIAN, r"\]"] if d.cartesian else _equation(d, letters)
    lines = [*map(_comment, header(d)), "", *equation, *_parameters(d)]
    by_name = {c.name: component_formulas(d, c) for c in printed(d)}
    for c in printed(d):
        found = by_name[c.name]
        steps = {symbol: f"x_{{{symbol.name[1:]}}}" for symbol, _ in found.steps}
        rows = [(steps[symbol], formula) for symbol, formula in found.steps]
        rows += [(f"{_letter(c.letter)}_{{{','.join(map(str, place))}}}", formula) for place, formula in found.shown]
        rows = rows or [(_letter(c.letter), formula_symbol("0"))]
        lines += ["", _comment(f"{c.name}: {by_component[c.name]}"), _paragraph(c, found)]
        lines += align([(left, as_latex(formula, names | steps)) for left, formula in rows])
    return [*lines, *_cartesian(d, by_name, names)] if d.cartesian else lines


def _cartesian(d: Derivation, found: Mapping[str, ComponentFormulas], names: Mapping[Formula, str]) -> list[str]:
    """The equations of bodies and of joints, and the descriptor matrix."""
    system = d.cartesian
    assert system is not None

    def written(formula: Formula) -> str:
        others = {x: cartesian_symbol(x.name) for x in formula.free_symbols if x not in names}
        return as_latex(formula, {**names, **others})

    lines = list[str]()
    for k, (body, equations) in enumerate(zip(system.bodies, equations_of_bodies(d, found), strict=True), 1):
        lines += ["", rf"\noindent Newton and Euler, body {k}, {_text(body)}:"]
        lines += align([(written(e.left), written(e.right)) for e in equations])
    for owner, rows in equations_of_constraints(d, found):
        lines += [
            "",
            rf"\noindent Constraints of {_text(owner)}, at the levels of position, velocity and acceleration:",
        ]
        lines += align([(written(e.left), written(e.right)) for equations in rows for e in equations])
    size = len(system.accelerations) + len(system.rows)
    if size <= LARGEST_MATRIX:
        matrix = descriptor_matrix(d, found)
        unknowns = [*system.accelerations, *(f"lambda{k + 1}" for k in range(len(system.rows)))]
        signs = ["-" * name.startswith("lambda") + cartesian_symbol(name) for name in unknowns]
        lines += ["", rf"\setcounter{{MaxMatrixCols}}{{{size}}}", r"\["]
        for rows in ([[written(x) for x in row[:-1]] for row in matrix], [[x] for x in signs]):
            lines += [r"\begin{bmatrix}", *(" & ".join(row) + r" \\" for row in rows), r"\end{bmatrix}"]
        lines += ["=", r"\begin{bmatrix}", *(written(row[-1]) + r" \\" for row in matrix), r"\end{bmatrix}", r"\]"]
    return lines


def cartesian_symbol(name: str) -> str:
    r"""`\varphi_{1}` of phi1, `v_{x,1}` of vx1, `A_{1,xy}` of A1_xy, `G_{1,2}` of G[1,2]."""
    if match := re.fullmatch(r"([A-Za-z]+)\[([\d,]+)\]", name):
        return f"{match[1]}_{{{match[2]}}}"
    match = re.fullmatch(r"(phi|alpha|lambda|tau|[a-zA-Z])([xyz]?)(\d+)(?:_([xyz]+))?", name)
    assert match is not None, name
    letter, axis, number, element = match.groups()
    parts = [axis] * bool(axis) + [number] + [element] * bool(element)
    return f"{GREEK.get(letter, letter)}_{{{','.join(parts)}}}"


def _letters(d: Derivation) -> dict[str, str]:
    """Of the vectors; of rotations v is no derivative of q."""
    rates = {"v": r"\dot{q}", "a": r"\ddot{q}"} if d.model.nq == d.model.nv else {"v": "v", "a": r"\dot{v}"}
    return {"q": "q", **rates, "tau": r"\tau", "f": "f"}


def _equation(d: Derivation, letters: Mapping[str, str]) -> list[str]:
    """The equation of motion, displayed."""

    def term(c: EquationTerm) -> str:
        given = ", ".join(letters.get(a, a) for a in c.arguments if a != "p")
        return f"{_letter(c.letter)}({given})" + rf"\, {letters['a']}" * (c.letter == "M")

    left, right = ([term(c) for c in side] for side in d.sides)
    reactions = any(c.name == "constraint_jacobian" for c in d.components)
    formula = " + ".join(left) + " = " + " + ".join([r"\tau", *right, *[r"H^{T} \lambda"] * reactions])
    closed = rf", \qquad H\, {letters['a']} = \gamma" * reactions
    return [r"\[", formula + closed, r"\]"]


def _parameters(d: Derivation) -> list[str]:
    rows = [
        rf"${_name(p.name)}$ & ${number(p.value)}$ & {unit_formula(p.unit)} & {_text(p.about)} \\" for p in d.parameters
    ]
    return ["", r"\begin{tabular}{lrll}", *rows, r"\end{tabular}"] if rows else []


def _paragraph(c: EquationTerm, found: ComponentFormulas) -> str:
    """What the component is, and which elements are not written."""
    size = r" \times ".join(map(str, c.shape))
    notes = ["symmetric"] * (c.letter == "M" and c.shape[0] > 1)
    notes += ["other elements are 0"] * bool(found.shown and any(formula == 0 for formula in found.elements))
    return rf"\noindent ${_letter(c.letter)}$ (${size}$), {'; '.join([_text(c.about), *notes])}:"


def _comment(text: str) -> str:
    return f"% {' '.join(text.splitlines())}".rstrip()


def _text(words: str) -> str:
    return "".join(SPECIAL.get(sign, sign) for sign in " ".join(words.splitlines()))


def _letter(letter: str) -> str:
    first, _, frame = letter.partition("_")
    words = {"gamma": r"\gamma"}
    return words.get(first, first) + (rf"^{{{word(frame)}}}" if frame else "")


def _name(name: str) -> str:
    first, _, rest = name.partition("_")
    return f"{first}_{{{word(rest)}}}" if rest else first
