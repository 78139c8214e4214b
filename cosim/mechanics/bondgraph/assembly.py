"""A bond graph as a pure block: ẋ and all efforts and flows as functions of time, states and inputs.

Equations are evaluated in the order in which they follow from the states. Those that follow from each other, algebraic
loops and storages in derivative causality, are linear in what is unknown, z = A z + b: the columns of A come from
evaluations with unit vectors, which works on numbers and on symbols, and z from elimination.

Energies are of single elements: what a storage holds, and what a resistance has dissipated or a source supplied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cosim.core import ops
from cosim.core.compile.elimination import Elimination
from cosim.core.types import Numeric
from cosim.mechanics.bondgraph import causality
from cosim.mechanics.bondgraph.causality import Causality
from cosim.mechanics.bondgraph.domains import DOMAINS, Domain
from cosim.mechanics.bondgraph.elements import OWN, Element, Law
from cosim.mechanics.bondgraph.equations import (
    TIME,
    Balance,
    Equation,
    Function,
    GraphEquations,
    StateVariable,
    Variable,
)
from cosim.mechanics.bondgraph.graph import BondGraph, CheckedGraph, GraphError, SignalError
from cosim.mechanics.bondgraph.sorting import in_order, tear

ENERGY = "energy"
RATE = "'"  # of the name of an input: its derivative with respect to time
# of elements that hold none: name of the integral of their power, and the sign of the power into the element in it
INTEGRALS = {"R": ("dissipated", 1.0), "Se": ("supplied", -1.0), "Sf": ("supplied", -1.0)}
STORAGES = ("I", "C", "IC")
# of the matrix of a loop: beyond, it has no solution
LARGEST_CONDITION = 1e13
JAMMED = 1e-12  # SI, of an effort or flow

Values = dict[Variable, Numeric]


@dataclass(frozen=True)
class Loop:
    """Variables that follow from each other: those that are guessed, and the others in order."""

    guessed: tuple[Variable, ...]
    rest: tuple[Variable, ...]


@dataclass(frozen=True, eq=False)
class Assembly:
    """The equations of a graph in order. inputs: name -> unit; recorded: as of `assemble`."""

    graph: CheckedGraph
    causality: Causality
    equations: GraphEquations
    order: tuple[Variable | Loop, ...]
    recorded: tuple[tuple[str, str], ...] = ()

    @property
    def inputs(self) -> Mapping[str, str]:
        return self.graph.inputs

    @cached_property
    def rates_of_inputs(self) -> dict[str, Variable]:
        """The derivatives of inputs with respect to time that its equations use: `velocity'` and the like."""
        used = (v for equation in self.equations.of.values() for v in equation.uses)
        return {f"{v.of}{RATE * v.order}": v for v in used if v.kind == "input" and v.order}

    @property
    def states(self) -> tuple[StateVariable, ...]:
        return tuple(self.equations.states.values())

    @property
    def loops(self) -> list[list[str]]:
        """Of each algebraic loop the elements in it."""
        loops = [step for step in self.order if isinstance(step, Loop)]
        return [_names(self.equations, [*loop.guessed, *loop.rest]) for loop in loops]

    def with_elements(
        self, elements: Mapping[str, Element], signals: Mapping[str, tuple[Law, str]] | None = None
    ) -> Assembly:
        """The same graph with other elements and signals, assembled anew; elements: all of them by name."""
        graph = self.graph
        inputs, signals = dict(graph.inputs), dict(graph.signals if signals is None else signals)
        built = BondGraph(dict(elements), graph.named_bonds, dict(graph.ports), inputs, signals)
        return assemble(built, self.recorded)

    def initial(self) -> dict[str, Numeric]:
        """The states by name."""
        return {state.name: np.array(state.initial, dtype=float) for state in self.states}

    # --- evaluation ---

    def solve(self, t: Numeric, x: Mapping[str, Numeric], u: Mapping[str, Numeric]) -> Values:
        """Every variable of the graph, from the time [s], the states, the inputs and those of their rates that it
        uses, see `rates_of_inputs`."""
        known: Values = {TIME: t}
        known |= {Variable("input", name): u[name] for name in self.graph.inputs}
        known |= {variable: u[name] for name, variable in self.rates_of_inputs.items()}
        known |= {Variable("state", name): x[name] for name in self.equations.states}
        for step in self.order:
            if isinstance(step, Loop):
                self._solve_loop(step, known)
            else:
                known[step] = self._value(step, known)
        return known

    def _value(self, variable: Variable, known: Values) -> Numeric:
        """Of a variable that follows from known ones."""
        return self.equations.of[variable].value(known)

    def _solve_loop(self, loop: Loop, known: Values) -> None:
        matrix, constant = self._loop_equations(loop, known)
        solution = Elimination(matrix).solve(constant)
        known |= _follow(loop, solution, self.equations.of, known)

    def _loop_equations(self, loop: Loop, known: Values) -> tuple[Numeric, Numeric]:
        """(M, b) of M z = b for the guessed variables z."""
        guessed, of = loop.guessed, self.equations.of

        def gaps(z: Numeric, equations: Mapping[Variable, Equation], known: Values) -> Numeric:
            """By how much the equations of the guessed variables fail."""
            both = {**known, **_follow(loop, z, equations, known)}
            values = [equations[v].value(both) for v in guessed]
            return ops.array(
                [
                    value if isinstance(of[v], Balance) else value - own
                    for v, value, own in zip(guessed, values, z, strict=True)
                ]
            )

        n, members = len(guessed), (*loop.guessed, *loop.rest)
        constant = gaps(np.zeros(n), of, known)
        # what the members contribute to each other, without the constants
        within = {variable: of[variable].within(members) for variable in members}
        columns = [-gaps(unit, within, known) for unit in np.eye(n)]
        return ops.array([[columns[j][i] for j in range(n)] for i in range(n)]), constant

    def flow(self, t: Numeric, x: Mapping[str, Numeric], u: Mapping[str, Numeric]) -> tuple[dict[str, Numeric], Values]:
        """(dx/dt of the states by name, every variable)."""
        known = self.solve(t, x, u)
        return {name: known[Variable("rate", name)] for name in self.equations.states}, known

    # --- signals ---

    def variable(self, signal: str, own: str) -> Variable:
        """Of a recorded signal; own: element whose law would use it. Raises GraphError for one that does not exist."""
        return recorded_variable(self.equations, signal, own)

    def unit_of(self, variable: Variable) -> str:
        """Of an effort, flow, energy, state, input or recorded signal."""
        if variable.kind in ("e", "f"):
            domain = DOMAINS[self.graph.domains[int(variable.of)]]
            return domain.effort if variable.kind == "e" else domain.flow
        if variable.kind == "state":
            return self.equations.states[str(variable.of)].unit
        if variable.kind == ENERGY:
            return "J"
        if variable.kind == "signal":
            return self.graph.signals[str(variable.of)][1]
        return self.graph.inputs.get(str(variable.of), "s")

    def effort(self, name: str, known: Values) -> Numeric:
        """Of an element of one port, or of a 0-junction."""
        return known[Variable("e", self.graph.at(name)[0])]

    def flow_of(self, name: str, known: Values) -> Numeric:
        """Of an element of one port, or of a 1-junction."""
        return known[Variable("f", self.graph.at(name)[0])]

    def power(self, name: str, known: Values) -> Numeric:
        """Into an element of one port [W]."""
        (bond,) = self.graph.at(name)
        flow = known[Variable("f", bond)]
        power = flow if domain_of(self.graph, name).flow_is_power else known[Variable("e", bond)] * flow
        return self.graph.sign(name, bond) * power

    def supplied(self, known: Values) -> dict[str, Numeric]:
        """By source: the power that it gives [W]; heat that a thermal source gives has been counted as dissipated."""
        return {name: -self.power(name, known) for name in self.supplied_by}

    def dissipated(self, known: Values) -> dict[str, Numeric]:
        """By resistance: the power that it turns into heat [W]."""
        return {name: self.power(name, known) for name in self.dissipated_by}

    @property
    def supplied_by(self) -> list[str]:
        """The sources of power."""
        return self._of_kinds("Se", "Sf")

    @property
    def dissipated_by(self) -> list[str]:
        """The resistances that turn power into heat."""
        return [name for name in self._of_kinds("R") if not domain_of(self.graph, name).flow_is_power]

    def stored(self, known: Values) -> dict[str, Numeric]:
        """By storage: its energy [J]."""
        stored = {name: stored_energy(self.equations, name) for name in self._of_kinds(*STORAGES)}
        return {name: energy.value(known) for name, energy in stored.items()}

    def _of_kinds(self, *kinds: str) -> list[str]:
        """Elements of one port of these kinds, except in domains where effort times flow is no power."""
        of_kinds = (name for name, element in self.graph.elements.items() if element.kind in kinds)
        return [name for name in of_kinds if carries_power(self.graph, name)]


def _follow(loop: Loop, z: Sequence[Numeric], equations: Mapping[Variable, Equation], known: Values) -> Values:
    """The variables of the loop from the guessed ones."""
    found = dict(zip(loop.guessed, z, strict=True))
    both = {**known, **found}
    for variable in loop.rest:
        both[variable] = found[variable] = equations[variable].value(both)
    return found


def assemble(graph: BondGraph, recorded: Iterable[tuple[str, str]] = ()) -> Assembly:
    """recorded: (signal, element whose law would use it) of signals that are read later: displacements have states.

    Raises GraphError for a graph that cannot be, a causal conflict, and loops that have no solution.
    """
    checked = graph.checked()
    assigned = causality.assign(checked, checked.coordinates)
    equations = GraphEquations(checked, assigned)
    recorded = tuple(recorded)
    for signal, own in recorded:
        recorded_variable(equations, signal, own)
    add_accounts(equations)
    order = []
    for group in in_order(equations.of, lambda v: [u for u in equations.of[v].uses if u in equations.of]):
        _check_balance(equations, group)
        looping = len(group) > 1 or group[0] in equations.of[group[0]].uses
        order.append(_loop(equations, group) if looping else group[0])
    assembly = Assembly(checked, assigned, equations, tuple(order), recorded)
    _check_loops(assembly)
    return assembly


def _check_balance(equations: GraphEquations, group: list[Variable]) -> None:
    """Raises GraphError for a coordinate whose rate changes no effort."""
    if len(group) == 1 and isinstance(equations.of[group[0]], Balance):
        name = element_of(equations, group[0])
        raise GraphError("nothing gives the flow of this junction: no inertia moves with it; bond one to it", name)


def _loop(equations: GraphEquations, group: list[Variable]) -> Loop:
    """Raises GraphError for a loop that is not linear."""
    for variable in group:
        if not equations.of[variable].affine_in(group):
            name = element_of(equations, variable)
            others = [other for other in _names(equations, group) if other != name]
            what = f"algebraic loop: its law depends on what it computes, through {_listed(others)}"
            raise GraphError(f"{what}; put an inertia or a compliance into the loop", name)
    balances = [variable for variable in group if isinstance(equations.of[variable], Balance)]
    guessed, rest = tear(group, lambda v: equations.of[v].uses, balances)
    return Loop(tuple(guessed), tuple(rest))


def _check_loops(assembly: Assembly) -> None:
    """Raises GraphError for a loop without a solution at the initial state."""
    loops = [step for step in assembly.order if isinstance(step, Loop)]
    if not loops or any(_is_symbolic(element) for element in assembly.graph.elements.values()):
        return
    with np.errstate(all="ignore"):
        at_rest = dict.fromkeys((*assembly.inputs, *assembly.rates_of_inputs), 0.0)
        known = assembly.solve(0.0, assembly.initial(), at_rest)
        for loop in loops:
            matrix = assembly._loop_equations(loop, known)[0]
            if ops.is_symbolic(matrix):  # of a law with symbols
                return
            matrix = np.asarray(matrix, dtype=float)
            if not (np.isfinite(matrix).all() and np.linalg.cond(matrix) < LARGEST_CONDITION):
                names = _names(assembly.equations, [*loop.guessed, *loop.rest])
                others = f" with {_listed(names[1:])}" if names[1:] else ""
                what = f"it closes a loop{others} that has no single solution"
                raise GraphError(
                    f"{what}: it cannot move, or moves freely; take one out, or make one elastic", names[0]
                )
        _check_turned(assembly)


def _check_turned(assembly: Assembly) -> None:
    """Raises GraphError for a bond that follows from a loop of rigid parts and whose effort or flow is 0 there,
    whatever the states and inputs are: the loop is jammed."""
    random = np.random.default_rng(0)
    names = (*assembly.inputs, *assembly.rates_of_inputs)
    for bond, error in assembly.causality.turned.items():
        x = {name: value + random.uniform(0.1, 0.2) for name, value in assembly.initial().items()}
        known = assembly.solve(0.1, x, dict(zip(names, random.uniform(0.1, 0.2, len(names)), strict=True)))
        outputs = [assembly.graph.elements[name].output for name in assembly.graph.bonds[bond]]
        imposed = next(filter(None, outputs), None)  # of an element of one port
        if any(abs(known[Variable(side[0], bond)]) < JAMMED for side in ([imposed] if imposed else ["effort", "flow"])):
            raise error


def _is_symbolic(element: Element) -> bool:
    return not isinstance(element.value, Law) and ops.is_symbolic(element.value)


def _names(equations: GraphEquations, group: Sequence[Variable]) -> list[str]:
    """The elements, other than junctions, at the bonds of the variables."""
    names = [element_of(equations, variable) for variable in group]
    graph = equations.graph
    return [name for name in dict.fromkeys(names) if not graph.elements[name].is_junction] or names[:1]


def element_of(equations: GraphEquations, variable: Variable) -> str:
    """The element that computes the variable."""
    if not isinstance(variable.of, int):
        return variable.of.rpartition(".")[0] if variable.kind in ("state", "rate") else variable.of
    source = equations.causality.effort_from[variable.of]
    return source if variable.kind == "e" else equations.graph.other(source, variable.of)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "itself"


# --- energies of single elements ---


def domain_of(graph: CheckedGraph, name: str) -> Domain:
    """Of the first bond of an element."""
    return DOMAINS[graph.domains[graph.at(name)[0]]]


def carries_power(graph: CheckedGraph, name: str) -> bool:
    """Whether energies of an element are counted: not in the thermal domain, whose heat has been counted before."""
    return domain_of(graph, name).carries_power


def recorded_variable(equations: GraphEquations, signal: str, own: str) -> Variable:
    """The variable of a recorded signal: one that the law of element `own` could use, or `<element>.energy` [J].

    Raises SignalError for one that does not exist.
    """
    try:
        target, _, what = signal.rpartition(".")
        if signal in equations.graph.signals or not target or what in OWN:
            return equations.signal(signal, own)
        name, what = equations.graph.meant(signal, own, (*OWN, ENERGY))
        if what != ENERGY:
            return equations.signal(signal, own)  # of a port of a field
        variable = Variable(ENERGY, name)
        if variable not in equations.of:
            equations.of[variable] = _energy_of(equations, name)
        return variable
    except GraphError as error:
        raise SignalError(error, signal) from None


def _energy_of(equations: GraphEquations, name: str) -> Function:
    kind = equations.graph.elements[name].kind
    if kind not in (*STORAGES, *INTEGRALS):
        fix = "record the energy of a storage, a resistance or a source"
        raise GraphError(f"'{name}' neither stores nor dissipates energy; {fix}", name)
    passes_heat = kind == "R" and domain_of(equations.graph, name).flow_is_power
    if passes_heat or not carries_power(equations.graph, name):
        raise GraphError(f"effort times flow of '{name}' is no power; record its displacement or its flow", name)
    if kind in INTEGRALS:
        what, sign = INTEGRALS[kind]
        return _held(_add_integral(equations, name, what, sign))
    return stored_energy(equations, name, account=False)


def stored_energy(equations: GraphEquations, name: str, account: bool = True) -> Function:
    """The energy of a storage [J] from its efforts, flows and states; where its law comes without an energy, the
    integral of its power, a state that is an `account` unless it is recorded."""
    element, bond = equations.graph.elements[name], equations.graph.at(name)[0]
    if element.kind == "IC":
        assert element.energy is not None
        states = [f"{name}.{what}_{k}" for k, what in enumerate(element.stores, 1)]
        return Function(element.energy.fn, tuple(Variable("state", state) for state in states))
    if domain_of(equations.graph, name).flow_is_power:
        return _held(equations.displacement(name, name))
    if isinstance(element.value, Law):
        if element.energy is not None:
            return equations.function(element.energy, name)
        return _held(_add_integral(equations, name, "stored", 1.0, account))
    value = element.value
    if element.kind == "I":
        return Function(lambda flow: 0.5 * value * flow * flow, (Variable("f", bond),))
    return Function(lambda effort: 0.5 / value * effort * effort, (Variable("e", bond),))


def add_accounts(equations: GraphEquations) -> None:
    """States for the energies of storages by laws that come without one."""
    for name, element in equations.graph.elements.items():
        if element.kind in STORAGES and carries_power(equations.graph, name):
            stored_energy(equations, name)


def _held(state: Variable) -> Function:
    return Function(lambda value: value, (state,))


def _add_integral(equations: GraphEquations, name: str, what: str, sign: float, account: bool = False) -> Variable:
    """The state ∫ e f dt of an element of one port, made where there is none."""
    state = f"{name}.{what}"
    if state not in equations.states:
        (bond,) = equations.graph.at(name)
        sign *= equations.graph.sign(name, bond)
        e, f = Variable("e", bond), Variable("f", bond)
        if domain_of(equations.graph, name).flow_is_power:
            power = Function(lambda f: sign * f, (f,))
        else:
            power = Function(lambda e, f: sign * (e * f), (e, f))
        equations.add_state(StateVariable(state, "J", 0.0, account), power)
    return Variable("state", state)
