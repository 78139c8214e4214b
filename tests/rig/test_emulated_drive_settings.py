"""Settings that a family has for its emulated drives: `emulator.joints.<joint>.drive`."""

from __future__ import annotations

import pytest

from cosim.errors import InputErrors
from cosim.rig.emulate import emulation_of
from cosim.rig.sections.rig_spec import read_rig

RIG = """\
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {{name: a, joint: one, axis: [0, 0, 1], mass: 1 kg, inertia: [1, 1, 1]}}
    - {{name: b, joint: two, axis: [0, 0, 1], mass: 1 kg, inertia: [1, 1, 1]}}
joints: {{all: {{limits: {{velocity: 5, effort: 2}}}}}}
drivers:
  - {{type: {family}, bus: {{interface: virtual, channel: x{more}}}, joints: {{one: {{id: 1}}, two: {{id: 2}}}}}}
emulator:
  joints:
    all: {{drive: {{{every}}}}}
    two: {{drive: {{{own}}}}}
"""


def spec(folder, every="", own="", family="cia402", more=""):
    path = folder / "rig.yaml"
    path.write_text(RIG.format(every=every, own=own, family=family, more=more))
    return read_rig(path)


def test_settings_of_all_joints_and_of_one(tmp_path):
    found = spec(tmp_path, "feed_constant: 3600, gear_ratio: 2", "gear_ratio: 5")
    assert [(each.feed_constant, each.gear_ratio) for each in found.emulator.drives.values()] == [
        (3600, 2.0),
        (3600, 5.0),
    ]
    nodes = emulation_of(found).connections[0].drives.nodes
    assert [(node.cpr, node.value(0x609101)) for node in nodes] == [(3600, 2), (3600, 5)]


def test_without_settings_a_drive_has_its_own(tmp_path):
    assert [each.velocity_unit for each in spec(tmp_path).emulator.drives.values()] == ["counts/s"] * 2


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"own": "feed: 3"}, "12 emulator.joints.two.drive: unknown key 'feed'"),
        ({"every": "gear_ratio: 0"}, "11 emulator.joints.all.drive.gear_ratio: must be above 0"),
        ({"own": "velocity_unit: rpm/s"}, "12 emulator.joints.two.drive: no unit of velocity 'rpm/s'; use one of"),
        (
            {"own": "x: 1", "family": "moteus", "more": ", fd: true, data_bitrate: 5 Mbit/s"},
            "12 emulator.joints.two.drive: emulated drives of 'moteus' have no settings; take it out",
        ),
    ],
)
def test_mistakes_are_named_at_their_place(settings, expected, tmp_path):
    with pytest.raises(InputErrors) as caught:
        spec(tmp_path, **settings)
    assert f"{tmp_path}/rig.yaml:{expected}" in str(caught.value)
