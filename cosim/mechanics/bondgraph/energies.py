"""Energies of single elements: what a storage holds, and what a resistance has dissipated or a source supplied."""

from __future__ import annotations

from cosim.mechanics.bondgraph.domains import DOMAINS
from cosim.mechanics.bondgraph.elements import OWN, Law
from cosim.mechanics.bondgraph.equations import Function, GraphEquations, StateVariable, Variable
from cosim.mechanics.bondgraph.graph import CheckedGraph, GraphError, SignalError

ENERGY = "energy"
# of elements that hold none: name of the integral of their power, and the sign of the power into the element in it
INTEGRALS = {"R": ("dissipated", 1.0), "Se": ("supplied", -1.0), "Sf": ("supplied", -1.0)}
STORAGES = ("I", "C", "IC")


def carries_power(graph: CheckedGraph, name: str) -> bool:
    """Whether e·f of an element is a power: not in the thermal domain, where f is one."""
    return DOMAINS[graph.domains[graph.at(name)[0]]].product_is_power


def recorded_variable(equations: GraphEquations, signal: str, own: str) -> Variable:
    """The variable of a recorded signal: one that the law of element `own` could use, or `<element>.energy` [J].

    Raises SignalError for one that does not exist.
    """
    try:
        target, _, what = signal.rpartition(".")
        if signal in equations.graph.signals or not target or what in OWN:
            return equations.signal(signal, own)
        name, _ = equations.graph.meant(signal, own, (*OWN, ENERGY))
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
    if not carries_power(equations.graph, name):
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
        power = Function(lambda e, f: sign * (e * f), (Variable("e", bond), Variable("f", bond)))
        equations.add_state(StateVariable(state, "J", 0.0, account), power)
    return Variable("state", state)
