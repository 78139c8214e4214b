"""The block diagrams of bond graphs: their blocks are the equations, and lie beside each other without overlaps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import sympy

from cosim.apps.derive.block_diagram import BlockDiagram, DiagramBlock, block_diagram
from cosim.apps.derive.block_layout import BlockLayout, lay_out_blocks
from cosim.apps.derive.bond_graph_equations import of_outputs, outputs_of
from cosim.apps.derive.bond_graph_report import graph_actuators
from cosim.apps.derive.picture import Box, Point
from cosim.apps.derive.wire_routing import Net, tracks
from cosim.core import ops
from cosim.core.errors import CompileError, InputErrors
from cosim.core.plugin_loading import COMPONENT, known_names
from cosim.mechanics.bondgraph import Assembly, Law, assemble
from cosim.mechanics.bondgraph.components import bldc, cable, dc_machine, induction_machine, play, relay
from cosim.mechanics.bondgraph.equations import Term, Variable
from cosim.plugins.actuators._graph_actuator import GraphActuator
from tests.bondgraph.simulation import bench
from tests.bondgraph.test_bldc import MOTOR
from tests.bondgraph.test_cable import fed
from tests.bondgraph.test_component_ports import COMPONENTS, PORTS, bonded
from tests.bondgraph.test_induction_machine import ON_THE_NET, SATURABLE
from tests.bondgraph.test_pneumatics import filled, sprung
from tests.derive.bond_graphs import GRAPHS, RIG
from tests.kit.refusals import raised
from tests.kit.samples import FOLDER


class Drawn(NamedTuple):
    """A graph with what its diagram is made for."""

    assembly: Assembly
    outputs: Mapping[str, Term]
    diagram: BlockDiagram
    layout: BlockLayout


def drawn(assembly: Assembly, outputs: Mapping[str, Term], origins: Mapping[str, Any]) -> Drawn:
    diagram = block_diagram(assembly, outputs, origins)
    return Drawn(assembly, outputs, diagram, lay_out_blocks(assembly, diagram))


def of_actuator(actuator: GraphActuator) -> Drawn:
    return drawn(actuator.assembly, outputs_of(actuator), actuator.origins)


@cache
def of_sample(rig: str, name: str) -> Drawn:
    return of_actuator(graph_actuators(FOLDER / "drives" / f"{rig}.yaml")[name])


@cache
def of_component(name: str) -> Drawn:
    """The component bonded to a joint and to sources, as far as these go together."""
    ports = dict(port.split(":") for port in PORTS[name].split())
    on_joint = next((port for port, letter in ports.items() if letter in "rt"), None)
    for storages in product("CI-", repeat=len(ports) - (on_joint is not None)):
        for inwards in product((True, False), repeat=len(ports)):
            try:
                rig = bonded(name, ports, on_joint, dict(zip(ports, inwards, strict=True)), storages)
            except InputErrors:
                continue
            (actuator,) = rig.plant.actuators.values()
            assert isinstance(actuator, GraphActuator)
            return of_actuator(actuator)
    raise AssertionError(name)


WAVE = Law(lambda t: ops.sin(2.0 * t), ("t",))
SHAFT: Any = {"inertia": 1e-4, "torque_constant": 0.05, "viscous": 1e-4}
# components that the table of ports lacks
OTHERS: dict[str, Callable[[], Assembly]] = {
    "relay": lambda: assemble(relay.build(relay.Params(WAVE, 0.5, -0.2, 1e-3))),
    "play": lambda: assemble(play.build(play.Params(WAVE, 0.6, 1e-3))),
    "gas_supply gas_orifice gas_chamber": lambda: assemble(filled()),
    "gas_variable_chamber": lambda: assemble(sprung(isothermal=False)),
    "bldc": lambda: bench(bldc.build(MOTOR), {"alpha": ("u_alpha", "V"), "beta": ("u_beta", "V")}),
    "cable": lambda: assemble(fed(dc_machine.Params(0.5, 1e-3, **SHAFT), cable.Params(20.0, 7e-3))),
    "induction_machine": lambda: bench(induction_machine.build(SATURABLE), ON_THE_NET),
}


def test_every_component_of_the_library_has_a_diagram() -> None:
    left = set(known_names(COMPONENT)) - {*COMPONENTS, *" ".join(OTHERS).split()}
    sample = (FOLDER / "drives" / "pneumatic_balancer.yaml").read_text()
    assert all(f"type: {name}," in sample for name in left), left


@cache
def of_graph(name: str) -> Drawn:
    """With the efforts and flows of all bonds as outputs."""
    assembly = GRAPHS[name]() if name in GRAPHS else OTHERS[name]()
    bonds = range(len(assembly.graph.bonds))
    outputs = {f"{kind}_{k}": Term(1.0, Variable(kind, k)) for kind, k in product("ef", bonds)}
    return drawn(assembly, outputs, {})


TOO_LONG = {"field_weakening", "duty_cycle"}  # with tables, and with a time to a limit
SAMPLES = [
    (file.stem, name)
    for file in sorted((FOLDER / "drives").glob("*.yaml"))
    if file.stem not in TOO_LONG
    for name in [*graph_actuators(file)][: 1 if file.stem == "industrial_arm" else None]
]
EVERY = [
    *((of_graph, (name,)) for name in (*GRAPHS, *OTHERS)),
    *((of_component, (name,)) for name in COMPONENTS),
    *((of_sample, names) for names in SAMPLES),
]


# --- the diagram is the equations -----------------------------------------------------------------------


def select(conditions: list[Any], values: list[Any], default: float) -> float:
    return next((value for condition, value in zip(conditions, values, strict=True) if condition), default)


FUNCTIONS: list[Any] = [{"Min": np.minimum, "Max": np.maximum, "select": select}, "numpy"]


Sized = tuple[float, float]  # a value, and the size of what it is summed of
CHANGE = 1e-6  # relative, of a value at an input


def compiled(formulas: Sequence[Any], taken: Sequence[Any], numbers: Mapping[Any, float]) -> Callable[..., np.ndarray]:
    """The formulas as a function of what a block takes, in numbers."""
    function = sympy.lambdify([*taken, *numbers], list(formulas), FUNCTIONS, dummify=True, cse=True)

    def of(x: Sequence[float]) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.array(function(*x, *numbers.values()), dtype=float)

    return of


def function_of(block: DiagramBlock, diagram: BlockDiagram) -> Callable[[Sequence[float]], np.ndarray]:
    """The values that a block gives, from those that it takes."""
    match block.kind:
        case "product":
            return lambda x: np.array([x[0] * x[1]])
        case "sum":
            return lambda x: np.array([np.dot(block.signs, x)])
        case _:
            formulas = [block.formula] if block.system is None else block.system.formulas
            free = {symbol for formula in formulas for symbol in formula.free_symbols}
            numbers = {s: p.value for s, p in diagram.parameters.items() if s in free}
            if block.kind == "gain":
                (factor,) = compiled(formulas, [], numbers)([])
                return lambda x: np.array([factor * x[0]])
            of = compiled(formulas, [diagram.symbols[v] for v in block.takes], numbers)
            if block.system is None:
                return of
            n = len(block.gives)
            return lambda x: np.linalg.solve((found := of(x))[: n * n].reshape(n, n), found[n * n :])


def answers(function: Callable[[Sequence[float]], np.ndarray], taken: Sequence[Sized]) -> list[Sized]:
    """What a block gives, with sizes: Σ |∂f/∂x| size of x, and its own."""
    x = [value for value, _ in taken]
    found = function(x)
    sizes = np.abs(found)
    for k, (value, size) in enumerate(taken):
        if value:
            beside = function([*x[:k], value * (1.0 + CHANGE), *x[k + 1 :]])
            sizes = sizes + np.abs(beside - found) * size / abs(CHANGE * value)
    return list(zip(found.tolist(), sizes.tolist(), strict=True))


def evaluated(diagram: BlockDiagram, given: Mapping[str, float]) -> dict[str, Sized]:
    """What enters the integrators, with `'`, and the outputs, of the blocks alone, one after the other, integrators
    cut. given: by name the inputs and states."""
    values: dict[Variable, Sized] = {}
    for block in diagram.blocks:
        if block.kind in ("input", "state"):
            values[block.gives[0]] = given[block.owner], abs(given[block.owner])
        elif block.kind != "output":
            found = answers(function_of(block, diagram), [values[v] for v in block.takes])
            values |= dict(zip(block.gives, found, strict=True))
    ends = {"state": "'", "output": " out"}
    return {b.owner + ends[b.kind]: values[b.takes[0]] for b in diagram.blocks if b.kind in ends}


def random_state(assembly: Assembly, random: np.random.Generator) -> dict[str, float]:
    """Of the time, the states near the initial ones, the inputs and their rates."""
    names = ["t", *assembly.inputs, *assembly.rates_of_inputs]
    states = {s.name: float(s.initial) * random.uniform(0.9, 1.1) + random.uniform(0.0, 1e-3) for s in assembly.states}
    return states | dict(zip(names, random.uniform(0.1, 0.5, len(names)), strict=True))


def by_assembly(one: Drawn, given: Mapping[str, float]) -> dict[str, float]:
    """The rates, with `'`, and the outputs."""
    assembly = one.assembly
    rates, known = assembly.flow(given["t"], {state.name: given[state.name] for state in assembly.states}, given)
    kept = {f"{state.name}'": float(rates[state.name]) for state in assembly.states if not state.account}
    return kept | {f"{name} out": float(value) for name, value in of_outputs(one.outputs, known).items()}


def check_equations(one: Drawn) -> None:
    """To 1e-12 of each value, or of its summands where these cancel."""
    random = np.random.default_rng(2)
    for _ in range(2):
        given = random_state(one.assembly, random)
        expected, found = by_assembly(one, given), evaluated(one.diagram, given)
        assert set(found) == set(expected)
        for name, (value, size) in found.items():
            assert abs(value - expected[name]) <= 1e-12 * size, name


@pytest.mark.parametrize(("made", "names"), EVERY)
def test_the_blocks_are_the_equations(made: Callable[..., Drawn], names: tuple[str, ...]) -> None:
    check_equations(made(*names))


@pytest.mark.parametrize("rig", sorted(TOO_LONG))
def test_laws_that_nobody_can_read_are_refused(rig: str) -> None:
    (name, *_) = graph_actuators(FOLDER / "drives" / f"{rig}.yaml")
    assert "operations when it is written out" in str(raised(CompileError, of_sample, rig, name))


@pytest.mark.parametrize(("made", "names"), EVERY)
def test_integrators_are_the_states_and_accelerations_are_inputs(made: Callable[..., Drawn], names: Any) -> None:
    assembly, outputs, diagram, _ = made(*names)
    by_kind: dict[str, list[str]] = {}
    for block in diagram.blocks:
        by_kind.setdefault(block.kind, []).append(block.owner)
    assert by_kind.get("state", []) == [state.name for state in assembly.states if not state.account]
    assert by_kind["output"] == list(outputs)
    assert set(by_kind.get("input", [])) <= {"t", *assembly.inputs, *assembly.rates_of_inputs}
    accelerations = {name for name in by_kind.get("input", []) if name.endswith("'")}
    assert accelerations == set(assembly.rates_of_inputs)


def texts(one: Drawn, kind: str) -> list[str]:
    return sorted(" ".join(b.shape.text) for b in one.layout.blocks if b.block.kind == kind)


def test_gains_and_laws_show_their_formulas() -> None:
    one = of_sample("dc_start", "shaft")
    assert texts(one, "gain") == ["1/L_machine", "J_machine", "K_machine", "K_machine", "R_machine"]
    assert texts(one, "law") == ["-63.66 if t >= 3/2 else 0", "100*min(max(1.25*t - 1/4, 0), 1)"]
    assert texts(one, "input") == ["t", "velocity", "velocity'"]


def test_a_loop_is_solved_for_named_unknowns() -> None:
    """Of the voltage divider, whose resistances follow from each other."""
    (solved,) = (b for b in of_graph("divider").layout.blocks if b.block.kind == "solve")
    assert solved.shape.given == ("mesh.flow",)
    assert set(solved.shape.labels) == {"supply.effort", "capacitor.effort"}


def test_a_diagram_follows_the_power_from_left_to_right() -> None:
    """Winding, rotor and load of a motor with an elastic shaft; what goes back is what a loop must."""
    layout = of_sample("electromechanical", "drum").layout
    x = {b.block.owner: b.place[0] for b in layout.blocks if b.block.kind in ("state", "output")}
    assert x["winding.flow"] < x["inertia.flow"] < x["spring.displacement"] < x["effort"]


def test_the_block_diagram_of_a_rig(command: Any) -> None:
    Path("lift.yaml").write_text(RIG)
    for file in ("a.svg", "b.svg"):
        code, out, err = command("derive", "lift.yaml", file, "--bondgraph", "--form", "blocks")
        assert (code, err) == (0, []) and out.endswith(f"wrote    graph {file}\n")
    assert Path("a.svg").read_bytes() == Path("b.svg").read_bytes()


# --- its picture ------------------------------------------------------------------------------------


def box_of(part: tuple[Point, Point]) -> Box:
    (x0, y0), (x1, y1) = part
    assert x0 == x1 or y0 == y1, part
    return (x0 + x1) / 2, (y0 + y1) / 2, abs(x1 - x0), abs(y1 - y0)


def shared(one: list[Box], other: list[Box]) -> np.ndarray:
    """(n, m, 2): the width and height that each box of one list shares with each of the other; below 0 a distance."""
    a, b = np.array(one)[:, None, :], np.array(other)[None, :, :]
    low, high = (
        np.stack([box[..., :2] + side * box[..., 2:] / 2 for box in np.broadcast_arrays(a, b)]) for side in SIDES
    )
    return high.min(axis=0) - low.max(axis=0)


SIDES, TOUCH = (-1, 1), 1e-7


def is_connected(boxes: list[Box]) -> bool:
    touching = np.all(shared(boxes, boxes) > -TOUCH, axis=2)
    reached = touching[0]
    for _ in boxes:
        reached = touching[reached].any(axis=0)
    return bool(reached.all())


@pytest.mark.parametrize(("made", "names"), EVERY)
def test_blocks_and_wires_do_not_overlap(made: Callable[..., Drawn], names: tuple[str, ...]) -> None:
    _, _, diagram, layout = made(*names)
    assert sorted(b.block.owner for b in layout.blocks) == sorted(b.owner for b in diagram.blocks)
    boxes = [box for block in layout.blocks for box in block.boxes]
    meet = (shared(boxes, boxes) > TOUCH).all(axis=2)
    assert not np.triu(meet, 1).any()
    values = [k for k, wire in enumerate(layout.wires) for _ in wire.parts]
    parts = [box_of(part) for wire in layout.wires for part in wire.parts]
    assert not inside(parts, boxes).any()
    beside = shared(parts, parts)
    other = np.array(values)[:, None] != np.array(values)[None, :]
    # wires may cross in a point, but lie on each other for no length
    assert not ((beside.min(axis=2) > -TOUCH) & (beside.max(axis=2) > TOUCH) & other).any()


def inside(parts: list[Box], boxes: list[Box]) -> np.ndarray:
    """(n, m): whether a wire is within the rim of a box."""
    smaller = [(x, y, width - 1e-5, height - 1e-5) for x, y, width, height in boxes]
    return np.all(shared(parts, smaller) > -TOUCH, axis=2)


@pytest.mark.parametrize(("made", "names"), EVERY)
def test_wires_join_outputs_with_the_inputs_that_take_them(made: Callable[..., Drawn], names: tuple[str, ...]) -> None:
    """Each goes to the right from its output and comes from the left to its inputs."""
    layout = made(*names).layout
    outputs = {v: pin for b in layout.blocks for v, pin in zip(b.block.gives, b.outputs, strict=True)}
    inputs: dict[Variable, list[Point]] = {}
    for block in layout.blocks:
        for value, pin in zip(block.block.takes, block.inputs, strict=True):
            inputs.setdefault(value, []).append(pin)
    for wire in layout.wires:
        assert sorted(wire.ends) == sorted(inputs.pop(wire.value))
        parts = [tuple(sorted(part)) for part in wire.parts]
        assert any(start == outputs[wire.value] for start, _ in parts)
        assert all(any(end == pin for _, end in parts) for pin in wire.ends)
        assert is_connected([box_of(part) for part in wire.parts])
    assert not inputs


def test_wires_at_the_same_height_do_not_lie_on_each_other() -> None:
    """The one from the left ends left of the one to the right; of more wires, in the order with fewer crossings."""
    below, above = Net((0.0,), (1.0,)), Net((1.0,), (2.0,))  # above comes from where below goes to
    assert tracks([below, above]) == ([1, 0], 2)
    assert tracks([above, below]) == ([0, 1], 2)
    assert tracks([Net((0.0,), (1.0,)), Net((3.0,), (2.0,)), Net((5.0,), (5.0,))]) == ([0, 0, -1], 1)
    first, second = Net((0.0,), (2.0,)), Net((1.0,), (3.0,))  # both upwards: the lower one right
    assert tracks([first, second]) == ([1, 0], 2)
