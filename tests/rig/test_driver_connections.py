"""Errors of connections, and families of other packages."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import numpy as np
import pytest

from cosim import load_rig
from cosim.drivers.odrive.can_driver import CanDriver
from cosim.errors import InputError
from cosim.rig.reading import plugins
from tests.rig.drivers_mistakes_helpers import BUS, ELBOW, KINDS, REAL, RIG, SLOW, TWO, driver

LINES = {
    "bus: {interface: virtul, channel: a}": (
        "bus.interface: python-can has no interface 'virtul'; did you mean 'virtual'?"
    ),
    "bus: {interface: udp_multicast, channel: 10.0.0.1}": (
        "bus.channel: '10.0.0.1' is not a multicast address; use one such as 239.74.163.2"
    ),
    "bus: {interface: socketcan, channel: nocan7}": "bus.channel: no CAN device 'nocan7'; ",
    "bus: {interface: slcan, channel: /dev/does_not_exist}": "bus.channel: no such port '/dev/does_not_exist'",
}


@pytest.mark.parametrize("line", LINES)
def test_a_connection_that_cannot_be_opened_is_reported_at_its_location(command, monkeypatch, line):
    enabled = []
    monkeypatch.setattr(CanDriver, "enable", lambda self, mode: enabled.append(mode))
    Path("rig.yaml").write_text(RIG + driver(line, ELBOW))
    code, _, err = command("run", "rig.yaml", "--yes", "--record", "run.mcap")
    assert (code, len(err), enabled, Path("run.mcap").exists()) == (2, 1, [], False)
    assert err[0].startswith(f"rig.yaml:13 drivers[0].{LINES[line]}")


def test_a_port_that_is_not_there(command):
    text = driver("port: {port: /dev/does_not_exist}", "joints: {elbow: {axis: 0}}")
    Path("rig.yaml").write_text(f"{RIG}{text}schedule: {{step: 20 ms}}\n")
    code, _, err = command("run", "rig.yaml", "--yes")
    assert (code, len(err)) == (2, 1)
    assert err[0].startswith("rig.yaml:13 drivers[0].port.port: no such port '/dev/does_not_exist'")


def test_an_error_of_a_family_is_reported_at_its_key(command):
    for text, message in {
        driver("port: {port: /dev/x}", ELBOW) + "schedule: {step: 20 ms}\n": (
            "joints.elbow.id: on a 'port' a joint is wired by 'axis', not by 'id'"
        ),
        f"drivers: [{{type: cia402, {BUS}, watchdog: 1 ms, {ELBOW}}}]\n": (
            "watchdog: must be longer than the period of 0.001 s, is 0.001 s"
        ),
    }.items():
        Path("rig.yaml").write_text(RIG + text)
        code, _, err = command("run", "rig.yaml", "--yes")
        assert (code, err) == (2, [f"rig.yaml:13 drivers[0].{message}"])


def test_the_emulator_refuses_a_rig_without_drives(command):
    Path("rig.yaml").write_text(RIG)
    assert command.refuses("emulate", "rig.yaml") == [
        "rig.yaml:1: no drives to emulate; give the rig a section 'drivers'"
    ]
    Path("rig.yaml").write_text(RIG + REAL)
    for kind, fix in {"dropp": "did you mean 'drop'?", "what": f"known: {KINDS}", "5": f"known: {KINDS}"}.items():
        assert command.refuses("emulate", "rig.yaml", "--fault", f"kind: {kind}") == [
            f"--fault: no kind of fault '{kind}'; {fix}"
        ]


def test_what_the_command_line_refuses_to_emulate(command):
    Path("rig.yaml").write_text(RIG + REAL)
    for duration in ("0", "-1"):
        assert command.refuses("emulate", "rig.yaml", f"--duration={duration}") == [
            f"--duration: expected 1 us to 1e9 s, got '{duration}'"
        ]
    (reported,) = command.refuses("emulate", "rig.yaml")
    assert reported.startswith("rig.yaml:")
    assert reported.endswith(
        " drivers[0].bus.interface: no other process can reach a 'virtual' bus;"
        " use socketcan (with a vcan) or udp_multicast"
    )


def test_a_fault_of_the_command_line_is_one(command):
    Path("rig.yaml").write_text(RIG + REAL)
    for fault in ("kind: drop}, {kind: delay", "kind: drop} {", "{kind: drop}", "kind: [drop", "kind: drop # all"):
        (reported,) = command.refuses("emulate", "rig.yaml", "--fault", fault)
        assert reported.startswith("--fault: broken YAML: ")
    assert command.refuses("emulate", "rig.yaml", "--fault", "kind: drop, kind: delay") == [
        "--fault: key 'kind' is given twice; the first is in line 1"
    ]


def test_check_prints_only_the_error_of_a_bus_that_is_too_slow(command):
    Path("rig.yaml").write_text(f"{RIG}{REAL}schedule: {{step: 50 us}}\n")
    assert command.refuses("check", "rig.yaml") == [
        f"rig.yaml:13 drivers[0]: 1 drive every 0.05 ms need 14.1 times the capacity of the bus; {SLOW}"
    ]


@pytest.fixture
def far(tmp_path, monkeypatch):
    """far(code): a family `far` by an entry point of another package, whose module has this code."""
    entries = EntryPoints([EntryPoint("far", "far_family", "cosim.drivers")])
    monkeypatch.setattr(plugins, "entry_points", lambda group: entries.select(group=group))
    monkeypatch.syspath_prepend(tmp_path)

    def write(code):
        monkeypatch.delitem(sys.modules, "far_family", raising=False)
        (tmp_path / "far_family.py").write_text(code)

    yield write
    sys.modules.pop("far_family", None)


FAR = driver(BUS, ELBOW).replace("odrive", "far")


def test_a_family_of_another_package_works_like_the_others(far, mistakes, command):
    far("from cosim.drivers.odrive import *\n")
    Path("rig.yaml").write_text(RIG + FAR)
    rig = load_rig("rig.yaml")
    assert [type(group.driver).__name__ for group in rig.engine().hardware_manager.groups] == ["SimDriver", "CanDriver"]
    code, out, _ = command("check", "rig.yaml")
    assert code == 0 and "  driver far: far on virtual a, effort mode, bus load up to 70%" in out
    assert mistakes(FAR.replace("id: 1", "id: 1, ratoi: 3")) == [
        "13 drivers[0].joints.elbow: unknown key 'ratoi'; did you mean 'ratio'?"
    ]
    assert mistakes(FAR.replace("far", "fat")) == ["13 drivers[0].type: unknown driver 'fat'; did you mean 'far'?"]


def test_a_family_that_cannot_be_imported(far, mistakes):
    far("import nowhere_at_all\n")
    what = "the driver cannot be imported: ModuleNotFoundError: No module named 'nowhere_at_all'"
    assert mistakes(FAR) == [f"entry point far_family: {what}"]


def test_a_family_that_lacks_a_name(far, mistakes):
    far("from cosim.drivers.odrive import *\ndel MODES, traffic\n")
    assert mistakes(FAR) == ["13 drivers[0].type: entry point far_family is no driver: it does not define MODES and"
                             " traffic"]  # fmt: skip
    far("from cosim.drivers.odrive import *\nclass JointParams: pass\n")
    assert mistakes(FAR) == [
        "13 drivers[0].type: entry point far_family is no driver: it has a JointParams that is no dataclass"
    ]


def test_joints_named_by_drivers_are_real_and_the_others_are_not(tmp_path):
    (tmp_path / "rig.yaml").write_text(RIG + TWO)
    rig = load_rig(tmp_path / "rig.yaml")
    assert rig.plant.real == ("elbow", "lift") and rig.hardware
    stale = dict(zip(rig.joints, np.isfinite(rig.guard.stale), strict=True))
    assert [name for name, finite in stale.items() if finite] == ["elbow", "lift"]
    with pytest.raises(InputError, match="'joints' or 'loads'"):
        load_rig(tmp_path / "rig.yaml", ["drivers.b.loads={lift: {id: 3, effort: 1}}"])
