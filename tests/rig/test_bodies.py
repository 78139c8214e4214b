"""Bodies in a rig give the same mechanism as a URDF file."""

import math

import numpy as np
import pytest

from cosim.core.errors import SourceLocation
from cosim.mechanics.multibody.description.topology import depth_first
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.mechanism import read_mechanism


def place(path):
    """Line 10 + i for everything in body i, as in a file with one line per body."""
    index = [part for part in path if isinstance(part, int)][:1]
    return SourceLocation("rig.yaml", 10 + sum(index), ".".join(map(str, path)))


def read(*bodies):
    errors = []
    spec = read_mechanism({"bodies": list(bodies)}, "rig", Reading(place, errors))
    assert not errors
    return spec.description


def test_a_body_with_a_name_only_hangs_on_the_ground_by_a_massless_hinge():
    mechanism = read({"name": "arm"})
    assert (mechanism.name, mechanism.root, mechanism.notes) == ("rig", "base", ())
    base, arm = mechanism.links
    assert (base.name, base.inertial, arm.name, arm.inertial) == ("base", None, "arm", None)
    (joint,) = mechanism.joints
    assert (joint.name, joint.kind, joint.parent, joint.child) == ("arm", "revolute", "base", "arm")
    assert joint.axis.tolist() == [0, 0, 1]
    assert (joint.lower, joint.upper) == (-math.inf, math.inf)
    assert (joint.max_velocity, joint.max_effort) == (math.inf, math.inf)
    assert (joint.damping, joint.friction, joint.mimic) == (0, 0, None)
    assert np.array_equal(joint.pose.rotation, np.eye(3)) and not joint.pose.position.any()


def test_every_figure_arrives_in_si():
    mechanism = read(
        {
            "name": "arm",
            "joint": "shoulder",
            "parent": "base",
            "axis": [0, 2, 0],
            "origin": {"xyz": ["100 mm", 0, 0.3], "rpy": [0, 0, "90 deg"]},
            "mass": "2000 g",
            "com": [0, 0, "-20 cm"],
            "inertia": ["100 kg*cm^2", 0.02, 0.03, 0.001, 0.002, 0.003],
            "damping": "0.1 N*m*s/rad",
            "friction": "50 mN*m",
            "limits": {"lower": "-90 deg", "upper": 1, "velocity": "60 rpm", "effort": 10},
        }
    )
    (joint,) = mechanism.joints
    assert joint.name == "shoulder"
    assert joint.axis.tolist() == [0, 1, 0]
    np.testing.assert_allclose(joint.pose.position, [0.1, 0, 0.3], rtol=1e-15)
    assert joint.pose.rotation.tolist() == [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    assert (joint.damping, joint.friction) == pytest.approx((0.1, 0.05))
    assert (joint.lower, joint.upper) == pytest.approx((-math.pi / 2, 1))
    assert (joint.max_velocity, joint.max_effort) == pytest.approx((2 * math.pi, 10))
    inertial = mechanism.links[1].inertial
    assert inertial is not None and inertial.mass == 2
    assert inertial.com.tolist() == [0, 0, -0.2]
    expected = [[0.01, 0.001, 0.002], [0.001, 0.02, 0.003], [0.002, 0.003, 0.03]]
    np.testing.assert_allclose(inertial.inertia, expected, rtol=1e-15)


def test_a_slider_has_lengths_and_forces():
    (joint,) = read(
        {
            "name": "cart",
            "type": "prismatic",
            "damping": 3,
            "friction": "2 N",
            "limits": {"lower": "-50 cm", "upper": "50 cm", "velocity": "100 mm/s", "effort": "1 kN"},
        }
    ).joints
    assert (joint.lower, joint.upper, joint.max_velocity, joint.max_effort) == (-0.5, 0.5, 0.1, 1000)
    assert (joint.damping, joint.friction) == (3, 2)


def test_a_mass_alone_is_a_point_and_three_moments_are_the_diagonal():
    point, block = read({"name": "a", "mass": 1}, {"name": "b", "mass": 1, "inertia": [1, 2, 3]}).links[1:]
    assert point.inertial is not None and not point.inertial.inertia.any()
    assert block.inertial is not None and block.inertial.inertia.tolist() == [[1, 0, 0], [0, 2, 0], [0, 0, 3]]


def test_the_default_parent_of_a_body_is_the_one_before_it():
    c, d = {"name": "c", "parent": "a"}, {"name": "d", "parent": "base"}
    mechanism = read({"name": "a"}, {"name": "b"}, c, d)
    assert [joint.parent for joint in mechanism.joints] == ["base", "a", "a", "base"]


def test_repeat_makes_a_chain_and_the_next_body_hangs_on_its_end():
    mechanism = read({"name": "rod", "joint": "pin", "mass": 1, "repeat": 3}, {"name": "tip"})
    assert [link.name for link in mechanism.links] == ["base", "rod_1", "rod_2", "rod_3", "tip"]
    assert [(joint.name, joint.parent, joint.child) for joint in mechanism.joints] == [
        ("pin_1", "base", "rod_1"),
        ("pin_2", "rod_1", "rod_2"),
        ("pin_3", "rod_2", "rod_3"),
        ("tip", "rod_3", "tip"),
    ]
    assert all(link.inertial is not None and link.inertial.mass == 1 for link in mechanism.links[1:4])


def test_a_long_chain():
    order = depth_first(read({"name": "rod", "repeat": 5000}))
    assert [joint.name for joint in order] == [f"rod_{k}" for k in range(1, 5001)]


def test_a_mimic():
    mimic = {"joint": "a", "multiplier": -1, "offset": "90 deg"}
    found = read({"name": "a"}, {"name": "b", "mimic": mimic}).joints[1].mimic
    assert found is not None
    assert (found.joint, found.multiplier) == ("a", -1)
    assert found.offset == pytest.approx(math.pi / 2)


def test_a_fixed_body_may_have_mass_zero_and_keys_without_effect_are_remarked():
    mechanism = read({"name": "a", "type": "fixed", "mass": 0, "damping": 1})
    assert mechanism.links[1].inertial is None
    assert mechanism.notes == ("rig.yaml:10 mechanism.bodies.0.damping: without effect on a fixed joint",)


def test_an_inertia_that_no_body_has_is_remarked():
    (note,) = read({"name": "a", "mass": 1, "inertia": [1, 1, 3]}).notes
    assert note.startswith("rig.yaml:10 mechanism.bodies.0.inertia: the inertia is physically impossible")


# --- mistakes -----------------------------------------------------------------------------------------
