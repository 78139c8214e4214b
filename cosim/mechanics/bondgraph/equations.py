"""The equations of a bond graph with causality: one for each effort, flow, ratio and rate of a state.

A variable is linear in others or a function of them, so its derivative with respect to time has an equation too: that
is what storages in derivative causality need, e = m df/dt.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cosim.core import ops
from cosim.core.compile.trace import column
from cosim.core.types import Numeric
from cosim.mechanics.bondgraph.causality import Causality
from cosim.mechanics.bondgraph.domains import DOMAINS
from cosim.mechanics.bondgraph.elements import OUTPUTS, Element, Law
from cosim.mechanics.bondgraph.graph import CheckedGraph, GraphError
from cosim.mechanics.multibody.differentiate import Derived, along


class Variable(NamedTuple):
    """A quantity of a bond graph that has an equation of its own.

    kind: `e` or `f` of a bond; `ratio` of an element, or its inverse; `state`, `rate` of a state; `input`; `signal`;
    `t`. order: of the derivative with respect to time.
    """

    kind: str
    of: str | int = ""
    order: int = 0


TIME = Variable("t")


class Term(NamedTuple):
    """factor · modulus · variable; the factor is a constant."""

    factor: Numeric
    variable: Variable
    modulus: Variable | None = None


@dataclass(frozen=True)
class Linear:
    """Σ terms."""

    terms: tuple[Term, ...]

    @property
    def uses(self) -> tuple[Variable, ...]:
        return tuple(v for term in self.terms for v in (term.variable, term.modulus) if v is not None)

    def affine_in(self, unknown: Container[Variable]) -> bool:
        """Whether it is a constant plus multiples of the unknown variables."""
        return not any(term.modulus is not None and term.modulus in unknown for term in self.terms)

    def within(self, members: Container[Variable]) -> Linear:
        """The terms of members alone."""
        return Linear(tuple(term for term in self.terms if term.variable in members))

    def value(self, known: Mapping[Variable, Numeric]) -> Numeric:
        def of(term: Term) -> Numeric:
            factor, variable, modulus = term
            value = known[variable] if modulus is None else known[modulus] * known[variable]
            if not ops.is_symbolic(factor) and abs(factor) == 1.0:
                return value if factor > 0.0 else -value
            return factor * value

        return ops.sum(of(term) for term in self.terms)


@dataclass(frozen=True)
class Function:
    """fn(*uses)"""

    fn: Callable[..., Numeric]
    uses: tuple[Variable, ...]

    def affine_in(self, unknown: Container[Variable]) -> bool:
        return not any(variable in unknown for variable in self.uses)

    def within(self, members: Container[Variable]) -> Equation:
        """Nothing: it depends on none of its members."""
        return Linear(())

    def value(self, known: Mapping[Variable, Numeric]) -> Numeric:
        return self.fn(*(known[variable] for variable in self.uses))


@dataclass(frozen=True)
class ChainRule(Function):
    """Σ ∂f/∂x ẋ of a function f of `count` variables x, as a function of these and of their rates ẋ."""

    count: int = 0

    def affine_in(self, unknown: Container[Variable]) -> bool:
        return not any(variable in unknown for variable in self.uses[: self.count])

    def within(self, members: Container[Variable]) -> ChainRule:
        """The terms of rates of members alone."""
        taken = [k < self.count or variable in members for k, variable in enumerate(self.uses)]

        def of_members(*given: Numeric) -> Numeric:
            return self.fn(*(value if is_taken else 0.0 for value, is_taken in zip(given, taken, strict=True)))

        return ChainRule(of_members, self.uses, self.count)


@dataclass(frozen=True)
class Balance:
    """0 = Σ terms: of a variable that makes it so."""

    sum: Linear

    @property
    def uses(self) -> tuple[Variable, ...]:
        return self.sum.uses

    def affine_in(self, unknown: Container[Variable]) -> bool:
        return self.sum.affine_in(unknown)

    def within(self, members: Container[Variable]) -> Balance:
        """The terms of members alone."""
        return Balance(self.sum.within(members))

    def value(self, known: Mapping[Variable, Numeric]) -> Numeric:
        """What is left of the sum."""
        return self.sum.value(known)


Equation = Linear | Function | Balance


@dataclass(frozen=True)
class StateVariable:
    """One state: `<element>.<what>` with its unit and its initial value; power: whether it is an integral for the
    account of energy alone, on which nothing depends."""

    name: str
    unit: str
    initial: Numeric
    account: bool = False


def linear(*terms: Term) -> Linear:
    return Linear(terms)


@dataclass
class GraphEquations:
    """The equations of all variables, and the states."""

    graph: CheckedGraph
    causality: Causality
    states: dict[str, StateVariable] = field(default_factory=dict)
    of: dict[Variable, Equation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, element in self.graph.elements.items():
            self.of |= _WRITERS[element.kind](self, name, element)
        for name, (law, _) in self.graph.signals.items():
            self.of[Variable("signal", name)] = self.function(law, name)
        pending = [v for equation in self.of.values() for v in equation.uses]
        while pending:
            variable = pending.pop()
            if variable.order and variable.kind != "input" and variable not in self.of:
                self.of[variable] = equation = self._derivative(variable)
                pending += equation.uses

    # --- names of signals ---

    def signal(self, name: str, own: str) -> Variable:
        """The variable that the law of element `own` means by a name: names of elements are those inside its component,
        or inside one that contains it. Raises GraphError for one that does not exist."""
        if name == "t":
            return TIME
        for kind, named in (("input", self.graph.inputs), ("signal", self.graph.signals)):
            if name in named:
                return Variable(kind, name)
        target, what = self.graph.meant(name, own)
        return self._signal_of(target, what, own)

    def _signal_of(self, name: str, what: str, own: str) -> Variable:
        element = self.graph.elements[name]
        if what in element.ports:
            return Variable("state", field_state(name, element, element.ports.index(what)))
        if not element.is_junction and len(element.domains) > 1:
            raise GraphError(f"its law uses the {what} of '{name}', which has several; use a junction's", own)
        if what in ("effort", "flow"):
            common = {"0": "effort", "1": "flow"}.get(element.kind, what)
            if common != what:
                raise GraphError(f"its law uses the {what} of junction '{name}', whose bonds have several", own)
            bond = self.graph.at(name)[0]
            return Variable("e" if what == "effort" else "f", bond)
        if what == "displacement":
            return self.displacement(name, own)
        if element.kind != "I" or not isinstance(element.value, Law):
            raise GraphError(f"its law uses the momentum of '{name}', which has none", own)
        return Variable("state", f"{name}.momentum")

    def displacement(self, name: str, own: str) -> Variable:
        """∫f dt of an element of one port or of a 1-junction; a state, made where there is none."""
        element = self.graph.elements[name]
        if element.kind == "0":
            raise GraphError(f"its law uses the displacement of 0-junction '{name}', whose bonds have several", own)
        state = f"{name}.displacement"
        if state not in self.states:
            bond = self.graph.at(name)[0]
            unit = DOMAINS[self.graph.domains[bond]].displacement
            initial = element.initial if element.kind in ("C", "1") else 0.0
            self.add_state(StateVariable(state, unit, initial), linear(Term(1.0, Variable("f", bond))))
        return Variable("state", state)

    def add_state(self, state: StateVariable, rate: Equation) -> Variable:
        self.states[state.name] = state
        self.of[Variable("rate", state.name)] = rate
        return Variable("state", state.name)

    def function(self, law: Law, own: str) -> Function:
        return Function(law.fn, tuple(self.signal(name, own) for name in law.uses))

    # --- derivatives ---

    def _derivative(self, variable: Variable) -> Equation:
        """d(variable of one order less)/dt. Raises GraphError where it does not exist."""
        below = variable._replace(order=variable.order - 1)
        if below.order > sum(element.kind in ("I", "C", "IC") for element in self.graph.elements.values()):
            # each storage in derivative causality differentiates once: more of it would go on for ever
            name = str(below.of) if not isinstance(below.of, int) else self.causality.effort_from[below.of]
            what = "its rate depends on a rate of itself"
            raise GraphError(f"{what}; put an inertia between it and the other storages", name)
        if below.kind == "state":
            return linear(Term(1.0, Variable("rate", below.of, below.order)))
        if below == TIME:
            return Function(lambda: 1.0, ())
        equation = self.of[below]
        if isinstance(equation, Linear):
            return Linear(tuple(t for term in equation.terms for t in _product_rule(term)))
        assert isinstance(equation, Function)  # a rate is never differentiated
        return _chain_rule(equation)


def _rate(variable: Variable) -> Variable:
    return variable._replace(order=variable.order + 1)


def _product_rule(term: Term) -> Iterable[Term]:
    yield term._replace(variable=_rate(term.variable))
    if term.modulus is not None:
        yield term._replace(modulus=_rate(term.modulus))


def _chain_rule(function: Function) -> Function:
    """Σ ∂fn/∂x ẋ, exact, on numbers and on symbols."""
    n = len(function.uses)
    if not n:
        return Function(lambda: 0.0, ())

    def make(columns: Sequence[Numeric], arrays: Sequence[Numeric]) -> list[tuple[Numeric, tuple[int, ...]]]:
        values, rates = columns[:n], columns[n:]
        return [(along(column(function.fn(*arrays[:n])), list(zip(values, rates, strict=True))), ())]

    derived: list[Derived] = []

    def rate(*values_and_rates: Numeric) -> Numeric:
        if not derived:
            derived.append(Derived("rate", [()] * (2 * n), make))
        return derived[0](*values_and_rates)[0]

    return ChainRule(rate, (*function.uses, *map(_rate, function.uses)), n)


def _partial(fn: Callable[..., Numeric], n: int, k: int) -> Callable[..., Numeric]:
    """∂fn/∂x_k of a function of n scalars, exact, on numbers and on symbols."""

    def make(columns: Sequence[Numeric], arrays: Sequence[Numeric]) -> list[tuple[Numeric, tuple[int, ...]]]:
        return [(along(column(fn(*arrays)), [(columns[k], 1.0)]), ())]

    derived: list[Derived] = []

    def value(*x: Numeric) -> Numeric:
        if not derived:
            derived.append(Derived("partial", [()] * n, make))
        return derived[0](*x)[0]

    return value


# --- the equations of each kind of element -----------------------------------------------------------

Equations = dict[Variable, Equation]


def _port(g: GraphEquations, name: str) -> tuple[Variable, Variable]:
    """(e, f) of an element of one port."""
    (bond,) = g.graph.at(name)
    return Variable("e", bond), Variable("f", bond)


def _source(g: GraphEquations, name: str, element: Element) -> Equations:
    e, f = _port(g, name)
    # a source acts in the direction of its bond
    given = e if element.kind == "Se" else f
    law = element.value if isinstance(element.value, Law) else Law(lambda: element.value)
    return {given: g.function(law, name)}


def _inertia(g: GraphEquations, name: str, element: Element) -> Equations:
    e, f = _port(g, name)
    domain = DOMAINS[element.domains[0]]
    if isinstance(element.value, Law):
        if name in g.causality.derivative:
            raise GraphError(_nonlinear_derivative("flow"), name)
        g.add_state(StateVariable(f"{name}.momentum", domain.momentum, element.initial), linear(Term(1.0, e)))
        return {f: g.function(element.value, name)}
    if name in g.causality.derivative:
        return {e: linear(Term(element.value, _rate(f)))}
    rate = linear(Term(1.0 / element.value, e))
    state = g.add_state(StateVariable(f"{name}.flow", domain.flow, element.initial), rate)
    return {f: linear(Term(1.0, state))}


def _compliance(g: GraphEquations, name: str, element: Element) -> Equations:
    e, f = _port(g, name)
    if name in g.causality.derivative:
        if isinstance(element.value, Law):
            raise GraphError(_nonlinear_derivative("effort"), name)
        return {f: linear(Term(1.0 / element.value, _rate(e)))}
    state = g.displacement(name, name)
    if isinstance(element.value, Law):
        return {e: g.function(element.value, name)}
    return {e: linear(Term(element.value, state))}


def _field(g: GraphEquations, name: str, element: Element) -> Equations:
    states, sides = [], []
    for number, (bond, what) in enumerate(zip(g.graph.at(name), element.stores, strict=True)):
        side, e, f = OUTPUTS[what], Variable("e", bond), Variable("f", bond)
        if g.causality.computes(name, bond) != side:
            raise GraphError(_nonlinear_derivative(side), name)
        unit = getattr(DOMAINS[element.domains[number]], what)
        state = StateVariable(field_state(name, element, number), unit, element.initial[number])
        sides.append(e if side == "effort" else f)
        states.append(g.add_state(state, linear(Term(1.0, f if side == "effort" else e))))
    assert element.energy is not None
    gradient = [_partial(element.energy.fn, len(states), k) for k in range(len(states))]
    return {side: Function(partial, tuple(states)) for side, partial in zip(sides, gradient, strict=True)}


def field_state(name: str, element: Element, number: int) -> str:
    """The name of the state of a port of a field."""
    return f"{name}.{element.stores[number]}_{number + 1}"


def _nonlinear_derivative(side: str) -> str:
    what = f"its {side} is imposed (derivative causality), which its law cannot take"
    return f"{what}; give it a constant value, or put a resistance between it and what imposes the {side}"


def _resistance(g: GraphEquations, name: str, element: Element) -> Equations:
    e, f = _port(g, name)
    gives_effort = g.causality.computes(name, g.graph.at(name)[0]) == "effort"
    if isinstance(element.value, Law):
        law = element.value if gives_effort == (element.output == "effort") else element.inverse
        assert law is not None  # without an inverse it is required to compute its output
        return {e if gives_effort else f: g.function(law, name)}
    if gives_effort:
        return {e: linear(Term(element.value, f))}
    if ops.is_zero(element.value):
        what = "its effort is imposed, and a resistance of 0 has no flow for it"
        raise GraphError(f"{what}; give it a value above 0, or take it out", name)
    return {f: linear(Term(1.0 / element.value, e))}


def _transducer(g: GraphEquations, name: str, element: Element) -> Equations:
    (e1, f1), (e2, f2) = ((Variable("e", bond), Variable("f", bond)) for bond in g.graph.ends(name))
    pairs = ((e1, e2), (f2, f1)) if element.kind == "TF" else ((e1, f2), (e2, f1))  # left = ratio · right
    inverse = g.causality.computes(name, g.graph.ends(name)[0]) == "flow"
    if inverse:
        pairs = tuple((right, left) for left, right in pairs)
    if not isinstance(element.value, Law):
        ratio = 1.0 / element.value if inverse else element.value
        return {left: linear(Term(ratio, right)) for left, right in pairs}
    modulus, of = Variable("ratio", name), g.function(element.value, name)
    if inverse:
        of = Function(lambda *signals: 1.0 / element.value.fn(*signals), of.uses)
    equations: Equations = {left: linear(Term(1.0, right, modulus)) for left, right in pairs}
    return equations | {modulus: of}


def _junction(g: GraphEquations, name: str, element: Element) -> Equations:
    common, summed = ("e", "f") if element.kind == "0" else ("f", "e")
    if name in g.causality.coordinates:
        return _coordinate(g, name)
    chosen = g.causality.determining(name)
    rest = [bond for bond in g.graph.at(name) if bond != chosen]
    signs = {bond: float(g.graph.sign(name, bond)) for bond in g.graph.at(name)}
    equations: Equations = {Variable(common, bond): linear(Term(1.0, Variable(common, chosen))) for bond in rest}
    balance = tuple(Term(-signs[chosen] * signs[bond], Variable(summed, bond)) for bond in rest)
    return equations | {Variable(summed, chosen): Linear(balance)}


def _coordinate(g: GraphEquations, name: str) -> Equations:
    bonds = g.graph.at(name)
    balance = Linear(tuple(Term(float(g.graph.sign(name, bond)), Variable("e", bond)) for bond in bonds))
    unit = DOMAINS[g.graph.domains[bonds[0]]].flow
    state = g.add_state(StateVariable(f"{name}.flow", unit, 0.0), Balance(balance))
    return {Variable("f", bond): linear(Term(1.0, state)) for bond in bonds}


_WRITERS: dict[str, Callable[[GraphEquations, str, Element], Equations]] = {
    "Se": _source,
    "Sf": _source,
    "I": _inertia,
    "C": _compliance,
    "R": _resistance,
    "IC": _field,
    "TF": _transducer,
    "GY": _transducer,
    "0": _junction,
    "1": _junction,
}
