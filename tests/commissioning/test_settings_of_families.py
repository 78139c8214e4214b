"""Settings of drives in the cases that are of one family: another firmware, wrong ranges, drives that have none."""

import pytest

from cosim.commissioning.drive_settings import read_all
from cosim.commissioning.drives_command import compare_drives, restore_drives, save_drives
from cosim.errors import InputErrors, RunError
from cosim.rig.sections.rig_spec import read_rig
from tests.conformance import families
from tests.conformance.families import Case, addresses, rig, section, write_rig
from tests.conformance.register_maps import FLOATS, WHOLE_NUMBERS

from .test_drives import session_of


def test_settings_of_another_firmware_are_not_restored(tmp_path, said):
    lockstep, session = session_of(Case("vesc", "virtual"), tmp_path)
    file = tmp_path / "drives.yaml"
    save_drives(session, file)
    drive = lockstep.server.connections[0].drives.drives[2]
    drive.firmware = (6, 6)
    configuration = bytearray(drive.answer(bytes([14]), 0)[1:])
    configuration[100] = 7
    assert drive.answer(bytes([13]) + configuration, 0) == bytes([13])
    with pytest.raises(RunError) as caught:
        restore_drives(session, file, lambda lines: None)
    said(caught.value)
    assert drive.stored[14] == configuration  # nothing was written
    configuration[0] = 1
    assert drive.answer(bytes([13]) + configuration, 0) == b""  # by its signature


def test_wrong_ranges_of_a_damiao_drive_are_put_right(tmp_path, capsys):
    lockstep, session = session_of(Case("mit", "virtual"), tmp_path)
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


def test_modbus_drives_without_settings_in_their_map_are_named(tmp_path, monkeypatch, capsys, said):
    bare = {key: value for key, value in WHOLE_NUMBERS.items() if key not in ("settings", "store")}
    wired = {"id": 1, "registers": bare}, {"id": 2, "registers": FLOATS}
    monkeypatch.setitem(families.ADDRESSES, "modbus", wired)
    _, session = session_of(Case("modbus", "pty"), tmp_path)
    save_drives(session, tmp_path / "drives.yaml")
    said(capsys.readouterr().out.splitlines()[0])
    assert read_all(session)[0].keys() == {"b"}


@pytest.mark.parametrize("case", [Case("serial_text", "pty"), Case("template", "virtual")], ids=str)
def test_families_without_settings_are_named(case, tmp_path, capsys, said):
    _, session = session_of(case, tmp_path)
    with pytest.raises(RunError) as caught:
        save_drives(session, tmp_path / "drives.yaml")
    said([str(caught.value), capsys.readouterr().out.splitlines()[0]])


WRONG = {
    "no mapping": {"settings": {"x": 5}},
    "unknown key": {"settings": {"x": {"register": 1, "typ": "a"}}},
    "unknown type": {"settings": {"x": {"register": 1, "type": "int8"}}},
    "register too large": {"settings": {"x": {"register": 70000}}},
    "register in words": {"settings": {"x": {"register": "1"}}},
    "store without settings": {"settings": None, "store": {"register": 1, "value": 1}},
}


@pytest.mark.parametrize("changes", WRONG.values(), ids=WRONG)
def test_settings_of_a_map_that_are_wrong(changes, tmp_path, said):
    case = Case("modbus", "pty")
    wired = {**addresses(case)[0], "registers": {**FLOATS, **changes}}
    with pytest.raises(InputErrors) as caught:
        read_rig(write_rig(tmp_path / "rig.yaml", rig(section(case, tmp_path), (wired, addresses(case)[1]))))
    (only,) = caught.value.errors
    assert ".joints.a.registers" in str(only.place)
    said(only)
