"""Every driver reports faults, wrong drives, clipped efforts, damaged data and lost connections."""

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from cosim.core.errors import InputError, InputErrors, RunError
from cosim.plugins.drivers.common.motor import FAULT_CAUSES
from cosim.plugins.drivers.common.unknown_requests import MAX_KEPT, MAX_LENGTH, UnknownRequests, shown
from cosim.plugins.drivers.dynamixel import codec as dynamixel
from cosim.plugins.drivers.modbus.codec import checked
from cosim.plugins.drivers.transport import CanFrame, ConnectionLost
from cosim.plugins.drivers.transport.content_packets import packet
from cosim.rig.reading.driver_family import hook
from cosim.rig.rig import Rig
from cosim.rig.sections.rig_spec import read_rig
from cosim.rig.wiring.detect_family import family_at
from tests.conformance.marks import PUSH, assert_has_fix, drivers, engines, every, without_b
from tests.kit.clock import MS

from .families import JOINTS, Bench, Case, adapters, addresses, lines, rig, section, stepped_cases, write_rig
from .rules import rule
from .wires import Desk

# drives with another model or firmware: different parameters of joint b, change of the emulator, words of the error
STRANGERS: dict[str, tuple[dict[str, Any], Callable[[Any, Any], object], str]] = {
    "cia402": ({"vendor": 77}, lambda emulator, patch: None, "vendor 0x4D"),
    "dynamixel": ({"model": "XM540-W270"}, lambda emulator, patch: None, "is XM540-W270, not XM430-W350"),
    "mit": ({"max_effort": 2.0}, lambda emulator, patch: None, "has the ranges 12.5 rad, 20 rad/s, 2 N*m, not"),
    "modbus": ({}, lambda emulator, patch: setattr(emulator.drives[1], "model", 7), "has 7 in register 4096, not 402"),
    "moteus": ({}, lambda emulator, patch: _of_another_map(patch), "register map 3"),
    "odrive": ({}, lambda emulator, patch: _of_another_firmware(emulator), "firmware 0.5.6"),
    "serial_text": ({}, lambda emulator, patch: emulator.models.update({1: "gripper"}), "is 'gripper', not 'arm'"),
    "vesc": ({"pole_pairs": 21}, lambda emulator, patch: None, "is set up for a motor with 42 poles"),
    "template": ({}, lambda emulator, patch: setattr(emulator, "version", 2), "has protocol 2; update its firmware"),
}


# how drives name what the emulation calls so
NAMES = {
    "overtemperature": ("temperature", "overheating"),
    "overcurrent": ("current", "overload", "motor driver"),
    "undervoltage": ("voltage",),
    "encoder": ("encoder", "sensor", "estimate"),
}


@engines
@rule(11)
def test_a_fault_is_reported_and_stays_until_it_is_cleared(bench):
    """Each cause; in real time one of them, as a line does not know them."""
    driver = bench.open("effort")
    for cause in FAULT_CAUSES if bench.case.stepped else FAULT_CAUSES[:1]:
        bench.drive(lambda: bench.out.velocity[1] > 0.1, effort=PUSH)
        reported_until_cleared(bench, driver, cause)
    bench.drive(lambda: bench.out.velocity[1] > 0.1, effort=PUSH)


def reported_until_cleared(bench, driver, cause):
    motor = bench.motors[0]
    motor.fault_cause = cause
    for _ in bench.until(lambda: bench.out.fault[0]):
        bench.write(effort=PUSH)
        bench.read()
    assert bench.out.fault[1] == 0
    words = driver.describe_fault(0, int(bench.out.fault[0]))
    assert bench.out.fault[0] > 0 and any(name in words.lower() for name in NAMES[cause]), words
    assert_has_fix(words)
    for _ in bench.until(lambda: not motor.requested):
        pass
    motor.fault_cause = ""
    steps = bench.emulation.steps + 20
    for _ in bench.until(lambda: bench.emulation.steps > steps):
        bench.write(effort=PUSH)
        assert bench.read().fault[0]
        assert motor.requested == 0.0
    for _ in range(2):
        with pytest.raises(RunError, match=words.partition(" (")[0]):
            driver.enable("effort")
        bench.off()
    driver.clear()
    driver.enable("effort")
    assert not bench.fresh().fault.any()


@drivers
@rule(11)
def test_any_fault_code_has_a_description(bench):
    for code in (1, -1, 99, -99, 123456, 0x7FFFFFFF, -(2**31), 2**40):
        assert_has_fix(bench.driver.describe_fault(0, code))


def refused(bench: Bench, joint: str) -> str:
    """The error message when the driver cannot be opened."""
    with pytest.raises(InputError) as caught:
        bench.driver.open()
    bench.off(0.01)
    with pytest.raises(RunError):
        bench.driver.link.receive(0)
    return said(caught.value, joint)


def said(error: InputError, joint: str) -> str:
    """The message of an error at a joint."""
    assert "rig.yaml" in str(error.place) and f".joints.{joint}" in str(error.place)
    assert "\n" not in error.what and "; " in error.what
    return error.what


@drivers
@rule(12)
def test_silence_is_refused_with_what_to_check(bench):
    bench.disturb("drop")
    assert refused(bench, "a").startswith("no answer from ")
    bench.disturb()
    bench.open("effort")  # the first attempt has no effect


@drivers
@rule(12)
def test_a_drive_with_another_address_is_refused(case, tmp_path):
    with Bench(case, tmp_path, device=without_b) as bench:
        refused(bench, "b")


@drivers
@rule(12)
def test_a_drive_of_another_kind_is_refused(case, tmp_path, monkeypatch):
    if case.family not in STRANGERS:
        pytest.skip(f"tests/conformance/test_reports.py: STRANGERS has no entry for '{case.family}'")
    keys, change, words = STRANGERS[case.family]

    def other(rig):
        rig["drivers"][0]["joints"]["b"].update(keys)

    def expected(rig):
        rig["drivers"][0]["joints"]["b"].update({"vendor": 78} if "vendor" in keys else {})

    with Bench(case, tmp_path, device=other, host=expected) as bench:
        bench.there(lambda: change(bench.line.drives, monkeypatch))
        assert words in refused(bench, "b" if keys else "a")


def _of_another_map(patch: Any) -> None:
    from cosim.plugins.drivers.moteus.device import bank
    from cosim.plugins.drivers.moteus.registers import MAP_VERSION

    patch.setitem(bank._WHOLE, MAP_VERSION, lambda servo: 3)


def _of_another_firmware(emulator: Any) -> None:
    emulator.firmware = (0, 5, 6)
    for node in getattr(emulator, "nodes", ()):
        node.firmware = (0, 5, 6)


@drivers
@pytest.mark.parametrize("limit", ["effort", "velocity"])
@rule(13)
def test_a_limit_beyond_the_drives_own_is_refused(case, tmp_path, limit):
    def wide(rig):
        rig["joints"]["b"]["limits"][limit] = 1000.0

    try:
        bench = Bench(case, tmp_path, host=wide)
    except InputErrors as error:  # by the rig alone, such as by the range of a model
        (found,) = error.errors
        what = said(found, "b")
    else:
        with bench:
            what = refused(bench, "b")
    assert limit in what and "limit" in what


@drivers
def test_two_joints_at_one_node_are_a_mistake(case, tmp_path):
    first, _ = addresses(case)
    path = write_rig(tmp_path / "rig.yaml", rig(section(case, tmp_path), (first, dict(first))))
    with pytest.raises(InputErrors, match="belongs to joint 'a' already; give each drive its own"):
        read_rig(path)


@drivers
@rule(13)
def test_efforts_beyond_the_field_are_clipped_and_counted(bench):
    driver = bench.open("effort")
    rows = driver.report()
    assert [row["joint"] for row in rows] == list(JOINTS)
    bench.write(effort=[1e6, -1e6])
    for _ in bench.until(lambda: min(map(abs, bench.asked)) > PUSH):
        pass
    for motor in bench.motors:
        assert abs(motor.requested) <= motor.max_effort
    assert bench.asked[0] < 0 and bench.asked[1] < 0  # the direction of the first is -1
    driver.stop()
    for row in driver.report():
        limit = math.inf if row["limit"] is None else row["limit"]
        assert row["resolution"] >= 0.0 and limit > 0.0
        assert row["saturated"] == (1 if limit < 1e6 else 0)


@every
@rule(14)
def test_damaged_data_are_counted_and_change_nothing(bench):
    """Truncated answers on buses; damaged answers and noise on serial links."""
    bench.open("effort")
    answered, send, dice = [], bench.line.link.send, random.Random(5)
    bench.line.link.send = lambda item, deadline: (answered.append(item), send(item, deadline))
    for _ in bench.until(lambda: len(answered) > 20):
        bench.write()
        bench.read()
    del bench.line.link.send
    counted = bench.driver.lost + bench.driver.link.meter.errors
    serial = getattr(bench.line.link, "serial", None)  # of an adapter for frames
    disturbed, through = bench.line.faulty_connection, bench.line.faulty_connection.through
    for k, item in enumerate(answered[:20]):
        if isinstance(item, bytes) and k == 3:
            break
        if isinstance(item, bytes):
            disturbed.through = lambda items, t_ns, inward: through(
                items if inward else map(spoiled, items), t_ns, inward
            )
        elif serial is not None:
            bench.there(lambda: serial.send(dice.randbytes(20) + b"\r\n", bench.now() + 100 * MS))
        else:
            short = item._replace(data=item.data[: dice.randrange(1, 4)])
            bench.there(lambda short=short: bench.line.link.send(short, bench.now() + 100 * MS))
        bench.write()
        bench.read()
        assert not bench.out.fault.any()
    disturbed.through = through
    bench.drive(lambda: bench.out.velocity[1] > 0.1, effort=PUSH)
    assert bench.driver.lost + bench.driver.link.meter.errors > counted


def spoiled(item: bytes) -> bytes:
    """With one bit inverted in the middle."""
    half = len(item) // 2
    return b"%b%c%b" % (item[:half], item[half] ^ 4, item[half + 1 :])


@every
@rule(15)
def test_a_lost_connection_can_be_opened_again(bench):
    driver = bench.open("effort")
    bench.drive(lambda: all(bench.asked), effort=PUSH)
    bench.lose_connection()
    lost = RunError if bench.case.stepped else ConnectionLost
    with pytest.raises(lost):
        for _ in bench.until(lambda: False):
            bench.write()
            bench.read()
    assert driver.link.lost
    with pytest.raises(lost):
        bench.write()
    begun = bench.now()
    driver.stop()
    driver.close()
    assert bench.now() - begun < 2000 * MS
    bench.open_device()
    for _ in bench.until(lambda: not any(bench.asked)):  # the watchdog
        pass
    driver.open()
    try:
        driver.enable("effort")
    except RunError as error:  # for some the watchdog is a fault
        assert "watchdog" in str(error) or "heartbeat" in str(error)
        driver.clear()
        driver.enable("effort")
    bench.drive(lambda: bench.out.velocity[1] > 0.1, effort=PUSH)


@engines
@rule(15)
def test_drives_that_a_program_left_on_are_switched_off(bench):
    driver = bench.open("effort")
    bench.drive(lambda: all(bench.asked), effort=PUSH)
    driver.link.close()  # as after a killed program
    driver.open()
    bench.off()
    driver.enable("effort")
    bench.drive(lambda: bench.out.velocity[1] > 0.1, effort=PUSH)


# --- a drive of another family at an address is named, and motors stay as they are ---


def _asked(case: Case) -> bool:
    """Whether the drives of a case answer what is asked there."""
    scan = hook(case.module, "scan")  # type: ignore[arg-type]
    return hasattr(scan, "ask")


# a Mini Cheetah answers nothing that a drive of another family may be sent: joint b is a Damiao drive
PLAIN = (*stepped_cases(), *adapters())


def _of_another_family(own: Case, asked: bool) -> Case | None:
    """The next case behind this one on its kind of line; asked: whose drives answer."""
    k = PLAIN.index(own)
    behind = (other for other in (*PLAIN[k:], *PLAIN[:k]) if other.family != own.family and other.line == own.line)
    return next((other for other in behind if not asked or _asked(other)), None)


# each driver meets drives of another family, and drives of each family that answers meet another driver
PAIRS = [(own, _of_another_family(own, asked=True)) for own in PLAIN]
PAIRS += [(_of_another_family(other, asked=False), other) for other in PLAIN if _asked(other)]


def _rig(bench: Bench, own: Case, folder) -> Rig:
    """A rig whose joint b has a driver of another family on the connection of the bench."""
    field, _ = lines(bench.case.module)[bench.case.line]
    connection = getattr(bench.spec.plugin.params, field)
    here, names = section(own, folder), ("interface", "channel") if field == "bus" else ("port", "baudrate")
    here[field] |= {name: getattr(connection, name) for name in names}
    data = rig(here, addresses(own))
    if getattr(connection, "fd", False):
        here[field]["fd"] = True
    (key, *_), (other, *_) = (addresses(case)[1] for case in (own, bench.case))
    wiring = {**addresses(own)[1], key: 1 if "axis" in (key, other) else 2}
    data["drivers"][0]["joints"] = {"b": wiring}
    return Rig(read_rig(write_rig(folder / "own.yaml", data)), interpret=True)


@pytest.mark.parametrize(("own", "other"), dict.fromkeys(pair for pair in PAIRS if None not in pair), ids=str)
def test_a_drive_of_another_family_is_named(own, other, tmp_path, monkeypatch):
    with Bench(other, tmp_path) as bench:
        bench.lend(monkeypatch)
        rows = bench.asking()
        made = _rig(bench, own, tmp_path)
        with pytest.raises(InputError) as caught:
            made.run(duration=0.1)
        address = made.spec.drivers[0].wiring["b"].address
        wanted = f"node {address} on {bench.line.link.name} answers as a drive of type '{other.family}', not"
        assert caught.value.what == f"{wanted} '{own.family}'; correct 'type' or the address"
        assert ".joints.b." in str(caught.value.place)
        assert not any(effort for _, effort in rows) and not any(motor.enabled for motor in bench.motors)


def test_nothing_is_named_where_nothing_answers(tmp_path):
    case = next(case for case in PLAIN if (case.family, case.line) == ("odrive", "virtual"))
    spec = read_rig(write_rig(tmp_path / "rig.yaml", rig(section(case, tmp_path), addresses(case)))).drivers[0]
    assert family_at(spec, 5) == ""


# --- what an emulated drive does not know is shown once, by every family; what a driver sends is known ---

# on a connection in memory; the others have the same emulators
APART = stepped_cases()
apart = pytest.mark.parametrize("case", APART, ids=str)

# (a request that a family does not have, to the drive 1 of its bench, and how it is shown)
UNKNOWN: dict[tuple[str, str], tuple[Any, str]] = {
    ("cia402", "virtual"): (CanFrame(0x601, bytes.fromhex("a017100000000000")), "node 1: SDO command 0xa0, aborted"),
    ("dynamixel", "pty"): (dynamixel.packet(1, 0x20), "id 1: instruction 0x20, answered by an error"),
    ("mit", "virtual"): (CanFrame(1, b"\xff\xff"), "node 1: a frame of 2 bytes"),
    ("modbus", "pty"): (checked(b"\x01\x07"), "node 1: function 7, answered by exception 1"),
    **dict.fromkeys(
        (("moteus", "virtual"), ("moteus", "pty")),
        (
            CanFrame(0x8001, b"\x40\x01\x0bflash wipe\n", extended=True, fd=True),
            "node 1: 'flash wipe' on its console, answered by an error",
        ),
    ),
    ("odrive", "virtual"): (CanFrame(0x3E, bytes(8)), "node 1: 8 bytes of command 0x1e"),
    ("odrive", "pty"): (b"r axis0.nothing\n", "property 'axis0.nothing', answered by 'invalid property'"),
    ("serial_text", "pty"): (b"dance 1\n", "a line that begins with 'dance'"),
    ("template", "virtual"): (CanFrame(0x401, b""), "node 1: a frame 0x401 of 0 bytes"),
    ("vesc", "virtual"): (CanFrame(0x801, b"\xfe\x00\x60", extended=True), "VESC 1: command 96"),
    ("vesc", "pty"): (packet(b"\x60"), "VESC 1: command 96"),
}


@pytest.fixture
def desk(case: Case, tmp_path, monkeypatch) -> Desk:
    return Desk(case, tmp_path, monkeypatch)


@apart
def test_what_the_driver_sends_is_known(desk):
    desk.client()
    assert desk.wire.sent and desk.emulator.unknown.count == 0, desk.emulator.unknown.taken()


@apart
def test_what_is_not_known_is_noted_once(case, desk):
    request, what = UNKNOWN[case.family, case.line]
    for _ in range(3):
        desk.emulator.handle(request, desk.wire.t_ns + 1000 * MS)  # after the drives have started
    assert desk.emulator.unknown.taken() == [what]
    assert desk.emulator.unknown.count == 3 and desk.emulator.unknown.taken() == []


def test_requests_of_layer_setting_services_are_noted(tmp_path, monkeypatch):
    desk = Desk(Case("cia402", "virtual"), tmp_path, monkeypatch)
    desk.emulator.handle(CanFrame(0x7E5, bytes.fromhex("0400000000000000")), desk.wire.t_ns)
    assert desk.emulator.unknown.taken() == ["LSS command 0x04"]


def test_what_is_kept_is_bounded():
    unknown = UnknownRequests()
    for k in range(10 * MAX_KEPT):
        unknown.note(f"command {k}")
    assert unknown.taken() == [f"command {k}" for k in range(MAX_KEPT)] and unknown.count == 10 * MAX_KEPT
    assert shown(b"a\x1b[31m\xff" + b"x" * 100) == "a?[31m?" + "x" * (MAX_LENGTH - 7)
