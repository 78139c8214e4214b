"""`cosim derive --bondgraph`: what it prints of the bond graphs of a rig, and what it refuses."""

from pathlib import Path

import pytest

from cosim.bondgraph import Assembly
from cosim.derive.bond_graph_report import element_lines, loop_lines
from tests.derive.bond_graphs import RIG, divider, motor, relay

TEXT = """\
hinge: 9 elements, 8 bonds, 1 state, 20 equations

element     kind  domain                   value            computes  state
armature    1     electrical
shaft       1     rotational
supply      Se    electrical               law of request   effort
winding     I     electrical               0.9 mH           flow      winding.flow
resistance  R     electrical               0.5 Ω            effort
motor       GY    electrical → rotational  0.05 N·m/A
rotor       I     rotational               1e-05 kg·m²      effort
gear        TF    rotational               0.02
joint       Sf    rotational               law of velocity  flow

bond  from      to          domain      effort from
   1  supply    armature    electrical  supply
   2  armature  winding     electrical  armature
   3  armature  resistance  electrical  resistance
   4  armature  motor       electrical  motor
   5  motor     shaft       rotational  motor
   6  shaft     rotor       rotational  rotor
   7  shaft     gear        rotational  shaft
   8  gear      joint       rotational  gear

state         initial
winding.flow  0 A

derivative causality: rotor

A, elements × bonds: +1 where a bond enters an element, -1 where it leaves it
             1   2   3   4   5   6   7   8
armature    +1  -1  -1  -1   ·   ·   ·   ·
shaft        ·   ·   ·   ·  +1  -1  -1   ·
supply      -1   ·   ·   ·   ·   ·   ·   ·
winding      ·  +1   ·   ·   ·   ·   ·   ·
resistance   ·   ·  +1   ·   ·   ·   ·   ·
motor        ·   ·   ·  +1  -1   ·   ·   ·
rotor        ·   ·   ·   ·   ·  +1   ·   ·
gear         ·   ·   ·   ·   ·   ·  +1  -1
joint        ·   ·   ·   ·   ·   ·   ·  +1

equations: x' is dx/dt
  winding.flow'  = (-K_motor*velocity/m_gear - R_resistance*winding.flow + 2*request)/I_winding
  effort         = (-I_rotor*velocity'/m_gear + K_motor*winding.flow)/m_gear
  current        = winding.flow

  I_winding     = 0.9 mH
  R_resistance  = 0.5 Ω
  K_motor       = 0.05 N·m/A
  I_rotor       = 1e-05 kg·m²
  m_gear        = 0.02
"""
NO_GRAPH = "--joint: no joint '%s' has a bond graph as actuator"
TWO_JOINTS = RIG.replace("joints:", "    - {name: hand, joint: wrist, mass: 1 kg, inertia: [0.1, 0.1, 0.1]}\njoints:")


def table_of(assembly: Assembly) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in element_lines(assembly)}


def test_the_graph_of_a_motor_in_full(command):
    Path("lift.yaml").write_text(RIG)
    assert command("derive", "lift.yaml", "--bondgraph") == (0, TEXT, [])
    assert command("derive", "lift.yaml", "--bondgraph", "--joint", "hinge") == (0, TEXT, [])


def test_the_graphs_of_all_joints_or_of_one(command):
    Path("lift.yaml").write_text(TWO_JOINTS.replace("  hinge:\n    actuator", "  all:\n    actuator"))
    both = command("derive", "lift.yaml", "--bondgraph")[1]
    assert both == TEXT + "\n" + TEXT.replace("hinge:", "wrist:")
    assert command("derive", "lift.yaml", "--bondgraph", "--joint", "wrist")[1] == TEXT.replace("hinge:", "wrist:")


def test_latex_is_printed_alone(command):
    Path("lift.yaml").write_text(RIG)
    code, out, err = command("derive", "lift.yaml", "--bondgraph", "--to", "latex")
    assert (code, err) == (0, [])
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["rig.yaml"],
            "rig.yaml: no actuator of this rig is a bond graph; give a joint an actuator of the type bond_graph",
        ),
        (["lift.yaml", "--joint", "hing"], f"{NO_GRAPH % 'hing'}; did you mean 'hinge'?"),
        (["lift.yaml", "--joint", "x"], f"{NO_GRAPH % 'x'}; known: hinge"),
        (["lift.yaml", "--graph"], "derive: pass only one of --graph and --bondgraph"),
        (["arm.urdf"], "arm.urdf: a robot file has no actuators; name a rig (YAML)"),
        (["none.yaml"], "none.yaml: no such file; check the path"),
        (["lift.yaml", "a.txt"], "--bondgraph: cannot draw a plot as '.txt'; use .png, .svg, .pdf"),
        (
            ["broken.yaml"],
            "broken.yaml:11 joints.hinge.actuator.graph.elements.winding: a bond names it, and there is no such "
            "element; did you mean 'wind'?",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(command, arguments, message):
    Path("lift.yaml").write_text(RIG)
    Path("broken.yaml").write_text(RIG.replace("winding: {", "wind: {"))
    assert command.refuses("derive", *arguments, "--bondgraph") == [message]
