"""Bodies in a rig give the same mechanism as a URDF file; errors are reported with their keys."""

import math

import numpy as np
import pytest

from cosim.errors import InputErrors, SourceLocation
from cosim.multibody.description.topology import depth_first
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.mechanism import read_mechanism

TYPES = "revolute, continuous, prismatic, cylindrical, universal, spherical, planar, free, fixed, screw"


def place(path):
    """Line 10 + i for everything in body i, as in a file with one line per body."""
    index = [part for part in path if isinstance(part, int)][:1]
    return SourceLocation("rig.yaml", 10 + sum(index), ".".join(map(str, path)))


def read_section(section):
    errors = []
    spec = read_mechanism(section, "rig", Reading(place, errors))
    if errors:
        raise InputErrors(errors)
    return spec.description


def read(*bodies):
    return read_section({"bodies": list(bodies)})


def messages(*bodies):
    with pytest.raises(InputErrors) as caught:
        read(*bodies)
    return str(caught.value).splitlines()


# --- what is read -----------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("bodies", "message"),
    [
        (None, ": missing key 'urdf', 'mjcf' or 'bodies'"),
        ([], ".bodies: the list is empty; give it a body"),
        ({"name": "a"}, ".bodies: expected a list of values, got a mapping"),
        ("arm", ".bodies: expected a list of values, got 'arm'"),
    ],
)
def test_bodies_must_be_a_list(bodies, message):
    with pytest.raises(InputErrors) as caught:
        read_section({"bodies": bodies})
    assert str(caught.value) == f"rig.yaml:10 mechanism{message}"


@pytest.mark.parametrize(
    ("keys", "key", "message"),
    [
        ({"mas": 1}, "", "unknown key 'mas'; did you mean 'mass'?"),
        ({"origin": {"xzy": [0, 0, 0]}}, ".origin", "unknown key 'xzy'; did you mean 'xyz'?"),
        ({"limits": {"effrt": 1}}, ".limits", "unknown key 'effrt'; did you mean 'effort'?"),
        ({"origin": [0, 0, 1]}, ".origin", "expected a mapping with the keys xyz, rpy; got a list"),
        ({"mimic": 3}, ".mimic", "expected a mapping, got 3"),
        ({"mimic": {}}, ".mimic", "missing key 'joint'"),
        ({"mass": "heavy"}, ".mass", "expected a number, got 'heavy'"),
        ({"mass": True}, ".mass", "expected a number, got true"),
        ({"mass": [1]}, ".mass", "expected a number, got a list"),
        ({"mass": math.nan}, ".mass", "must be a finite number, is nan"),
        ({"damping": "1e999"}, ".damping", "must be a finite number, is inf"),
        ({"mass": "2 m"}, ".mass", "unit 'm' does not fit here; use kg, g, t"),
        ({"mass": 0}, ".mass", "must be more than 0, got 0; leave the mass out for a massless body"),
        (
            {"mass": -1, "type": "fixed"},
            ".mass",
            "must be more than 0, got -1; leave the mass out for a massless body",
        ),
        (
            {"mass": 0, "type": "fixed", "inertia": [1, 1, 1]},
            ".inertia",
            "a body of mass 0 has no inertia; give it a mass",
        ),
        ({"inertia": [1, 1, 1]}, ".inertia", "a body without mass; give it a mass or leave this out"),
        ({"com": [1, 1, 1]}, ".com", "a body without mass; give it a mass or leave this out"),
        ({"mass": 1, "com": 0.5}, ".com", "expected 3 numbers, got 0.5"),
        ({"mass": 1, "com": [0, 1]}, ".com", "expected 3 numbers, got 2"),
        ({"mass": 1, "com": [0, "1 kg", 0]}, ".com.1", "unit 'kg' does not fit here; use m, cm, mm, um"),
        ({"mass": 1, "inertia": [1, 1, 1, 0]}, ".inertia", "expected 3 or 6 numbers, got 4"),
        (
            {"mass": 1, "inertia": [1, 1, 1, 2, 0, 0]},
            ".inertia",
            "the inertia is not positive definite (smallest eigenvalue -1 kg*m^2);"
            " check the signs and the order of its elements",
        ),
        ({"axis": [0, 0, 0]}, ".axis", "must not be zero; give it a direction"),
        ({"axis": "z"}, ".axis", "expected 3 numbers, got 'z'"),
        ({"type": "revolut"}, ".type", "joint type 'revolut' is not supported; did you mean 'revolute'?"),
        (
            {"type": "ball"},
            ".type",
            f"joint type 'ball' is not supported; known: {TYPES}",
        ),
        ({"damping": -1}, ".damping", "must be at least 0 N*m*s/rad, is -1 N*m*s/rad"),
        ({"friction": -0.5}, ".friction", "must be at least 0 N*m, is -0.5 N*m"),
        ({"limits": {"velocity": -1}}, ".limits.velocity", "must be at least 0 rad/s, is -1 rad/s"),
        ({"limits": {"effort": -1}}, ".limits.effort", "must be at least 0 N*m, is -1 N*m"),
        ({"limits": {"lower": 1, "upper": -1}}, ".limits", "lower 1 is above upper -1; swap them"),
        (
            {"type": "continuous", "limits": {"upper": 1}},
            ".limits",
            "a continuous joint has no lower and upper; make it revolute",
        ),
        (
            {"type": "prismatic", "limits": {"lower": "1 deg"}},
            ".limits.lower",
            "unit 'deg' does not fit linear joints; use m, cm, mm, um",
        ),
        ({"type": "prismatic", "damping": "2 N"}, ".damping", "unit 'N' does not fit here; use N*s/m"),
        ({"repeat": 0}, ".repeat", "must be at least 1, is 0"),
        ({"repeat": 2.5}, ".repeat", "expected a whole number, got 2.5"),
        ({"repeat": True}, ".repeat", "expected a number, got true"),
        ({"joint": 7}, ".joint", "expected text, got 7; put it in quotes"),
    ],
)
def test_mistakes_in_a_body(keys, key, message):
    assert messages({"name": "a", **keys}) == [f"rig.yaml:10 mechanism.bodies.0{key}: {message}"]


@pytest.mark.parametrize(
    ("bodies", "expected"),
    [
        ([{"mass": 1}], ["rig.yaml:10 mechanism.bodies.0: missing key 'name'"]),
        ([{"name": ""}], ["rig.yaml:10 mechanism.bodies.0.name: expected a name, got ''"]),
        (
            [{"name": "base"}],
            ["rig.yaml:10 mechanism.bodies.0.name: 'base' is the ground; give the body another name"],
        ),
        (
            [{"name": "a"}, {"name": "a", "joint": "b"}],
            ["rig.yaml:11 mechanism.bodies.1: link 'a' exists already (line 10); names must be unique"],
        ),
        (
            [{"name": "a"}, {"name": "b", "joint": "a"}],
            ["rig.yaml:11 mechanism.bodies.1: joint 'a' exists already (line 10); names must be unique"],
        ),
        (
            [{"name": "upper"}, {"name": "lower", "parent": "uper"}],
            ["rig.yaml:11 mechanism.bodies.1: parent link 'uper' does not exist; did you mean 'upper'?"],
        ),
        (
            [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}],
            [
                "rig.yaml:10 mechanism.bodies.0: links 'b' -> 'a' -> 'b' form a loop:"
                " a tree is needed; cut the loop at one of its joints"
            ],
        ),
        (
            [{"name": "a"}, {"name": "b", "mimic": {"joint": "c"}}],
            ["rig.yaml:11 mechanism.bodies.1: mimics joint 'c', which does not exist; known: a"],
        ),
        (
            [{"name": "a", "mass": 0}, 3, {"name": "b", "dampng": 1, "parent": "c"}],
            [
                "rig.yaml:10 mechanism.bodies.0.mass: must be more than 0, got 0;"
                " leave the mass out for a massless body",
                "rig.yaml:11 mechanism.bodies.1: expected a mapping, got 3",
                "rig.yaml:12 mechanism.bodies.2: unknown key 'dampng'; did you mean 'damping'?",
                "rig.yaml:12 mechanism.bodies.2: parent link 'c' does not exist; known: base, a, b",
            ],
        ),
    ],
)
def test_mistakes_among_bodies_come_at_once(bodies, expected):
    assert messages(*bodies) == expected
