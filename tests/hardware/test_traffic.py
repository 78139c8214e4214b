"""Traffic of drivers: what the log keeps and loses, how entries become calls, and how a connection plays them."""

import threading
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from cosim.core.errors import RunError
from cosim.core.types import JointCommand, JointState
from cosim.execution.hardware.traffic.player import LOOK_NS, PlaybackConnection, play
from cosim.execution.hardware.traffic.recorded_driver import RecordedConnection, RecordedDriver
from cosim.execution.hardware.traffic.traffic_log import (
    Fields,
    MissingEntries,
    Passing,
    TrafficEntry,
    TrafficLog,
    calls_of,
)
from cosim.plugins.drivers.transport import CanFrame, ConnectionLost


class Wire:
    """A connection of which a test chooses what happens next: items, None, or an error that is raised."""

    name = "wire"

    def __init__(self, *results):
        self.results, self.sent = list(results), []
        self._times = count(1000)

    def now(self):
        return next(self._times)

    def open(self):
        pass

    def reopen(self):
        return False

    def send(self, item, deadline_ns):
        self.sent.append(item)

    def receive(self, deadline_ns):
        result = self.results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result


class Echo:
    """A driver: `write` sends the sum of its command, `read` measures the last number that was received."""

    joints = ("a", "b")
    scale = 1.0

    def __init__(self, link):
        self.link, self.value = link, 0

    def open(self):
        self.link.open()

    def enable(self, mode):
        self.link.send(mode.encode(), self.link.now() + 5)

    def read(self, out, deadline_ns):
        while (item := self.link.receive(deadline_ns)) is not None:
            self.value = item[0]
        out.position[:], out.t_ns = self.value, self.link.now()

    def write(self, cmd, deadline_ns):
        self.link.send(bytes([round(self.scale * float(cmd.effort.sum()))]), deadline_ns)

    def stop(self):
        self.link.send(b"off", 0)

    def close(self):
        self.stop()


def recorded(*results):
    """(entries, states that were measured) of an Echo on a Wire with these results."""
    log = TrafficLog(("echo",))
    traffic = log.of("echo")
    driver = RecordedDriver(Echo(RecordedConnection(Wire(*results), traffic)), traffic)
    state, command = JointState.zeros(2), JointCommand.zeros(2)
    driver.open()
    driver.enable("effort")
    for k in range(3):
        command.effort[:], command.valid_until_ns = k, 10**9
        driver.write(command, 7)
        driver.read(state, 2000 + k)
    driver.close()
    log.end(9999)
    return log.take(1000), state


def played(entries, change=lambda driver: None):
    link = PlaybackConnection("wire")
    driver = Echo(link)
    change(driver)
    return play(driver, link, calls_of(entries))


WIRE = (b"\x01", None, None, b"\x05", b"\x06", None)


def test_entries_are_numbered_and_have_everything_that_passed():
    entries, state = recorded(*WIRE)
    assert [entry.number for entry in entries] == list(range(len(entries)))
    assert state.position.tolist() == [6.0, 6.0]
    kinds = [entry.what for entry in entries if entry.what != Passing.CLOCK]
    assert kinds[:5] == ["open", "connected", "returned", "enable", "sent"]
    assert kinds[-4:] == ["close", "sent", "returned", "ended"]
    assert kinds.count("received") == 3 and kinds.count("empty") == 3
    times = [entry.t_ns for entry in entries]
    assert times == sorted(times)


def test_a_driver_repeats_what_it_did():
    entries, _ = recorded(*WIRE)
    found = played(entries)
    assert (found.calls, found.sent, found.received, found.measured) == (9, 5, 3, 3)
    assert found.first is None and found.differing == 0 and found.missing is None


def test_the_first_item_that_another_driver_sends_is_named_with_its_command():
    entries, _ = recorded(*WIRE)
    found = played(entries, lambda driver: setattr(driver, "scale", 2.0))
    first = found.first
    assert (first.call, first.what, first.recorded, first.now) == ("write", "item", b"\x02", b"\x04")
    assert first.command_of(1) == {"position": 0, "velocity": 0, "effort": 1, "kp": 0, "kd": 0}
    assert found.differing == 2  # the first command was 0


def test_a_measured_number_that_differs_is_named_with_its_joint():
    entries, _ = recorded(*WIRE)

    def change(driver):
        read = driver.read

        def other(out, deadline_ns):
            read(out, deadline_ns)
            out.position[1] += 0.5

        driver.read = other

    first = played(entries, change).first
    assert (first.call, first.what, first.joint, first.recorded, first.now) == ("read", "position", 1, 1.0, 1.5)


def test_an_item_that_is_not_sent_any_more_and_one_too_many():
    entries, _ = recorded(*WIRE)
    first = played(entries, lambda driver: setattr(driver, "write", lambda cmd, deadline_ns: None)).first
    assert (first.what, first.recorded, first.now) == ("item", b"\x00", None)

    def twice(driver):
        write = driver.write
        driver.write = lambda cmd, deadline_ns: (write(cmd, deadline_ns), write(cmd, deadline_ns))

    first = played(entries, twice).first
    assert (first.what, first.recorded, first.now) == ("item", None, b"\x00")


def test_a_failure_of_the_connection_is_played_with_its_class():
    log = TrafficLog(("echo",))
    traffic = log.of("echo")
    link = RecordedConnection(Wire(ConnectionLost("unplugged", "wire")), traffic)
    driver = RecordedDriver(Echo(link), traffic)
    with pytest.raises(ConnectionLost):
        driver.read(JointState.zeros(2), 5)
    log.end(0)
    entries = log.take(10)
    assert [entry.what for entry in entries] == ["read", "receive_failed", "raised", "ended"]
    assert played(entries).first is None
    again = PlaybackConnection("wire")
    again.play([entries[1]], 0)
    with pytest.raises(ConnectionLost, match=r"^wire: unplugged$"):
        again.receive(5)

    def quiet(driver):
        driver.read = lambda out, deadline_ns: None

    first = played(entries, quiet).first
    assert (first.what, first.recorded, first.now) == ("end", "ConnectionLost: unplugged", "")


def test_what_nobody_takes_is_lost_and_counted():
    log = TrafficLog(("a", "b"), room=2)
    for k in range(4):
        log.add(k % 2, k, Passing.SENT, b"")
    assert log.lost == [1, 1]
    kept = log.take(10)
    log.add(0, 9, Passing.SENT, b"")
    assert [(entry.driver, entry.number) for entry in (*kept, *log.take(10))] == [(0, 0), (1, 0), (0, 2)]
    log.lose(kept)
    log.end(11)
    log.add(0, 12, Passing.SENT, b"")
    assert log.lost == [2, 2]
    assert [entry[:4] for entry in log.take(10)] == [(0, 3, 11, "ended"), (1, 2, 11, "ended")]


def test_entries_of_several_threads_have_all_numbers_in_order():
    log = TrafficLog(("a",))

    def add():
        for k in range(2000):
            log.add(0, k, Passing.SENT, b"")

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [entry.number for entry in log.take(10000)] == list(range(8000))


def numbered(*kinds):
    return [TrafficEntry(0, k, 10 * k, kind, Fields(), 10 * k) for k, kind in enumerate(kinds)]


def test_a_gap_ends_the_calls():
    entries = numbered("open", "returned", "stop", "sent", "returned", "ended")
    assert [call.what for call in calls_of(entries)] == ["open", "stop"]
    *calls, gap = calls_of(entries[:-1])
    assert [call.what for call in calls] == ["open", "stop"] and gap == MissingEntries(None, 40)
    *calls, gap = calls_of([*entries[:3], entries[4]])
    assert [call.what for call in calls] == ["open"] and gap == MissingEntries(1, 20)
    assert list(calls_of(entries[1:])) == [MissingEntries(1, None)]
    found = played([*entries[:3], entries[4]])
    assert found.calls == 1 and found.missing == MissingEntries(1, 20)


def test_calls_of_two_threads_are_played_and_not_compared():
    entries = numbered(
        "open", "connected", "returned", "write", "stop", "sent", "returned", "returned", "stop", "ended"
    )
    calls = list(calls_of(entries))
    assert [(call.what, call.mixed, len(call.entries)) for call in calls] == [
        ("open", False, 1),
        ("write", True, 1),
        ("stop", True, 0),
        ("stop", False, 0),
    ]
    assert calls[-1].end is None


@pytest.fixture
def link():
    made = PlaybackConnection("line")
    sent, frame = CanFrame(1, b"x"), CanFrame(2, b"y", t_ns=30)
    kinds = [(Passing.CLOCK, None), (Passing.SENT, sent), (Passing.RECEIVED, frame), (Passing.EMPTY, None)]
    made.play([TrafficEntry(0, k, 10 * (k + 1), kind, item) for k, (kind, item) in enumerate(kinds)], 5)
    return SimpleNamespace(link=made, sent=sent, frame=frame)


def test_playback_has_the_recorded_times(link):
    assert link.link.now() == 10 and link.link.now() == 10
    link.link.send(link.sent, 0)
    assert link.link.now() == 20
    assert link.link.receive(100) == link.frame and link.link.now() == 30
    assert link.link.receive(100) is None and link.link.now() == 40
    assert link.link.sent == [link.sent] and (link.link.meter.items_out, link.link.meter.items_in) == (1, 1)


def test_a_look_before_the_recorded_item_was_sent_gets_nothing(link):
    assert link.link.receive(0) is None and link.link.now() == 5 + LOOK_NS
    link.link.send(link.sent, 0)
    assert link.link.receive(0) == link.frame


def test_a_driver_that_waits_without_sending_gets_the_item(link):
    assert link.link.receive(100) == link.frame and link.link.sent == []


def test_every_wait_in_vain_ends(link):
    for _ in range(4):
        link.link.receive(10**6)
    assert link.link.now() >= 10**6
    begun = link.link.now()
    assert link.link.receive(0) is None and link.link.now() == begun + LOOK_NS
    assert link.link.receive(begun + 10**9) is None and link.link.now() == begun + 10**9


def test_sends_that_were_not_recorded_do_not_take_items(link):
    for _ in range(3):
        link.link.send(link.sent, 0)
    assert link.link.receive(100) == link.frame and len(link.link.sent) == 3


def test_an_unknown_class_of_a_failure_is_a_failed_run():
    made = PlaybackConnection("line")
    made.play([TrafficEntry(0, 0, 0, Passing.SEND_FAILED, Fields("Foreign: no power"))], 0)
    with pytest.raises(RunError, match=r"^line: no power$") as error:
        made.send(b"x", 0)
    assert type(error.value) is RunError


def test_numbers_that_are_none_are_equal_to_themselves():
    log = TrafficLog(("nan",))
    traffic = log.of("nan")

    class Blind:
        joints = ("a", "b")

        def read(self, out, deadline_ns):
            out.position[:], out.t_ns = np.nan, 1

    RecordedDriver(Blind(), traffic).read(JointState.zeros(2), 1)
    log.end(0)
    assert play(Blind(), PlaybackConnection("line"), calls_of(log.take(10))).first is None
