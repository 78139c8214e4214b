"""The block diagram of a bond graph: integrators, sums, gains, products and laws, and what each takes from others.

Each equation of the graph that states and outputs need is one block: the law of an element, the ratio of a transformer
or gyrator, the sum of a junction. An equation that only passes a value on is a line. Laws are traced as formulas.
Unknowns of an algebraic loop come out of one block that solves its linear equations, and the other members of the loop
follow from them: with its integrators cut, a diagram has no loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, islice
from math import prod
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from cosim.apps.derive.bond_graph_equations import LinearSystem
from cosim.apps.derive.bond_graph_symbols import Parameter, with_names
from cosim.apps.derive.symbolic import Formula, formula_symbol, formulas
from cosim.core import ops
from cosim.core.compile.trace import column, symbols
from cosim.core.types import Numeric
from cosim.mechanics.bondgraph import Assembly
from cosim.mechanics.bondgraph.assembly import Loop, element_of
from cosim.mechanics.bondgraph.equations import Linear, Term, Variable
from cosim.mechanics.bondgraph.graph import ComponentOrigin

BlockKind = Literal["input", "constant", "state", "gain", "sum", "product", "law", "solve", "output"]


class DiagramBlock(NamedTuple):
    """One block of a diagram. gives, takes: the values at its outputs and inputs.

    signs: of the inputs of a sum. formulas: the factor of a gain; of a law and a constant, its value in the symbols of
    what it takes. system: what a block of the kind `solve` solves.
    """

    kind: BlockKind
    owner: str  # the element, state, input or output that it is
    gives: tuple[Variable, ...]
    takes: tuple[Variable, ...] = ()
    signs: tuple[int, ...] = ()
    formula: Formula = None
    system: LinearSystem | None = None


@dataclass(frozen=True)
class BlockDiagram:
    """blocks: each after those that it takes values from, except for states. symbols: of values, in formulas.
    parameters: of the elements, by their symbols."""

    blocks: Sequence[DiagramBlock]
    symbols: Mapping[Variable, Formula]
    parameters: Mapping[Formula, Parameter]


def block_diagram(
    assembly: Assembly,
    outputs: Mapping[str, Term],
    origins: Mapping[str, ComponentOrigin] = MappingProxyType({}),
) -> BlockDiagram:
    """outputs: name -> multiple of a variable of the graph; origins: of its components, whose parameters have names
    then. States that only account for energy are left out.

    Raises CompileError for a law with an operation that has no formula.
    """
    elements, signals, numbers = with_names(assembly.graph, origins)
    named = assembly.with_elements(elements, signals)
    return _Drafting(named, outputs, numbers).diagram()


def signal_name(assembly: Assembly, variable: Variable) -> str:
    """`resistance.effort` at an element of one port, `mesh.flow` of a junction of common flow, else `e3` by the number
    of the bond; rates have `'`."""
    dots = "'" * variable.order
    if variable.kind in ("e", "f"):
        number, graph = int(variable.of), assembly.graph
        what = "effort" if variable.kind == "e" else "flow"
        own = element_of(assembly.equations, variable)
        for name in (own, graph.other(own, number)):
            if graph.elements[name].row.ports == 1 or graph.elements[name].kind == ("0" if what == "effort" else "1"):
                return f"{name}.{what}{dots}"
        return f"{variable.kind}{number + 1}{dots}"
    if variable.kind == "rate":
        return f"{variable.of}'{dots}"
    if variable.kind in ("ratio", "energy"):
        return f"{variable.of}.{variable.kind}{dots}"
    return f"{variable.of or variable.kind}{dots}"


@dataclass
class _Drafting:
    """A diagram as it is made, one equation after the other, with expressions of casadi as formulas."""

    assembly: Assembly
    outputs: Mapping[str, Term]
    numbers: Mapping[Parameter, Numeric]
    blocks: list[DiagramBlock] = field(default_factory=list)
    # of each variable the value at an output of a block that it is, with its sign; 0 where it is 0
    root: dict[Variable, tuple[int, Variable]] = field(default_factory=dict)
    known: dict[Variable, Numeric] = field(default_factory=dict)  # the same, as an expression
    symbols: dict[Variable, Numeric] = field(default_factory=dict)  # of the values at outputs of blocks
    by_hash: dict[int, Variable] = field(default_factory=dict)  # these, by the hash of their symbol

    def diagram(self) -> BlockDiagram:
        states = [state.name for state in self.assembly.states if not state.account]
        rates = {name: Variable("rate", name) for name in states}
        needed = self._needed([*rates.values(), *(term.variable for term in self.outputs.values())])
        for name in states:
            self._block("state", name, Variable("state", name))
        for variable in (v for v in needed if v not in self.assembly.equations.of and v.kind != "state"):
            self._block("input", signal_name(self.assembly, variable), variable)
        for step in self.assembly.order:
            members = (*step.guessed, *step.rest) if isinstance(step, Loop) else (step,)
            if isinstance(step, Loop) and step.guessed[0] in needed:
                self._solve(step)
            for variable in members:
                if variable in needed and variable not in self.root:
                    self._equation(variable)
        for k, name in enumerate(states):
            value = self._positive(*self.root[rates[name]])
            self.blocks[k] = self.blocks[k]._replace(takes=(value,))
        for name, term in self.outputs.items():
            sign, value = self.root[term.variable]
            self.blocks.append(DiagramBlock("output", name, (), (self._positive(int(sign * term.factor), value),)))
        return self._traced()

    def _needed(self, wanted: Iterable[Variable]) -> dict[Variable, None]:
        """The variables that others follow from; of a loop all that it takes from outside too."""
        of = self.assembly.equations.of
        loops = {v: step for step in self.assembly.order if isinstance(step, Loop) for v in step.guessed}
        found, waiting = dict[Variable, None](), list(wanted)
        while waiting:
            variable = waiting.pop()
            if variable in found:
                continue
            found[variable] = None
            if variable in loops:
                loop = loops[variable]
                members = (*loop.guessed, *loop.rest)
                waiting += loop.guessed
                waiting += (used for v in members for used in of[v].uses if used not in members)
            elif variable in of:
                waiting += of[variable].uses
        return found

    def _traced(self) -> BlockDiagram:
        """The diagram with formulas in the names of values and parameters."""
        named = dict[Formula, Variable]()
        for block in self.blocks:
            for variable in block.gives:
                part = variable.kind == "part"
                name = f"{block.owner}.{block.kind}" if part else signal_name(self.assembly, variable)
                names = chain([name], (f"{name}_{k}" for k in count(2)))
                named[next(symbol for symbol in map(formula_symbol, names) if symbol not in named)] = variable
        inputs = {formula_symbol(parameter.name): symbol for parameter, symbol in self.numbers.items()}
        inputs |= {symbol: self.symbols[variable] for symbol, variable in named.items()}
        traced = iter(formulas(inputs, [entry for block in self.blocks for entry in _entries(block)]))
        symbol_of = {variable: symbol for symbol, variable in named.items()}
        blocks = [_with_formulas(block, list(islice(traced, len(_entries(block)))), symbol_of) for block in self.blocks]
        parameters = {formula_symbol(parameter.name): parameter for parameter in self.numbers}
        return BlockDiagram(blocks, symbol_of, parameters)

    # --- blocks ---

    def _block(self, kind: BlockKind, owner: str, variable: Variable, **more: Any) -> None:
        self.blocks.append(DiagramBlock(kind, owner, (variable,), **more))
        self._gives(variable)

    def _gives(self, variable: Variable) -> None:
        """A value at an output of a block."""
        self.symbols[variable] = symbol = symbols(str(variable), ())[0]
        self.by_hash[symbol.element_hash()] = variable
        self._is(variable, 1, variable)

    def _is(self, variable: Variable, sign: int, value: Variable) -> None:
        """The variable is a value, its negative, or 0."""
        self.root[variable] = sign, value
        self.known[variable] = sign * self.symbols[value] if sign else 0.0

    def _positive(self, sign: int, value: Variable) -> Variable:
        """The value times its sign, by a block if need be."""
        if sign > 0:
            return value
        made = Variable("part", f"{sign} of {value}")
        if made not in self.root and sign:
            self._block("gain", "", made, takes=(value,), formula=-1.0)
        elif made not in self.root:
            self._block("constant", "", made, formula=0.0)
        return made

    def _equation(self, variable: Variable) -> None:
        equation = self.assembly.equations.of[variable]
        if isinstance(equation, Linear):
            self._linear(variable, equation)
        else:
            self._law(variable, equation.value(self.known))

    def _linear(self, variable: Variable, equation: Linear) -> None:
        """A product or a gain for each term that has a factor, and a sum of several."""
        own, alone = element_of(self.assembly.equations, variable), len(equation.terms) == 1
        terms = list[tuple[int, Variable]]()
        for k, (factor, *factors) in enumerate(equation.terms):
            roots = [self.root[v] for v in factors if v is not None]
            sign, takes = prod(sign for sign, _ in roots), tuple(value for _, value in roots)
            if not sign:
                continue
            value = takes[0]
            if len(takes) > 1:
                is_all = alone and sign > 0 and not ops.is_symbolic(factor) and factor == 1.0
                value = variable if is_all else Variable("part", f"product {k} of {variable}")
                self._block("product", own, value, takes=takes)
            if not ops.is_symbolic(factor) and factor < 0.0 and (not alone or factor == -1.0):
                sign, factor = -sign, -factor
            if ops.is_symbolic(factor) or factor != 1.0:
                made = variable if alone else Variable("part", f"term {k} of {variable}")
                if alone:
                    sign, factor = 1, sign * factor
                self._block("gain", own, made, takes=(value,), formula=factor)
                value = made
            terms.append((sign, value))
        if len(terms) > 1:
            signs, takes = zip(*terms, strict=True)
            self._block("sum", own, variable, takes=takes, signs=signs)
        elif terms and terms[0][1] != variable:
            self._is(variable, *terms[0])
        elif not terms:
            self._is(variable, 0, variable)

    def _law(self, variable: Variable, value: Numeric) -> None:
        """A line where it is another value."""
        import casadi

        takes, entry = self._taken([value]), casadi.SX(column(value))
        own = str(variable.of) if variable.kind == "signal" else element_of(self.assembly.equations, variable)
        if entry.is_zero():
            self._is(variable, 0, variable)
        elif not takes:
            self._block("constant", own, variable, formula=entry)
        elif (sign := _sign_of(entry, self.symbols[takes[0]])) != 0:
            self._is(variable, sign, takes[0])
        else:
            self._block("law", own, variable, takes=takes, formula=entry)

    def _solve(self, loop: Loop) -> None:
        matrix, right = self.assembly._loop_equations(loop, self.known)
        n = len(loop.guessed)
        entries = [*(matrix[i, j] for i in range(n) for j in range(n)), *(right[i] for i in range(n))]
        self.blocks.append(DiagramBlock("solve", "", loop.guessed, self._taken(entries), formula=entries))
        for variable in loop.guessed:
            self._gives(variable)

    def _taken(self, entries: Iterable[Numeric]) -> tuple[Variable, ...]:
        """The values in expressions."""
        import casadi

        found = casadi.symvar(casadi.SX(casadi.veccat(*(column(entry) for entry in entries))))
        hashes = {symbol.element_hash() for symbol in found}
        return tuple(variable for key, variable in self.by_hash.items() if key in hashes)


def _sign_of(entry: Numeric, symbol: Numeric) -> int:
    """±1 for an expression that is a symbol or its negative, else 0."""
    import casadi

    return next((sign for sign in (1, -1) if casadi.is_equal(entry, casadi.SX(sign * symbol), 1)), 0)


def _entries(block: DiagramBlock) -> list[Numeric]:
    """The expressions of a block that is being made."""
    if block.formula is None:
        return []
    return block.formula if block.kind == "solve" else [block.formula]


def _with_formulas(block: DiagramBlock, found: list[Formula], symbol_of: Mapping[Variable, Formula]) -> DiagramBlock:
    if block.kind == "solve":
        n = len(block.gives)
        rows, unknown = [found[k * n : (k + 1) * n] for k in range(n)], [symbol_of[v] for v in block.gives]
        return block._replace(formula=None, system=LinearSystem(unknown, rows, found[n * n :]))
    if block.kind == "law" and len(block.takes) == 1:
        factor = found[0] / symbol_of[block.takes[0]]
        if symbol_of[block.takes[0]] not in factor.free_symbols:
            return block._replace(kind="gain", formula=factor)
    return block._replace(formula=found[0]) if found else block
