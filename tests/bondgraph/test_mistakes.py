"""Bond graphs that cannot be: one line each, with the element, what is wrong and the fix."""

import pytest

from cosim.mechanics.bondgraph import TF, BondGraph, C, I, Law, R, Se, Sf, assemble
from cosim.mechanics.bondgraph.components import gear_stage
from cosim.mechanics.bondgraph.graph import GraphError
from tests.bondgraph.graphs import E, M, graph_of
from tests.bondgraph.hydraulic_graphs import OPENING, between, built, loaded_cylinder, orifice, supplied
from tests.bondgraph.test_fields import microphone
from tests.kit.messages import Said
from tests.kit.refusals import raised


def cube(flow: float) -> float:
    return flow * flow * flow


CUBE, HARDENING = Law(cube, ("flow",)), Law(cube, ("displacement",))
V, A, LOAD = Se(E, 1.0), Sf(E, 1.0), R(E, 1.0)
TORQUE, WHEEL, GEAR = Se(M, 1.0), I(M, 1.0), TF(M, M, 2.0)
BRAKE = R(M, Law(lambda w, q: w * q, ("flow", "w.displacement")))


def two_meshes() -> BondGraph:
    """No inertia between them: the rate of one twist needs the rates of both, without end."""
    first, second = gear_stage.Params(2.0, 80.0, 0.01, 0.003), gear_stage.Params(2.0, 100.0)
    one, two = gear_stage.build(first), gear_stage.build(second)
    chains = "turn -> w -> J", "w -> one.input", "one.output -> two.input", "two.output -> end"
    return graph_of(*chains, one=one, two=two, J=WHEEL, turn=TORQUE, end=Sf(M, 0.0), w="1")


def two_orifices() -> BondGraph:
    graph = between(built(orifice, area=OPENING), 1e6)
    graph.bonds.pop()
    graph.include("second", built(orifice, area=OPENING))
    graph.chain("item.b", "second.a")
    graph.chain("second.b", "tank")
    return graph


def pumped_cylinder() -> BondGraph:
    graph = loaded_cylinder(supplied())
    graph.bond("pump.port", "cylinder.a")
    graph.bond("cylinder.b", "tank")
    return graph


def microphone_without(what: str) -> BondGraph:
    graph = microphone()
    graph.elements.pop(what, None)
    graph.bonds = [bond for bond in graph.bonds if what not in (*bond, " ".join(bond))]
    return graph


CASES: dict[str, BondGraph] = {
    "two sources of effort": graph_of("a -> n -> r", "b -> n", a=V, b=V, r=LOAD, n="0"),
    "two sources of flow": graph_of("a -> n -> r", "b -> n", a=A, b=A, r=LOAD, n="1"),
    "a law the wrong way round": graph_of("a -> n -> r", "n -> diode", a=V, diode=R(E, CUBE), r=LOAD, n="0"),
    "a law in derivative causality": graph_of("a -> n -> r", "n -> c", a=V, c=C(E, HARDENING), r=LOAD, n="0"),
    "an algebraic loop that is not linear": graph_of("a -> n -> q", "n -> r", a=V, q=R(E, CUBE), r=LOAD, n="1"),
    "unlike domains": graph_of("a -> n -> q", "n -> r", a=V, q=R(M, 1.0), r=LOAD, n="1"),
    "a one-port with two bonds": graph_of("a -> n -> q", "n -> r", "a -> r", a=V, q=LOAD, r=LOAD, n="1"),
    "a one-port without a bond": graph_of("a -> q", a=V, q=LOAD, r=LOAD),
    "a junction with one bond": graph_of("a -> n", a=V, n="1"),
    "a bond out of a resistance": graph_of("a -> n", "r -> n", a=V, r=LOAD, n="1"),
    "gears in parallel": graph_of(
        *("a -> v -> J", "v -> g -> w -> K", "v -> h -> w"),
        **{"a": TORQUE, "J": WHEEL, "K": WHEEL, "g": GEAR, "h": TF(M, M, 3.0), "v": "1", "w": "1"},
    ),
    "three gears in a ring": graph_of(
        *("u -> g -> v -> J", "v -> h -> w -> K", "w -> i -> u -> L"),
        **dict.fromkeys("JKL", WHEEL),
        **dict.fromkeys("ghi", GEAR),
        **dict.fromkeys("uvw", "1"),
    ),
    "a loop of gears that lets nothing through": graph_of(  # what comes out of the gear goes back into it
        *("drive -> v -> J", "v -> g -> s -> w -> r", "w -> h -> s"),
        **{"drive": TORQUE, "J": WHEEL, "g": GEAR, "h": TF(M, M, 1.0), "r": R(M, 1.0), "v": "1", "s": "0", "w": "1"},
    ),
    "springs in a row that differentiate each other": two_meshes(),
    "a resistance of 0 across a source": graph_of("a -> n -> r", "n -> short", a=V, short=R(E, 0.0), r=LOAD, n="0"),
    "a transformer with two inputs": graph_of("a -> g", "b -> g", a=TORQUE, b=TORQUE, g=GEAR),
    "a transformer between domains that it cannot join": graph_of("a -> g -> b", a=V, b=R(M, 1.0), g=TF(E, M, 2.0)),
    "an unknown element in a bond": graph_of("a -> coyl", a=V, coil=LOAD),
    "an unknown domain": graph_of("a -> b", a=Se("electric", 1.0), b=LOAD),
    "an unknown signal": graph_of("a -> coil", a=Se(E, Law(cube, ("coil.flux",))), coil=I(E, 1.0)),
    "junctions alone": graph_of("n -> m", "m -> n", n="1", m="0"),
    "a coordinate that nothing moves": graph_of("a -> w -> brake", a=TORQUE, brake=BRAKE, w="1"),
    "two orifices in a row without a chamber": two_orifices(),
    "a pump of constant pressure on a chamber": pumped_cylinder(),
    "a field whose effort is imposed": microphone_without("resistor"),
    "a field with a free port": microphone_without("plate capacitor"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_message_names_the_element_and_the_fix(case: str, said: Said) -> None:
    error = raised(GraphError, assemble, CASES[case])
    assert error.element in CASES[case].elements or case == "an unknown element in a bond"
    said(error)


def test_a_name_is_used_once() -> None:
    with pytest.raises(GraphError, match=r"^elements\.r: there are two elements of this name; rename one$"):
        graph_of(r=LOAD).junction("r", "1")


def test_heat_has_no_energy_of_its_own() -> None:
    graph = graph_of("warm -> sink", warm=Se("thermal", 5.0), sink=R("thermal", 1.0))
    error = raised(GraphError, assemble, graph, [("sink.energy", "warm")])
    assert error.what == "effort times flow of 'sink' is no power; record its displacement or its flow"
