"""Failures of CAN buses: bus errors, loss and reopening, full queues, errors in a rig; with a simulated controller."""

import errno
import itertools
import os
import socket
import subprocess
import sys

import can
import pytest

from cosim.core.errors import InputError
from cosim.plugins.drivers.transport import CanBus, CanFrame, CanParams, host_link, now
from cosim.plugins.drivers.transport import can_opening as opening

from .conftest import lost, place

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


def test_bus_off_ends_the_use_of_the_line(link, controllers, said):
    bus = controllers[0][-1]
    bus.give(error_frame(0x40))
    (words,) = {lost(link.receive, 0), lost(link.receive, 0), lost(link.send, CanFrame(1, b""), 0)}
    said(words)
    assert (bus.sent, link.meter.errors, link.lost) == ([], 1, True)


@pytest.mark.parametrize("kind", [0x20, 0x04, 0x100, 0x02, 0x08, 0x80])
def test_other_error_frames_only_count(kind, link, controllers):
    controllers[0][-1].give(error_frame(kind), can.Message(arbitration_id=3, is_extended_id=False))
    assert link.receive(0).id == 3
    assert (link.meter.errors, link.meter.items_in, link.lost) == (1, 1, False)


def test_a_controller_that_reports_bus_off(link, controllers, monkeypatch, said):
    monkeypatch.setattr("cosim.plugins.drivers.transport.can.STATE_CHECK_NS", HOUR)
    assert link.receive(0) is None
    controllers[0][-1].condition = can.BusState.ERROR
    assert link.receive(0) is None  # looked at a moment ago
    link._next_check_ns = 0
    said(lost(link.receive, 0))


def test_a_controller_that_cannot_say_how_it_is(link, monkeypatch, said):
    monkeypatch.setattr(Controller, "condition", property(lambda self: 1 / 0))
    said(lost(link.receive, 0))


@pytest.mark.parametrize("number", [errno.ENETDOWN, errno.ENODEV])
@pytest.mark.parametrize("way", ["send", "receive"])
def test_an_adapter_that_is_pulled_out(number, way, link, controllers, said):
    bus = controllers[0][-1]
    gone = can.CanOperationError(f"Failed: {os.strerror(number)}", number)
    if way == "send":
        bus.refusal = gone
    else:
        bus.give(gone)
    send, receive = (link.send, CanFrame(1, b""), 0), (link.receive, 0)
    (words,) = {lost(*use) for use in ((send, receive, send) if way == "send" else (receive, send, receive))}
    said(words)
    assert bus.sent == []


def test_a_lost_connection_is_reopened_on_request(link, controllers, monkeypatch):
    monkeypatch.setattr("cosim.plugins.drivers.transport.connection.RETRY_NS", HOUR)
    made, broken = controllers
    link.accept([4, 3])
    assert link.reopen()  # nothing to do
    made[-1].give(can.CanOperationError("gone"))
    lost(link.receive, 0)
    broken.append(OSError(errno.ENODEV, "No such device"))
    assert not link.reopen()
    broken.clear()
    assert not link.reopen()  # tried a moment ago
    assert len(made) == 1
    link._retry_ns = 0
    assert link.reopen()
    assert (len(made), link.lost) == (2, False)
    assert made[-1].filtered == [{"can_id": id, "can_mask": 0x1FFFFFFF} for id in (3, 4)]
    link.send(CanFrame(1, b""), 0)
    assert [message.arbitration_id for message in made[-1].sent] == [1]
    assert made[0].sent == []


def test_a_connection_that_is_not_open_is_not_used(link, controllers, said):
    link.close()
    link.close()
    assert not link.reopen()
    (words,) = {lost(link.receive, 0), lost(link.send, CanFrame(1, b""), 0)}
    said(words)
    assert len(controllers[0]) == 1


@pytest.mark.parametrize(
    "refusal",
    [
        can.CanOperationError("Failed to transmit: No buffer space available", errno.ENOBUFS),
        can.CanOperationError("Transmit buffer full"),
        can.CanTimeoutError(),
    ],
    ids=str,
)
def test_a_full_queue_is_waited_for_until_the_deadline(refusal, link, controllers, said):
    bus = controllers[0][-1]
    bus.refusal = refusal
    due = now() + 5_000_000
    said(lost(link.send, CanFrame(1, b""), due))
    assert now() >= due - 1_000_000 and not link.lost
    bus.refusal = None
    link.send(CanFrame(1, b""), 0)
    assert (len(bus.sent), link.meter.items_out) == (1, 1)


def test_a_flood_for_other_nodes_does_not_delay_a_past_deadline(link, controllers):
    link.accept([1])
    bus, taken = controllers[0][-1], itertools.count()
    other = can.Message(arbitration_id=2, is_extended_id=False)
    bus.recv = lambda timeout=None: other if next(taken) < 100_000 else pytest.fail("never ends")
    bus.give(None)  # ready for ever
    assert link.receive(0) is None


def test_answers_of_an_adapter_are_no_messages_and_an_invalid_one_is_counted(link, controllers):
    message = can.Message(arbitration_id=3, is_extended_id=False)
    controllers[0][-1].give(None, None, message, ValueError("no number"), message)
    for errors in (0, 1):
        assert link.receive(0).id == 3
        assert link.meter.errors == errors


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
    monkeypatch.setattr("cosim.plugins.drivers.transport.can._reserve", lambda descriptor: None)
    link = CanBus(params, place)
    link.open()
    link.close()
    common = {"interface": params.interface, "channel": params.channel, "bitrate": 1000000, "ignore_config": True}
    assert controllers[0][-1].keywords == common | keywords


# --- mistakes ---------------------------------------------------------------------------------------


def refused(*params, **more):
    with pytest.raises(InputError) as caught:
        host_link(CanParams(*params, **more), place).open()
    return str(caught.value)


NAMES = [("sockectcan", "can0"), ("virtual", ""), ("udp_multicast", "192.168.0.1"), ("udp_multicast", "bus")]


@pytest.mark.parametrize("names", NAMES, ids=" ".join)
def test_mistakes_in_the_names(names, said):
    said(refused(*names))


def test_an_unknown_interface():
    known = refused("qqqq", "can0")
    assert known.startswith("rig.yaml:7 interface: python-can has no interface 'qqqq'; known: ")
    assert ", slcan, " in known and ", socketcan" in known


def test_mistakes_with_socketcan(controllers, tmp_path, said):
    said(refused("socketcan", "can7"))
    said(refused("socketcan", "can1", 5e5))
    for name in ("can0", "can1"):
        (tmp_path / name / "type").unlink()
    said(refused("socketcan", "can0", fd=True, data_bitrate=5e6))


ERRORS = (ValueError("Invalid bitrate."), ImportError("no library"), can.CanInitializationError("handle is\nnot valid"))


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_mistakes_that_the_interface_finds(error, controllers, said):
    controllers[1].append(error)
    said(refused("pcan", "PCAN_USBBUS9", 123456))


def test_a_bus_that_opens_but_cannot_be_used_is_closed_again(controllers, monkeypatch, said):
    monkeypatch.setattr(Controller, "fileno", lambda self: 1 / 0)
    said(refused("socketcan", "can0"))
    assert controllers[0][-1].ear.fileno() == -1


def test_packages_that_are_not_installed(monkeypatch, said):
    monkeypatch.setitem(sys.modules, "serial", None)
    said(refused("slcan", "/dev/ttyACM0"))
    monkeypatch.setitem(sys.modules, "can", None)
    said(refused("virtual", "x"))


OPTIONS = {
    "data bit rate": {"data_bitrate": 5e6},
    "bit rate": {"options": {"bitrate": 1}},
    "own messages": {"options": {"receive_own_messages": True}},
    "filters": {"options": {"can_filters": []}},
}


@pytest.mark.parametrize("more", OPTIONS.values(), ids=OPTIONS)
def test_options_that_are_not_for_the_interface(more, said):
    with pytest.raises(ValueError) as caught:
        CanParams("virtual", "x", **more)
    said(caught.value)


def test_nothing_is_printed_or_logged_and_python_can_is_not_imported_early():
    program = """
import gc, sys
from cosim.plugin import InputError, SourceLocation
from cosim.plugins.drivers.transport import CanParams, host_link
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
