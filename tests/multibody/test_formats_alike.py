"""What is odd in a joint of a robot file is read and said alike, whatever the format."""

import math
from pathlib import Path

import pytest

from cosim.mechanics.multibody.description.sdf.reader import SdfReader
from cosim.mechanics.multibody.description.urdf import parse_robot

SIX = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")


def as_urdf(kind, limits, more="", before=""):
    """limits: of each <limit> of the joint."""
    inertia = "".join(f' {key}="{0.1 if key[1] == key[2] else 0}"' for key in SIX)
    link = f'<link name="a"><inertial><mass value="1"/><inertia{inertia}/></inertial></link>'
    given = "".join(
        f'<limit velocity="1" effort="2"{"".join(f" {k}={chr(34)}{v:g}{chr(34)}" for k, v in limit.items())}/>'
        for limit in limits
    )
    joint = f'<joint name="j" type="{kind}"><parent link="w"/><child link="a"/><axis xyz="0 0 1"/>{more}{given}</joint>'
    text = f'{before}<?xml version="1.0"?><robot name="r"><link name="w"/>{link}{joint}</robot>'
    return parse_robot(text.encode(), "robot").mechanism


def as_sdf(kind, limits, more="", before=""):
    inertia = "".join(f"<{key}>{0.1 if key[1] == key[2] else 0}</{key}>" for key in SIX)
    link = f'<link name="a"><inertial><mass>1</mass><inertia>{inertia}</inertia></inertial></link>'
    given = "".join(
        f"<limit><velocity>1</velocity><effort>2</effort>{''.join(f'<{k}>{v:g}</{k}>' for k, v in limit.items())}"
        "</limit>"
        for limit in limits
    )
    ends = "<parent>world</parent><child>a</child>"
    joint = f'<joint name="j" type="{kind}">{ends}<axis><xyz>0 0 1</xyz>{more}{given}</axis></joint>'
    text = f'{before}<?xml version="1.0"?><sdf version="1.11"><model name="r">{link}{joint}</model></sdf>'
    return SdfReader(Path("robot"), (), text.encode()).read(None).mechanism


FORMATS = {"urdf": as_urdf, "sdf": as_sdf}
# joint type, limits -> lower, upper, whether that is warned of
CASES = {
    "in order": ("revolute", [{"lower": -1, "upper": 2}], (-1.0, 2.0), False),
    "changed over": ("revolute", [{"lower": 2, "upper": -1}], (-1.0, 2.0), True),
    "changed over, of a slide": ("prismatic", [{"lower": 2, "upper": -1}], (-1.0, 2.0), True),
    "a range of a wheel": ("continuous", [{"lower": -1, "upper": 2}], (-math.inf, math.inf), True),
    "a wide range of a wheel": ("continuous", [{"lower": -10, "upper": 10}], (-math.inf, math.inf), False),
    "no range of a wheel": ("continuous", [{"lower": 0, "upper": 0}], (-math.inf, math.inf), False),
    "given twice": ("revolute", [{"lower": -1, "upper": 2}, {"lower": -3, "upper": 3}], (-1.0, 2.0), True),
    "in degrees": ("revolute", [{"lower": -90, "upper": 180}], (-90.0, 180.0), True),
}


@pytest.mark.parametrize("case", CASES)
def test_a_range(case, said):
    kind, limits, bounds, warned = CASES[case]
    found = {name: reader(kind, limits) for name, reader in FORMATS.items()}
    warnings = {name: [_without_place(line) for line in each.warnings] for name, each in found.items()}
    for each in found.values():
        (joint,) = [joint for joint in each.joints if joint.name == "j"]
        assert (joint.lower, joint.upper) == bounds
        assert (joint.max_velocity, joint.max_effort) == (1.0, 2.0)
    assert warnings["urdf"] == [line.replace("<axis>", "<joint>") for line in warnings["sdf"]]
    assert bool(warnings["urdf"]) == warned
    said(warnings["urdf"])


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("before", ["\n ", "\ufeff\n"])
def test_something_blank_before_the_declaration(name, before):
    (note,) = FORMATS[name]("revolute", [{"lower": -1, "upper": 2}], before=before).notes
    assert "something blank before" in note


def _without_place(line):
    """The sentence of a line, after its file, line and part."""
    return line.partition("'j': ")[2]
