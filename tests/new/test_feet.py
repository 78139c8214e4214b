"""The contacts that `cosim new` proposes for the feet of a robot with a free base."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from cosim import load_rig
from cosim.apps.new.command import new_rig
from cosim.mechanics.multibody.contact.shapes import BoxShape
from cosim.rig.sections.rig_spec import read_rig
from tests.oracle.conftest import ROBOTS

# robot -> links of its feet, and their radius in m; humanoids have hands and heads that are leaf links too
FEET = {
    "anymal_c_simple_description/urdf/anymal.urdf": ([f"{leg}_FOOT" for leg in ("LF", "LH", "RF", "RH")], 0.03),
    "solo_description/robots/solo12.urdf": ([f"{leg}_FOOT" for leg in ("FL", "FR", "HL", "HR")], 0.02),
    "a1_description/urdf/a1.urdf": ([f"{leg}_foot" for leg in ("FR", "FL", "RR", "RL")], 0.02),
    "talos_data/robots/talos_reduced.urdf": (["left_sole_link", "right_sole_link"], 0.02),
    "talos_data/robots/talos_full_v2_box.urdf": (["leg_left_6_link", "leg_right_6_link"], (0.21, 0.13, 0.02)),
}


def contacts_of(rig):
    """The commented lines of a rig as its section, and the rig with them."""
    lines = rig.read_text().splitlines()
    first = next(k for k, line in enumerate(lines) if line == "  # contacts:")
    last = next(k for k, line in enumerate(lines) if line.startswith("  # ground:"))
    taken = [f"  {line[4:]}" for line in lines[first : last + 1]]
    rig.write_text("\n".join([*lines[:first], *taken, *lines[last + 1 :], ""]))
    return yaml.safe_load("\n".join(taken))


@pytest.mark.parametrize("robot", FEET)
def test_the_lowest_leaf_links_are_its_feet(robot, tmp_path, capsys):
    links, size = FEET[robot]
    rig = tmp_path / "first.yaml"
    new_rig(rig, str(ROBOTS / robot), floating=True)
    section = contacts_of(rig)
    assert sorted(entry["link"] for entry in section["contacts"]) == sorted(links)
    found = read_rig(rig).mechanism.description.contacts
    for shape, _ in (each.shapes for each in found):
        assert (shape.size if isinstance(shape, BoxShape) else shape.radius) == pytest.approx(size, abs=2e-3)
    assert {each.law.static for each in found} == {0.7}


@pytest.mark.parametrize("robot", FEET)
def test_on_the_height_that_is_proposed_its_feet_are_on_the_ground(robot, tmp_path, capsys):
    rig = tmp_path / "first.yaml"
    new_rig(rig, str(ROBOTS / robot), floating=True)
    (start,) = (line for line in rig.read_text().splitlines() if line.startswith("  #   root_joint: "))
    contacts_of(rig)
    rig.write_text(rig.read_text().replace("joints:\n", f"joints:\n  {start[6:]}\n"))
    plant = load_rig(rig, interpret=True).plant
    points, _ = plant.contacts.points_and_rates(plant.model.equations, 0.0, plant.start.q, np.zeros(plant.model.nv))
    assert 0.0 <= min(float(point.gap) for point in points) <= 1e-4 + 1e-9


def test_a_base_that_is_fixed_has_no_feet(tmp_path, capsys):
    new_rig(tmp_path / "a.yaml", str(ROBOTS / "a1_description/urdf/a1.urdf"))
    assert "contacts" not in (tmp_path / "a.yaml").read_text()


def test_a_foot_of_an_mjcf_file_has_the_name_of_no_joint(tmp_path, monkeypatch, capsys):
    """The lower one of the two leaf links, with its sphere; the file has a joint of the same name."""
    monkeypatch.chdir(tmp_path)
    Path("hopper.xml").write_text(
        """<mujoco><worldbody><body name="body"><freejoint/><geom type="box" size=".1 .1 .1" mass="3"/>
        <body name="head" pos="0 0 .3"><joint axis="0 1 0"/><geom type="sphere" size=".05" mass="1"/></body>
        <body name="leg" pos="0 0 -.2"><joint name="leg" axis="0 1 0"/>
        <geom type="sphere" size=".03" pos="0 0 -.3" mass="1"/>
        </body></body></worldbody></mujoco>"""
    )
    new_rig(Path("rig.yaml"), "hopper.xml")
    (foot,) = contacts_of(Path("rig.yaml"))["contacts"]
    assert foot == {"name": "leg_contact", "link": "leg", "sphere": "30 mm", "at": [0, 0, -0.3], "with": "ground"}
    assert len(read_rig("rig.yaml").mechanism.description.contacts) == 1
