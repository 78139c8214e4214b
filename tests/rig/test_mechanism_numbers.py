"""The section `mechanism.numbers` replaces numbers of the robot file or of the bodies."""

from __future__ import annotations

import pytest

from cosim import InputErrors, Rig, load_rig
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


AT = "<dict> mechanism.numbers."


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ({"lin": {"mass": 1}}, "lin: there is no link or joint 'lin'; did you mean 'link'?"),
        ({"link": {"mass": 0}}, "link.mass: must be above 0 kg, is 0 kg"),
        ({"link": {"damping": 1}}, "link: 'link' is a link, and damping belong to a joint"),
        ({"hinge": {"mass": 1, "com": [0, 0, 0]}}, "hinge: 'hinge' is a joint, and mass and com belong to a link"),
        ({"base": {"com": [0, 0, 0]}}, "base: 'base' is massless; give it a mass too"),
        ({"hinge": {"damping": -1}}, "hinge.damping: must be at least 0 N*m*s/rad, is -1 N*m*s/rad"),
        ({"link": {"inertia": [1, 1]}}, "link.inertia: expected 3 or 6 numbers, got 2"),
        (
            {"link": {"inertia": [-1, 1, 1]}},
            "link.inertia: the inertia is not positive definite (smallest eigenvalue -1 kg*m^2);"
            " check the signs and the order of its elements",
        ),
    ],
)
def test_mistakes(numbers, text):
    with pytest.raises(InputErrors) as raised:
        rig_with(numbers)
    assert str(raised.value) == AT + text
