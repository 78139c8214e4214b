"""The equations of motion in LaTeX."""

from __future__ import annotations

from collections.abc import Mapping

from cosim.apps.derive.equations.components import Derivation, EquationTerm
from cosim.apps.derive.equations.formulas import ComponentFormulas, component_formulas, symbols_of
from cosim.apps.derive.equations.header import header, operation_table
from cosim.apps.derive.equations.text import check_readable, printed
from cosim.apps.derive.latex import align, number, unit_formula, word
from cosim.apps.derive.symbolic import Formula, as_latex, formula_symbol

SPECIAL = {"_": r"\_", "&": r"\&", "%": r"\%", "#": r"\#", "$": r"\$", "^": r"\^{}", "{": r"\{", "}": r"\}"}


def latex_lines(d: Derivation) -> list[str]:
    """The equation of motion, a table of the parameters, and a paragraph with an `align*` for each component.

    Raises InputError for equations too long to print."""
    check_readable(d)
    letters, names = _letters(d), dict[Formula, str]()
    symbols, by_component = symbols_of(d), operation_table(d)
    for key, letter in letters.items():
        names |= {symbol: f"{letter}_{{{k}}}" for k, symbol in enumerate(symbols.get(key, ()), 1)}
    names |= {symbol: _name(symbol.name) for symbol in symbols.get("p", ())}
    lines = [*map(_comment, header(d)), "", *_equation(d, letters), *_parameters(d)]
    for c in printed(d):
        found = component_formulas(d, c)
        steps = {symbol: f"x_{{{symbol.name[1:]}}}" for symbol, _ in found.steps}
        rows = [(steps[symbol], formula) for symbol, formula in found.steps]
        rows += [(f"{_letter(c.letter)}_{{{','.join(map(str, place))}}}", formula) for place, formula in found.shown]
        rows = rows or [(_letter(c.letter), formula_symbol("0"))]
        lines += ["", _comment(f"{c.name}: {by_component[c.name]}"), _paragraph(c, found)]
        lines += align([(left, as_latex(formula, names | steps)) for left, formula in rows])
    return lines


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
