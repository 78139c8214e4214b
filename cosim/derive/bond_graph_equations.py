"""The equations of a bond graph as formulas: ẋ and outputs, with names in place of the values of its elements.

The graph is assembled again with symbols as values, and evaluated on symbols; its laws are traced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import sympy

from cosim.bondgraph import Assembly, BondGraph, Law, assemble
from cosim.bondgraph.assembly import Loop, Values
from cosim.bondgraph.equations import Variable
from cosim.compile.trace import symbols
from cosim.derive.symbolic import Formula, as_latex, as_text, expanded, formula_symbol, formulas, simplified
from cosim.derive.tables import quantity, shown_unit, table
from cosim.types import Numeric

# of the name of a parameter, by the kind of its element
PREFIXES = {"I": "I", "C": "k", "R": "R", "TF": "m", "GY": "K", "Se": "e", "Sf": "f"}
LARGEST_SHOWN = 1000  # operations of a formula as text
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


class LinearSystem(NamedTuple):
    """An algebraic loop of several unknown efforts and flows: rows · unknown = right."""

    unknown: Sequence[Formula]
    rows: Sequence[Sequence[Formula]]
    right: Sequence[Formula]

    @property
    def equations(self) -> list[tuple[Formula, Formula]]:
        """(left, right) of each."""
        left = (sum(a * x for a, x in zip(row, self.unknown, strict=True)) for row in self.rows)
        return list(zip(left, self.right, strict=True))


@dataclass(frozen=True)
class GraphFormulas:
    """rates: of the states, by name. outputs: by name. systems: what formulas take from loops of several unknowns.
    parameters: the values of elements, by the symbols in formulas.

    States that only account for energy are left out. `x'` is the derivative of an input with respect to time.
    """

    rates: Mapping[str, Formula]
    outputs: Mapping[str, Formula]
    systems: Sequence[LinearSystem]
    parameters: Mapping[Formula, Parameter]
    inputs: Sequence[str]

    @property
    def used(self) -> list[Parameter]:
        """The parameters that occur in a formula, in the order of the graph."""
        of_loops = [side for system in self.systems for equation in system.equations for side in equation]
        everything = (*self.rates.values(), *self.outputs.values(), *of_loops)
        occurring = {symbol for formula in everything for symbol in formula.free_symbols}
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
    assembled = assemble(BondGraph(elements, list(graph.bonds), inputs=dict(graph.inputs), signals=dict(graph.signals)))
    named = _NamedLoops(assembled.graph, assembled.causality, assembled.equations, assembled.order)
    accounts = {state.name: 0.0 for state in assembly.states if state.account}
    rates, variables = named.flow(t["t"], x | accounts, u)
    wanted = {**{name: rates[name] for name in states}, **{name: variables[v] for name, v in outputs.items()}}
    everything = known | {formula_symbol(name): symbol for name, symbol in (t | x | u).items()}
    everything |= {formula_symbol(name): symbol for loop in named.met for name, symbol in loop.unknown.items()}
    solved, systems = _solved_loops(named.met, everything)
    found = dict(zip(wanted, formulas(everything, list(wanted.values())), strict=True))
    found = {name: simplified(formula.xreplace(solved)) for name, formula in found.items()}
    rates_of, outputs_of = ({name: found[name] for name in names} for names in (states, outputs))
    return GraphFormulas(rates_of, outputs_of, systems, parameters, inputs)


def _solved_loops(
    loops: Sequence[_Loop], known: Mapping[Formula, Numeric]
) -> tuple[dict[Formula, Formula], list[LinearSystem]]:
    """(what loops of one unknown solve, the others)."""
    solved: dict[Formula, Formula] = {}
    systems = []
    for loop in loops:
        n, entries = len(loop.unknown), formulas(known, [*loop.rows, *loop.right])
        entries = [simplified(expanded(entry.xreplace(solved))) for entry in entries]
        unknown = [formula_symbol(name) for name in loop.unknown]
        rows, right = [entries[k * n : (k + 1) * n] for k in range(n)], entries[n * n :]
        if n == 1:
            solved[unknown[0]] = right[0] / rows[0][0]
        else:
            systems.append(LinearSystem(unknown, rows, right))
    return solved, systems


class _Loop(NamedTuple):
    """matrix · unknown = right, in symbols of casadi; rows: those of the matrix, one after the other."""

    unknown: Mapping[str, Numeric]
    rows: Sequence[Numeric]
    right: Sequence[Numeric]


@dataclass(frozen=True, eq=False)
class _NamedLoops(Assembly):
    """An assembly whose loops are recorded with names for what they solve, the efforts and flows of bonds."""

    met: list[_Loop] = field(default_factory=list)

    def _solve_loop(self, loop: Loop, known: Values) -> None:
        matrix, right = self._loop_equations(loop, known)
        unknown = {_unknown_name(variable): _casadi_symbol(_unknown_name(variable)) for variable in loop.guessed}
        n = len(unknown)
        self.met.append(_Loop(unknown, [matrix[i, j] for i in range(n) for j in range(n)], list(right)))
        known |= self._follow(loop, list(unknown.values()), known)


def _unknown_name(variable: Variable) -> str:
    """`f3'`, the derivative of the flow of bond 3; the derivative of a state by its name."""
    if variable.kind == "rate":
        return f"{variable.of}'"
    of = variable.of + 1 if isinstance(variable.of, int) else variable.of
    return f"{variable.kind}{of}{chr(39) * variable.order}"


def _casadi_symbol(name: str) -> Numeric:
    return symbols(name, ())[1]


# --- text and LaTeX --------------------------------------------------------------------------------


def equation_lines(found: GraphFormulas) -> list[str]:
    """One line for each equation, and a table of the parameters."""
    equations = [(f"{name}'", formula) for name, formula in found.rates.items()] + list(found.outputs.items())
    loops = [equation for system in found.systems for equation in system.equations]
    return [
        "equations: x' is dx/dt" + "; e3 and f3 are the effort and the flow of bond 3" * bool(loops),
        *table([(f"  {name}", f"= {_shown(formula)}") for name, formula in equations], "<<"),
        *([""] * bool(loops)),
        *(f"  {_shown(left)} = {_shown(right)}" for left, right in loops),
        *([""] * bool(found.used)),
        *table([(f"  {p.name}", f"= {quantity(p.value, p.unit)}") for p in found.used], "<<"),
    ]


def _shown(formula: Formula) -> str:
    """The formula as text, or its size where nobody would read it."""
    operations = sympy.count_ops(formula)
    return as_text(formula) if operations <= LARGEST_SHOWN else f"({operations} operations)"


def latex_lines(found: GraphFormulas) -> list[str]:
    """An `align*` of the equations, and a `tabular` of the parameters."""
    names = {symbol: f"{p.letter}_{{{_latex_text(p.element)}}}" for symbol, p in found.parameters.items()}
    names |= {formula_symbol(name): _latex_state(name) for name in found.rates}
    names |= {formula_symbol(name): _latex_input(name) for name in found.inputs}
    equations = [rf"\dot {_latex_state(name)} &= {as_latex(formula, names)}" for name, formula in found.rates.items()]
    equations += [rf"{_latex_text(name)} &= {as_latex(formula, names)}" for name, formula in found.outputs.items()]
    for system in found.systems:
        names |= {symbol: _latex_unknown(symbol.name) for symbol in system.unknown}
        equations += [rf"{as_latex(left, names)} &= {as_latex(right, names)}" for left, right in system.equations]
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


def _latex_unknown(name: str) -> str:
    stem, dots = name.rstrip("'"), name.count("'")
    letter = _latex_state(stem) if "." in stem else f"{stem[0]}_{{{stem[1:]}}}"
    return rf"\{'d' * dots}ot{{{letter}}}" if dots else letter


def _latex_number(value: float) -> str:
    digits, _, power = f"{value:.6g}".partition("e")
    return rf"{digits} \cdot 10^{{{int(power)}}}" if power else digits


def _latex_unit(unit: str) -> str:
    words = shown_unit(unit).replace("·", r"\,").replace("Ω", r"\Omega")
    for power, sign in (("2", "²"), ("3", "³"), ("4", "⁴")):
        words = words.replace(sign, f"^{power}")
    return rf"$\mathrm{{{words}}}$" if words else ""
