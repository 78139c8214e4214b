"""Bond graphs that cannot be: one line each, with the element, what is wrong and the fix."""

from __future__ import annotations

import pytest

from cosim.bondgraph import TF, BondGraph, C, Element, I, Law, R, Se, Sf, assemble
from cosim.bondgraph.components import gear_stage
from cosim.bondgraph.graph import GraphError

E, M = "electrical", "rotational"
Parts = dict[str, Element]


def graph(parts: Parts, junctions: dict[str, str], *chains: str) -> BondGraph:
    """chains: `a -> b -> c`"""
    built = BondGraph()
    for name, kind in junctions.items():
        built.junction(name, kind)
    for name, element in parts.items():
        built.add(name, element)
    for chain in chains:
        built.chain(*chain.split(" -> "))
    return built


def cube(flow: float) -> float:
    return flow * flow * flow


CUBE, HARDENING = Law(cube, ("flow",)), Law(cube, ("displacement",))

CASES: dict[str, tuple[BondGraph, str]] = {
    "two sources of effort": (
        graph({"a": Se(E, 1.0), "b": Se(E, 2.0), "r": R(E, 1.0)}, {"n": "0"}, "a -> n -> r", "b -> n"),
        "elements.b: causal conflict: 'b' and 'a' both impose the effort; put a resistance or an inertia between them",
    ),
    "two sources of flow": (
        graph({"a": Sf(E, 1.0), "b": Sf(E, 2.0), "r": R(E, 1.0)}, {"n": "1"}, "a -> n -> r", "b -> n"),
        "elements.b: causal conflict: 'b' and 'a' both impose the flow; put a resistance or a compliance between them",
    ),
    "a law the wrong way round": (
        graph({"a": Se(E, 1.0), "diode": R(E, CUBE), "r": R(E, 1.0)}, {"n": "0"}, "a -> n -> r", "n -> diode"),
        "elements.diode: causal conflict: its law computes the effort from the flow, and 'a' imposes the effort; put a"
        " resistance or an inertia between them",
    ),
    "a law in derivative causality": (
        graph({"a": Se(E, 1.0), "c": C(E, HARDENING), "r": R(E, 1.0)}, {"n": "0"}, "a -> n -> r", "n -> c"),
        "elements.c: its effort is imposed (derivative causality), which its law cannot take; give it a constant value,"
        " or put a resistance between it and what imposes the effort",
    ),
    "an algebraic loop that is not linear": (
        graph({"a": Se(E, 1.0), "q": R(E, CUBE), "r": R(E, 1.0)}, {"n": "1"}, "a -> n -> q", "n -> r"),
        "elements.q: algebraic loop: its law depends on what it computes, through 'r'; put an inertia or a compliance"
        " into the loop",
    ),
    "unlike domains": (
        graph({"a": Se(E, 1.0), "q": R(M, 1.0), "r": R(E, 1.0)}, {"n": "1"}, "a -> n -> q", "n -> r"),
        "elements.q: the bond of 'r' (electrical) and 'q' (rotational) joins two domains; put a TF or GY between them",
    ),
    "a one-port with two bonds": (
        graph({"a": Se(E, 1.0), "q": R(E, 1.0), "r": R(E, 1.0)}, {"n": "1"}, "a -> n -> q", "n -> r", "a -> r"),
        "elements.a: a source of effort has one bond, not 2; put a junction between it and the others",
    ),
    "a one-port without a bond": (
        graph({"a": Se(E, 1.0), "q": R(E, 1.0), "r": R(E, 1.0)}, {}, "a -> q"),
        "elements.r: a resistance has one bond, not 0; bond it to a junction",
    ),
    "a junction with one bond": (
        graph({"a": Se(E, 1.0)}, {"n": "1"}, "a -> n"),
        "elements.n: a junction joins two bonds or more, not 1; add bonds, or take it out",
    ),
    "a bond out of a resistance": (
        graph({"a": Se(E, 1.0), "r": R(E, 1.0)}, {"n": "1"}, "a -> n", "r -> n"),
        "elements.r: the bond of a resistance points to it; turn the bond round",
    ),
    "gears in parallel": (
        graph(
            {"a": Se(M, 1.0), "J": I(M, 1.0), "K": I(M, 1.0), "g": TF(M, M, 2.0), "h": TF(M, M, 3.0)},
            {"v": "1", "w": "1"},
            "a -> v -> J", "v -> g -> w -> K", "v -> h -> w",
        ),
        "elements.g: causal conflict: 'g' and 'h' close a rigid loop; take one out, or make one elastic with a"
        " compliance",
    ),
    "three gears in a ring": (
        graph(
            {"J": I(M, 1.0), "K": I(M, 1.0), "L": I(M, 1.0), **{name: TF(M, M, 2.0) for name in "ghi"}},
            {"u": "1", "v": "1", "w": "1"},
            "u -> g -> v -> J", "v -> h -> w -> K", "w -> i -> u -> L",
        ),
        "elements.g: causal conflict: 'g', 'h' and 'i' close a rigid loop; take one out, or make one elastic with a"
        " compliance",
    ),
    "a resistance of 0 across a source": (
        graph({"a": Se(E, 1.0), "short": R(E, 0.0), "r": R(E, 1.0)}, {"n": "0"}, "a -> n -> r", "n -> short"),
        "elements.short: its effort is imposed, and a resistance of 0 has no flow for it; give it a value above 0, or"
        " take it out",
    ),
    "a transformer with two inputs": (
        graph({"a": Se(M, 1.0), "b": Se(M, 1.0), "g": TF(M, M, 2.0)}, {}, "a -> g", "b -> g"),
        "elements.g: a transformer has one bond in and one out, not 2 in and 0 out; turn a bond round, or add the"
        " missing one",
    ),
    "a transformer between domains that it cannot join": (
        graph({"a": Se(E, 1.0), "b": R(M, 1.0), "g": TF(E, M, 2.0)}, {}, "a -> g -> b"),
        "elements.g: a transformer from electrical to rotational is not known; use the same domain on both sides, or"
        " rotational to translational, translational to rotational, translational to hydraulic, hydraulic to"
        " translational, rotational to hydraulic, hydraulic to rotational",
    ),
    "an unknown element in a bond": (
        graph({"a": Se(E, 1.0), "coil": R(E, 1.0)}, {}, "a -> coyl"),
        "elements.coyl: a bond names it, and there is no such element; did you mean 'coil'?",
    ),
    "an unknown domain": (
        graph({"a": Se("electric", 1.0), "b": R(E, 1.0)}, {}, "a -> b"),
        "elements.a: there is no domain 'electric'; did you mean 'electrical'?",
    ),
    "an unknown signal": (
        graph({"a": Se(E, Law(cube, ("coil.flux",))), "coil": I(E, 1.0)}, {}, "a -> coil"),
        "elements.a: there is no signal 'coil.flux'; did you mean 'coil.flow'?",
    ),
    "junctions alone": (
        graph({}, {"n": "1", "m": "0"}, "n -> m", "m -> n"),
        "elements.n: its domain is unknown; bond it to an element, or give it one",
    ),
    "a coordinate that nothing moves": (
        graph(
            {"a": Se(M, 1.0), "brake": R(M, Law(lambda w, q: w * q, ("flow", "w.displacement")))},
            {"w": "1"},
            "a -> w -> brake",
        ),
        "elements.w: nothing gives the flow of this junction: no inertia moves with it; bond one to it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_message_names_the_element_and_the_fix(case: str) -> None:
    built, message = CASES[case]
    with pytest.raises(GraphError) as raised:
        assemble(built)
    assert str(raised.value) == message


def test_a_name_is_used_once() -> None:
    with pytest.raises(GraphError, match=r"^elements\.r: there are two elements of this name; rename one$"):
        graph({"r": R(E, 1.0)}, {"r": "1"})


def test_a_loop_of_gears_that_lets_nothing_through() -> None:
    """What comes out of the gear goes back into it: no flow is left for the drive."""
    parts = {"drive": Se(M, 1.0), "J": I(M, 1.0), "g": TF(M, M, 2.0), "h": TF(M, M, 1.0), "r": R(M, 1.0)}
    built = graph(parts, {"v": "1", "s": "0", "w": "1"}, "drive -> v -> J", "v -> g -> s -> w -> r", "w -> h -> s")
    with pytest.raises(GraphError) as raised:
        assemble(built)
    assert str(raised.value) == (
        "elements.h: it closes a loop that has no single solution: it cannot move, or moves freely; take one out, or"
        " make one elastic"
    )


def test_springs_in_a_row_that_differentiate_each_other() -> None:
    """Two meshes and no inertia between them: the rate of one twist needs the rates of both, without end."""
    mesh = gear_stage.build(gear_stage.Params(2.0, 80.0, 0.01, 0.003))
    built = graph({"J": I(M, 1.0), "turn": Se(M, 1.0), "end": Sf(M, 0.0)}, {"w": "1"}, "turn -> w -> J")
    built.include("one", mesh)
    built.include("two", gear_stage.build(gear_stage.Params(2.0, 100.0)))
    built.chain("w", "one.input")
    built.chain("one.output", "two.input")
    built.chain("two.output", "end")
    with pytest.raises(GraphError) as raised:
        assemble(built)
    assert str(raised.value) == (
        "elements.two.mesh.twist: its rate depends on a rate of itself; put an inertia between it and the other"
        " storages"
    )
