"""The pictures of bond graphs: what is drawn, where, and without overlaps."""

from itertools import combinations, pairwise, product
from math import dist
from pathlib import Path

import pytest

from cosim.apps.derive.bond_graph_drawing import number_place
from cosim.apps.derive.bond_graph_layout import KIND_SIZE, lay_out_bond_graph, main_ways
from cosim.apps.derive.picture import overlap
from tests.derive.bond_graphs import GRAPHS, RIG, motor, train


@pytest.mark.parametrize("name", GRAPHS)
def test_every_element_and_bond_is_drawn_without_overlaps(name):
    graph = GRAPHS[name]().graph
    layout = lay_out_bond_graph(GRAPHS[name]())
    assert set(layout.labels) == set(graph.elements)
    assert [bond.number for bond in layout.bonds] == list(range(1, len(graph.bonds) + 1))
    boxes = [(name, box) for name, label in layout.labels.items() for box in label.boxes]
    for (one, box), (other, another) in combinations(boxes, 2):
        assert one == other or not overlap(box, another), (one, other)
    for bond, (tail, head) in zip(layout.bonds, graph.bonds, strict=True):
        for (start, end), part in product(pairwise(bond.points), range(1, 20)):
            s = part / 20
            point = tuple((1 - s) * a + s * b for a, b in zip(start, end, strict=True))
            for other, box in boxes:
                assert other in (tail, head) or not overlap((*point, 0.02, 0.02), box), (bond, other)
        for other, box in boxes:
            assert not overlap((*number_place(bond), 0.1, 0.1), box), (bond, other)


@pytest.mark.parametrize("name", GRAPHS)
def test_a_stroke_is_at_the_end_that_receives_the_effort(name):
    assembly = GRAPHS[name]()
    graph, layout = assembly.graph, lay_out_bond_graph(assembly)
    for number, bond in enumerate(layout.bonds):
        receives = graph.other(assembly.causality.effort_from[number], number)
        gives = graph.other(receives, number)
        places = {end: layout.labels[end].place for end in (receives, gives)}
        assert dist(bond.stroke, places[receives]) < dist(bond.stroke, places[gives])
        assert assembly.causality.computes(receives, number) == "flow"


def test_an_inertia_has_the_stroke_and_a_resistance_has_not():
    assembly = motor()
    layout, graph = lay_out_bond_graph(assembly), assembly.graph
    strokes = {}
    for name in ("winding", "resistance", "supply", "load"):
        (bond,) = graph.at(name)
        own = layout.bonds[bond].points[0 if graph.bonds[bond].tail == name else -1]
        strokes[name] = layout.bonds[bond].stroke == own
    assert strokes == {"winding": True, "resistance": False, "supply": False, "load": False}  # derivative causality


@pytest.mark.parametrize("name", GRAPHS)
def test_the_way_between_the_ends_is_straight_and_goes_with_the_power(name):
    graph, layout = GRAPHS[name]().graph, lay_out_bond_graph(GRAPHS[name]())
    (way,) = main_ways(graph)
    places = [layout.labels[name].place for name in way]
    assert all(b[0] - a[0] > 2 * KIND_SIZE and abs(b[1] - a[1]) < 0.02 for a, b in pairwise(places))
    forward = sum(1 if (a, b) in graph.bonds else -1 for a, b in pairwise(way))
    assert forward >= 0


def test_components_have_boxes_and_their_elements_short_names():
    layout = lay_out_bond_graph(train())
    assert set(layout.components) == {"stage_1", "stage_2", "stage_3"}
    assert layout.labels["stage_1.inertia"].lines == ("inertia", "3e-05 kg·m²")
    for name, label in layout.labels.items():
        within = {component for component, box in layout.components.items() if overlap((*label.place, 0.0, 0.0), box)}
        assert within == ({name.partition(".")[0]} if "." in name else set())


def test_a_picture_is_the_same_every_time(command):
    Path("lift.yaml").write_text(RIG)
    code, out, err = command("derive", "lift.yaml", "a.svg", "--bondgraph")
    assert (code, err) == (0, []) and out.endswith("wrote    graph a.svg\n")
    command("derive", "lift.yaml", "b.svg", "--bondgraph")
    assert Path("a.svg").read_bytes() == Path("b.svg").read_bytes()
