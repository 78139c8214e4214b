"""`cosim derive --bondgraph`: equations with names, equal to those that are integrated."""

import math

import numpy as np
import pytest
import sympy

from cosim.apps.derive.bond_graph_equations import (
    GraphFormulas,
    Named,
    equation_lines,
    formulas_of,
    latex_lines,
    of_outputs,
    outputs_of,
)
from cosim.apps.derive.bond_graph_report import graph_actuators
from cosim.apps.derive.symbolic import as_text, formula_symbol, formulas, simplified
from cosim.apps.derive.tables import quantity
from cosim.core import ops
from cosim.core.compile.trace import symbols
from cosim.core.errors import CompileError
from cosim.mechanics.bondgraph import TF, BondGraph, C, I, Law, R, Se, assemble
from cosim.mechanics.bondgraph.equations import Variable
from cosim.mechanics.bondgraph.expressions import Names, law
from tests.bondgraph.graphs import graph_of, ladder
from tests.derive.bond_graphs import GRAPHS, manipulator, motor
from tests.kit.refusals import raised
from tests.kit.samples import FOLDER

A, B, D = (formula_symbol(name) for name in "abd")


# functions of (a, b, d), and their formulas
FORMULAS = [
    (lambda a, b, d: a + b * d, "a + b*d"),
    (lambda a, b, d: 0.02 * ops.tanh(a / 0.01) - a / 5, "-a/5 + 0.02*tanh(100*a)"),
    (lambda a, b, d: ops.where(a < b, ops.sin(a), ops.cos(b)), "Piecewise((sin(a), a < b), (cos(b), True))"),
    (lambda a, b, d: ops.where(a < b, 0.0, d), "Piecewise((d, a >= b), (0, True))"),
    (lambda a, b, d: (a < b) * 3.0 + (b <= d) * a, None),
    (lambda a, b, d: ops.sign(a) * ops.abs(b), "abs(b)*sign(a)"),
    (lambda a, b, d: ops.minimum(a, ops.maximum(b, 0.5)), "Min(a, Max(b, 1/2))"),
    (lambda a, b, d: ops.reciprocal(a) * b, "b/a"),
    (lambda a, b, d: ops.remainder(a, b), None),
    (lambda a, b, d: ops.smooth_sign(a, 3.0), "a/sqrt(a**2 + 9)"),
    (lambda a, b, d: ops.power(ops.abs(a), 1.5) * ops.exp(-b), "exp(-b)*abs(a)**(3/2)"),
    (lambda a, b, d: ops.where(ops.logical_not(ops.logical_or(a < b, b < d)), a, 1.0), None),
    (lambda a, b, d: ops.where(ops.logical_and(a < b, b < d), ops.floor(a), ops.ceil(d)), None),
    (lambda a, b, d: ops.atan2(a, b) + ops.sqrt(ops.abs(d)) * math.pi, "pi*sqrt(abs(d)) + atan2(a, b)"),
    (lambda a, b, d: ops.log(2.0 + ops.sin(a) * ops.sinh(b)) + ops.atan(d), None),
    (lambda a, b, d: (a * b + b * d) / (b * d), "(a + d)/d"),
]


@pytest.mark.parametrize("k", range(len(FORMULAS)))
def test_a_formula_has_the_values_of_the_function(k):
    fn, text = FORMULAS[k]
    x = [symbols(name, ())[1] for name in "abd"]
    (formula,) = formulas(dict(zip((A, B, D), x, strict=True)), [fn(*x)])
    if text is not None:
        assert as_text(simplified(formula)) == text
    for values in ((0.7, -1.3, 2.2), (-0.7, 1.3, 2.2), (2.5, 0.4, -0.3)):
        expected = float(fn(*map(np.float64, values)))
        for form in (formula, simplified(formula)):
            assert float(sympy.lambdify((A, B, D), form, "math")(*values)) == pytest.approx(expected, rel=1e-12)


def test_an_operation_without_a_formula_is_refused():
    import casadi

    x = casadi.SX.sym("x")
    words = str(raised(CompileError, formulas, {A: x}, [casadi.remainder(x, 2.0)]))
    assert words == "the operation remainder has no formula; write it with others of cosim.plugin.ops"


def at_state(assembly, found, x, rng):
    """(rates, variables, values of the symbols of formulas) at t = 0.3 s, with random inputs."""
    u = {name: np.float64(rng.uniform(0.1, 0.5)) for name in [*assembly.inputs, *(f"{i}'" for i in assembly.inputs)]}
    values = {formula_symbol(name): value for name, value in {"t": 0.3, **x, **u}.items()}
    return *assembly.flow(0.3, x, u), values | {symbol: each.value for symbol, each in found.parameters.items()}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_equations_are_those_that_are_integrated(name):
    assembly = GRAPHS[name]()
    outputs = {f"{kind}{k}": Variable(kind, k) for kind in "ef" for k in range(len(assembly.graph.bonds))}
    outputs |= {name: Variable("signal", name) for name in assembly.graph.signals}
    found = formulas_of(assembly, outputs)
    rng = np.random.default_rng(7)
    x = {state.name: np.float64(rng.uniform(0.1, 1.0)) for state in assembly.states}
    rates, known, values = at_state(assembly, found, x, rng)

    def value(formula):
        return float(sympy.lambdify(list(values), formula, "math")(*values.values()))

    for step in found.steps:
        if isinstance(step, Named):
            values[step.symbol] = value(step.formula)
            continue
        matrix = np.array([[value(a) for a in row] for row in step.rows])
        solution = np.linalg.solve(matrix, [value(b) for b in step.right])
        values |= dict(zip(step.unknown, solution, strict=True))

    assert set(found.rates) == {state.name for state in assembly.states if not state.account}
    for state, formula in found.rates.items():
        assert value(formula) == pytest.approx(float(rates[state]), rel=1e-10, abs=1e-12)
    for output, formula in found.outputs.items():
        assert value(formula) == pytest.approx(float(known[outputs[output]]), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("lines", [equation_lines, latex_lines])
@pytest.mark.parametrize("graph", [motor, manipulator])
def test_equations_are_written(said, graph, lines):
    """A manipulator's are loops of several unknowns: equations of motion."""
    said(lines(formulas_of(graph(), {"current": Variable("f", 0)} if graph is motor else {})))


def test_a_very_long_formula_is_shown_by_its_size():
    product = sympy.Mul(*(A + k for k in range(1, 1200)))
    found = GraphFormulas({"x.flow": product}, {}, [], {}, [])
    assert equation_lines(found) == ["equations: x' is dx/dt", "  x.flow'  = (2397 operations)"]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0009, "H", "0.9 mH"),
        (0.5, "ohm", "0.5 Ω"),
        (27.0, "V", "27 V"),
        (5000.0, "N", "5 kN"),
        (1.75e9, "Pa", "1.75 GPa"),
        (-3e-5, "A", "-30 µA"),
        (1e-5, "kg*m^2", "1e-05 kg·m²"),
        (0.0, "V", "0 V"),
        (0.01, "1", "0.01"),
    ],
)
def test_quantities(value, unit, text):
    assert quantity(value, unit) == text


@pytest.mark.parametrize("rig", ["two_stage_gear", "hydraulic_full"])
def test_equations_of_drives_are_short_and_those_that_are_integrated(rig):
    """Values of laws have the names of their elements, and what occurs several times in them has a name too."""
    actuator = next(iter(graph_actuators(FOLDER / "drives" / f"{rig}.yaml").values()))
    assembly = actuator.assembly
    found = formulas_of(assembly, outputs_of(actuator), actuator.origins)
    rng = np.random.default_rng(3)
    x = {s.name: np.float64(float(s.initial) * rng.uniform(0.9, 1.1) + rng.uniform(0, 1e-3)) for s in assembly.states}
    rates, known, values = at_state(assembly, found, x, rng)
    names = {symbol: sympy.Dummy() for symbol in {*values, *(step.symbol for step in found.named)}}

    def value(formula):
        given = [symbol for symbol in formula.free_symbols]
        fn = sympy.lambdify([names[s] for s in given], formula.xreplace(names), "math")
        return float(fn(*(values[symbol] for symbol in given)))

    for step in found.named:
        values[step.symbol] = value(step.formula)
    for state, formula in found.rates.items():
        assert value(formula) == pytest.approx(float(rates[state]), rel=1e-9, abs=1e-9)
    for output, expected in of_outputs(outputs_of(actuator), known).items():
        assert value(found.outputs[output]) == pytest.approx(float(expected), rel=1e-9, abs=1e-9)
    formulas_found = [*found.rates.values(), *found.outputs.values(), *(step.formula for step in found.named)]
    assert max(map(sympy.count_ops, formulas_found)) < 60
    lines = equation_lines(found)
    assert len(set(lines) - {""}) == len([line for line in lines if line])  # nothing is said twice
    assert len("\n".join(latex_lines(found))) < 20000


def _formulas(actuator):
    return formulas_of(actuator.assembly, outputs_of(actuator), actuator.origins)


def test_values_of_laws_are_named_by_their_elements():
    actuator = graph_actuators(FOLDER / "drives" / "two_stage_gear.yaml")["shaft"]
    lines = [" ".join(line.split()) for line in equation_lines(_formulas(actuator))]
    torque = "first.mesh.damper.effort + first.mesh.spring.effort"
    assert "first_torque = first.mesh.spring.effort" in lines
    load = "second.mesh.damper.effort - second.mesh.spring.effort"
    assert f"first.inertia.flow' = (-first.friction.effort + n_first*({torque}) - {load})/J_first" in lines
    twist, half = "first.mesh.spring.displacement", "first.backlash/2"
    assert f"first.mesh.spring.effort = k_first*({twist} - Min(Max({twist}, -{half}), {half}))" in lines


FLUID = Names({"A": 0.0201, "E": 1.75e9, "rho": 900.0, "mu": 0.7, "a": 1.2566e-4, "l": 1.0})


def test_a_hydraulic_drive_with_masses_and_compressibility_of_its_fluid_has_six_equations(said):
    """Flows Q1 and Q3 of both lines, volumes of both chambers, velocity and position S of the piston, with the masses
    m1(S), m3(S) and the stiffnesses c1(S), c3(S)."""
    orifice = law("rho / 2 * (flow / (mu * a))^2 * sign(flow)", FLUID)
    first, last = "rod.displacement", "(l - rod.displacement)"

    def mass(length):
        return I("hydraulic", law(f"momentum * A / (rho * {length})", FLUID))

    def stiffness(length):
        return C("hydraulic", law(f"E / (A * {length}) * displacement", FLUID))

    graph = graph_of(
        *("pump -> inlet -> pressure -> push -> rod -> pull -> back -> outlet -> tank", "inlet -> m1", "inlet -> R1"),
        *("pressure -> c1", "rod -> M", "force -> rod", "back -> c3", "outlet -> m3", "outlet -> R3"),
        pump=Se("hydraulic", 1e6),
        tank=Se("hydraulic", 0.0),
        **dict.fromkeys(("inlet", "outlet", "rod"), "1"),
        **dict.fromkeys(("pressure", "back"), "0"),
        **{"R1": R("hydraulic", orifice), "R3": R("hydraulic", orifice), "m1": mass(first), "m3": mass(last)},
        **{"c1": stiffness(first), "c3": stiffness(last), "M": I("translational", 6000.0)},
        force=Se("translational", -15e3),
        push=TF("hydraulic", "translational", law("1 / A", FLUID)),
        pull=TF("translational", "hydraulic", law("A", FLUID)),
    )
    lines = equation_lines(formulas_of(assemble(graph), {}))
    assert len([line for line in lines[1:] if line.split() and line.split()[0].endswith("'")]) == 6
    said(lines)


def test_a_term_of_a_law_that_occurs_several_times_has_a_name():
    graph = BondGraph(inputs={"a1": "N*m"})  # so that this name is taken
    graph.junction("shaft", "1")
    graph.add("drive", Se("rotational", Law(lambda a1: a1, ("a1",))))
    graph.add("rotor", I("rotational", 2.0))

    def drag(w):
        wake = ops.exp(-w) / (1.0 + ops.sin(w))
        several = wake * ops.tanh(wake) + 3.0 * ops.sin(wake) + ops.cos(wake) * w
        return several + ops.log(wake) + ops.exp(wake) + ops.tan(wake)

    graph.add("drag", R("rotational", Law(drag, ("flow",))))
    graph.chain("drive", "shaft", "rotor")
    graph.bond("shaft", "drag")
    found = formulas_of(assemble(graph), {})
    w, wake = (formula_symbol(name) for name in ("rotor.flow", "a2"))
    assert [step.symbol.name for step in found.named] == ["a2", "drag.effort"]
    assert found.named[0].formula == sympy.exp(-w) / (sympy.sin(w) + 1)
    expected = wake * sympy.tanh(wake) + 3 * sympy.sin(wake) + w * sympy.cos(wake)
    expected += sympy.log(wake) + sympy.exp(wake) + sympy.tan(wake)
    assert found.named[1].formula == expected
    assert equation_lines(found)[1] == "  rotor.flow'  = (a1 - drag.effort)/I_rotor"
    assert r"e_{\mathrm{drag}} &= " in "\n".join(latex_lines(found))


def test_a_large_graph_has_short_equations():
    found = formulas_of(assemble(ladder(20)), {})
    assert len(found.rates) == 40 and not found.steps
    assert max(map(sympy.count_ops, found.rates.values())) < 10
