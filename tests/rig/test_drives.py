"""Drives of a rig: their sections, connections that cannot be opened, families of other packages, emulated ones."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import numpy as np
import pytest

from cosim import load_rig
from cosim.core import plugin_loading
from cosim.plugins.drivers import odrive
from cosim.plugins.drivers.odrive.can_driver import CanDriver
from cosim.rig.emulate import emulation_of
from cosim.rig.sections.rig_spec import read_rig
from tests.kit.refusals import refusal
from tests.rig.test_mistakes import HEADS

RIG = HEADS["drives"]  # lines 1 to 12
BUS = "bus: {interface: virtual, channel: a}"
ELBOW = "joints: {elbow: {id: 1}}"
REAL = f"drivers: [{{type: odrive, {BUS}, {ELBOW}}}]\n"
TWO = f"""\
drivers:
  - {{type: odrive, {BUS}, {ELBOW}}}
  - {{name: b, type: cia402, {BUS.replace("a}", "b}")}, joints: {{lift: {{id: 2}}}}}}
"""


def driver(*words):
    return f"drivers: [{{type: odrive, {', '.join(words)}}}]\n"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """write(text after RIG, rig) -> the file of the rig."""
    monkeypatch.chdir(tmp_path)

    def write(text, rig=RIG):
        Path("rig.yaml").write_text(rig + text)
        return "rig.yaml"

    return write


def test_a_mode_that_a_family_does_not_have(write, said, monkeypatch):
    monkeypatch.setattr(odrive, "MODES", frozenset({"velocity", "position"}))
    for words in ([BUS, ELBOW], [BUS, ELBOW, "mode: effort"]):
        said(refusal(load_rig, write(driver(*words))))


def test_stops_of_a_real_joint_are_those_of_the_emulated_one(write):
    assert read_rig(write(f"  elbow: {{stops: {{upper: 2}}}}\n{REAL}")).joints["elbow"].stops == ((1.0, 2.0),)


def test_a_limit_of_temperature_may_stand_at_a_joint_that_is_simulated(write):
    """Nothing measures it there, so nothing is held: a rig is the same with its drives and without."""
    path = write(REAL, RIG.replace("effort: 9", "effort: 9, temperature: 60"))
    for overrides in ([], ["drivers=[]"]):
        joints = load_rig(path, overrides).spec.joints
        bounds = {name: joint.limits["temperature"] for name, joint in joints.items() if name[:4] != "ball"}
        assert bounds == dict.fromkeys(("shoulder", "elbow", "lift", "swing"), 60.0)


@pytest.mark.parametrize("realtime", ["", "yes", "{rate: 1}", "strict", "{trigger: {file: rig.yaml}}"])
def test_real_time_settings_for_real_motors(write, realtime):
    pacing = load_rig(write(f"{REAL}schedule: {{realtime: {realtime}}}\n")).spec.schedule.pacing
    assert pacing.rate == 1.0
    assert pacing.overrun == ("catch_up" if realtime else "skip")  # late commands are no good


def test_joints_named_by_drivers_are_real_and_the_others_are_not(write):
    rig = load_rig(write(TWO))
    assert rig.plant.real == ("elbow", "lift") and rig.hardware
    stale = dict(zip(rig.joints, np.isfinite(rig.guard.stale), strict=True))
    assert [name for name, finite in stale.items() if finite] == ["elbow", "lift"]
    assert "'joints' or 'loads'" in refusal(load_rig, "rig.yaml", ["drivers.b.loads={lift: {id: 3, effort: 1}}"])


def test_an_emulator_of_joints_that_are_simulated_is_left_alone(write):
    """The same file goes on when its drivers are taken out."""
    path = write(
        f"{TWO}emulator: {{joints: {{elbow: {{temperature_rise: 3}}}}, faults: [{{kind: drop, driver: b}}]}}\n"
    )
    assert read_rig(path, ["drivers=[]"]).emulator.faults == ()
    assert len(read_rig(path).emulator.faults) == 1


def test_two_scenarios_of_one_name(write):
    one = "  s: {faults: [{kind: motor_fault, joint: shoulder}], expect: completed}\n"
    words = refusal(read_rig, write(f"scenario:\n{one}{one}"))
    assert "rig.yaml:15" in words and "key 's' is given twice" in words


def test_what_a_scenario_has(write):
    fault = "{kind: encoder_jump, joint: lift, size: 3 mm, when: {signal: lift/position, above: 1 cm}, duration: 20 ms}"
    path = write(
        f"{TWO}scenario:\n  s:\n    faults: [{fault}, {{kind: drop, driver: b, after: 5 ms}}]\n"
        "    expect: motors off within 150 ms\n    set: {joints.elbow.limits.effort: 3, schedule.duration: 2 s}\n"
    )
    (scenario,) = read_rig(path).scenarios
    first, second = scenario.faults
    assert (first.spec.size, first.spec.duration, first.when.bound, first.follows) == (0.003, 0.02, "1 cm", False)
    assert (second.spec.driver, second.spec.at, second.follows, second.when) == ("b", 0.005, True, None)
    (off,) = scenario.expect
    assert (off.what, off.within) == ("motors off", 0.15)
    place = "rig.yaml:20 scenario.s.set."
    assert scenario.overrides == (
        ("joints.elbow.limits.effort=3", f"{place}joints.elbow.limits.effort"),
        ("schedule.duration=2 s", f"{place}schedule.duration"),
    )


def drives_of(write, every="", own="", family="cia402", more=""):
    bodies = "{name: a, joint: one, mass: 1, inertia: [1, 1, 1]}, {name: b, joint: two, mass: 1, inertia: [1, 1, 1]}"
    bus = f"bus: {{interface: virtual, channel: x{more}}}"
    return read_rig(
        write(
            f"mechanism: {{gravity: [0, 0, 0], bodies: [{bodies}]}}\n"
            "joints: {all: {limits: {velocity: 5, effort: 2}}}\n"
            f"drivers: [{{type: {family}, {bus}, joints: {{one: {{id: 1}}, two: {{id: 2}}}}}}]\n"
            f"emulator:\n  joints:\n    all: {{drive: {{{every}}}}}\n    two: {{drive: {{{own}}}}}\n",
            rig="",
        )
    )


def test_settings_of_all_emulated_drives_and_of_one(write):
    found = drives_of(write, "feed_constant: 3600, gear_ratio: 2", "gear_ratio: 5")
    ratios = [(each.feed_constant, each.gear_ratio) for each in found.emulator.drives.values()]
    assert ratios == [(3600, 2.0), (3600, 5.0)]
    nodes = emulation_of(found).connections[0].drives.nodes
    assert [(node.cpr, node.value(0x609101)) for node in nodes] == [(3600, 2), (3600, 5)]
    assert [each.velocity_unit for each in drives_of(write).emulator.drives.values()] == ["counts/s"] * 2


@pytest.mark.parametrize(
    "settings",
    [
        {"own": "feed: 3"},
        {"every": "gear_ratio: 0"},
        {"own": "velocity_unit: rpm/s"},
        {"own": "x: 1", "family": "moteus", "more": ", fd: true, data_bitrate: 5 Mbit/s"},
    ],
    ids=str,
)
def test_wrong_settings_of_emulated_drives(write, said, settings):
    said(refusal(drives_of, write, **settings))


@pytest.mark.parametrize(
    "line",
    [
        "bus: {interface: virtul, channel: a}",
        "bus: {interface: udp_multicast, channel: 10.0.0.1}",
        "bus: {interface: socketcan, channel: nocan7}",
        "bus: {interface: slcan, channel: /dev/does_not_exist}",
        "port: {port: /dev/does_not_exist}",
    ],
)
def test_a_connection_that_cannot_be_opened_is_reported_at_its_location(command, monkeypatch, said, line):
    enabled = []
    monkeypatch.setattr(CanDriver, "enable", lambda self, mode: enabled.append(mode))
    wired = "joints: {elbow: {axis: 0}}" if line.startswith("port") else ELBOW
    Path("rig.yaml").write_text(f"{RIG}{driver(line, wired)}schedule: {{step: 20 ms}}\n")
    code, _, err = command("run", "rig.yaml", "--yes", "--record", "run.mcap")
    assert (code, len(err), enabled, Path("run.mcap").exists()) == (2, 1, [], False)
    assert err[0].startswith("rig.yaml:13 drivers[0].")
    said(err, r"'nocan7'; .*", r"does_not_exist'.*")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (driver("port: {port: /dev/x}", ELBOW) + "schedule: {step: 20 ms}\n", "run rig.yaml --yes"),
        (f"drivers: [{{type: cia402, {BUS}, watchdog: 1 ms, {ELBOW}}}]\n", "run rig.yaml --yes"),
        ("", "emulate rig.yaml"),
        (REAL, "emulate rig.yaml"),
        (REAL, "emulate rig.yaml --duration=0"),
        (REAL, "emulate rig.yaml --duration=-1"),
        *((REAL, f"emulate rig.yaml --fault kind:~{kind}") for kind in ("dropp", "what", "5", "drop,~kind:~delay")),
        (REAL + "schedule: {step: 50 us}\n", "check rig.yaml"),
    ],
)
def test_what_the_command_line_refuses(command, said, text, words):
    Path("rig.yaml").write_text(RIG + text)
    code, _, err = command(*(word.replace("~", " ") for word in words.split()))
    assert code == 2
    said(err)


def test_a_fault_of_the_command_line_is_one(command):
    Path("rig.yaml").write_text(RIG + REAL)
    for fault in ("kind: drop}, {kind: delay", "kind: drop} {", "{kind: drop}", "kind: [drop", "kind: drop # all"):
        (reported,) = command.refuses("emulate", "rig.yaml", "--fault", fault)
        assert reported.startswith("--fault: broken YAML: ")


@pytest.fixture
def far(tmp_path, monkeypatch):
    """far(code): a family `far` by an entry point of another package, whose module has this code."""
    entries = EntryPoints([EntryPoint("far", "far_family", "cosim.drivers")])
    monkeypatch.setattr(plugin_loading, "entry_points", lambda group: entries.select(group=group))
    monkeypatch.syspath_prepend(tmp_path)

    def write(code):
        monkeypatch.delitem(sys.modules, "far_family", raising=False)
        (tmp_path / "far_family.py").write_text(code)

    yield write
    sys.modules.pop("far_family", None)


FAR = driver(BUS, ELBOW).replace("odrive", "far")


def test_a_family_of_another_package_works_like_the_others(far, command, said):
    far("from cosim.plugins.drivers.odrive import *\n")
    Path("rig.yaml").write_text(RIG + FAR)
    rig = load_rig("rig.yaml")
    assert [type(group.driver).__name__ for group in rig.engine().hardware_manager.groups] == ["SimDriver", "CanDriver"]
    code, out, _ = command("check", "rig.yaml")
    assert code == 0 and "  driver far: far on virtual a, effort mode, bus load up to 70%" in out
    for old, new in (("id: 1", "id: 1, ratoi: 3"), ("far", "fat")):
        Path("rig.yaml").write_text(RIG + FAR.replace(old, new))
        said(refusal(load_rig, "rig.yaml"))


@pytest.mark.parametrize(
    "code",
    [
        "import nowhere_at_all\n",
        "from cosim.plugins.drivers.odrive import *\ndel MODES, traffic\n",
        "from cosim.plugins.drivers.odrive import *\nclass JointParams: pass\n",
    ],
)
def test_a_family_that_is_none(far, write, said, code):
    far(code)
    said(refusal(load_rig, write(FAR)))
