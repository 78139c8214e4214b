"""A bond graph as a file in C, Python or MATLAB: the rates of its states and its outputs as functions.

x' = rates(t, x, u, p),    y = outputs(t, x, u, p)
"""

from __future__ import annotations

from functools import partial

from cosim.apps.derive.bond_graph_equations import of_outputs, outputs_of
from cosim.apps.derive.bond_graph_symbols import with_names
from cosim.apps.derive.equations.code import operations_of
from cosim.apps.derive.equations.components import EquationTerm
from cosim.apps.derive.equations.files import CodeModel
from cosim.apps.derive.equations.header import Element, table_of_operations
from cosim.apps.derive.equations.languages import Identifiers
from cosim.apps.derive.equations.parameters import SymbolicParameter
from cosim.apps.derive.tables import table
from cosim.core import ops
from cosim.core.compile.trace import column, symbols
from cosim.core.types import Numeric
from cosim.plugins.actuators._graph_actuator import RATES, GraphActuator


def code_model(name: str, actuator: GraphActuator) -> CodeModel:
    """The functions of a drive, with its parameters as `p`. States that only account for energy are left out."""
    import casadi

    assembly, wanted = actuator.assembly, outputs_of(actuator)
    elements, signals, numbers = with_names(assembly.graph, actuator.origins)
    named = assembly.with_elements(elements, signals)
    states = [state for state in assembly.states if not state.account]
    inputs = [*assembly.inputs, *assembly.rates_of_inputs]
    t, x, u = ((symbols(key, shape)) for key, shape in (("t", ()), ("x", (len(states),)), ("u", (len(inputs),))))
    values = {state.name: x[1][k] for k, state in enumerate(states)}
    accounts = {state.name: 0.0 for state in assembly.states if state.account}
    rates, variables = named.flow(t[1], values | accounts, {key: u[1][k] for k, key in enumerate(inputs)})
    identifiers = Identifiers()
    parameters = [
        SymbolicParameter(identifiers.new(p.path), p.value, p.unit or "1", f"{p.letter} of {p.owner}".strip(), symbol)
        for p, symbol in ((p, casadi.SX(symbol)) for p, symbol in numbers.items())
    ]
    p = casadi.vertcat(*(parameter.symbol for parameter in parameters)) if parameters else casadi.SX(0, 1)
    columns = {"t": t[0], "x": x[0], "u": u[0], "p": p}
    arguments = ("t", "x", "u", *(("p",) if parameters else ()))

    def function(key: str, letter: str, about: str, found: list[Numeric]) -> EquationTerm:
        entries = casadi.densify(column(ops.array(found)))
        return EquationTerm(key, letter, about, arguments, (len(found),), entries)

    values_of = of_outputs(wanted, variables)
    functions = [function("outputs", "y", "efforts on joints, and recorded signals", list(values_of.values()))]
    if states:
        functions.insert(0, function("rates", "x'", "rates of the states", [rates[state.name] for state in states]))
    members = {"state_names": [s.name for s in states], "input_names": inputs, "output_names": list(values_of)}
    example = f"outputs({', '.join(arguments)})"
    lines = partial(_header, name, actuator, functions, columns, parameters)
    return CodeModel(name, columns, functions, parameters, members, lines, example)


def _header(
    name: str,
    actuator: GraphActuator,
    functions: list[EquationTerm],
    columns: dict[str, Numeric],
    parameters: list[SymbolicParameter],
    element: Element,
) -> list[str]:
    assembly = actuator.assembly
    states = [state for state in assembly.states if not state.account]
    rows = [(element("x", k), s.name, s.unit, repr(float(s.initial))) for k, s in enumerate(states)]
    inputs = [*assembly.inputs, *assembly.rates_of_inputs]
    given = [(element("u", k), key, _about(key, actuator)) for k, key in enumerate(inputs)]
    results = [(element("y", k), key, _unit_of(key, actuator)) for k, key in enumerate(outputs_of(actuator))]
    numbers = [(element("p", k), p.name, repr(p.value), p.unit, p.about) for k, p in enumerate(parameters)]
    counts = {f.name: operations_of([columns[a] for a in f.arguments], f.entries) for f in functions}
    paragraphs = [
        [f"Equations of the bond graph of {name}: x' = rates(t, x, u, p), y = outputs(t, x, u, p), all in SI units."],
        ["t: time [s]."],
        table([("", "state", "unit", "initial"), *rows], "<<<>") if rows else [],
        table([("", "input", ""), *given], "<<<") if given else [],
        table([("", "output", "unit"), *results], "<<<"),
        table([("", "parameter", "value", "unit", ""), *numbers], "<<><<") if numbers else [],
        table_of_operations(counts),
    ]
    return [line for lines in paragraphs if lines for line in (*lines, "")][:-1]


def _about(key: str, actuator: GraphActuator) -> str:
    """What an input is."""
    before = next((before for before in actuator.joints.values() if before and key.startswith(before)), "")
    what = key.removeprefix(before)
    if what in RATES:
        return f"{RATES[what]} of the joint"
    if what in ("position", "velocity"):
        return f"{what} of the joint"
    return actuator.assembly.inputs.get(key, "") or "request of the joint"


def _unit_of(key: str, actuator: GraphActuator) -> str:
    """Of an output."""
    if key in actuator.recorded:
        return actuator.assembly.unit_of(actuator.recorded[key])
    return "N*m" if actuator.units[key.removesuffix("effort")] == "rad" else "N"
