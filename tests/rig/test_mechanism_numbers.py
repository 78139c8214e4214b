"""The section `mechanism.numbers` replaces numbers of the robot file or of the bodies."""

from __future__ import annotations

from cosim import Rig, load_rig
from tests.kit.samples import FOLDER

UR5 = FOLDER / "ur5_sim.yaml"


def rig_with(numbers):
    body = {"name": "link", "joint": "hinge", "axis": [0, 1, 0], "mass": 1.0, "com": [0.1, 0, 0], "inertia": [1, 1, 1]}
    return Rig.from_dict({"mechanism": {"bodies": [body], "numbers": numbers}, "schedule": {"duration": 1}})


def test_numbers_of_a_urdf():
    rig = load_rig(
        UR5, ["mechanism.numbers.wrist_3_link={mass: 1.2 kg, com: [1 cm, 0, 0], inertia: [0.01, 0.02, 0.015]}"]
    )
    assert rig.numbers["mechanism.wrist_3_link.mass"] == 1.2
    assert rig.numbers["mechanism.wrist_3_link.com"] == [0.01, 0.0, 0.0]
    assert rig.numbers["mechanism.wrist_3_link.inertia"] == [0.01, 0.02, 0.015, 0.0, 0.0, 0.0]
    before = load_rig(UR5).numbers
    assert rig.numbers["mechanism.wrist_2_link.mass"] == before["mechanism.wrist_2_link.mass"]


def test_one_number_leaves_the_others():
    rig = rig_with({"link": {"mass": 3.0}, "hinge": {"damping": 0.2, "friction": 0.1}})
    assert rig.numbers["mechanism.link.mass"] == 3.0
    assert rig.numbers["mechanism.link.com"] == [0.1, 0.0, 0.0]
    assert (rig.numbers["mechanism.hinge.damping"], rig.numbers["mechanism.hinge.friction"]) == (0.2, 0.1)
