"""Serial lines: bytes through a pseudo terminal and through URLs, baud rates, loss and return, mistakes in a rig."""

import errno
import os
import socket
import sys

import pytest
import serial
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from cosim.core.errors import InputError
from cosim.plugins.drivers.transport import ConnectionLost, Pty, SerialParams, SerialPort, device_link, host_link, now

from .conftest import SOON, assert_patient, lost, place, soon

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs pseudo terminals of Linux")
HOUR = 3_600_000_000_000  # ns


@pytest.fixture
def line(tmp_path, connected):
    """line(host's baud rate, device's) -> (host, device), open; closed afterwards."""
    path = str(tmp_path / "tty")
    return lambda baudrate=1e6, own=None: connected(SerialParams(path, baudrate), SerialParams(path, own or baudrate))


def collect(link, count):
    """So many bytes, which may come in pieces."""
    found, deadline = b"", now() + SOON
    while len(found) < count and (chunk := link.receive(deadline)):
        found += chunk
    return found


@pytest.mark.parametrize("baudrate", [57600, 4e6, 123456])
def test_bytes_go_both_ways_unchanged(baudrate, line):
    host, device = line(baudrate)
    every = bytes(range(256))
    host.send(every, now() + SOON)
    assert collect(device, 256) == every
    device.send(every, now() + SOON)
    assert collect(host, 256) == every
    assert host.receive(0) is device.receive(0) is None
    assert (host.meter.items_out, host.meter.bits_out, host.meter.bits_in) == (1, 2560, 2560)
    assert (device.meter.bits_in, device.meter.bits_out, device.meter.errors) == (2560, 2560, 0)


def test_silence_ends_with_the_deadline(line):
    for link in line():
        assert_patient(link)


def test_bytes_end_the_wait(line):
    host, device = line()
    with soon(lambda: device.send(b"x", now() + SOON)):
        assert host.receive(now() + 20 * SOON) == b"x"


def test_at_another_baud_rate_there_is_silence(line):
    host, device = line(115200, 1e6)
    host.send(b"hello", now() + SOON)
    assert device.receive(0) is None
    assert device.receive(now() + 20_000_000) is None
    device.send(b"hello", now() + SOON)
    assert host.receive(now() + 20_000_000) is None
    assert device.receive(0) is None
    assert (device.meter.errors, device.meter.items_in, device.meter.items_out) == (2, 0, 0)


def test_unread_bytes_are_dropped_and_not_delivered_to_the_next_host(line):
    host, device = line()
    host.close()
    while not device.meter.errors:
        device.send(bytes(4096), 0)
    host.open()
    device.send(b"new", now() + SOON)
    assert collect(host, 3) == b"new"


def test_a_write_to_a_blocked_port_ends_at_the_deadline(line, said):
    host, device = line()
    with pytest.raises(ConnectionLost) as caught:
        while True:
            host.send(bytes(4096), now() + 5_000_000)
    said(caught.value)
    assert not host.lost
    while device.receive(0):
        pass
    host.send(b"x", now() + SOON)


@pytest.mark.parametrize("way", ["send", "receive"])
def test_an_adapter_that_is_pulled_out_and_put_in_again(way, line, monkeypatch, said):
    monkeypatch.setattr("cosim.plugins.drivers.transport.connection.RETRY_NS", HOUR)
    host, device = line()
    device.close()
    words = {
        lost(getattr(host, way), *[b"x"] * (way == "send"), now() + 10_000_000),
        lost(host.send, b"x", 0),
        lost(host.receive, 0),
    }
    said(words)
    assert host.lost and not host.reopen()
    device.open()
    assert not host.reopen()  # tried a moment ago
    lost(host.send, b"before it was opened", 0)
    host._retry_ns = 0
    assert host.reopen()
    host.send(b"hello", now() + SOON)
    assert collect(device, 5) == b"hello"


def test_a_connection_that_is_not_open_is_not_used(line, said):
    for link in line():
        link.close()
        link.close()
        assert not link.reopen()
        said({lost(link.receive, 0), lost(link.send, b"x", 0)})


@pytest.mark.parametrize("way", ["send", "receive"])
def test_a_pseudo_terminal_that_fails(way, line, monkeypatch, said):
    host, device = line()
    host.send(b"x", now() + SOON)

    def gone(self):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Pty, "_baudrate_matches", gone)
    said(lost(getattr(device, way), *[b"x"] * (way == "send"), 0))
    monkeypatch.undo()
    assert device.lost and device.reopen()
    lost(host.receive, now() + SOON)  # the host still has the terminal that went
    assert host.reopen()
    device.send(b"y", now() + SOON)
    assert collect(host, 1) == b"y"


# --- URLs -------------------------------------------------------------------------------------------


def test_loop(said):
    link = SerialPort(SerialParams("loop://"), place)
    link.open()
    link.send(b"hello", now() + SOON)
    assert collect(link, 5) == b"hello"
    assert_patient(link)
    said(lost(link.send, bytes(10_000), now() + 1_000_000))
    assert not link.lost
    link.close()


def test_socket(said):
    with socket.create_server(("127.0.0.1", 0)) as server:
        link = SerialPort(SerialParams(f"socket://127.0.0.1:{server.getsockname()[1]}"), place)
        link.open()
        with server.accept()[0] as other:
            link.send(b"hello", now() + SOON)
            assert other.recv(5) == b"hello"
            other.sendall(b"you")
            assert collect(link, 3) == b"you"
        said(lost(link.receive, now() + SOON), r"(?<=127.0.0.1:)\d+")
        link.close()


# --- mistakes ---------------------------------------------------------------------------------------


@pytest.fixture
def ports(monkeypatch):
    """The ports that the machine has, by name."""
    there = []
    found = lambda: [ListPortInfo(name, skip_link_detection=True) for name in there]  # noqa: E731
    monkeypatch.setattr(list_ports, "comports", found)
    return there


def refused(port, baudrate=1e6, end=host_link):
    link = end(SerialParams(str(port), baudrate), place)
    with pytest.raises(InputError) as caught:
        link.open()
    lost(link.receive, 0)
    return str(caught.value)


def test_ports_that_there_are_not(ports, said):
    said(refused("/nowhere/ttyUSB0"))
    said(refused(""))
    ports[:] = ["/dev/ttyUSB1", "/dev/ttyACM0"]
    said(refused("/nowhere/ttyUSB0"))


def test_a_port_is_for_one_program(line, said):
    said(refused(line()[0].name))


HOSTS = [f"{scheme}://{host}" for scheme in ("socket", "rfc2217") for host in ("127.0.0.1:99999", "127.0.0.1")]


@pytest.mark.parametrize("url", ["lopp://", *HOSTS, f"socket://{300 * 'n'}:5"], ids=lambda url: url[:30])
def test_urls_that_cannot_be_opened(url, said):
    said(refused(url))


def test_other_reasons(monkeypatch, tmp_path, said):
    said(refused(tmp_path))
    said(refused("loop://", 1e10))

    def forbidden(*arguments, **keywords):
        raise serial.SerialException(errno.EACCES, "could not open port")

    monkeypatch.setattr(serial, "serial_for_url", forbidden)
    said(refused("/dev/ttyUSB0"))
    monkeypatch.setitem(sys.modules, "serial", None)
    said(refused("/dev/ttyUSB0"))


# --- the link of a pseudo terminal ----------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tty"


def pty(path) -> Pty:
    device = Pty(SerialParams(str(path)), place)
    device.open()
    return device


def test_a_link_goes_with_the_device_and_one_that_was_left_is_replaced(path):
    ours, other = os.openpty()  # a terminal of another user may have its number by now
    for left in ("", "/dev/pts/987654", os.ttyname(other)):
        if left:
            path.symlink_to(left)
        device = pty(path)
        assert os.readlink(path).startswith("/dev/pts/") and os.readlink(path) != left
        device.close()
        assert os.listdir(path.parent) == []
    os.close(other)
    os.close(ours)


def test_a_link_in_use_stays_with_its_program(path, said):
    device = pty(path)
    link = os.readlink(path)
    with serial.Serial(str(path), exclusive=True):  # a host that keeps the port to itself is no matter
        said(refused(path, end=device_link))
    assert os.readlink(path) == link
    device.close()
    assert os.listdir(path.parent) == []


def test_of_two_that_begin_at_once_one_has_the_line(path, monkeypatch, said):
    made = os.symlink

    def late(target, link):
        made("/dev/pts/987654", link)
        made(target, link)

    monkeypatch.setattr(os, "symlink", late)
    said(refused(path, end=device_link))
    assert os.readlink(path) == "/dev/pts/987654"


@pytest.mark.parametrize("make", [lambda p: p.write_text("notes"), lambda p: p.mkdir(), lambda p: p.symlink_to("x")])
def test_nothing_else_is_replaced(make, path, said):
    make(path)
    said(refused(path, end=device_link))
    assert os.path.lexists(path)


def test_places_where_no_link_can_be(path, monkeypatch, said):
    said(refused("loop://", end=device_link))
    said(refused(path.parent / "dev" / "tty", end=device_link))

    def forbidden(*paths):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "symlink", forbidden)
    said(refused(path, end=device_link))
    assert os.listdir(path.parent) == []
