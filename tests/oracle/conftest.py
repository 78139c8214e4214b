"""The robots that the oracle tests run over: every URDF file of the example-robot-data package."""

import sysconfig
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.levels import covering

ROBOTS = Path(sysconfig.get_path("purelib")) / "cmeel.prefix" / "share" / "example-robot-data" / "robots"


@pytest.fixture(scope="session")
def robots_folder():
    assert ROBOTS.is_dir(), f"the package example-robot-data is not installed: {ROBOTS} does not exist"
    return ROBOTS


def kinds_of(robot: str) -> Iterator[object]:
    """What tells a robot from another one: its kinds of joints, whether links branch, whether it is large."""
    joints = [joint for joint in ET.parse(ROBOTS / robot).getroot().iter("joint") if joint.find("parent") is not None]
    yield from {(joint.get("type"), joint.find("mimic") is not None) for joint in joints}
    parents = [joint.find("parent").get("link") for joint in joints]
    yield "tree" if len(parents) > len(set(parents)) else "chain"
    yield "large" if sum(joint.get("type") != "fixed" for joint in joints) > 30 else "small"


def pytest_generate_tests(metafunc):
    """A test with the argument `robot` runs once per file that is not in `REFUSED` of its module."""
    if "robot" in metafunc.fixturenames:
        files = sorted(path.relative_to(ROBOTS).as_posix() for path in ROBOTS.rglob("*.urdf"))
        known = [name for name in files if name not in metafunc.module.REFUSED]
        metafunc.parametrize("robot", covering(known, kinds_of, lambda name: (ROBOTS / name).stat().st_size))
