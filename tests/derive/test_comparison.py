"""`cosim derive --compare`: the formulations of a mechanism side by side."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cosim.apps.derive import comparison
from cosim.apps.derive.comparison import LARGEST_DIFFERENCE, compare, consistent_states
from cosim.apps.derive.plant_model import read_model
from cosim.mechanics.formulations import separate_bodies
from tests.kit.given import beside
from tests.kit.samples import FOLDER

GIVEN = beside(__file__)

URDF = """\
<robot name="two">
  <link name="ground"/>{links}
  <joint name="hinge" type="{kind}"><parent link="ground"/><child link="arm"/><axis xyz="0 1 0"/></joint>
</robot>
"""
HEAVY = """
  <link name="arm"><inertial><origin xyz="0.5 0 0"/><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
USER_JOINT = GIVEN["user_joint"]
LIGHT_TIP = """\
mechanism:
  bodies:
    - {name: arm, mass: 1 kg, com: [1, 0, 0], inertia: [1, 1, 1]}
    - {name: tip, parent: arm, origin: {xyz: [1, 0, 0], rpy: [90 deg, 0, 0]}}
joints:
  tip:
    actuator: {type: dc_motor, resistance: 1 ohm, inductance: 1 mH, torque_constant: 0.1 N*m/A, rotor_inertia: 1 kg*m^2}
"""


def test_the_report(command):
    out = command.prints("derive", FOLDER / "mechanisms" / "slider_crank.yaml", "--compare")
    lines = out.splitlines()
    assert lines[0] == "slider_crank: 3 moving bodies, 3 dof, 2 constraint rows; accelerations at 5 random states"
    assert lines[2].split() == ["formulation", "difference", "operations", "compile", "call"]
    by_name = {line.split()[0]: line.split()[1:] for line in lines[3:] if line.endswith("µs")}
    assert lines[3].startswith("separate_bodies")  # the reference, without a difference
    assert len(by_name["separate_bodies"]) == 5
    assert float(by_name["cartesian"][0]) < LARGEST_DIFFERENCE
    assert int(by_name["cartesian"][1]) > int(by_name["separate_bodies"][0])


def test_every_formulation_has_the_rotors_of_several_joints():
    compared, _ = compare(*consistent_states(read_model(FOLDER / "mechanisms" / "coupled_wrist.yaml")))
    assert len(compared) >= 10
    assert max(row.difference for row in compared) < LARGEST_DIFFERENCE


def test_those_that_do_not_apply_say_why(command):
    Path("crank.py").write_text(USER_JOINT)
    weight = "{name: weight, type: crank.py, mass: 1 kg, inertia: [0.01, 0.01, 0.01]}"
    Path("crank.yaml").write_text(f"mechanism:\n  bodies:\n    - {weight}\n")
    code, out, _ = command("derive", "crank.yaml", "--compare")
    assert code == 0
    below = out.split("do not apply\n")[1]
    reasons = dict(line.split(maxsplit=1) for line in below.splitlines())
    why = "joint 'weight' is of type general, which is no composition of elementary constraints"
    assert reasons["cartesian"] == why


def test_a_link_without_mass_whose_joint_has_a_rotor(command, said):
    Path("tip.yaml").write_text(LIGHT_TIP)
    code, out, err = command("derive", "tip.yaml", "--compare", "--json", "-")
    document = json.loads(out)
    assert (code, err) == (0, [])
    assert document["refused"] == {
        "cartesian": "bodies have no inertia along joint 'tip', only its rotor has",
        "planar_bodies": "the axes of joints 'tip' and 'arm' are not parallel",
    }
    assert max(row["difference"] for row in document["formulations"]) < LARGEST_DIFFERENCE
    assert command("check", "tip.yaml")[0] == 0
    said(command.refuses("run", "tip.yaml", "--set", "mechanism.formulation=cartesian"))


def test_a_link_without_mass_whose_joint_has_no_rotor(command, said):
    Path("tip.yaml").write_text(LIGHT_TIP.split("joints:")[0])
    message = command.refuses("derive", "tip.yaml", "--compare")
    assert message == command.refuses("check", "tip.yaml") == command.refuses("run", "tip.yaml")
    said(message)


@pytest.fixture
def only(monkeypatch):
    """Compares with few formulations: each has to be compiled."""

    def keep(*names):
        known = comparison.known_formulations()
        monkeypatch.setattr(comparison, "known_formulations", lambda: {name: known[name] for name in names})

    return keep


def test_a_base_that_moves(command, only):
    only("separate_bodies", "cartesian")
    out = command.prints("derive", FOLDER / "mechanisms" / "car_axis.yaml", "--compare")
    assert "cartesian" in out


def test_figures_as_json(command):
    code, out, _ = command("derive", FOLDER / "two_link.yaml", "--compare", "--json", "figures.json")
    assert out.splitlines()[-1] == "wrote    figures.json"
    document = json.loads(Path("figures.json").read_text())
    assert (code, document["mechanism"], document["dof"], document["seed"]) == (0, "two_link", 2, 0)
    rows = {row["name"]: row for row in document["formulations"]}
    assert set(rows) | set(document["refused"]) == set(comparison.known_formulations())
    for row in rows.values():
        assert row["difference"] < LARGEST_DIFFERENCE
        assert row["operations"] > 0
        assert row["compile_s"] > 0.0
        assert row["call_s"] > 0.0
    assert document["states"] == 5


def test_a_robot_file(command, only):
    only("separate_bodies", "kane")
    Path("two.urdf").write_text(URDF.format(kind="continuous", links=HEAVY))
    out = command.prints("derive", "two.urdf", "--compare")
    assert out.startswith("two: 1 moving body, 1 dof; accelerations at 5 random states\n")


def test_states_are_the_same_every_time():
    model = read_model(FOLDER / "mechanisms" / "four_bar.yaml")
    first, second = (consistent_states(model)[1] for _ in range(2))
    for a, b in zip(first, second, strict=True):
        for x, y in zip(a, b, strict=True):
            assert np.array_equal(x, y)


def test_a_formulation_that_differs_fails(command, monkeypatch):
    def load(equations):
        return SimpleNamespace(forward_dynamics=lambda *given: 1.001 * equations.forward_dynamics(*given))

    wrong = SimpleNamespace(ABOUT="wrong", SOURCE="none", refusal=lambda equations: None, load=load)
    known = {"separate_bodies": separate_bodies, "wrong": wrong}
    monkeypatch.setattr(comparison, "known_formulations", lambda: known)
    code, out, err = command("derive", FOLDER / "two_link.yaml", "--compare")
    assert code == 1
    assert err == [f"{FOLDER}/two_link.yaml: formulations differ from 'separate_bodies': 'wrong' by 1.0e-03"]
    assert "wrong" in out


def test_redundant_rows_are_left_out(only):
    only("separate_bodies", "cartesian", "newton_euler")
    model, states = consistent_states(read_model(FOLDER / "mechanisms" / "andrews.yaml"))
    assert len(model.equations.constraints.redundant) > 0
    compared, _ = compare(model, states[:1])
    assert max(row.difference for row in compared) < LARGEST_DIFFERENCE


WRONG = GIVEN["wrong"]


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_is_one_line(command, said, words):
    Path("still.urdf").write_text(URDF.format(kind="fixed", links=HEAVY))
    Path("light.urdf").write_text(URDF.format(kind="continuous", links='<link name="arm"/>'))
    said(command.refuses("derive", *words.split()))


def test_interpreted_code_has_no_cost_to_compare(command, said, monkeypatch):
    monkeypatch.setenv("COSIM_INTERPRET", "1")
    said(command.refuses("derive", "rig.yaml", "--compare"))


def test_states_where_chosen_coordinates_are_singular_are_left_out_and_named(only):
    """Four-bars fold: at one of the states a coordinate that was chosen in advance determines nothing."""
    only("separate_bodies", "dependent_coordinates")
    model, states = consistent_states(read_model(FOLDER / "mechanisms" / "four_bars.yaml"))
    compared, refused = compare(model, states)
    assert {row.name: row.left_out for row in compared if row.left_out} == {"dependent_coordinates": 1}
    assert max(row.difference for row in compared) < LARGEST_DIFFERENCE
    line = "dependent_coordinates: 1 of 5 states left out, where the coordinates that it chose are singular"
    assert line in comparison.comparison_lines(model, compared, refused)
