"""Robots that exist have plausible numbers; the same ones with the numbers of another unit have not."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cosim.mechanics.multibody.description.plausible_units import INERTIAS, doubtful_units
from cosim.mechanics.multibody.description.urdf import read_urdf
from cosim.mechanics.multibody.mechanism import Pose
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


@pytest.mark.parametrize("name", USUAL)
def test_a_mistake_in_one_link_names_it(name):
    mechanism = read_urdf(ROBOTS / name).mechanism
    heaviest = max(mechanism.links, key=lambda link: link.mass)
    (other,) = [link for link in scaled(mechanism, inertia=1e6).links if link.name == heaviest.name]
    links = tuple(other if link.name == heaviest.name else link for link in mechanism.links)
    (line,) = doubts(replace(mechanism, links=links))
    assert f"link '{heaviest.name}'" in line and "the inertia looks like" in line and "more" not in line


@pytest.mark.parametrize("name", USUAL)
def test_limits_in_degrees_are_recognised(name):
    mechanism = read_urdf(ROBOTS / name).mechanism
    hinges = [joint for joint in mechanism.joints if joint.kind == "revolute" and joint.upper > math.radians(32.0)]
    in_degrees = [
        replace(each, lower=round(math.degrees(each.lower) / 5) * 5.0, upper=round(math.degrees(each.upper) / 5) * 5.0)
        for each in hinges
    ]
    found = doubts(replace(mechanism, joints=tuple(in_degrees)))
    assert len([line for line in found if "look like degrees" in line]) == len(hinges)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e2])
def test_machines_of_any_size_raise_no_doubt(size):
    """A UR5 of 1 mm and one of 100 m: the same density."""
    grown = scaled(read_urdf(ROBOTS / USUAL[4]).mechanism, size**3, size, size**5, size)
    assert doubts(grown) == []


def test_units_are_those_of_the_engineering_tables():
    """1 lb·in² in kg m², NIST SP 811."""
    assert pytest.approx(2.926397e-4, rel=1e-6) == INERTIAS["lb·in²"]
    assert np.prod([INERTIAS["kg·cm²"], 1e-3]) == pytest.approx(INERTIAS["g·cm²"], rel=1e-15)
