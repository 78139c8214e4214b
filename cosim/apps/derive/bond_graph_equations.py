"""The equations of a bond graph as formulas: ẋ and outputs, with names in place of the values of its elements.

The graph is assembled again with symbols as values, and evaluated on symbols; its laws are traced.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from types import MappingProxyType
from typing import NamedTuple

import sympy

from cosim.apps.derive.bond_graph_symbols import Parameter, with_names
from cosim.apps.derive.latex import number, unit_formula, word
from cosim.apps.derive.symbolic import (
    Formula,
    as_latex,
    as_text,
    expanded,
    formula_symbol,
    formulas,
    shared,
    simplified,
)
from cosim.apps.derive.tables import quantity, table
from cosim.core import ops
from cosim.core.compile.trace import column, symbols
from cosim.core.types import Numeric
from cosim.mechanics.bondgraph import Assembly
from cosim.mechanics.bondgraph.assembly import Loop, Values, element_of
from cosim.mechanics.bondgraph.equations import Function, Term, Variable
from cosim.mechanics.bondgraph.graph import ComponentOrigin
from cosim.plugins.actuators._graph_actuator import GraphActuator

LARGEST_SHOWN = 1000  # operations of a formula as text
LONGEST_LAW = 40  # operations of the value of a law, beyond which what occurs several times in it is given a name
# operations of what is given a name: of the value of a law, and of other efforts and flows
SHORTEST_NAMED_LAW, SHORTEST_NAMED = 7, 60
# of states and named values, by what they are: in LaTeX
LETTERS = {"flow": "f", "effort": "e", "ratio": "m", "displacement": "q", "momentum": "p"}


class Named(NamedTuple):
    """An effort, flow or ratio with a name, because its formula is long."""

    symbol: Formula
    formula: Formula

    @property
    def gives(self) -> Sequence[Formula]:
        return (self.symbol,)

    @property
    def formulas(self) -> list[Formula]:
        return [self.formula]


class LinearSystem(NamedTuple):
    """An algebraic loop of several unknown efforts and flows: rows · unknown = right."""

    unknown: Sequence[Formula]
    rows: Sequence[Sequence[Formula]]
    right: Sequence[Formula]

    @property
    def gives(self) -> Sequence[Formula]:
        return self.unknown

    @property
    def formulas(self) -> list[Formula]:
        return [*(entry for row in self.rows for entry in row), *self.right]

    @property
    def equations(self) -> list[tuple[Formula, Formula]]:
        """(left, right) of each."""
        left = (sum(a * x for a, x in zip(row, self.unknown, strict=True)) for row in self.rows)
        return list(zip(left, self.right, strict=True))


@dataclass(frozen=True)
class GraphFormulas:
    """The equations of a bond graph as formulas, in the names of its elements.

    rates: of the states, by name. outputs: by name. steps: what formulas take from laws, and from loops of several
    unknowns, in the order in which they follow from each other. parameters: the values of elements, by the symbols in
    formulas.

    States that only account for energy are left out. `x'` is the derivative of an input with respect to time.
    """

    rates: Mapping[str, Formula]
    outputs: Mapping[str, Formula]
    steps: Sequence[Named | LinearSystem]
    parameters: Mapping[Formula, Parameter]
    inputs: Sequence[str]

    @property
    def explicit(self) -> dict[str, Formula]:
        """The rates that are not unknowns of a system themselves."""
        return {name: rate for name, rate in self.rates.items() if rate != formula_symbol(f"{name}'")}

    @property
    def named(self) -> list[Named]:
        return [step for step in self.steps if isinstance(step, Named)]

    @property
    def systems(self) -> list[LinearSystem]:
        return [step for step in self.steps if isinstance(step, LinearSystem)]

    @property
    def used(self) -> list[Parameter]:
        """The parameters that occur in a formula, in the order of the graph."""
        of_steps = (formula for step in self.steps for formula in step.formulas)
        occurring = _symbols_of((*self.rates.values(), *self.outputs.values(), *of_steps))
        return [parameter for symbol, parameter in self.parameters.items() if symbol in occurring]


def formulas_of(
    assembly: Assembly,
    outputs: Mapping[str, Variable | Term],
    origins: Mapping[str, ComponentOrigin] = MappingProxyType({}),
) -> GraphFormulas:
    """The formulas of a graph; outputs: name -> variable of the graph, or a multiple; origins: of its components, whose
    parameters have names then.

    Raises CompileError for a law with an operation that has no formula.
    """
    elements, signals, numbers = with_names(assembly.graph, origins)
    parameters = {formula_symbol(parameter.name): parameter for parameter in numbers}
    inputs = [*assembly.graph.inputs, *assembly.rates_of_inputs]
    states = [state.name for state in assembly.states if not state.account]
    known = {formula_symbol(parameter.name): symbol for parameter, symbol in numbers.items()}
    t, x, u = ({name: _casadi_symbol(name) for name in names} for names in (["t"], states, inputs))
    assembled = assembly.with_elements(elements, signals)
    named = _NamedParts(assembled.graph, assembled.causality, assembled.equations, assembled.order)
    accounts = {state.name: 0.0 for state in assembly.states if state.account}
    rates, variables = named.flow(t["t"], x | accounts, u)
    wanted = {**{name: rates[name] for name in states}, **of_outputs(outputs, variables)}
    everything = known | {formula_symbol(name): symbol for name, symbol in (t | x | u).items()}
    everything |= {formula_symbol(name): symbol for part in named.met for name, symbol in part.gives.items()}
    traced = iter(formulas(everything, [*wanted.values(), *(e for part in named.met for e in part.entries)]))
    found = dict(zip(wanted, traced, strict=False))
    solved, steps = _solved_parts(named.met, traced)
    found = {name: simplified(formula.xreplace(solved)) for name, formula in found.items()}
    rates_of, outputs_of = ({name: found[name] for name in names} for names in (states, outputs))
    steps = _with_shared_terms(_needed(steps, found.values()), {symbol.name for symbol in everything})
    return GraphFormulas(rates_of, outputs_of, steps, parameters, inputs)


def outputs_of(actuator: GraphActuator) -> dict[str, Term]:
    """The efforts on the joints, and the recorded signals."""
    graph, found = actuator.assembly.graph, dict[str, Term]()
    for joint, before in actuator.joints.items():
        (bond,) = graph.at(joint)
        found[f"{before}effort"] = Term(float(graph.sign(joint, bond)), Variable("e", bond))
    return found | {name: Term(1.0, variable) for name, variable in actuator.recorded.items()}


def of_outputs(outputs: Mapping[str, Variable | Term], variables: Values) -> dict[str, Numeric]:
    """The values of outputs."""
    return {
        name: output.factor * variables[output.variable] if isinstance(output, Term) else variables[output]
        for name, output in outputs.items()
    }


def _solved_parts(
    parts: Sequence[_Part], traced: Iterator[Formula]
) -> tuple[dict[Formula, Formula], list[Named | LinearSystem]]:
    """(what loops of one unknown solve, the other steps, of which long values are as traced). traced: the formulas of
    their entries, one after the other."""
    solved: dict[Formula, Formula] = {}
    steps: list[Named | LinearSystem] = []
    for part in parts:
        entries = [formula.xreplace(solved) for formula in islice(traced, len(part.entries))]
        symbols_of, n = [formula_symbol(name) for name in part.gives], len(part.gives)
        if not part.loop:
            steps.append(Named(symbols_of[0], entries[0]))
            continue
        entries = [simplified(expanded(entry)) for entry in entries]
        rows, right = [entries[k * n : (k + 1) * n] for k in range(n)], entries[n * n :]
        if n == 1:
            solved[symbols_of[0]] = right[0] / rows[0][0]
        else:
            steps.append(LinearSystem(symbols_of, rows, right))
    return solved, steps


def _with_shared_terms(steps: Sequence[Named | LinearSystem], taken: Container[str]) -> list[Named | LinearSystem]:
    """The steps with names for what occurs several times in long ones, and simplified. taken: names of others."""
    long = [step for step in steps if isinstance(step, Named) and sympy.count_ops(step.formula) > LONGEST_LAW]
    names = (name for k in count(1) if (name := f"a{k}") not in taken)
    terms, rewritten = shared([step.formula for step in long], names)
    of_long = {step.symbol: parts for step, *parts in zip(long, terms, rewritten, strict=True)}
    found: list[Named | LinearSystem] = []
    for step in steps:
        if isinstance(step, LinearSystem):
            found.append(step)
            continue
        own, formula = of_long.get(step.symbol, ([], step.formula))
        found += [Named(symbol, simplified(term)) for symbol, term in [*own, (step.symbol, formula)]]
    return found


def _needed(steps: Sequence[Named | LinearSystem], wanted: Iterable[Formula]) -> list[Named | LinearSystem]:
    """The steps from which the wanted formulas follow."""
    needed, kept = _symbols_of(wanted), list[Named | LinearSystem]()
    for step in reversed(steps):
        if needed.intersection(step.gives):
            needed |= _symbols_of(step.formulas)
            kept.insert(0, step)
    return kept


def _symbols_of(found: Iterable[Formula]) -> set[Formula]:
    return {symbol for formula in found for symbol in formula.free_symbols}


class _Part(NamedTuple):
    """What is given symbols, by name, and the expressions of casadi that say what it is: one, or of a loop
    matrix · unknown = right the rows of the matrix, one after the other, and the right side."""

    gives: Mapping[str, Numeric]
    entries: Sequence[Numeric]
    loop: bool


@dataclass(frozen=True, eq=False)
class _NamedParts(Assembly):
    """An assembly that gives names to what loops solve, the efforts and flows of bonds, and to long values; it records
    what they stand for."""

    met: list[_Part] = field(default_factory=list)

    def _value(self, variable: Variable, known: Values) -> Numeric:
        value = super()._value(variable, known)
        if variable.kind not in ("e", "f", "ratio") or not ops.is_symbolic(value):
            return value
        by_law = isinstance(self.equations.of[variable], Function)
        if _operations(value) < (SHORTEST_NAMED_LAW if by_law and not variable.order else SHORTEST_NAMED):
            return value
        name = self._name_of_law(variable) if by_law else _unknown_name(variable)
        self.met.append(_Part({name: (symbol := _casadi_symbol(name))}, [value], loop=False))
        return symbol

    def _name_of_law(self, variable: Variable) -> str:
        """`valve.flow` of the element that computes it, `chamber.effort_2` of an element of several bonds."""
        what = {"e": "effort", "f": "flow", "ratio": "ratio"}[variable.kind]
        element = element_of(self.equations, variable)
        bonds = self.graph.at(element)
        port = f"_{bonds.index(int(variable.of)) + 1}" if variable.kind != "ratio" and len(bonds) > 1 else ""
        return f"{element}.{what}{port}{chr(39) * variable.order}"

    def _solve_loop(self, loop: Loop, known: Values) -> None:
        matrix, right = self._loop_equations(loop, known)
        unknown = {_unknown_name(variable): _casadi_symbol(_unknown_name(variable)) for variable in loop.guessed}
        n = len(unknown)
        rows = [matrix[i, j] for i in range(n) for j in range(n)]
        self.met.append(_Part(unknown, [*rows, *right], loop=True))
        known |= dict(zip(loop.guessed, unknown.values(), strict=True))
        for variable in loop.rest:
            known[variable] = self._value(variable, known)


def _unknown_name(variable: Variable) -> str:
    """`f3'`, the derivative of the flow of bond 3; the derivative of a state by its name."""
    if variable.kind == "rate":
        return f"{variable.of}'"
    of = variable.of + 1 if isinstance(variable.of, int) else variable.of
    return f"{variable.kind}{of}{chr(39) * variable.order}"


def _operations(value: Numeric) -> int:
    import casadi

    return casadi.Function("f", [], [column(value)], {"allow_free": True}).n_nodes()


def _casadi_symbol(name: str) -> Numeric:
    return symbols(name, ())[1]


# --- text and LaTeX --------------------------------------------------------------------------------


def equation_lines(found: GraphFormulas) -> list[str]:
    """One line for each equation, and a table of the parameters."""
    equations = [(f"{name}'", formula) for name, formula in found.explicit.items()] + list(found.outputs.items())
    loops = [equation for system in found.systems for equation in system.equations]
    named = [(f"  {step.symbol}", f"= {_shown(step.formula)}") for step in found.named]
    return [
        "equations: x' is dx/dt" + "; e3 and f3 are the effort and the flow of bond 3" * bool(loops),
        *table([(f"  {name}", f"= {_shown(formula)}") for name, formula in equations], "<<"),
        *(["", *table(named, "<<")] if named else []),
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
    names = {symbol: _latex_parameter(p) for symbol, p in found.parameters.items()}
    names |= {formula_symbol(name): _latex_state(name) for name in found.rates}
    names |= {formula_symbol(name): _latex_input(name) for name in found.inputs}
    names |= {step.symbol: _latex_unknown(step.symbol.name) for step in found.named}
    equations = [
        rf"\dot {_latex_state(name)} &= {as_latex(formula, names)}" for name, formula in found.explicit.items()
    ]
    equations += [rf"{word(name)} &= {as_latex(formula, names)}" for name, formula in found.outputs.items()]
    equations += [f"{names[step.symbol]} &= {as_latex(step.formula, names)}" for step in found.named]
    for system in found.systems:
        names |= {symbol: _latex_unknown(symbol.name) for symbol in system.unknown}
        equations += [rf"{as_latex(left, names)} &= {as_latex(right, names)}" for left, right in system.equations]
    used = ((f"${_latex_parameter(p)}$", rf"${number(p.value)}$", unit_formula(p.unit)) for p in found.used)
    rows = [rf"{' & '.join(cells)} \\" for cells in used]
    return [
        r"\begin{align*}",
        *(f"{line} \\\\" for line in equations[:-1]),
        *equations[-1:],
        r"\end{align*}",
        *([r"\begin{tabular}{lrl}", *rows, r"\end{tabular}"] if rows else []),
    ]


def _latex_parameter(parameter: Parameter) -> str:
    letter, _, index = parameter.letter.partition("_")
    if not letter:
        return word(parameter.name)
    if not letter.isascii():  # `GREEK SMALL LETTER PSI`
        letter = rf"\{unicodedata.name(letter).rpartition(' ')[2].lower()}"
    inner = ",".join(filter(None, (index, word(parameter.owner) if parameter.owner else "")))
    return f"{letter}_{{{inner}}}" if inner else letter


def _latex_state(name: str) -> str:
    element, _, what = name.rpartition(".")
    what, _, port = what.partition("_")
    return f"{LETTERS[what]}_{{{word(element)}{port and f',{port}'}}}"


def _latex_input(name: str) -> str:
    text = word(name.removesuffix("'"))
    return rf"\dot{{{text}}}" if name.endswith("'") else text


def _latex_unknown(name: str) -> str:
    stem, dots = name.rstrip("'"), name.count("'")
    letter = _latex_state(stem) if "." in stem else f"{stem[0]}_{{{stem[1:]}}}"
    return rf"\{'d' * dots}ot{{{letter}}}" if dots else letter
