"""The adapter's protocol: every command with its answer, noise, and python-can's own host on the other side."""

import sys
from dataclasses import replace

import can
import pytest
import serial
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.core.errors import InputError
from cosim.plugins.drivers.transport import CanFrame, CanParams, device_link, host_link, now

from .conftest import SOON, assert_patient, lost, place

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs pseudo terminals of Linux")
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
def host_of():
    """host_of(device, …) -> the host of an adapter, open; closed afterwards."""
    made = []

    def make(device, **more):
        made.append(host_link(replace(device.params, **more), place))
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
        while written.count(b"\r") + written.count(b"\a") < wanted or now() < began + 5_000_000:
            assert now() < began + SOON
            frame = exchange.adapter.receive(now() + 2_000_000)
            frames.extend([] if frame is None else [frame._replace(t_ns=0)])
            written += ports[0].read(ports[0].in_waiting)
        while (frame := exchange.adapter.receive(0)) is not None:
            frames.append(frame._replace(t_ns=0))
        return written.decode("latin-1"), frames

    yield exchange
    for port in ports:
        port.close()


# Lawicel CAN232 manual, version 3: commands in the order of the manual, examples of its own; what precedes each of
# them is accepted
NEW, READY, OPEN, LISTENING = "", "S6\r", "S6\rO\r", "S6\rL\r"
COMMANDS = {
    NEW: {
        **{"S6": "\r", "SA": "\a", "S": "\a", "s031C": "\r", "s03": "\a", "sxyzw": "\a", "C": "\r", "C1": "\a"},
        **{"O": "\a", "t10021133": "\a", "F": "\a"},  # no bit rate yet; closed
        **{"V": "V1013\r", "N": "NC051M\r", "V1": "\a", "\r": "\r\r", "Q": "\a", "\xff\xfe": "\a"},
    },
    READY: {"O": "\r", "L": "\r"},
    LISTENING: {"t10021133": "\a"},
    OPEN: {
        **{"O": "\a", "S6": "\a", "s031C": "\a", "C": "\r", "F": "F00\r"},
        **{"t10021133": "\r", "t1002113": "\a", "t1002113344": "\a", "t100211x3": "\a", "t80001": "\a", "t": "\a"},
        **{"t1009112233445566778899": "\a", "T2000000080": "\a", "r1002": "\r", "r100211": "\a", "R001000008": "\r"},
        "d1000": "\a",  # a bus without CAN FD
    },
}
CASES = [(before, text, answer) for before, answers in COMMANDS.items() for text, answer in answers.items()]


@pytest.mark.parametrize(("before", "text", "answer"), CASES)
def test_answers(before, text, answer, ask):
    assert ask(f"{before}{text}\r")[0] == "\r" * before.count("\r") + answer
    assert ask.adapter.meter.errors == (answer == "\a" and text[0] not in "SsOLCVNFY")


FD = {"fd": True, "data_bitrate": 2e6}
FRAMES = {
    "t10021133": CanFrame(0x100, b"\x11\x33"),
    "t0200": CanFrame(0x020, b""),
    "T0000010021133": CanFrame(0x100, b"\x11\x33", extended=True),
    "T1FFFFFFF8AABBCCDDEEFF0011": CanFrame(0x1FFFFFFF, bytes.fromhex("aabbccddeeff0011"), extended=True),
    "r1002": CanFrame(0x100, bytes(2), remote=True),
    "R001000008": CanFrame(0x100000, bytes(8), extended=True, remote=True),
    "d1009" + 12 * "5A": CanFrame(0x100, 12 * b"\x5a", fd=True),
    "D00000100F" + 64 * "5A": CanFrame(0x100, 64 * b"\x5a", extended=True, fd=True),
    "b1009" + 12 * "5A": CanFrame(0x100, 12 * b"\x5a", fd=True, switched=True),
    "B00000100F" + 64 * "5A": CanFrame(0x100, 64 * b"\x5a", extended=True, fd=True, switched=True),
}


def test_frames_of_the_host(ask):
    assert ask("S6\rY2\rO\r", **FD)[0] == "\r\r\r"
    for text, frame in FRAMES.items():
        assert ask(f"{text}\r") == ask(f"{text[0]}{text[1:].lower()}\r") == ("\r", [frame])
    assert ask.adapter.meter.items_in == 2 * len(FRAMES)


def test_frames_for_the_host(ask):
    ask("S6\rY2\rO\r", **FD)
    for text, frame in [*FRAMES.items(), ("d01A9" + 11 * "AB" + "00", CanFrame(0x1A, b"\xab" * 11, fd=True))]:
        ask.adapter.send(frame, now() + SOON)
        assert ask("", lines=1) == (f"{text}\r", [])


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
    while not ask.adapter.meter.errors:
        assert ask("") == ("", [])
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


@pytest.mark.parametrize("frame", [*FRAMES.values()][::2])
def test_frames_go_both_ways(frame, adapter, host_of):
    device = adapter(fd=True, data_bitrate=2e6)
    host = host_of(device)
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


def test_another_bit_rate_of_the_host(adapter, host_of):
    device = adapter()
    host_of(device, bitrate=1e6).send(CanFrame(1, b""), now() + SOON)
    assert device.receive(now() + 50_000_000) is None
    assert device.meter.errors == 1


def test_another_program_with_python_can(adapter, tmp_path):
    device = adapter()
    with can.Bus(interface="slcan", channel=str(tmp_path / "tty"), bitrate=500000, sleep_after_open=0) as other:
        other.send(can.Message(arbitration_id=7, is_extended_id=False, data=b"abc"))
        assert device.receive(now() + SOON)[:2] == (7, b"abc")
        device.send(CanFrame(8, b"defg"), now() + SOON)
        message = other.recv(30)
        assert (message.arbitration_id, bytes(message.data)) == (8, b"defg")


def test_silence_ends_with_the_deadline(adapter, host_of):
    device = adapter()
    host = host_of(device)
    for link in (host, device):
        link.receive(now() + 20_000_000)
        assert_patient(link)


def test_an_adapter_that_is_pulled_out_and_put_in_again(adapter, host_of, monkeypatch, said):
    monkeypatch.setattr("cosim.plugins.drivers.transport.connection.RETRY_NS", 0)
    device = adapter()
    host = host_of(device)
    host.send(CanFrame(1, b""), now() + SOON)
    assert device.receive(now() + SOON).id == 1
    device.close()
    port = host._bus.serialPortOrig
    for words in {lost(host.receive, now() + SOON), lost(host.send, CanFrame(1, b""), 0)}:
        said(words, r"(?<=lost \()[^;]+(?=\);)")
    assert not host.reopen() and not port.is_open
    device.open()
    assert host.reopen()
    host.send(CanFrame(2, b""), now() + SOON)
    assert device.receive(now() + SOON).id == 2


def test_the_device_knows_when_its_pseudo_terminal_fails(adapter, said):
    device = adapter()
    device._port.close()
    (words,) = {lost(device.receive, 0), lost(device.receive, 0), lost(device.send, CanFrame(1, b""), 0)}
    said(words)
    assert device.lost and device.reopen() and device.receive(0) is None
    device._take(b"S6\rO\r")
    device._port.close()
    lost(device.send, CanFrame(1, b""), 0)
    assert device.lost


# --- mistakes ------------------------------------------------------------------------------------------


def refused(params, end=host_link):
    with pytest.raises(InputError) as caught:
        end(params, place).open()
    return str(caught.value)


def test_mistakes(adapter, host_of, tmp_path, monkeypatch, said):
    path = str(tmp_path / "tty")
    monkeypatch.setattr("cosim.plugins.drivers.transport.serial._ports", lambda: "; there are: /dev/ttyACM0")
    said(refused(CanParams("slcan", path, options=AT_ONCE)))
    device = adapter()
    said(refused(CanParams("slcan", path, 123456, options=AT_ONCE)))
    said(refused(CanParams("slcan", path, BIT, fd=True, data_bitrate=4e6, options=AT_ONCE)))
    host_of(device)
    said(refused(device.params))


@pytest.mark.parametrize("channel", ["tty@fast", "tty@0", "dev/tty"])
def test_mistakes_of_the_device(channel, tmp_path, said):
    said(refused(CanParams("slcan", f"{tmp_path}/{channel}"), device_link))


def test_the_baud_rate_of_the_adapter(tmp_path, host_of):
    params = CanParams("slcan", f"{tmp_path / 'tty'}@921600", BIT, options=AT_ONCE)
    device = device_link(params, place)
    device.open()
    host = host_of(device)
    host.send(CanFrame(1, b""), now() + SOON)
    assert device.receive(now() + SOON).id == 1
    device.close()
    assert not (tmp_path / "tty").is_symlink()
