"""CANopen frames and SDO transfers of the CiA 402 family to the byte, against manuals of several manufacturers."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.plugins.drivers.cia402 import codec, cycle, faults, process_data, profile, sdo, setup
from cosim.plugins.drivers.cia402.client import request_write
from cosim.plugins.drivers.cia402.device import objects
from cosim.plugins.drivers.cia402.network import NetworkStates
from cosim.plugins.drivers.cia402.process_data import CommandCoder, ProcessMap, chosen
from cosim.plugins.drivers.transport import CanFrame
from tests.drivers.bench import refused
from tests.drivers.cia402.conftest import JOINT
from tests.kit.clock import MS
from tests.kit.cycles import commanded, numbers_in

STEP = codec.Step(0.001, 0.002, 0.0005)


def start(transfer: sdo.Transfer) -> bytes:
    return next(transfer)


def finish(transfer: sdo.Transfer, answer: bytes) -> bytes:
    with pytest.raises(StopIteration) as done:
        transfer.send(answer)
    return done.value.value


# Festo GDCP-CMMP-M3/-M0-C-CO-EN 1510b, 3.2.1 "SDO sequences for reading and writing"
READ = {
    (0x6061, 0): ("40 61 60 00", "4F 61 60 00 01", "01"),
    (0x6041, 0): ("40 41 60 00", "4B 41 60 00 34 12", "34 12"),
    (0x6093, 1): ("40 93 60 01", "43 93 60 01 78 56 34 12", "78 56 34 12"),
}
WRITTEN = {
    (0x1401, 2): ("EF", "2F 01 14 02 EF"),
    (0x6040, 0): ("E8 03", "2B 40 60 00 E8 03"),
    (0x6093, 1): ("78 56 34 12", "23 93 60 01 78 56 34 12"),
}


def padded(text: str) -> bytes:
    return bytes.fromhex(text).ljust(8, b"\0")


def test_reading_and_writing_as_festo_prints_it():
    for key, (request, answer, data) in READ.items():
        transfer = sdo.upload(*key)
        assert start(transfer) == padded(request)
        assert finish(transfer, padded(answer)) == bytes.fromhex(data)
    for key, (data, request) in WRITTEN.items():
        transfer = sdo.download(*key, bytes.fromhex(data))
        assert start(transfer) == padded(request)
        assert finish(transfer, b"\x60" + padded(request)[1:4] + bytes(4)) == b""


def test_refusals_as_festo_prints_them():
    # the same manual, 3.2.2 "SDO error messages": writing the statusword
    transfer = sdo.download(0x6041, 0, bytes(4))
    start(transfer)
    with pytest.raises(sdo.Aborted) as refused:
        transfer.send(bytes.fromhex("80 41 60 00 02 00 01 06"))
    assert refused.value.code == sdo.READ_ONLY
    assert str(refused.value) == "read-only object (abort code 0x06010002)"
    assert sdo.abort(0x6041, 0, sdo.READ_ONLY) == bytes.fromhex("80 41 60 00 02 00 01 06")
    assert str(sdo.Aborted(0x12345678)) == "refused (abort code 0x12345678)"


def test_sdo_frames_as_others_print_them():
    # trace of a CODESYS master that makes node 2 watch node 127 for 300 ms, blog.csdn.net/…/127568371
    frame = request_write(2, setup.CONSUMER, "I", 127 << 16 | 300)
    assert frame == CanFrame(0x602, bytes.fromhex("23 16 10 01 2C 01 7F 00"))
    # PKP2500SI CANopen user manual rev. 1.0, 41.: number of mapped objects, and the first of them (2002h 01h, 16 bit)
    assert sdo.expedited(sdo.UPLOAD_ANSWER, 0x1601, 0, b"\3") == bytes.fromhex("4F 01 16 00 03 00 00 00")
    mapped = struct.pack("<I", 0x20020110)
    assert sdo.expedited(sdo.UPLOAD_ANSWER, 0x1601, 1, mapped) == bytes.fromhex("43 01 16 01 10 01 02 20")
    # Curtis 3401T manual, August 2022, page 47
    for size, write, answer in ((1, 0x2F, 0x4F), (2, 0x2B, 0x4B), (3, 0x27, 0x47), (4, 0x23, 0x43)):
        assert sdo.expedited(sdo.DOWNLOAD, 0x6040, 0, bytes(size))[0] == write
        assert sdo.expedited(sdo.UPLOAD_ANSWER, 0x6040, 0, bytes(size))[0] == answer


def test_segments():
    # command bytes: Nanotec N5 technical manual 2.0.1, page 111 (41h, 60h, 70h); unused bytes: Danfoss MG.33.J1.02, 42
    transfer = sdo.upload(0x1008, 0)
    assert start(transfer) == bytes.fromhex("40 08 10 00 00 00 00 00")
    assert transfer.send(bytes.fromhex("41 08 10 00 09 00 00 00")) == bytes.fromhex("60 00 00 00 00 00 00 00")
    assert transfer.send(b"\x00servo d") == bytes.fromhex("70 00 00 00 00 00 00 00")
    assert finish(transfer, b"\x1brv\0\0\0\0\0") == b"servo drv"
    # segments of a download
    transfer = sdo.download(0x2000, 1, b"nine bytes")
    assert start(transfer) == bytes.fromhex("21 00 20 01 0A 00 00 00")
    assert transfer.send(bytes.fromhex("60 00 20 01 00 00 00 00")) == b"\x00nine by"
    assert transfer.send(b"\x20" + bytes(7)) == b"\x19tes" + bytes(4)
    assert finish(transfer, b"\x30" + bytes(7)) == b""
    # a toggle bit that does not alternate
    transfer = sdo.upload(0x1008, 0)
    start(transfer)
    transfer.send(bytes.fromhex("41 08 10 00 09 00 00 00"))
    with pytest.raises(sdo.Aborted, match="toggle bit not alternated"):
        transfer.send(b"\x10servo d")


def test_answers_that_belong_to_a_request():
    request = sdo.plain(sdo.UPLOAD, 0x6041, 0)
    assert sdo.answers(request, bytes.fromhex("4B 41 60 00 34 12 00 00"))
    assert sdo.answers(request, bytes.fromhex("80 41 60 00 00 00 02 06"))
    assert not sdo.answers(request, bytes.fromhex("4B 40 60 00 34 12 00 00"))  # of another object
    assert not sdo.answers(request, bytes.fromhex("60 41 60 00 00 00 00 00"))  # of a download
    assert not sdo.answers(request, bytes.fromhex("4B 41 60 00"))


def test_network_management_and_emergencies():
    # ABB NCAN-02 start-up guide, page 6-3: 1, 2, 128, 129, 130; Festo 3.7.2: boot-up is one zero byte
    assert codec.nmt(codec.START, 5) == CanFrame(0, b"\x01\x05")
    assert codec.nmt(codec.STOP, 0) == CanFrame(0, b"\x02\x00")
    assert [codec.PRE_OPERATIONAL, codec.RESET_NODE, codec.RESET_COMMUNICATION] == [128, 129, 130]
    assert codec.heartbeat(1, codec.BOOTING) == CanFrame(0x701, b"\x00")
    assert codec.heartbeat(127, codec.RUNNING) == CanFrame(0x77F, b"\x05")
    assert CanFrame(0x80, b"") == codec.SYNC
    # Festo 3.5.2: 81h, eight bytes: E0 E1 R0 0 0 0 0 0
    assert codec.emergency(1, 0x8611, 0x21) == CanFrame(0x81, bytes.fromhex("11 86 21 00 00 00 00 00"))
    assert received("10 23 03 01 02 03 04 05", 2)[cycle.EMERGENCY] == 0x2310
    states = NetworkStates(1)
    states.set_operational(True)
    states.heartbeat(0, 0x85, False)  # running, with the toggle bit of node guarding
    states.heartbeat(0, 0xFF, False)
    assert states.fault(0, 0x1237, 10, 10) == faults.RESTARTED


# Festo 6.1.4, table 6.6 (FAULT in accordance with CiA 402): state -> mask and value of the statusword
STATES = {
    profile.NOT_READY: (0x4F, 0x00),
    profile.DISABLED: (0x4F, 0x40),
    profile.READY: (0x6F, 0x21),
    profile.SWITCHED_ON: (0x6F, 0x23),
    profile.ENABLED: (0x6F, 0x27),
    profile.QUICK_STOP: (0x6F, 0x07),
    profile.REACTING: (0x4F, 0x0F),
    profile.FAULT: (0x4F, 0x08),
}


def test_states_and_the_commands_to_operation_enabled():
    for word in range(0x10000):
        states = [state for state, (mask, value) in STATES.items() if word & mask == value]
        assert states == [state for state in (profile.state_of(word),) if state is not None], f"{word:04x}"
    assert [profile.next_control(s) for s in range(8)] == [0, 0x06, 0x07, 0x0F, 0x0F, 0, 0, 0]
    assert profile.next_control(None) == 0


def cycled(temperature: int | None = None, mode: str = "effort") -> list[cycle.CycledDrive]:
    return [cycle.CycledDrive(3, process_data.mapped(mode, temperature), temperature)]


def sent(mode: str, **command: float) -> list[bytes]:
    """The data of the frames to a drive for a command in SI units at the drive."""
    transmission = cycle.transmission(mode, cycled(mode=mode), codec.SYNC)
    return commanded(cycle.reception(cycled()), transmission, cycle.settings(STEP, mode), **command)


def received(text: str, which: int, temperature: int | None = None) -> list[float]:
    """The numbers of a frame."""
    found = numbers_in(cycle.reception(cycled(temperature)), bytes.fromhex(text), which)
    assert found is not None
    return found


def test_commands_and_answers_of_a_drive():
    (frame,) = (each.frame for each in cycle.transmission("effort", cycled(), codec.SYNC).frames if each.fields)
    assert frame.id == 0x203
    assert sent("effort", effort=-0.25) == [bytes.fromhex("0F 00 0C FE")]
    assert sent("velocity", velocity=2.0, effort=0.5) == [bytes.fromhex("0F 00 E8 03 00 00 E8 03")]
    position, offset = sent("position", position=-1.0, velocity=0.01)
    assert (position, offset) == (bytes.fromhex("0F 00 18 FC FF FF 00 00"), bytes.fromhex("05 00 00 00"))
    # what does not fit is cut
    assert sent("effort", effort=1e9) == [bytes.fromhex("0F 00 FF 7F")]
    assert sent("position", position=-1e9, effort=-1e9)[0] == bytes.fromhex("0F 00 00 00 00 80 00 80")
    # answers of a drive
    assert received("37 16 08 E8 03 00 00", 0)[cycle.STATUSWORD : cycle.PLACE + 1] == [0x1637, 8, 1000]
    assert received("FE FF FF FF E8 03", 1)[cycle.SPEED : cycle.TORQUE + 1] == [-2, 1000]
    assert received("00 00 00 00 00 00 FB 00", 1, temperature=0x32010110)[cycle.WARMTH] == 251


@given(st.binary(max_size=64))
def test_frames_of_another_length_are_damaged(data):
    for temperature, sizes in ((None, (7, 6, 8, 1)), (0x32010110, (7, 8, 8, 1))):
        reception = cycle.reception(cycled(temperature))
        found = [numbers_in(reception, data, which) is not None for which in range(4)]
        assert found == [len(data) == size for size in sizes]


@given(st.binary(max_size=40), st.integers(0, 0xFFFF), st.integers(0, 255))
def test_what_is_downloaded_arrives(data, index, sub):
    transfer, received, expected = sdo.download(index, sub, data), b"", 0
    request = start(transfer)
    assert request[1:4] == struct.pack("<HB", index, sub)
    if 1 <= len(data) <= 4:
        assert sdo.expedited_data(request) == data
        return
    assert struct.unpack("<I", request[4:])[0] == len(data)
    answer = b"\x60" + request[1:]
    while True:
        try:
            request = transfer.send(answer)
        except StopIteration:
            break
        assert request[0] & sdo.TOGGLE == expected
        received += sdo.segment_data(request)
        answer = bytes((sdo.SEGMENT_DOWN_ANSWER | expected,)) + bytes(7)
        expected ^= sdo.TOGGLE
    assert received == data


def test_faults_in_words(said):
    said(map(faults.describe, (0x4310, 0x8611, 0x2350, 0x1000, faults.SWITCHED_OFF, -99)))


@pytest.mark.parametrize(
    ("period", "expected"),
    [(0.001, (1, -3)), (0.004, (4, -3)), (0.0025, (25, -4)), (0.00025, (25, -5)), (0.3, (30, -2)), (5.0, (50, -1))],
)
def test_interpolation_time(period, expected):
    assert setup.interpolation(period) == expected


# --- drives that do not let their process data be mapped: used with their own ---

FIXED = {"fixed_maps": True}


@pytest.fixture
def remapped(monkeypatch):
    """Change the fixed maps of emulated drives: index -> mapped objects."""

    def change(**maps):
        table = dict(objects._FIXED) | {int(name, 16): mapped for name, mapped in maps.items()}
        flat = {index << 8: len(mapped) for index, mapped in table.items()}
        flat |= {index << 8 | k: each for index, mapped in table.items() for k, each in enumerate(mapped, 1)}
        monkeypatch.setattr(objects, "FIXED_MAPS", flat)

    return change


def frames(b, cob_id):
    return [frame.data for frame in b.sent if frame.id == cob_id]


def test_only_the_pdos_that_the_mode_needs_are_exchanged(running):
    b = running(JOINT(id=3), mode="effort", drive=FIXED)
    b.cycle(3)
    node = b.node()
    valid = {
        key for key in (*range(0x140001, 0x140401, 256), *range(0x180001, 0x180401, 256)) if node.value(key) < 2**31
    }
    assert valid == {0x140001, 0x180001, 0x180101}
    b.sent.clear()
    b.write(effort=0.1)
    assert frames(b, 0x203) == [struct.pack("<Hbh", 0x0F, 10, round(0.1e6 / node.rated))]
    assert not frames(b, 0x303) and not frames(b, 0x403)


def test_what_is_not_commanded_keeps_its_value(running):
    b = running(JOINT(id=3), mode="velocity", drive=FIXED, effort=1.0)
    b.cycle(2, velocity=1.0, effort=0.1)
    control, target = frames(b, 0x203)[-1], frames(b, 0x403)[-1]
    assert control == struct.pack("<Hbh", 0x0F, 9, 0)
    assert target == struct.pack("<ihH", round(65536 / 6.283185307), round(0.1e6 / b.node().rated), 1500)
    assert b.node().value(0x607200) == 1500  # the limit of the guard, and not 0


def test_the_temperature_is_read_where_the_own_map_has_it(running):
    b = running(JOINT(id=3, temperature=0x320101), drive=FIXED)
    b.motors[0].temperature = 45.0
    assert b.cycle(3).temperature.tolist() == [45.0]


LACKING = {
    "temperature": {"1A02": ()},
    "target torque": {"1600": (0x60400010, 0x60600008)},
    "whole bytes": {"1A00": (0x60410010, 0x60640020, 0x22000001)},
}


@pytest.mark.parametrize("maps", LACKING.values(), ids=LACKING)
def test_process_data_without_what_the_mode_needs_are_refused(bench, remapped, maps, said):
    remapped(**maps)
    b = bench(JOINT(id=3, temperature=0x320101), drive=FIXED)
    said(refused(b.driver.open))
    assert b.node().state == profile.DISABLED


def test_without_a_torque_offset_efforts_beside_a_position_are_counted_as_clipped(running, remapped):
    remapped(**{"1602": (0x60FF0020,)})
    b = running(JOINT(id=3), mode="position", drive=FIXED)
    b.cycle(3, effort=0.1)
    (report,) = b.driver.report()
    assert report["limit"] == 0.0 and report["saturated"] == 3
    assert b.node().value(0x60B200) == 0


def test_without_velocities_the_positions_give_them(running, remapped):
    remapped(**{"1A01": (0x60610008, 0x60770010)})
    b = running(JOINT(id=3), drive=FIXED)
    b.cycle(200, effort=0.02)
    assert b.out.velocity == pytest.approx([b.motors[0].velocity], rel=0.06) and b.motors[0].velocity > 2.0


def test_a_drive_that_does_not_send_its_mode_is_asked_when_it_is_switched_on(running, remapped):
    remapped(**{"1A01": (0x606C0020, 0x60770010)})
    b = running(JOINT(id=3), mode="position", drive=FIXED)
    assert b.cycle(5).fault.tolist() == [0]
    assert b.driver._cycle.numbers[0][cycle.DISPLAY] == profile.CSP


def test_another_mode_and_a_silent_pdo_are_noticed(running, remapped):
    remapped(**{"1600": (0x60400010, 0x60710010)})
    b = running(JOINT(id=3), drive=FIXED)
    b.cycle(3)
    b.node().mode = profile.CSP
    assert b.cycle(3).fault.tolist() == [faults.OTHER_MODE]
    b.node().mode = profile.CST
    b.cycle(3)
    heard, lost = b.out.t_ns, b.driver.lost
    b.spoil = lambda frame: (frame,) if frame.id != codec.TPDO + codec.PDO_STRIDE + 3 else ()
    b.cycle(20)
    assert b.out.t_ns <= heard + MS and b.driver.lost == lost
    b.driver._take(codec.CanFrame(codec.TPDO + 3, b"12345"))
    assert b.driver.lost == lost + 1


def test_after_a_loss_of_power_the_own_map_is_used_again(running):
    b = running(JOINT(id=3), drive=FIXED)
    b.cycle(3)
    b.emulator.reset(b.t_ns)
    assert b.cycle(3).fault.tolist() == [faults.RESTARTED]
    b.driver.enable("effort")
    assert b.cycle(3).fault.tolist() == [0]


def test_the_first_pdo_with_each_object_is_chosen():
    word, target, mode = 0x60400010, 0x607A0020, 0x60600008
    own = ProcessMap(
        ((0, (word,)), (1, (word, mode)), (2, (word, target)), (3, (word, 0x60FF0020))),
        ((0, (0x60410010,)), (1, (0x60410010, 0x60610008)), (2, (0x60410010, 0x60640020)), (3, (0x60770010,))),
        {},
    )
    found = chosen(own, "position", None)
    assert [number for number, _ in found.receive] == [2]
    assert [number for number, _ in found.transmit] == [1, 2, 3]
    assert own.lacks("position") == () and own.lacks("effort") == (process_data.TORQUE,)
    coder = CommandCoder(ProcessMap(((0, (0x22000018, word)),), (), {0x22000018: 0x030201}), "effort", 10)
    assert coder.data(15, (0,)) == [(0, b"\x01\x02\x03\x0f\x00")]
