"""The settings of drives of every family that has some: saved, compared, restored."""

import pytest

from cosim.commissioning.drive_settings import _drivers, _opened, read_all
from cosim.commissioning.drives_command import compare_drives, restore_drives, save_drives
from cosim.commissioning.session import CommissioningSession
from cosim.errors import InputError, RunError
from cosim.rig.build.family_modules import hook
from tests.conformance.families import Case, addresses, cases, rig, section

from .lockstep import Lockstep

SETTABLE = [case for case in cases() if case.line != "udp_multicast" and hook(case.module, "configuration")]  # type: ignore
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

LEAST = {"modbus": 2}  # settings: those of the map


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
