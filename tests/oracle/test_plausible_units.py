"""Robots that exist have plausible numbers; the same ones with the numbers of another unit have not."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cosim.mechanics.multibody.description.plausible_units import (
    INERTIAS,
    _moving,
    doubtful_units,
    note_of_point_masses,
)
from cosim.mechanics.multibody.description.urdf import read_urdf
from cosim.mechanics.multibody.mechanism import Joint, Link, Mimic, Pose
from cosim.rig.sections.rig_spec import read_rig
from tests.oracle.conftest import ROBOTS
from tests.oracle.test_pinocchio import KNOWN

RIGS = Path("rigs")
MACHINES = sorted(
    file.relative_to(RIGS).as_posix() for file in RIGS.rglob("*.yaml") if "mechanism:" in file.read_text()
)
USUAL = [
    "allegro_hand_description/urdf/allegro_left_hand.urdf",
    "go2_description/urdf/go2.urdf",
    "kinova_description/robots/kinova.urdf",
    "talos_data/robots/talos_left_arm.urdf",
    "ur_description/urdf/ur5_robot.urdf",
    "xarm_description/urdf/xarm7.urdf",
    "tiago_description/robots/tiago_no_hand.urdf",
]


def doubts(mechanism):
    return list(doubtful_units(mechanism.links, mechanism.joints))


def scaled(mechanism, mass=1.0, com=1.0, inertia=1.0, origin=1.0):
    """The mechanism as one reads it whose numbers are these times what they should be."""

    def link(given):
        if given.inertial is None:
            return given
        own = given.inertial
        return replace(
            given, inertial=replace(own, mass=own.mass * mass, com=own.com * com, inertia=own.inertia * inertia)
        )

    joints = (replace(each, pose=Pose(each.pose.rotation, each.pose.position * origin)) for each in mechanism.joints)
    return replace(mechanism, links=tuple(map(link, mechanism.links)), joints=tuple(joints))


@pytest.mark.parametrize("name", KNOWN)
def test_robots_that_exist_raise_no_doubt(name):
    assert doubts(read_urdf(ROBOTS / name).mechanism) == []


@pytest.mark.parametrize("name", MACHINES)
def test_rigs_raise_no_doubt(name):
    """Benches of a single shaft, an excavator, a crane, spacecraft, linkages of some grams."""
    assert doubts(read_rig(RIGS / name).mechanism.description) == []


MISTAKES = {
    "kg·cm²": {"inertia": 1e4},
    "kg·mm²": {"inertia": 1e6},
    "g·cm²": {"inertia": 1e7},
    "g·mm²": {"inertia": 1e9},
    "mm": {"com": 1e3},
    "its lengths look like mm": {"com": 1e3, "origin": 1e3},
    "the masses look like g": {"mass": 1e3},
}


@pytest.mark.parametrize("said", MISTAKES)
@pytest.mark.parametrize("name", USUAL)
def test_numbers_of_another_unit_are_recognised(name, said):
    (line,) = doubts(scaled(read_urdf(ROBOTS / name).mechanism, **MISTAKES[said]))
    link = line.partition("link '")[2].partition("'")[0]
    assert said in line and line.startswith(f"{ROBOTS / name}:") and link


# fault of one link -> the number that shows it best, and what is said
OF_A_LINK = {
    "mass": (1e3, lambda link: link.mass, "it looks like g"),
    "com": (1e3, lambda link: np.linalg.norm(link.inertial.com), "it looks like mm"),
    "inertia": (1e4, lambda link: np.trace(link.inertial.inertia), "the inertia looks like kg·cm²"),
}


@pytest.mark.parametrize("fault", OF_A_LINK)
@pytest.mark.parametrize("name", USUAL)
def test_a_mistake_in_one_link_names_it(name, fault):
    factor, number, said = OF_A_LINK[fault]
    mechanism = read_urdf(ROBOTS / name).mechanism
    moving = _moving(mechanism.joints)
    if fault == "com" and "allegro" in name:
        pytest.skip("the centres of mass of its fingers are in their frames")
    link = max((each for each in mechanism.links if each.name in moving and each.inertial), key=number)
    (other,) = [each for each in scaled(mechanism, **{fault: factor}).links if each.name == link.name]
    links = tuple(other if each is link else each for each in mechanism.links)
    (line,) = doubts(replace(mechanism, links=links))
    assert f"link '{link.name}'" in line and said in line and "more" not in line
    assert line.startswith(str(link.place))


def in_degrees(bound):
    return round(math.degrees(bound) / 5.0) * 5.0 if math.isfinite(bound) else bound


HINGES = "revolute", "continuous"
# fault of joints -> which of them show it, the number that shows it best, the joint with the fault, what is said
OF_A_JOINT = {
    "origin in mm": (
        lambda joint: joint.pose.position.any(),
        lambda joint: np.linalg.norm(joint.pose.position),
        lambda joint: replace(joint, pose=Pose(joint.pose.rotation, joint.pose.position * 1e3)),
        "it looks like mm",
    ),
    "limits in decimals of degrees": (
        lambda joint: joint.kind == "revolute" and math.radians(32.0) < joint.upper < math.inf,
        lambda joint: joint.upper,
        lambda joint: replace(joint, lower=math.degrees(joint.lower) + 0.03, upper=math.degrees(joint.upper) + 0.03),
        "they look like degrees",
    ),
    "velocity in decimals of degrees/s": (
        lambda joint: joint.kind == "revolute" and math.radians(105.0) < joint.max_velocity < math.radians(900.0),
        lambda joint: joint.max_velocity,
        lambda joint: replace(joint, max_velocity=round(math.degrees(joint.max_velocity)) + 0.03),
        "it looks like degrees/s",
    ),
    "limits in degrees": (
        lambda joint: joint.kind == "revolute" and math.radians(32.0) < joint.upper < math.inf,
        lambda joint: joint.upper,
        lambda joint: replace(joint, lower=in_degrees(joint.lower), upper=in_degrees(joint.upper)),
        "they look like degrees",
    ),
    "travel in mm": (
        lambda joint: joint.kind == "prismatic" and 0.03 < joint.upper < math.inf,
        lambda joint: joint.upper,
        lambda joint: replace(joint, lower=round(joint.lower * 1e3) * 1.0, upper=round(joint.upper * 1e3) * 1.0),
        "they look like mm",
    ),
    "velocity in degrees/s": (
        lambda joint: joint.kind == "revolute" and math.radians(55.0) < joint.max_velocity < math.radians(900.0),
        lambda joint: joint.max_velocity,
        lambda joint: replace(joint, max_velocity=in_degrees(joint.max_velocity)),
        "it looks like degrees/s",
    ),
    "velocity in mm/s": (
        lambda joint: joint.kind == "prismatic" and 0.05 < joint.max_velocity < 9.0,
        lambda joint: joint.max_velocity,
        lambda joint: replace(joint, max_velocity=1e3 * joint.max_velocity + 5.0),
        "it looks like mm/s",
    ),
    "effort in N mm": (
        lambda joint: joint.kind in HINGES and 10.0 < joint.max_effort < 1e3,
        lambda joint: joint.max_effort,
        lambda joint: replace(joint, max_effort=round(joint.max_effort) * 1e3 + 500.0),
        "looks like N mm",
    ),
    "friction in N mm": (
        lambda joint: joint.kind in HINGES and 0.0 < joint.max_effort < math.inf,
        lambda joint: joint.max_effort,
        lambda joint: replace(joint, friction=0.01 * joint.max_effort * 1e3),
        "it never moves",
    ),
    "damping in N mm s/rad": (
        lambda joint: joint.kind in HINGES and 0.0 < joint.max_effort < math.inf and 1.0 < joint.max_velocity < 9.0,
        lambda joint: joint.max_effort,
        lambda joint: replace(joint, damping=0.1 * joint.max_effort / joint.max_velocity * 1e3),
        "check the units of the three",
    ),
}


def with_fault(mechanism, joints, change):
    names = {joint.name for joint in joints}
    return replace(mechanism, joints=tuple(change(each) if each.name in names else each for each in mechanism.joints))


@pytest.mark.parametrize("fault", OF_A_JOINT)
def test_mistakes_in_joints_are_one_line_that_names_the_first_and_counts_the_others(fault):
    shows, number, change, said = OF_A_JOINT[fault]
    tried = 0
    for name in [*USUAL, "panda_description/urdf/panda.urdf"]:
        mechanism = read_urdf(ROBOTS / name).mechanism
        if not (found := [joint for joint in mechanism.joints if shows(joint)]):
            continue
        tried += 1
        clearest = max(found, key=number)
        (line,) = doubts(with_fault(mechanism, [clearest], change))
        assert line.startswith(str(clearest.place)) and said in line and "more" not in line
        lines = [line for line in doubts(with_fault(mechanism, found, change)) if said in line]
        if fault != "origin in mm":  # of which all together are those of a larger robot
            (line,) = lines
            assert line.startswith(str(found[0].place)) or len(found) == 1 or "more joint" in line
    assert tried >= (1 if "mm/s" in fault or "travel" in fault else 4)


@pytest.mark.parametrize("name", USUAL)
def test_hinges_in_degrees_are_counted(name):
    shows, _, change, said = OF_A_JOINT["limits in degrees"]
    mechanism = read_urdf(ROBOTS / name).mechanism
    hinges = [joint for joint in mechanism.joints if shows(joint)]
    (line,) = doubts(with_fault(mechanism, hinges, change))
    others = len(hinges) - 1
    assert said in line and line.startswith(str(hinges[0].place))
    assert line.endswith(f"(and {others} more joint{'s' * (others > 1)})") or not others


@pytest.mark.parametrize("name", USUAL)
def test_inertias_that_no_body_of_its_mass_has(name):
    """A millionth of the true ones; a UR5 whose inertias are 0 has point masses, which a note counts."""
    mechanism = read_urdf(ROBOTS / name).mechanism
    (line,) = doubts(scaled(mechanism, inertia=1e-6))
    assert "denser than any metal; the inertia looks too small" in line and line.startswith(f"{ROBOTS / name}:")
    points = scaled(mechanism, inertia=0.0)
    assert doubts(points) == []
    assert list(note_of_point_masses(mechanism.links, mechanism.joints)) == []
    (note,) = note_of_point_masses(points.links, points.joints)
    heavy = [link for link in points.links if link.name in _moving(points.joints) and link.mass]
    assert "a point mass, without rotational inertia" in note
    assert ("more link" in note) == (len(heavy) > 1)


def test_hinges_that_turn_often():
    """Spindles and winches: those that move a slide, and ranges of whole turns."""
    spindle = Joint("spindle", "revolute", "base", "screw", Pose.identity(), lower=0.0, upper=148.97)
    slide = Joint("slide", "prismatic", "base", "jaw", Pose.identity(), mimic=Mimic("spindle", 0.003))
    links = [Link(name) for name in ("base", "screw", "jaw")]
    assert list(doubtful_units(links, [spindle, slide])) == []
    assert "47.4" in "".join(doubtful_units(links, [replace(spindle, upper=297.94), replace(slide, mimic=None)]))
    turns = replace(spindle, lower=-math.tau * 10.0, upper=62.83)
    assert list(doubtful_units(links, [turns, replace(slide, mimic=None)])) == []


@pytest.mark.parametrize("speed", [999.0, 9999.0, 1000.0, 99.0, 1e5])
def test_velocity_limits_that_stand_for_none(speed):
    hinge = Joint("hinge", "revolute", "base", "arm", Pose.identity(), lower=0.0, upper=1.0, max_velocity=speed)
    assert list(doubtful_units([Link("base"), Link("arm")], [hinge])) == []


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e2])
def test_machines_of_any_size_raise_no_doubt(size):
    """A UR5 of 1 mm and one of 100 m: the same density."""
    grown = scaled(read_urdf(ROBOTS / USUAL[4]).mechanism, size**3, size, size**5, size)
    assert doubts(grown) == []


def test_units_are_those_of_the_engineering_tables():
    """1 lb·in² in kg m², NIST SP 811."""
    assert pytest.approx(2.926397e-4, rel=1e-6) == INERTIAS["lb·in²"]
    assert np.prod([INERTIAS["kg·cm²"], 1e-3]) == pytest.approx(INERTIAS["g·cm²"], rel=1e-15)
