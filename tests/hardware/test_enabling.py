"""Enabled drives get hold commands at their measured positions until the first tick."""

import threading
import time

import pytest

from cosim.core.errors import RunError
from cosim.execution.hardware.enabling import HoldCommands, enable_all

PATIENCE = 20.0  # s; what takes so long has failed


class ReportingDriver:
    """A driver that reports the position of its joint, or nothing."""

    joints = ("a",)

    def __init__(self, position=None):
        self.position, self.commands, self.busy = position, [], threading.Lock()

    def read(self, out, deadline_ns):
        assert self.busy.acquire(blocking=False), "two threads use the driver"
        if self.position is not None:  # without a sample `out` stays as it is
            out.position[:], out.t_ns = self.position, 1
        self.busy.release()

    def write(self, cmd, deadline_ns):
        assert self.busy.acquire(blocking=False), "two threads use the driver"
        self.commands.append([float(getattr(cmd, name)[0]) for name in ("position", "velocity", "effort", "kp", "kd")])
        self.busy.release()


class FailingDriver(ReportingDriver):
    def write(self, cmd, deadline_ns):
        raise ValueError("no power")


def held(*drivers):
    hold = HoldCommands(drivers)
    hold.begin()
    return hold


def until(reached):
    """Wait for what another thread does."""
    end = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < end
        time.sleep(1e-3)


def test_a_drive_holds_its_measured_position():
    driver = ReportingDriver(1.5)
    held(driver).add(0)
    assert driver.commands == [[1.5, 0.0, 0.0, 0.0, 0.0]]


def test_a_drive_holds_where_it_was_enabled_and_does_not_follow_its_load():
    driver = ReportingDriver(1.5)
    hold = held(driver)
    hold.add(0)
    driver.position = 1.4
    hold.send()
    assert driver.commands == [[1.5, 0.0, 0.0, 0.0, 0.0]] * 2
    hold.end()
    hold.begin()  # enabled again elsewhere
    hold.add(0)
    assert driver.commands[2:] == [[1.4, 0.0, 0.0, 0.0, 0.0]]


def test_a_drive_that_reports_no_position_is_not_sent_to_zero():
    driver = ReportingDriver()
    hold = held(driver)
    hold.add(0)
    assert driver.commands == []
    driver.position = 0.7
    hold.send()
    assert driver.commands == [[0.7, 0.0, 0.0, 0.0, 0.0]]


def test_a_drive_that_is_not_enabled_gets_no_command():
    first, second = ReportingDriver(0.2), ReportingDriver(0.3)
    hold = held(first, second)
    hold.add(1)
    hold.send()
    assert (first.commands, len(second.commands)) == ([], 2)


def test_enabled_drives_are_held_while_others_take_their_time_and_until_the_end():
    first, second = ReportingDriver(0.2), ReportingDriver(0.3)
    hold = held(first, second)
    thread = threading.Thread(target=hold.run)
    thread.start()
    enable_all(2, lambda k: until(lambda: not k or len(first.commands) >= 3), hold, lambda: None)
    assert set(map(tuple, first.commands)) == {(0.2, 0.0, 0.0, 0.0, 0.0)}
    until(lambda: len(second.commands) >= 3)  # all are enabled, and the first tick is not there yet
    hold.end()
    count = len(first.commands)
    thread.join(PATIENCE)
    hold.send()
    assert not thread.is_alive() and len(first.commands) == count


def test_the_first_error_is_raised_after_all_calls_have_returned():
    ended = []

    def enable(k):
        if k == 0:
            raise ValueError("no power")
        ended.append(k)

    with pytest.raises(ValueError, match="no power"):
        enable_all(2, enable, held(ReportingDriver(0.0), ReportingDriver(0.0)), lambda: None)
    assert ended == [1]


def test_a_drive_that_takes_no_hold_command_is_an_error_and_the_others_are_held():
    other = ReportingDriver(0.3)
    hold = held(FailingDriver(0.2), other)
    with pytest.raises(ValueError, match="no power"):
        enable_all(2, lambda k: None, hold, lambda: None)
    hold.send()
    assert len(other.commands) == 2
    with pytest.raises(ValueError, match="no power"):
        hold.check()
    hold.begin()
    hold.check()


class LeavingDriver(ReportingDriver):
    def write(self, cmd, deadline_ns):
        raise SystemExit(0)  # ends a thread without a word


def test_a_driver_that_ends_its_thread_does_not_end_the_hold_commands_to_others():
    other = ReportingDriver(0.3)
    hold = held(LeavingDriver(0.2), other)
    hold.add(1)
    thread = threading.Thread(target=hold.run)
    thread.start()
    hold.add(0)
    count = len(other.commands)
    until(lambda: len(other.commands) > count + 2)
    hold.end()
    thread.join()
    with pytest.raises(RunError, match="hold commands failed: SystemExit: 0"):
        hold.check()


def test_an_interrupt_stops_the_drives_before_the_last_one_is_enabled(monkeypatch):
    """… which takes seconds, and the last one is stopped by the caller afterwards."""
    driver, stopped, joins = ReportingDriver(0.2), threading.Event(), []
    join = threading.Thread.join

    def interrupted(thread, timeout=None):
        joins.append(thread)
        if len(joins) == 1:
            raise KeyboardInterrupt
        join(thread, timeout)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    enabled = []

    def enable(k):
        if k:
            assert stopped.wait(PATIENCE)
        enabled.append(k)

    with pytest.raises(KeyboardInterrupt):
        enable_all(2, enable, held(driver, ReportingDriver(0.1)), stopped.set)
    assert sorted(enabled) == [0, 1]  # none is enabled later
