"""The robots that the oracle tests run over: the URDF files of the example-robot-data package."""

import sysconfig
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.kit.levels import chosen

ROBOTS = Path(sysconfig.get_path("purelib")) / "cmeel.prefix" / "share" / "example-robot-data" / "robots"


def kinds_of(robot: str) -> Iterator[object]:
    """What tells a robot from another one: its kinds of joints, whether links branch, whether it is large."""
    joints = [joint for joint in ET.parse(ROBOTS / robot).getroot().iter("joint") if joint.find("parent") is not None]
    yield from {(joint.get("type"), joint.find("mimic") is not None) for joint in joints}
    parents = [joint.find("parent").get("link") for joint in joints]
    yield "tree" if len(parents) > len(set(parents)) else "chain"
    yield "large" if sum(joint.get("type") != "fixed" for joint in joints) > 30 else "small"


def covering_robots(names: Iterable[str]) -> list[str]:
    """Short ones that have all kinds together."""
    return chosen(names, kinds_of, lambda name: (ROBOTS / name).stat().st_size)
