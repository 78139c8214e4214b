"""The equations of a bond graph as formulas: ẋ and outputs, with names in place of the values of its elements.

The graph is assembled again with symbols as values, and evaluated on symbols; its laws are traced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from cosim.bondgraph import Assembly, BondGraph, Law, assemble
from cosim.bondgraph.equations import Variable
from cosim.compile.trace import symbols
from cosim.derive.symbolic import Formula, as_latex, as_text, formula_symbol, formulas, simplified
from cosim.derive.tables import quantity, shown_unit, table
from cosim.types import Numeric

# of the name of a parameter, by the kind of its element
PREFIXES = {"I": "I", "C": "k", "R": "R", "TF": "m", "GY": "K", "Se": "e", "Sf": "f"}
# of states, by what they are: in LaTeX
LETTERS = {"flow": "f", "displacement": "q", "momentum": "p"}


class Parameter(NamedTuple):
    """value: SI; unit: that of SI."""

    element: str
    letter: str
    value: float
    unit: str

    @property
    def name(self) -> str:
        return f"{self.letter}_{self.element}"


@dataclass(frozen=True)
class GraphFormulas:
    """rates: of the states, by name. outputs: by name. parameters: the values of elements, by the symbols in formulas.

    States that only account for energy are left out. `x'` is the derivative of an input with respect to time.
    """

    rates: Mapping[str, Formula]
    outputs: Mapping[str, Formula]
    parameters: Mapping[Formula, Parameter]
    inputs: Sequence[str]

    @property
    def used(self) -> list[Parameter]:
        """The parameters that occur in a formula, in the order of the graph."""
        occurring = {s for formula in (*self.rates.values(), *self.outputs.values()) for s in formula.free_symbols}
        return [parameter for symbol, parameter in self.parameters.items() if symbol in occurring]


def formulas_of(assembly: Assembly, outputs: Mapping[str, Variable]) -> GraphFormulas:
    """The formulas of a graph; outputs: name -> variable of the graph.

    Raises CompileError for a law with an operation that has no formula.
    """
    graph = assembly.graph
    parameters = {
        formula_symbol(parameter.name): parameter
        for name, element in graph.elements.items()
        if element.row.value and not isinstance(element.value, Law)
        for parameter in [Parameter(name, PREFIXES[element.kind], float(element.value), element.unit or "")]
    }
    inputs = [*graph.inputs, *(f"{name}'" for name in graph.inputs)]
    states = [state.name for state in assembly.states if not state.account]
    known = {symbol: _casadi_symbol(symbol.name) for symbol in parameters}
    t, x, u = ({name: _casadi_symbol(name) for name in names} for names in (["t"], states, inputs))
    values = {parameter.element: known[symbol] for symbol, parameter in parameters.items()}
    elements = {
        name: replace(element, value=values[name]) if name in values else element
        for name, element in graph.elements.items()
    }
    named = assemble(BondGraph(elements, list(graph.bonds), inputs=dict(graph.inputs)))
    accounts = {state.name: 0.0 for state in assembly.states if state.account}
    rates, variables = named.flow(t["t"], x | accounts, u)
    wanted = {**{name: rates[name] for name in states}, **{name: variables[v] for name, v in outputs.items()}}
    everything = known | {formula_symbol(name): symbol for name, symbol in (t | x | u).items()}
    found = dict(zip(wanted, map(simplified, formulas(everything, list(wanted.values()))), strict=True))
    return GraphFormulas(
        {name: found[name] for name in states}, {name: found[name] for name in outputs}, parameters, inputs
    )


def _casadi_symbol(name: str) -> Numeric:
    return symbols(name, ())[1]


# --- text and LaTeX --------------------------------------------------------------------------------


def equation_lines(found: GraphFormulas) -> list[str]:
    """One line for each equation, and a table of the parameters."""
    equations = [(f"{name}'", formula) for name, formula in found.rates.items()] + list(found.outputs.items())
    return [
        "equations: x' is dx/dt",
        *table([(f"  {name}", f"= {as_text(formula)}") for name, formula in equations], "<<"),
        *([""] * bool(found.used)),
        *table([(f"  {p.name}", f"= {quantity(p.value, p.unit)}") for p in found.used], "<<"),
    ]


def latex_lines(found: GraphFormulas) -> list[str]:
    """An `align*` of the equations, and a `tabular` of the parameters."""
    names = {symbol: f"{p.letter}_{{{_latex_text(p.element)}}}" for symbol, p in found.parameters.items()}
    names |= {formula_symbol(name): _latex_state(name) for name in found.rates}
    names |= {formula_symbol(name): _latex_input(name) for name in found.inputs}
    equations = [rf"\dot {_latex_state(name)} &= {as_latex(formula, names)}" for name, formula in found.rates.items()]
    equations += [rf"{_latex_text(name)} &= {as_latex(formula, names)}" for name, formula in found.outputs.items()]
    rows = [
        rf"${p.letter}_{{{_latex_text(p.element)}}}$ & ${_latex_number(p.value)}$ & {_latex_unit(p.unit)} \\"
        for p in found.used
    ]
    return [
        r"\begin{align*}",
        *(f"{line} \\\\" for line in equations[:-1]),
        *equations[-1:],
        r"\end{align*}",
        *([r"\begin{tabular}{lrl}", *rows, r"\end{tabular}"] if rows else []),
    ]


def _latex_text(name: str) -> str:
    return rf"\mathrm{{{name}}}".replace("_", r"\_")


def _latex_state(name: str) -> str:
    element, _, what = name.rpartition(".")
    what, _, port = what.partition("_")
    return f"{LETTERS[what]}_{{{_latex_text(element)}{port and f',{port}'}}}"


def _latex_input(name: str) -> str:
    text = _latex_text(name.removesuffix("'"))
    return rf"\dot{{{text}}}" if name.endswith("'") else text


def _latex_number(value: float) -> str:
    digits, _, power = f"{value:.6g}".partition("e")
    return rf"{digits} \cdot 10^{{{int(power)}}}" if power else digits


def _latex_unit(unit: str) -> str:
    words = shown_unit(unit).replace("·", r"\,").replace("Ω", r"\Omega")
    for power, sign in (("2", "²"), ("3", "³"), ("4", "⁴")):
        words = words.replace(sign, f"^{power}")
    return rf"$\mathrm{{{words}}}$" if words else ""
