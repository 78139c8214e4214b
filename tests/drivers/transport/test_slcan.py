"""The adapter's protocol: every command with its answer, noise, and python-can's own host on the other side."""

from __future__ import annotations

import errno
import sys
import time

import can
import pytest
import serial
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.drivers.transport import CanFrame, CanParams, ConnectionLost, device_link, host_link, now
from cosim.errors import InputError

from .conftest import place

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pseudo terminals are those of Linux")
SOON = 2_000_000_000  # ns in which anything that comes at all has come
BIT = 5e5
AT_ONCE = {"sleep_after_open": 0}


@pytest.fixture
def adapter(tmp_path):
    """adapter(**params) -> the device's end, open; closed afterwards."""
    made = []

    def make(bitrate=BIT, **more):
        params = CanParams("slcan", str(tmp_path / "tty"), bitrate, options=AT_ONCE, **more)
        made.append(device_link(params, place))
        made[-1].open()
        return made[-1]

    yield make
    for link in made:
        link.close()


@pytest.fixture
def ask(adapter, tmp_path):
    """ask(commands, **params of the adapter) -> its answers and the frames that it passed on; lines: of text that come
    back, where they are not as many as commands."""
    ports = []

    def exchange(text, lines=None, **more):
        if not ports:
            exchange.adapter = adapter(**more)
            ports.append(serial.Serial(str(tmp_path / "tty"), 115200, timeout=2))
        ports[0].write(text.encode("latin-1"))
        wanted = text.count("\r") if lines is None else lines
        written, frames, began = b"", [], now()
        while written.count(b"\r") + written.count(b"\a") < wanted or now() < began + 20_000_000:
            assert now() < began + SOON
            frame = exchange.adapter.receive(now() + 2_000_000)
            frames.extend([] if frame is None else [frame._replace(t_ns=0)])
            written += ports[0].read(ports[0].in_waiting)
        return written.decode("latin-1"), frames

    yield exchange
    for port in ports:
        port.close()


COMMANDS = [
    # Lawicel CAN232 manual, version 3: commands in the order of the manual, examples of its own
    ("S6\r", "\r"),
    ("SA\r", "\a"),
    ("S\r", "\a"),
    ("s031C\r", "\r"),
    ("s03\r", "\a"),
    ("sxyzw\r", "\a"),
    ("O\r", "\a"),  # no bit rate yet
    ("S6\rO\r", "\r\r"),
    ("S6\rO\rO\r", "\r\r\a"),
    ("S6\rO\rS6\r", "\r\r\a"),
    ("S6\rO\rs031C\r", "\r\r\a"),
    ("S6\rL\r", "\r\r"),
    ("C\r", "\r"),
    ("C1\r", "\a"),
    ("S6\rO\rC\r", "\r\r\r"),
    ("t10021133\r", "\a"),  # closed
    ("S6\rL\rt10021133\r", "\r\r\a"),  # listens only
    ("S6\rO\rt10021133\r", "\r\r\r"),
    ("S6\rO\rt1002113\r", "\r\r\a"),
    ("S6\rO\rt1002113344\r", "\r\r\a"),
    ("S6\rO\rt100211x3\r", "\r\r\a"),
    ("S6\rO\rt1009112233445566778899\r", "\r\r\a"),
    ("S6\rO\rt80001\r", "\r\r\a"),
    ("S6\rO\rt\r", "\r\r\a"),
    ("S6\rO\rT2000000080\r", "\r\r\a"),
    ("S6\rO\rr1002\r", "\r\r\r"),
    ("S6\rO\rr100211\r", "\r\r\a"),
    ("S6\rO\rR001000008\r", "\r\r\r"),
    ("S6\rO\rd1000\r", "\r\r\a"),  # a bus without CAN FD
    ("F\r", "\a"),
    ("S6\rO\rF\r", "\r\rF00\r"),
    ("V\r", "V1013\r"),
    ("N\r", "NC051M\r"),
    ("V1\r", "\a"),
    ("\r\r", "\r\r"),
    ("Q\r", "\a"),
    ("\xff\xfe\r", "\a"),
]


@pytest.mark.parametrize(("text", "answer"), COMMANDS)
def test_answers(text, answer, ask):
    assert ask(text)[0] == answer
    frame_or_noise = text.removesuffix("\r").rpartition("\r")[2][:1] not in "SsOLCVNFY"
    assert ask.adapter.meter.errors == (answer.endswith("\a") and frame_or_noise)


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ("t10021133", CanFrame(0x100, b"\x11\x33")),
        ("t0200", CanFrame(0x020, b"")),
        ("T0000010021133", CanFrame(0x100, b"\x11\x33", extended=True)),
        ("T1fffffff8aAbBcCdDeEfF0011", CanFrame(0x1FFFFFFF, bytes.fromhex("aabbccddeeff0011"), extended=True)),
        ("r1002", CanFrame(0x100, bytes(2), remote=True)),
        ("R001000008", CanFrame(0x100000, bytes(8), extended=True, remote=True)),
        ("d1009" + 12 * "5A", CanFrame(0x100, 12 * b"\x5a", fd=True)),
        ("D00000100F" + 64 * "5A", CanFrame(0x100, 64 * b"\x5a", extended=True, fd=True)),
        ("b1009" + 12 * "5A", CanFrame(0x100, 12 * b"\x5a", fd=True, switched=True)),
        ("B00000100F" + 64 * "5A", CanFrame(0x100, 64 * b"\x5a", extended=True, fd=True, switched=True)),
    ],
)
def test_frames_of_the_host(text, frame, ask):
    answer, frames = ask(f"S6\rY2\rO\r{text}\r", fd=True, data_bitrate=2e6)
    assert (answer, frames) == ("\r\r\r\r", [frame])
    assert ask.adapter.meter.items_in == 1


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (CanFrame(0x1A, b"\xab"), "t01A1AB\r"),
        (CanFrame(0x1A, b"\xab", extended=True), "T0000001A1AB\r"),
        (CanFrame(0x1A, bytes(4), remote=True), "r01A4\r"),
        (CanFrame(0x1A, bytes(4), extended=True, remote=True), "R0000001A4\r"),
        (CanFrame(0x1A, b"\xab" * 11, fd=True), "d01A9" + 11 * "AB" + "00\r"),
        (CanFrame(0x1A, b"\xab" * 64, True, True, True), "B0000001AF" + 64 * "AB" + "\r"),
    ],
)
def test_frames_for_the_host(frame, text, ask):
    ask("S6\rY2\rO\r", fd=True, data_bitrate=2e6)
    ask.adapter.send(frame, now() + SOON)
    assert ask("", lines=1) == (text, [])


@pytest.mark.parametrize(
    ("speed", "bitrate"),
    # bus timing registers of the SJA1000 at 16 MHz, as CiA recommends them: 1 Mbit/s, 500 and 125 kbit/s
    [("S8", 1e6), ("S0", 1e4), ("S9", 83300), ("s0014", 1e6), ("s001C", 5e5), ("s031C", 125e3)],
)
def test_bit_rates(speed, bitrate, ask):
    answer, frames = ask(f"{speed}\rO\rt0010\r", bitrate=bitrate)
    assert (answer, frames) == ("\r\r\r", [CanFrame(1, b"")])


def test_at_another_bit_rate_frames_go_nowhere(ask):
    assert ask("S5\rO\rt0010\r") == ("\r\r\r", [])
    ask.adapter.send(CanFrame(1, b""), now() + SOON)
    assert ask("") == ("", [])
    assert (ask.adapter.meter.errors, ask.adapter.meter.items_in, ask.adapter.meter.items_out) == (2, 0, 0)
    assert ask("C\rS6\rO\rt0010\r")[1] == [CanFrame(1, b"")]


def test_at_another_data_rate_only_switched_frames_go_nowhere(ask):
    rates = "S6\rY5\rO\r"
    assert ask(f"{rates}b0010\rd0010\rt0010\r", fd=True, data_bitrate=2e6)[1] == [
        CanFrame(1, b"", fd=True),
        CanFrame(1, b""),
    ]
    assert ask.adapter.meter.errors == 1
    assert ask("Y9\rC\rY9\r")[0] == "\a\r\a"


def test_a_closed_adapter_passes_nothing_on(ask):
    ask("S6\r")
    ask.adapter.send(CanFrame(1, b""), now() + SOON)
    assert ask("") == ("", [])
    assert ask.adapter.meter.errors == 1


def test_commands_come_in_pieces(ask):
    assert ask("S6\rO") == ("\r", [])
    assert ask("\rt10021") == ("\r", [])
    assert ask("133\rt1") == ("\r", [CanFrame(0x100, b"\x11\x33")])


def test_noise_without_an_end_is_dropped(ask):
    assert ask("S6\rO\r")[0] == "\r\r"
    assert ask("x" * 5000) == ("", [])
    assert ask.adapter.meter.errors > 0
    assert ask("\rt0010\r")[1] == [CanFrame(1, b"")]


@given(st.lists(st.binary(max_size=40) | st.sampled_from([b"S6\r", b"O\r", b"C\r", b"t0011", b"22\r"]), max_size=20))
@settings(max_examples=150)
def test_noise_never_fails_and_every_command_is_answered(chunks):
    link, answers = device_link(CanParams("slcan", "unused", BIT), place), []
    link._port.send = lambda item, deadline_ns: answers.append(item)
    for chunk in chunks:
        link._take(chunk)
    written, commands = b"".join(answers), b"".join(chunks).count(b"\r")
    assert written.count(b"\r") + written.count(b"\a") == commands


# --- python-can on the other side --------------------------------------------------------------------


@pytest.mark.parametrize(
    "frame",
    [
        CanFrame(0x123, b"\x01\x02"),
        CanFrame(0x123, b"\x01\x02", extended=True),
        CanFrame(0x123, bytes(4), remote=True),
        CanFrame(0x123, bytes(4), extended=True, remote=True),
        CanFrame(0x123, bytes(range(48)), extended=True, fd=True, switched=True),
        CanFrame(0x123, bytes(range(12)), fd=True),
    ],
)
def test_frames_go_both_ways(frame, adapter):
    device = adapter(fd=True, data_bitrate=2e6)
    host = host_link(device.params, place)
    host.open()
    host.send(frame, now() + SOON)
    got = device.receive(now() + SOON)
    assert got._replace(t_ns=0) == frame
    assert 0 < got.t_ns <= now()
    device.send(frame, now() + SOON)
    assert host.receive(now() + SOON)._replace(t_ns=0) == frame
    assert host.receive(0) is None
    assert (host.meter.errors, device.meter.errors) == (0, 0)
    assert host.meter.bits_out == device.meter.bits_in == host.meter.bits_in == device.meter.bits_out > 0
    host.close()
    assert device.receive(now() + 50_000_000) is None  # closed like that by the host
    device.send(frame, now() + SOON)
    assert device.meter.errors == 1


def test_another_bit_rate_of_the_host(adapter, tmp_path):
    device = adapter()
    host = host_link(CanParams("slcan", str(tmp_path / "tty"), 1e6, options=AT_ONCE), place)
    host.open()
    host.send(CanFrame(1, b""), now() + SOON)
    assert device.receive(now() + 50_000_000) is None
    assert device.meter.errors == 1
    host.close()


def test_another_program_with_python_can(adapter, tmp_path):
    device = adapter()
    with can.Bus(interface="slcan", channel=str(tmp_path / "tty"), bitrate=500000, sleep_after_open=0) as other:
        other.send(can.Message(arbitration_id=7, is_extended_id=False, data=b"abc"))
        assert device.receive(now() + SOON)[:2] == (7, b"abc")
        device.send(CanFrame(8, b"defg"), now() + SOON)
        message = other.recv(2)
        assert (message.arbitration_id, bytes(message.data)) == (8, b"defg")


def test_silence_ends_with_the_deadline(adapter):
    device = adapter()
    host = host_link(device.params, place)
    host.open()
    for link in (host, device):
        link.receive(now() + 20_000_000)
        began = now()
        assert link.receive(began + 10_000_000) is None
        assert 9_000_000 < now() - began < 500_000_000
    host.close()


def test_an_adapter_that_is_pulled_out_and_put_in_again(adapter):
    device = adapter()
    host = host_link(device.params, place)
    host.open()
    host.send(CanFrame(1, b""), now() + SOON)
    assert device.receive(now() + SOON).id == 1
    device.close()
    port, kept = host._bus.serialPortOrig, []
    for use in (lambda: host.receive(now() + SOON), lambda: host.send(CanFrame(1, b""), 0)):
        with pytest.raises(ConnectionLost) as caught:
            use()
        assert str(caught.value).startswith(f"{host.name}: the connection is lost (")
        assert str(caught.value).endswith("); check the cable and the power of the adapter")
        kept.append(caught.value)
    assert not host.reopen()
    assert not port.is_open
    device.open()
    time.sleep(0.11)
    assert host.reopen()
    host.send(CanFrame(2, b""), now() + SOON)
    assert device.receive(now() + SOON).id == 2
    host.close()


def test_the_device_knows_when_its_pseudo_terminal_fails(adapter):
    device = adapter()
    device._port.close()
    for use in (lambda: device.receive(0), lambda: device.receive(0), lambda: device.send(CanFrame(1, b""), 0)):
        with pytest.raises(ConnectionLost) as caught:
            use()
        assert str(caught.value) == f"{device.name}: the connection is not open"
    assert device.lost
    assert device.reopen()
    assert device.receive(0) is None
    device._take(b"S6\rO\r")
    device._port.close()
    with pytest.raises(ConnectionLost):
        device.send(CanFrame(1, b""), 0)
    assert device.lost


# --- mistakes ------------------------------------------------------------------------------------------


def refused(params, end=host_link):
    with pytest.raises(InputError) as caught:
        end(params, place).open()
    return str(caught.value)


def test_mistakes(adapter, tmp_path, monkeypatch):
    path = str(tmp_path / "tty")
    monkeypatch.setattr("cosim.drivers.transport.serial._ports", lambda: "; there are: /dev/ttyACM0")
    what = f"rig.yaml:7 channel: no such port '{path}'; there are: /dev/ttyACM0"
    assert refused(CanParams("slcan", path, options=AT_ONCE)) == what
    device = adapter()
    rates = "10000, 20000, 50000, 100000, 125000, 250000, 500000, 750000, 1000000, 83300"
    what = f"slcan cannot run at 123456 bit/s: Invalid bitrate, choose one of {rates}"
    assert refused(CanParams("slcan", path, 123456, options=AT_ONCE)) == f"rig.yaml:7 bitrate: {what}"
    what = "slcan cannot send data at 4e+06 bit/s: Invalid data bitrate, choose one of 0, 2000000, 5000000"
    fast = CanParams("slcan", path, BIT, fd=True, data_bitrate=4e6, options=AT_ONCE)
    assert refused(fast) == f"rig.yaml:7 data_bitrate: {what}"
    host = host_link(device.params, place)
    host.open()
    busy = f"rig.yaml:7 channel: the port '{path}' is busy; end the program that uses it"
    assert refused(device.params) == busy
    host.close()


@pytest.mark.parametrize("speed", ["fast", "0", ""])
def test_mistakes_of_the_device(speed, tmp_path):
    path = str(tmp_path / "tty")
    what = f"rig.yaml:7 channel: '{speed}' is not a baud rate; use '{path}@115200'"
    if speed:
        assert refused(CanParams("slcan", f"{path}@{speed}"), device_link) == what
    path = str(tmp_path / "dev" / "tty")
    what = f"rig.yaml:7 channel: no folder '{tmp_path}/dev' for the port '{path}'; make it"
    assert refused(CanParams("slcan", path), device_link) == what


def test_the_baud_rate_of_the_adapter(tmp_path):
    path = str(tmp_path / "tty")
    params = CanParams("slcan", f"{path}@921600", BIT, options=AT_ONCE)
    device, host = device_link(params, place), host_link(params, place)
    device.open()
    host.open()
    host.send(CanFrame(1, b""), now() + SOON)
    assert device.receive(now() + SOON).id == 1
    host.close()
    device.close()
    with pytest.raises(FileNotFoundError) as caught:
        (tmp_path / "tty").readlink()
    assert caught.value.errno == errno.ENOENT
