"""Failures of CAN buses: bus errors, loss and reopening, full queues, errors in a rig; with a simulated controller."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys

import can
import pytest

from cosim.drivers.transport import CanBus, CanFrame, CanParams, ConnectionLost, host_link, now
from cosim.drivers.transport import can_opening as opening
from cosim.errors import InputError

from .conftest import place

HOUR = 3_600_000_000_000  # ns


class Controller(can.BusABC):
    """Gives what is put into `coming` (messages, or errors to raise) and fails to send with `refusal`."""

    condition = can.BusState.ACTIVE

    def __init__(self, **keywords):
        self.keywords, self.coming, self.sent, self.refusal, self.filtered = keywords, [], [], None, None
        self.ear, self.bell = socket.socketpair()
        super().__init__(channel=keywords["channel"])

    def give(self, *items):
        self.coming.extend(items)
        self.bell.send(b"." * len(items))

    def recv(self, timeout=None):
        if not self.coming:
            return None
        self.ear.recv(1)
        item = self.coming.pop(0)
        if isinstance(item, Exception):
            raise item
        return item

    def send(self, msg, timeout=None):
        if self.refusal is not None:
            raise self.refusal
        self.sent.append(msg)

    def set_filters(self, filters=None):
        self.filtered = filters

    def fileno(self):
        return self.ear.fileno()

    @property
    def state(self):
        return self.condition

    def shutdown(self):
        super().shutdown()
        self.ear.close()
        self.bell.close()


@pytest.fixture
def controllers(monkeypatch, tmp_path):
    """What `can.Bus` made, newest last; errors in `broken` are raised by it instead. A SocketCAN device can0 is up."""
    made, broken = [], []

    def bus(**keywords):
        if broken:
            raise broken[0]
        made.append(Controller(**keywords))
        return made[-1]

    for name, kind, flags in (("can0", "280", "0x40081"), ("can1", "280", "0x40080"), ("eth0", "1", "0x1003")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "type").write_text(f"{kind}\n")
        (tmp_path / name / "flags").write_text(f"{flags}\n")
    monkeypatch.setattr(opening, "DEVICES", tmp_path)
    monkeypatch.setattr(can, "Bus", bus)
    yield made, broken
    for one in made:
        one.shutdown()


@pytest.fixture
def link(controllers):
    link = CanBus(CanParams("socketcan", "can0"), place)
    link.open()
    yield link
    link.close()


def error_frame(kind):
    return can.Message(arbitration_id=kind, is_extended_id=False, is_error_frame=True, data=bytes(8))


BUS_OFF = "socketcan can0: bus off: the controller counted too many errors; check wiring, termination and bit rate"


def test_bus_off_ends_the_use_of_the_line(link, controllers):
    bus = controllers[0][-1]
    bus.give(error_frame(0x40))
    for use in (lambda: link.receive(0), lambda: link.receive(0), lambda: link.send(CanFrame(1, b""), 0)):
        with pytest.raises(ConnectionLost) as caught:
            use()
        assert str(caught.value) == BUS_OFF
    assert (bus.sent, link.meter.errors, link.lost) == ([], 1, True)


@pytest.mark.parametrize("kind", [0x20, 0x04, 0x100, 0x02, 0x08, 0x80])
def test_other_error_frames_only_count(kind, link, controllers):
    controllers[0][-1].give(error_frame(kind), can.Message(arbitration_id=3, is_extended_id=False))
    assert link.receive(0).id == 3
    assert (link.meter.errors, link.meter.items_in, link.lost) == (1, 1, False)


def test_a_controller_that_reports_bus_off(link, controllers, monkeypatch):
    monkeypatch.setattr("cosim.drivers.transport.can.STATE_CHECK_NS", HOUR)
    assert link.receive(0) is None
    controllers[0][-1].condition = can.BusState.ERROR
    assert link.receive(0) is None  # looked at a moment ago
    link._next_check_ns = 0
    with pytest.raises(ConnectionLost) as caught:
        link.receive(0)
    assert str(caught.value) == BUS_OFF


def test_a_controller_that_cannot_say_how_it_is(link, monkeypatch):
    monkeypatch.setattr(Controller, "condition", property(lambda self: 1 / 0))
    with pytest.raises(ConnectionLost) as caught:
        link.receive(0)
    what = "the connection is lost (division by zero); check the cable and the power of the adapter"
    assert str(caught.value) == f"socketcan can0: {what}"


@pytest.mark.parametrize("number", [errno.ENETDOWN, errno.ENODEV])
@pytest.mark.parametrize("way", ["send", "receive"])
def test_an_adapter_that_is_pulled_out(number, way, link, controllers):
    bus = controllers[0][-1]
    gone = can.CanOperationError(f"Failed: {os.strerror(number)}", number)
    if way == "send":
        bus.refusal = gone
    else:
        bus.give(gone)
    what = f"the connection is lost (Failed: {os.strerror(number)} [Error Code {number}])"
    for use in (getattr(link, way), link.send, link.receive):
        with pytest.raises(ConnectionLost) as caught:
            use(*[CanFrame(1, b"")] * (use.__name__ == "send"), 0)
        assert str(caught.value) == f"socketcan can0: {what}; check the cable and the power of the adapter"
    assert bus.sent == []


def test_a_lost_connection_is_reopened_on_request(link, controllers, monkeypatch):
    monkeypatch.setattr("cosim.drivers.transport.connection.RETRY_NS", HOUR)
    made, broken = controllers
    link.accept([4, 3])
    assert link.reopen()  # nothing to do
    made[-1].give(can.CanOperationError("gone"))
    with pytest.raises(ConnectionLost):
        link.receive(0)
    broken.append(OSError(errno.ENODEV, "No such device"))
    assert not link.reopen()
    broken.clear()
    assert not link.reopen()  # tried a moment ago
    assert len(made) == 1
    link._retry_ns = 0
    assert link.reopen()
    assert (len(made), link.lost) == (2, False)
    assert made[-1].filtered == [{"can_id": 3, "can_mask": 0x1FFFFFFF}, {"can_id": 4, "can_mask": 0x1FFFFFFF}]
    link.send(CanFrame(1, b""), 0)
    assert [message.arbitration_id for message in made[-1].sent] == [1]
    assert made[0].sent == []


def test_a_connection_that_is_not_open_is_not_used(link, controllers):
    link.close()
    link.close()
    assert not link.reopen()
    for use in (lambda: link.receive(0), lambda: link.send(CanFrame(1, b""), 0)):
        with pytest.raises(ConnectionLost, match=r"^socketcan can0: the connection is not open$"):
            use()
    assert len(controllers[0]) == 1


@pytest.mark.parametrize(
    "refusal",
    [
        can.CanOperationError("Failed to transmit: No buffer space available", errno.ENOBUFS),
        can.CanOperationError("Transmit buffer full"),
        can.CanTimeoutError(),
    ],
)
def test_a_full_queue_is_waited_for_until_the_deadline(refusal, link, controllers):
    bus = controllers[0][-1]
    bus.refusal = refusal
    began = now()
    with pytest.raises(ConnectionLost) as caught:
        link.send(CanFrame(1, b""), began + 5_000_000)
    assert 4_000_000 < now() - began < 500_000_000
    late = "a command could not be sent by its deadline; the connection is too slow or blocked"
    assert str(caught.value) == f"socketcan can0: {late}"
    assert not link.lost
    bus.refusal = None
    link.send(CanFrame(1, b""), 0)
    assert (len(bus.sent), link.meter.items_out) == (1, 1)


def test_a_flood_for_other_nodes_does_not_delay_a_past_deadline(link, controllers):
    link.accept([1])
    bus = controllers[0][-1]
    bus.recv = lambda timeout=None: can.Message(arbitration_id=2, is_extended_id=False)
    bus.give(None)  # ready for ever
    began = now()
    assert link.receive(0) is None
    assert now() - began < 500_000_000


def test_answers_of_an_adapter_are_no_messages(link, controllers):
    controllers[0][-1].give(None, None, can.Message(arbitration_id=3, is_extended_id=False))
    assert link.receive(0).id == 3


def test_an_invalid_message_is_counted(link, controllers):
    controllers[0][-1].give(ValueError("no number"), can.Message(arbitration_id=3, is_extended_id=False))
    assert link.receive(0).id == 3
    assert link.meter.errors == 1


@pytest.mark.parametrize(
    ("params", "keywords"),
    [
        (CanParams("socketcan", "can0", 5e5), {"bitrate": 500000}),
        (CanParams("socketcan", "can0", fd=True, data_bitrate=4e6), {"fd": True, "data_bitrate": 4000000}),
        (CanParams("pcan", "PCAN_USBBUS1", options={"f_clock": 80}), {"f_clock": 80}),
        (CanParams("udp_multicast", "239.0.0.1"), {"fd": False, "hop_limit": 0}),
        (CanParams("udp_multicast", "239.0.0.1", options={"hop_limit": 1}), {"fd": False, "hop_limit": 1}),
        (CanParams("slcan", "/dev/x"), {"timeout": 0}),
    ],
)
def test_arguments_of_python_can(params, keywords, controllers, monkeypatch):
    monkeypatch.setattr("cosim.drivers.transport.can._reserve", lambda descriptor: None)
    link = CanBus(params, place)
    link.open()
    link.close()
    common = {"interface": params.interface, "channel": params.channel, "bitrate": 1000000, "ignore_config": True}
    assert controllers[0][-1].keywords == common | keywords


# --- mistakes ---------------------------------------------------------------------------------------


def refused(params):
    with pytest.raises(InputError) as caught:
        host_link(params, place).open()
    return str(caught.value)


def test_mistakes_in_the_names():
    what = "python-can has no interface 'sockectcan'; did you mean 'socketcan'?"
    assert refused(CanParams("sockectcan", "can0")) == f"rig.yaml:7 interface: {what}"
    known = refused(CanParams("qqqq", "can0"))
    assert known.startswith("rig.yaml:7 interface: python-can has no interface 'qqqq'; known: ")
    assert ", slcan, " in known and ", socketcan" in known
    assert refused(CanParams("virtual", "")) == "rig.yaml:7 channel: the interface virtual needs a channel"
    what = "'192.168.0.1' is not a multicast address; use one such as 239.74.163.2"
    assert refused(CanParams("udp_multicast", "192.168.0.1")) == f"rig.yaml:7 channel: {what}"
    what = "'bus' is not a multicast address; use one such as 239.74.163.2"
    assert refused(CanParams("udp_multicast", "bus")) == f"rig.yaml:7 channel: {what}"


def test_mistakes_with_socketcan(controllers, tmp_path):
    what = "no CAN device 'can7'; there are: can0, can1"
    assert refused(CanParams("socketcan", "can7")) == f"rig.yaml:7 channel: {what}"
    what = "the CAN device 'can1' is down; sudo ip link set can1 up type can bitrate 500000"
    assert refused(CanParams("socketcan", "can1", 5e5)) == f"rig.yaml:7 channel: {what}"
    for name in ("can0", "can1"):
        (tmp_path / name / "type").unlink()
    fix = "plug the adapter in, then: sudo ip link set can0 up type can bitrate 1000000 dbitrate 5000000 fd on"
    what = refused(CanParams("socketcan", "can0", fd=True, data_bitrate=5e6))
    assert what == f"rig.yaml:7 channel: no CAN device 'can0'; there is none; {fix}"


def test_mistakes_that_the_interface_finds(controllers):
    broken = controllers[1]
    params = CanParams("pcan", "PCAN_USBBUS9", 123456)
    broken[:] = [ValueError("Invalid bitrate.")]
    assert refused(params) == "rig.yaml:7 bitrate: pcan cannot run at 123456 bit/s: Invalid bitrate"
    broken[:] = [ImportError("no library")]
    what = "the interface pcan does not work here: no library; install the manufacturer's driver"
    assert refused(params) == f"rig.yaml:7 interface: {what}"
    broken[:] = [can.CanInitializationError("handle is\nnot valid")]
    fix = "check that the adapter is plugged in and its driver is installed"
    assert refused(params) == f"rig.yaml:7 channel: cannot open pcan PCAN_USBBUS9: handle is not valid; {fix}"


def test_a_bus_that_opens_but_cannot_be_used_is_closed_again(controllers, monkeypatch):
    monkeypatch.setattr(Controller, "fileno", lambda self: 1 / 0)
    fix = "check that the adapter is plugged in and its driver is installed"
    what = f"rig.yaml:7 channel: cannot open socketcan can0: division by zero; {fix}"
    assert refused(CanParams("socketcan", "can0")) == what
    assert controllers[0][-1].ear.fileno() == -1


def test_without_python_can(monkeypatch):
    monkeypatch.setitem(sys.modules, "can", None)
    what = "rig.yaml:7 interface: a CAN bus needs python-can: pip install 'cosim[can]'"
    assert refused(CanParams("virtual", "x")) == what


def test_slcan_without_pyserial(monkeypatch):
    monkeypatch.setitem(sys.modules, "serial", None)
    what = "rig.yaml:7 interface: a serial port needs pyserial: pip install 'cosim[serial]'"
    assert refused(CanParams("slcan", "/dev/ttyACM0")) == what


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"data_bitrate": 5e6}, "'data_bitrate' is for CAN FD; give 'fd: true' as well"),
        ({"options": {"bitrate": 1}}, "give 'bitrate' next to 'options', not in it"),
        (
            {"options": {"receive_own_messages": True}},
            "leave 'receive_own_messages' out of 'options'; a node never receives its own frames",
        ),
        ({"options": {"can_filters": []}}, "leave 'can_filters' out of 'options'; drivers set the filters"),
    ],
)
def test_options_that_are_not_for_the_interface(more, what):
    with pytest.raises(ValueError) as caught:
        CanParams("virtual", "x", **more)
    assert str(caught.value) == what


def test_nothing_is_printed_or_logged_and_python_can_is_not_imported_early():
    program = """
import gc, sys
from cosim.errors import InputError, SourceLocation
from cosim.drivers.transport import CanParams, host_link
assert not {"can", "serial"} & set(sys.modules)
place = lambda *keys: SourceLocation("rig.yaml")
for params in (CanParams("slcan", "/nowhere/port"), CanParams("pcan", "x"), CanParams("kvaser", "0")):
    try:
        host_link(params, place).open()
    except InputError:
        pass
forgotten = host_link(CanParams("virtual", "x"), place)
forgotten.open()
del forgotten
gc.collect()
"""
    done = subprocess.run([sys.executable, "-W", "always", "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
