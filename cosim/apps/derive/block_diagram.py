"""The block diagram of a bond graph: integrators, sums, gains, products and laws, and what each takes from others.

Each equation of the graph that states and outputs need is one block: the law of an element, the ratio of a transformer
or gyrator, the sum of a junction. An equation that only passes a value on is a line. Laws are traced as formulas.
Unknowns of an algebraic loop come out of one block that solves its linear equations, and the other members of the loop
follow from them: with its integrators cut, a diagram has no loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple

import sympy

from cosim.apps.derive.bond_graph_equations import LinearSystem
from cosim.apps.derive.bond_graph_symbols import Parameter, with_names
from cosim.apps.derive.symbolic import Formula, formula_symbol, formulas
from cosim.core.compile.trace import symbols
from cosim.core.types import Numeric
from cosim.mechanics.bondgraph import Assembly
from cosim.mechanics.bondgraph.assembly import Loop, element_of
from cosim.mechanics.bondgraph.equations import Function, Linear, Term, Variable
from cosim.mechanics.bondgraph.graph import ComponentOrigin

BlockKind = Literal["input", "constant", "state", "gain", "sum", "product", "law", "solve", "output"]
LARGEST_GAIN = 40  # operations of a law that is looked at whether it is a gain


class Block(NamedTuple):
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
    parameters: of the elements, by their symbols. after: of each state the distance of its element from the beginning
    of the graph."""

    blocks: Sequence[Block]
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
    """A diagram as it is made, one equation after the other."""

    assembly: Assembly
    outputs: Mapping[str, Term]
    numbers: Mapping[Parameter, Numeric]
    blocks: list[Block] = field(default_factory=list)
    # of each variable the value at an output of a block that it is, with its sign; 0 where it is 0
    root: dict[Variable, tuple[int, Variable]] = field(default_factory=dict)

    def diagram(self) -> BlockDiagram:
        states = [state.name for state in self.assembly.states if not state.account]
        rates = {name: Variable("rate", name) for name in states}
        needed = self._needed([*rates.values(), *(term.variable for term in self.outputs.values())])
        self._trace(needed)
        for variable in (v for v in needed if v not in self.assembly.equations.of):
            kind = "state" if variable.kind == "state" else "input"
            self._add(kind, variable, self.names[variable])
        for step in self.assembly.order:
            if isinstance(step, Loop):
                if step.guessed[0] in needed:
                    self._solve(step)
                for variable in step.rest:
                    self._equation(variable, needed)
            else:
                self._equation(step, needed)
        self._close(rates)
        return self._named_in_formulas()

    def _named_in_formulas(self) -> BlockDiagram:
        """The diagram with the names of values in its formulas."""
        symbols_of, final = dict[Variable, Formula](), dict[Formula, Formula]()
        for variable in (v for block in self.blocks for v in block.gives if v in self.names):
            name = self.names[variable]
            symbol = formula_symbol(name if formula_symbol(name) not in final.values() else f"{name}_{variable.of}")
            symbols_of[variable] = final[self.symbols[variable]] = symbol
        parameters = {formula_symbol(parameter.name): parameter for parameter in self.numbers}
        return BlockDiagram([_with_names_of_values(block, final) for block in self.blocks], symbols_of, parameters)

    def _close(self, rates: Mapping[str, Variable]) -> None:
        """What enters integrators, and the outputs."""
        own = {block.gives[0]: k for k, block in enumerate(self.blocks) if block.kind == "state"}
        for name, rate in rates.items():
            state, value = Variable("state", name), self._positive(*self.root[rate])
            if state in own:
                self.blocks[own[state]] = self.blocks[own[state]]._replace(takes=(value,))
            else:
                self.blocks.append(Block("state", name, (state,), (value,)))
        for name, term in self.outputs.items():
            sign, value = self.root[term.variable]
            value = self._positive(int(sign * term.factor), value)
            self.blocks.append(Block("output", name, (), (value,)))

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
                waiting += [*loops[variable].guessed, *self._outside(loops[variable])]
            elif variable in of:
                waiting += of[variable].uses
        return found

    def _outside(self, loop: Loop) -> list[Variable]:
        """What a loop takes."""
        members = (*loop.guessed, *loop.rest)
        uses = (used for member in members for used in self.assembly.equations.of[member].uses)
        return [used for used in dict.fromkeys(uses) if used not in members]

    # --- formulas ---

    def _trace(self, needed: Mapping[Variable, None]) -> None:
        """The formulas of all equations at once."""
        self.names = {variable: signal_name(self.assembly, variable) for variable in needed}
        known: dict[Variable, Numeric] = {variable: symbols(name, ())[1] for variable, name in self.names.items()}
        self.symbols = {variable: sympy.Dummy(name, real=True) for variable, name in self.names.items()}
        of, entries = self.assembly.equations.of, list[Numeric]()
        places = dict[Variable | Loop, slice]()

        def place(what: Variable | Loop, found: Iterable[Numeric]) -> None:
            begin = len(entries)
            entries.extend(found)
            places[what] = slice(begin, len(entries))

        for step in self.assembly.order:
            if isinstance(step, Loop) and step.guessed[0] in needed:
                within = {v: known[v] for v in self._outside(step)}
                matrix, right = self.assembly._loop_equations(step, within)
                n = len(step.guessed)
                place(step, [*(matrix[i, j] for i in range(n) for j in range(n)), *right])
        for variable, equation in ((v, of[v]) for v in needed if v in of):
            if isinstance(equation, Linear):
                place(variable, [term.factor for term in equation.terms])
            elif isinstance(equation, Function):
                place(variable, [equation.value(known)])
        inputs = {formula_symbol(parameter.name): symbol for parameter, symbol in self.numbers.items()}
        inputs |= {self.symbols[variable]: value for variable, value in known.items()}
        traced = formulas(inputs, entries)
        self.traced = {what: traced[at] for what, at in places.items()}

    def _in_roots(self, formula: Formula) -> Formula:
        """The formula in the values that variables are."""
        used = {symbol: v for v, symbol in self.symbols.items() if v in self.root and symbol in formula.free_symbols}
        return formula.xreplace({s: self.root[v][0] * self.symbols[self.root[v][1]] for s, v in used.items()})

    def _taken(self, found: Sequence[Formula], uses: Iterable[Variable]) -> tuple[Variable, ...]:
        """The values in formulas."""
        free = {symbol for formula in found for symbol in formula.free_symbols}
        roots = dict.fromkeys(self.root[v][1] for v in uses)
        return tuple(v for v in roots if self.symbols[v] in free)

    # --- blocks ---

    def _add(self, kind: BlockKind, variable: Variable, owner: str, **more: object) -> None:
        self.blocks.append(Block(kind, owner, (variable,), **more))  # pyright: ignore[reportArgumentType]
        self.root[variable] = 1, variable

    def _own(self, variable: Variable, what: str) -> Variable:
        """A value within an equation."""
        return Variable("part", f"{what} {self.names.get(variable, variable.of)}", variable.order)

    def _positive(self, sign: int, value: Variable) -> Variable:
        """The value times its sign."""
        if sign > 0:
            return value
        made = Variable("part", f"{sign} {value}")
        if made not in self.root:
            if sign:
                self._add("gain", made, "", takes=(value,), formula=sympy.Integer(-1))
            else:
                self._add("constant", made, "", formula=sympy.Integer(0))
        return made

    def _equation(self, variable: Variable, needed: Mapping[Variable, None]) -> None:
        if variable not in needed:
            return
        equation, found = self.assembly.equations.of[variable], self.traced[variable]
        if isinstance(equation, Linear):
            self._linear(variable, equation, found)
        else:
            self._law(variable, equation.uses, self._in_roots(found[0]))

    def _linear(self, variable: Variable, equation: Linear, factors: Sequence[Formula]) -> None:
        terms = list[tuple[int, Variable]]()
        own = element_of(self.assembly.equations, variable)
        for k, (term, factor) in enumerate(zip(equation.terms, factors, strict=True)):
            sign, value = self.root[term.variable]
            last = len(equation.terms) == 1
            if term.modulus is not None:
                other, modulus = self.root[term.modulus]
                sign *= other
                if sign:
                    made = variable if last and factor in (1, -1) else self._own(variable, f"product {k} of")
                    self._add("product", made, own, takes=(modulus, value))
                    value = made
            if factor.could_extract_minus_sign():
                sign, factor = -sign, -factor
            if factor != 1 and sign:
                made = variable if last else self._own(variable, f"term {k} of")
                factor, sign = (sign * factor, 1) if last else (factor, sign)
                self._add("gain", made, own, takes=(value,), formula=factor)
                value = made
            if sign:
                terms.append((sign, value))
        if len(terms) > 1:
            signs, takes = zip(*terms, strict=True)
            self._add("sum", variable, own, takes=takes, signs=signs)
        else:
            self.root[variable] = terms[0] if terms else (0, variable)

    def _law(self, variable: Variable, uses: Iterable[Variable], formula: Formula) -> None:
        takes, own = self._taken([formula], uses), self._owner(variable)
        if not takes:
            if formula == 0:
                self.root[variable] = 0, variable
            else:
                self._add("constant", variable, own, formula=formula)
            return
        (one, *others), symbol = takes, self.symbols[takes[0]]
        if formula in (symbol, -symbol):
            self.root[variable] = (1 if formula == symbol else -1), one
            return
        if not others and sympy.count_ops(formula) < LARGEST_GAIN:
            factor = sympy.cancel(formula / symbol) if formula.is_polynomial(symbol) else symbol
            if not factor.has(symbol):
                self._add("gain", variable, own, takes=takes, formula=factor)
                return
        self._add("law", variable, own, takes=takes, formula=formula)

    def _owner(self, variable: Variable) -> str:
        return self.names[variable] if variable.kind == "signal" else element_of(self.assembly.equations, variable)

    def _solve(self, loop: Loop) -> None:
        found, n = [self._in_roots(formula) for formula in self.traced[loop]], len(loop.guessed)
        rows = [found[k * n : (k + 1) * n] for k in range(n)]
        system = LinearSystem([self.symbols[v] for v in loop.guessed], rows, found[n * n :])
        takes = self._taken(found, self._outside(loop))
        self.blocks.append(Block("solve", "", loop.guessed, takes, system=system))
        self.root |= {v: (1, v) for v in loop.guessed}


def _with_names_of_values(block: Block, names: Mapping[Formula, Formula]) -> Block:
    if block.formula is not None:
        block = block._replace(formula=block.formula.xreplace(names))
    if block.system is not None:
        unknown, rows, right = block.system
        named = [[entry.xreplace(names) for entry in row] for row in (unknown, *rows, right)]
        block = block._replace(system=LinearSystem(named[0], named[1:-1], named[-1]))
    return block
