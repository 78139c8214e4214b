"""The settings of drives of every family that has some: saved, compared, restored."""

import pytest

from cosim.apps.commissioning.drives_command import (
    _drivers,
    _opened,
    compare_drives,
    read_all,
    restore_drives,
    save_drives,
)
from cosim.apps.commissioning.session import CommissioningSession
from cosim.core.errors import InputError, InputErrors, RunError
from cosim.rig.reading.driver_family import hook
from cosim.rig.sections.rig_spec import read_rig
from tests.conformance import families
from tests.conformance.families import FLOATS, WHOLE_NUMBERS, Case, addresses, cases, rig, section, write_rig

from .lockstep import Lockstep

IN_PYTHON = (case for case in cases() if case.line != "udp_multicast" and not case.compiled)
SETTABLE = [case for case in IN_PYTHON if hook(case.module, "configuration")]  # type: ignore[arg-type]
# a setting of each family, the name of it in its emulated drive, and another value
CHANGED = {
    "moteus": ("servo.max_velocity_derate", 3.5),
    "odrive": ("controller.config.pos_gain", 33.0),
    "cia402": ("6066 following error time out", 250),
    "dynamixel": ("moving_threshold", 20),
    "mit": ("KP_ASR", 2.5e-3),
    "modbus": ("current limit", 12.5),
    "vesc": ("motor bytes 400-403", 0xFEDCBA98),
}

LEAST = {"modbus": 2}  # settings: the map's


def session_of(case: Case, folder) -> tuple[Lockstep, CommissioningSession]:
    data = rig(
        section(case, folder), addresses(case), schedule={"step": "20 ms" if case.family == "modbus" else "5 ms"}
    )
    lockstep = Lockstep(folder, data)
    return lockstep, CommissioningSession(lockstep.rig, "save", lockstep.world)


@pytest.mark.parametrize("case", SETTABLE, ids=str)
def test_settings_are_saved_compared_and_restored(case, tmp_path, capsys):
    lockstep, session = session_of(case, tmp_path)
    file = tmp_path / "drives.yaml"
    save_drives(session, file)
    compare_drives(session, file)
    (values, without), (name, other) = read_all(session), CHANGED[case.family]
    assert without.keys() | values.keys() == {"a", "b"} and len(values["b"]) >= LEAST.get(case.family, 10)
    assert without == ({"a": ""} if case.family == "mit" else {})  # of which one is a Mini Cheetah
    was = values["b"][name]
    module = hook(case.module, "configuration")
    assert module is not None and was != other
    for spec, _ in _drivers(session):
        with _opened(session, spec) as driver:
            module.write(driver, 1, {name: other})
    capsys.readouterr()
    with pytest.raises(RunError) as caught:
        compare_drives(session, file)
    assert caught.value.what == f"1 setting differs from {file}"
    line = f"  b  {name}: {_shown(was)} in the file, {_shown(other)} in the drive\n"
    assert capsys.readouterr().out == line
    asked: list[list[str]] = []

    def refuse(lines: list[str]) -> None:
        asked.append(lines)
        raise InputError("no")

    with pytest.raises(InputError):
        restore_drives(session, file, refuse)
    assert asked[0][1] == line.rstrip() and read_all(session)[0]["b"][name] == pytest.approx(other)
    restore_drives(session, file, lambda lines: None)
    assert "1 setting restored" in capsys.readouterr().out
    for connection in lockstep.server.connections:  # also without power
        connection.drives.reset(lockstep.world.t_ns)
    lockstep.world.wait(lockstep.world.now() + 1_000_000_000)
    if case.family != "cia402":  # the emulated one has no memory without power
        assert read_all(session)[0]["b"][name] == pytest.approx(was, rel=1e-6)
    assert lockstep.off()


def _shown(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.7g}"


FILES = {
    "of another joint": "c: {family: moteus, address: 1, settings: {}}",
    "of another family": "a: {family: odrive, address: 1, settings: {x: 1}}",
    "of another program": "a: {family: moteus, settings: {x: yes please}}",
}


@pytest.fixture
def moteus(tmp_path) -> CommissioningSession:
    return session_of(Case("moteus", "virtual"), tmp_path)[1]


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_a_file_of_other_drives_is_refused(text, moteus, tmp_path, said):
    file = tmp_path / "drives.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        compare_drives(moteus, file)
    said(caught.value)


def test_the_settings_do_not_replace_the_rig(moteus, said):
    file = moteus.rig.spec.path
    text = file.read_bytes()
    with pytest.raises(InputError) as caught:
        save_drives(moteus, file)
    said(caught.value)
    assert file.read_bytes() == text


def test_settings_that_a_drive_lacks_are_not_restored(moteus, tmp_path, capsys, said):
    file = tmp_path / "drives.yaml"
    file.write_text("a: {family: moteus, address: 1, settings: {servo.max_velocity_derat: 3.5}}")
    with pytest.raises(RunError) as caught:
        restore_drives(moteus, file, lambda lines: pytest.fail("asked"))
    said(caught.value)
    said(capsys.readouterr().out)


# --- of one family: another firmware, wrong ranges, drives that have none ---


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
