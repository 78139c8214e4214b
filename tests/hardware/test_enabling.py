"""Enabled drives get hold commands at their measured positions until the first command."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.hardware.enabling import enable_all, send_hold_command


class ReportingDriver:
    """A driver that reports the position of its joint, or nothing."""

    joints = ("a",)

    def __init__(self, position=None):
        self.position, self.commands = position, []

    def read(self, out, deadline_ns):
        if self.position is not None:  # without a sample `out` stays as it is
            out.position[:], out.t_ns = self.position, 1

    def write(self, cmd, deadline_ns):
        self.commands.append([float(getattr(cmd, name)[0]) for name in ("position", "velocity", "effort", "kp", "kd")])


def test_a_drive_holds_its_measured_position():
    driver = ReportingDriver(1.5)
    send_hold_command(driver)
    assert driver.commands == [[1.5, 0.0, 0.0, 0.0, 0.0]]


def test_a_drive_that_does_not_say_where_it_is_is_not_sent_to_zero():
    driver = ReportingDriver()
    send_hold_command(driver)
    assert driver.commands == []


def test_those_that_are_on_are_held_while_others_take_their_time():
    first, second = ReportingDriver(0.2), ReportingDriver(0.3)

    def enable(k):
        while k and len(first.commands) < 3:
            np.zeros(1)

    enable_all([first, second], enable)
    assert len(first.commands) >= 3 and set(map(tuple, first.commands)) == {(0.2, 0.0, 0.0, 0.0, 0.0)}


def test_the_first_error_is_raised_after_all_calls_have_returned():
    ended = []

    def enable(k):
        if k == 0:
            raise ValueError("no power")
        ended.append(k)

    with pytest.raises(ValueError, match="no power"):
        enable_all([ReportingDriver(0.0), ReportingDriver(0.0)], enable)
    assert ended == [1]
