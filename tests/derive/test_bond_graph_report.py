"""`cosim derive --bondgraph`: what it prints of the bond graphs of a rig, and what it refuses."""

from pathlib import Path

import pytest

from cosim.apps.derive.bond_graph_report import element_lines, loop_lines
from cosim.mechanics.bondgraph import Assembly
from tests.derive.bond_graphs import RIG, divider, motor, relay

TWO_JOINTS = RIG.replace("joints:", "    - {name: hand, joint: wrist, mass: 1 kg, inertia: [0.1, 0.1, 0.1]}\njoints:")


def table_of(assembly: Assembly) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in element_lines(assembly)}


def test_the_graphs_of_all_joints_or_of_one(command, said):
    Path("lift.yaml").write_text(RIG)
    text = command.prints("derive", "lift.yaml", "--bondgraph")
    said(text)
    assert command("derive", "lift.yaml", "--bondgraph", "--joint", "hinge")[1] == text
    Path("lift.yaml").write_text(TWO_JOINTS.replace("  hinge:\n    actuator", "  all:\n    actuator"))
    of_wrist = text.replace("hinge:", "wrist:")
    assert command("derive", "lift.yaml", "--bondgraph")[1] == f"{text}\n{of_wrist}"
    assert command("derive", "lift.yaml", "--bondgraph", "--joint", "wrist")[1] == of_wrist


def test_latex_is_printed_alone(command):
    Path("lift.yaml").write_text(RIG)
    out = command.prints("derive", "lift.yaml", "--bondgraph", "--to", "latex")
    lines = out.splitlines()
    assert lines[:2] == ["% hinge", r"\begin{align*}"] and lines[-1] == r"\end{tabular}"
    assert r"\dot{\mathrm{velocity}}" in out


def test_loops_and_derivative_causality_are_named():
    assert loop_lines(motor()) == ["", "derivative causality: load", "algebraic loop: rotor, pinion, load"]
    assert loop_lines(divider()) == ["", "algebraic loop: upper, series, lower"]


def test_an_element_with_several_ports_has_several_states():
    assert table_of(relay())["field"] == [
        "IC", "electrical", "→", "translational", "flow,", "effort", "field.momentum_1,", "field.displacement_2",
    ]  # fmt: skip


WRONG = [
    "rig.yaml",
    "lift.yaml --joint hing",
    "lift.yaml --joint x",
    "lift.yaml --graph",
    "arm.urdf",
    "none.yaml",
    "lift.yaml a.txt",
    "broken.yaml",
]


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_is_one_line(command, said, words):
    Path("lift.yaml").write_text(RIG)
    Path("broken.yaml").write_text(RIG.replace("winding: {", "wind: {"))
    said(command.refuses("derive", *words.split(), "--bondgraph"))
