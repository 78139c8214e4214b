"""Whole turns that drives lose at power-off: each family declares it, and the list before a run names the joints."""

from __future__ import annotations

from importlib import import_module
from typing import get_args

import pytest

from cosim import load_rig
from cosim.rig.moving_motors import what_moves
from cosim.rig.reading.driver_family import Turns, turns_at_power_off
from tests.conformance.families import folders
from tests.docs.documents import TABLES

RIG = """
mechanism:
  bodies:
    - {name: a, TYPE axis: [0, 0, 1], mass: 1, com: [0, 0, 0], inertia: [0.1, 0.1, 0.1]}
joints: {a: {limits: {LIMITS velocity: 20, effort: 1}}}
drivers:
  - {type: moteus, bus: {interface: virtual, channel: none, fd: true}, joints: {a: {id: 1, ratio: RATIO}}}
schedule: {step: 5 ms, realtime: true}
"""


@pytest.mark.parametrize("name", folders())
def test_every_family_declares_it(name):
    family = import_module(f"cosim.plugins.drivers.{name}")
    assert family.TURNS_AT_POWER_OFF in get_args(Turns)
    assert turns_at_power_off(family) == family.TURNS_AT_POWER_OFF


@pytest.mark.parametrize("row", TABLES["Which family keeps whole turns"][1:], ids=lambda row: row[0].strip("`"))
def test_what_is_known_has_a_source(row):
    family, said, source = row
    said = said.partition(":")[0].replace("not known", "unknown")
    assert said == import_module(f"cosim.plugins.drivers.{family.strip('`')}").TURNS_AT_POWER_OFF
    assert said == "unknown" or len(source) > 10


@pytest.mark.parametrize(
    ("kind", "limits", "ratio", "named"),
    [
        ("", "lower: -3, upper: 3,", 1, False),
        ("", "lower: -4, upper: 3,", 1, True),
        ("", "lower: -0.5, upper: 0.5,", 9, True),
        ("", "", 1, True),
        ("type: continuous,", "", 1, False),
        ("type: continuous,", "", 9, True),
    ],
)
def test_the_list_names_joints_with_a_range_of_more_than_a_turn_of_their_drive(tmp_path, kind, limits, ratio, named):
    text = RIG.replace("TYPE", kind).replace("LIMITS", limits).replace("RATIO", str(ratio))
    path = tmp_path / "rig.yaml"
    path.write_text(text)
    line = "  positions of a: their drives lose whole turns at power-off; compare where they stand, or home them: cosim"
    assert (f"{line} drives home {path}" in list(what_moves(load_rig(path)))) == named
