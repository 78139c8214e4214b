"""Settings of drives in the cases that are of one family: another firmware, wrong ranges, drives that have none."""

from __future__ import annotations

import pytest

from cosim.commissioning.drive_settings import read_all
from cosim.commissioning.drives_command import compare_drives, restore_drives, save_drives
from cosim.errors import InputErrors, RunError
from cosim.rig.sections.rig_spec import read_rig
from tests.conformance import families
from tests.conformance.families import Case, addresses, rig, section, write_rig
from tests.conformance.register_maps import FLOATS, WHOLE_NUMBERS

from .test_drives import session_of


def test_settings_of_another_firmware_are_not_restored(tmp_path, monkeypatch):
    lockstep, session = session_of(Case("vesc", "virtual"), tmp_path, monkeypatch)
    file = tmp_path / "drives.yaml"
    save_drives(session, file)
    drive = lockstep.server.connections[0].drives.drives[2]
    drive.firmware = (6, 6)
    configuration = bytearray(drive.answer(bytes([14]), 0)[1:])
    configuration[100] = 7
    assert drive.answer(bytes([13]) + configuration, 0) == bytes([13])
    with pytest.raises(RunError) as caught:
        restore_drives(session, file, lambda lines: None)
    what = "the settings are of firmware 6.05, the drive has 6.06"
    assert caught.value.what == f"joint 'b': {what}; install that one, or set the drive up and save it again"
    assert drive.stored[14] == configuration  # nothing was written
    configuration[0] = 1
    assert drive.answer(bytes([13]) + configuration, 0) == b""  # by its signature


def test_wrong_ranges_of_a_damiao_drive_are_put_right(tmp_path, monkeypatch, capsys):
    lockstep, session = session_of(Case("mit", "virtual"), tmp_path, monkeypatch)
    file = tmp_path / "drives.yaml"
    save_drives(session, file)
    assert capsys.readouterr().out.splitlines()[0] == "a: mit node 1 has no settings to save"
    drive = lockstep.server.connections[0].drives.drives[2]
    drive.registers[22] = drive.kept[22] = 45.0
    with pytest.raises(RunError, match="1 setting differs"):
        compare_drives(session, file)
    assert capsys.readouterr().out == "  b  VMAX: 20 in the file, 45 in the drive\n"
    restore_drives(session, file, lambda lines: None)
    assert drive.kept[22] == 20.0 and lockstep.off()


def test_modbus_drives_without_settings_in_their_map_are_named(tmp_path, monkeypatch, capsys):
    bare = {key: value for key, value in WHOLE_NUMBERS.items() if key not in ("settings", "store")}
    wired = {"id": 1, "registers": bare}, {"id": 2, "registers": FLOATS}
    monkeypatch.setitem(families.ADDRESSES, "modbus", wired)
    _, session = session_of(Case("modbus", "pty"), tmp_path, monkeypatch)
    save_drives(session, tmp_path / "drives.yaml")
    first = "a: modbus node 1 has no settings to save; list them under 'registers.settings'"
    assert capsys.readouterr().out.splitlines()[0] == first
    assert read_all(session)[0].keys() == {"b"}


def test_boards_that_speak_text_have_no_settings(tmp_path, monkeypatch, capsys):
    _, session = session_of(Case("serial_text", "pty"), tmp_path, monkeypatch)
    with pytest.raises(RunError) as caught:
        save_drives(session, tmp_path / "drives.yaml")
    assert str(caught.value) == f"{tmp_path}/rig.yaml: no drive of this rig has settings to save"
    assert capsys.readouterr().out.splitlines()[0] == "a: serial_text node 1 has no settings to save"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"settings": {"x": 5}}, "'settings.x' has 'register' and, if needed, scale, type, word_order"),
        ({"settings": {"x": {"register": 1, "typ": "a"}}}, "'settings.x' has 'register' and, if needed, scale, type"),
        ({"settings": {"x": {"register": 1, "type": "int8"}}}, "'settings.x' has an unknown 'type' or 'word_order'"),
        ({"settings": {"x": {"register": 70000}}}, "'settings.x' needs a register from 0 to 65535, and a scale above"),
        ({"settings": {"x": {"register": "1"}}}, "'settings.x' needs a register from 0 to 65535, and a scale above 0"),
        ({"settings": None, "store": {"register": 1, "value": 1}}, "'store' is for 'settings'; give them, or take it"),
    ],
)
def test_settings_of_a_map_that_are_wrong(changes, error, tmp_path):
    case = Case("modbus", "pty")
    wired = {**addresses(case)[0], "registers": {**FLOATS, **changes}}
    with pytest.raises(InputErrors) as caught:
        read_rig(write_rig(tmp_path / "rig.yaml", rig(section(case, tmp_path), (wired, addresses(case)[1]))))
    (only,) = caught.value.errors
    assert ".joints.a.registers" in str(only.place) and only.what.startswith(error)
