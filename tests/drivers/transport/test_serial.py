"""Serial lines: bytes through a pseudo terminal and through URLs, baud rates, loss and return, mistakes in a rig."""

from __future__ import annotations

import errno
import os
import socket
import sys
import threading

import pytest
import serial
from serial.tools import list_ports

from cosim.drivers.transport import ConnectionLost, Pty, SerialParams, SerialPort, device_link, host_link, now
from cosim.errors import InputError

from .conftest import place

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pseudo terminals are those of Linux")
HOUR = 3_600_000_000_000  # ns
SOON = 2_000_000_000  # ns in which anything that comes at all has come


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


@pytest.mark.parametrize("baudrate", [57600, 1e6, 4e6, 123456])
def test_bytes_go_both_ways_unchanged(baudrate, line):
    host, device = line(baudrate)
    every = bytes(range(256))
    host.send(every, now() + SOON)
    assert collect(device, 256) == every
    device.send(every, now() + SOON)
    assert collect(host, 256) == every
    assert host.receive(0) is None
    assert device.receive(0) is None
    assert (host.meter.items_out, host.meter.bits_out, host.meter.bits_in) == (1, 2560, 2560)
    assert (device.meter.bits_in, device.meter.bits_out, device.meter.errors) == (2560, 2560, 0)


@pytest.mark.parametrize("who", [0, 1])
def test_silence_ends_with_the_deadline(who, line):
    link = line()[who]
    began = now()
    assert link.receive(began + 10_000_000) is None
    assert 9_000_000 < now() - began < 500_000_000
    began = now()
    assert link.receive(0) is None
    assert now() - began < 500_000_000


def test_bytes_end_the_wait(line):
    host, device = line()
    timer = threading.Timer(0.02, lambda: device.send(b"x", now() + SOON))
    timer.start()
    assert host.receive(now() + 20 * SOON) == b"x"
    timer.join()


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


def test_a_write_to_a_blocked_port_ends_at_the_deadline(line):
    host, device = line()
    began = now()
    with pytest.raises(ConnectionLost) as caught:
        while True:
            host.send(bytes(4096), now() + 5_000_000)
    late = "a command could not be sent by its deadline; the connection is too slow or blocked"
    assert str(caught.value) == f"{host.name}: {late}"
    assert now() - began < SOON
    assert not host.lost
    while device.receive(0):
        pass
    host.send(b"x", now() + SOON)


@pytest.mark.parametrize(("way", "cause"), [("send", "Input/output error"), ("receive", "the device was removed")])
def test_an_adapter_that_is_pulled_out_and_put_in_again(way, cause, line, monkeypatch):
    monkeypatch.setattr("cosim.drivers.transport.connection.RETRY_NS", HOUR)
    host, device = line()
    device.close()
    what = f"the connection is lost ({cause}); check the cable and the power of the adapter"
    for use in (getattr(host, way), host.send, host.receive):
        with pytest.raises(ConnectionLost) as caught:
            use(*[b"x"] * (use.__name__ == "send"), now() + 10_000_000)
        assert str(caught.value) == f"{host.name}: {what}"
    assert host.lost
    assert not host.reopen()
    device.open()
    assert not host.reopen()  # tried a moment ago
    with pytest.raises(ConnectionLost):
        host.send(b"before it was opened", 0)
    host._retry_ns = 0
    assert host.reopen()
    host.send(b"hello", now() + SOON)
    assert collect(device, 5) == b"hello"


@pytest.mark.parametrize("who", [0, 1])
def test_a_connection_that_is_not_open_is_not_used(who, line):
    link = line()[who]
    link.close()
    link.close()
    assert not link.reopen()
    for use in (lambda: link.receive(0), lambda: link.send(b"x", 0)):
        with pytest.raises(ConnectionLost) as caught:
            use()
        assert str(caught.value) == f"{link.name}: the connection is not open"


@pytest.mark.parametrize("use", [lambda device: device.send(b"x", 0), lambda device: device.receive(0)])
def test_a_pseudo_terminal_that_fails(use, line, monkeypatch):
    host, device = line()
    host.send(b"x", now() + SOON)

    def gone(self):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Pty, "_baudrate_matches", gone)
    with pytest.raises(ConnectionLost) as caught:
        use(device)
    what = "the connection is lost (Input/output error); check the cable and the power of the adapter"
    assert str(caught.value) == f"{device.name}: {what}"
    monkeypatch.undo()
    assert device.lost
    assert device.reopen()
    with pytest.raises(ConnectionLost):  # the host still has the terminal that went
        host.receive(now() + SOON)
    assert host.reopen()
    device.send(b"y", now() + SOON)
    assert collect(host, 1) == b"y"


# --- URLs -------------------------------------------------------------------------------------------


def test_loop():
    link = SerialPort(SerialParams("loop://"), place)
    link.open()
    link.send(b"hello", now() + SOON)
    assert collect(link, 5) == b"hello"
    began = now()
    assert link.receive(0) is None
    assert link.receive(now() + 10_000_000) is None
    assert 9_000_000 < now() - began < 500_000_000
    with pytest.raises(ConnectionLost, match="could not be sent by its deadline"):
        link.send(bytes(10_000), now() + 1_000_000)
    assert not link.lost
    link.close()


def test_socket():
    with socket.create_server(("127.0.0.1", 0)) as server:
        link = SerialPort(SerialParams(f"socket://127.0.0.1:{server.getsockname()[1]}"), place)
        link.open()
        with server.accept()[0] as other:
            link.send(b"hello", now() + SOON)
            assert other.recv(5) == b"hello"
            other.sendall(b"you")
            assert collect(link, 3) == b"you"
        with pytest.raises(
            ConnectionLost, match=r"the connection is lost .*; check the cable and the power of the adapter"
        ):
            link.receive(now() + SOON)
        link.close()


# --- mistakes ---------------------------------------------------------------------------------------


@pytest.fixture
def ports(monkeypatch):
    """The ports that the machine has, by name."""
    there = []
    monkeypatch.setattr(list_ports, "comports", lambda: [list_ports_common(name) for name in there])
    return there


def list_ports_common(name):
    from serial.tools.list_ports_common import ListPortInfo

    return ListPortInfo(name, skip_link_detection=True)


def refused(port, baudrate=1e6, end=host_link):
    link = end(SerialParams(port, baudrate), place)
    with pytest.raises(InputError) as caught:
        link.open()
    with pytest.raises(ConnectionLost):
        link.receive(0)
    return str(caught.value)


def test_ports_that_there_are_not(ports):
    nothing = "rig.yaml:7 port: no such port '/nowhere/ttyUSB0'; none is plugged in"
    assert refused("/nowhere/ttyUSB0") == nothing
    assert refused("") == "rig.yaml:7 port: a serial connection needs a port; none is plugged in"
    ports[:] = ["/dev/ttyUSB1", "/dev/ttyACM0"]
    there = "rig.yaml:7 port: no such port '/nowhere/ttyUSB0'; there are: /dev/ttyACM0, /dev/ttyUSB1"
    assert refused("/nowhere/ttyUSB0") == there


def test_a_port_is_for_one_program(line):
    host, _ = line()
    busy = f"rig.yaml:7 port: the port '{host.name}' is busy; end the program that uses it"
    assert refused(host.name) == busy


def test_other_reasons(monkeypatch, tmp_path):
    folder = f"rig.yaml:7 port: cannot open the port '{tmp_path}': Is a directory"
    assert refused(str(tmp_path)) == folder
    unknown = "rig.yaml:7 port: cannot open the port 'lopp://': invalid URL, protocol 'lopp' not known"
    assert refused("lopp://") == unknown
    for scheme in ("socket", "rfc2217"):
        for where in ("127.0.0.1:99999", "127.0.0.1", f"{300 * 'n'}:5"):
            fix = f"give its name and a port from 1 to 65535, such as {scheme}://192.168.1.10:4001"
            found = refused(f"{scheme}://{where}")
            assert found.startswith(f"rig.yaml:7 port: '{scheme}://") and found.endswith(f" of a host; {fix}")

    def forbidden(*arguments, **keywords):
        raise serial.SerialException(errno.EACCES, "could not open port")

    monkeypatch.setattr(serial, "serial_for_url", forbidden)
    fix = "sudo usermod -aG dialout $USER, then log in again"
    assert refused("/dev/ttyUSB0") == f"rig.yaml:7 port: no permission to use the port '/dev/ttyUSB0'; {fix}"


def test_a_baud_rate_that_cannot_be(monkeypatch):
    what = "'loop://' cannot run at 1e+10 bit/s: invalid baudrate: 10000000000"
    assert refused("loop://", 1e10) == f"rig.yaml:7 baudrate: {what}"


def test_without_pyserial(monkeypatch):
    monkeypatch.setitem(sys.modules, "serial", None)
    assert refused("/dev/ttyUSB0") == "rig.yaml:7 port: a serial port needs pyserial: pip install 'cosim[serial]'"


# --- the link of a pseudo terminal ----------------------------------------------------------------


def test_the_link_goes_with_the_device(tmp_path):
    path = tmp_path / "tty"
    device = Pty(SerialParams(str(path)), place)
    device.open()
    assert os.readlink(path).startswith("/dev/pts/")
    device.close()
    assert os.listdir(tmp_path) == []


def test_a_link_that_was_left_is_replaced(tmp_path):
    path = tmp_path / "tty"
    ours, other = os.openpty()  # a terminal of another user may have its number by now
    for left in ("/dev/pts/987654", os.ttyname(other)):
        path.symlink_to(left)
        device = Pty(SerialParams(str(path)), place)
        device.open()
        assert os.readlink(path) not in ("/dev/pts/987654", os.ttyname(other))
        device.close()
        assert os.listdir(tmp_path) == []
    os.close(other)
    os.close(ours)


def test_a_link_in_use_stays_with_its_program(tmp_path):
    path = tmp_path / "tty"
    device = Pty(SerialParams(str(path)), place)
    device.open()
    link = os.readlink(path)
    with serial.Serial(str(path), exclusive=True):  # a host that keeps the port to itself is no matter
        what = f"rig.yaml:7 port: {path}: another program emulates this port; end it first"
        assert refused(str(path), end=device_link) == what
    assert os.readlink(path) == link
    device.close()
    assert os.listdir(tmp_path) == []


def test_of_two_that_begin_at_once_one_has_the_line(tmp_path, monkeypatch):
    path = tmp_path / "tty"
    made = os.symlink

    def late(target, link):
        made("/dev/pts/987654", link)
        made(target, link)

    monkeypatch.setattr(os, "symlink", late)
    what = f"rig.yaml:7 port: {path}: another program emulates this port; end it first"
    assert refused(str(path), end=device_link) == what
    assert os.readlink(path) == "/dev/pts/987654"


@pytest.mark.parametrize("make", [lambda p: p.write_text("notes"), lambda p: p.mkdir(), lambda p: p.symlink_to("x")])
def test_nothing_else_is_replaced(make, tmp_path):
    path = tmp_path / "tty"
    make(path)
    what = f"'{path}' exists and is not the port of an emulator; remove it or use another path"
    assert refused(str(path), end=device_link) == f"rig.yaml:7 port: {what}"
    assert os.path.lexists(path)


def test_places_where_no_link_can_be(tmp_path, monkeypatch):
    what = "'loop://' cannot be emulated; use a path for the port, such as /tmp/tty"
    assert refused("loop://", end=device_link) == f"rig.yaml:7 port: {what}"
    what = f"no folder '{tmp_path}/dev' for the port '{tmp_path}/dev/tty'; make it"
    assert refused(f"{tmp_path}/dev/tty", end=device_link) == f"rig.yaml:7 port: {what}"

    def forbidden(*paths):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "symlink", forbidden)
    fix = "use a writable path, such as /tmp/tty"
    what = f"rig.yaml:7 port: cannot make a port at '{tmp_path}/tty': Permission denied; {fix}"
    assert refused(f"{tmp_path}/tty", end=device_link) == what
    assert os.listdir(tmp_path) == []
