"""A run on emulated drives that is killed at a random time: see `tests.kit.kills`, which kills 50."""

import os

from tests.kit.kills import falls, kills


def test_killed_runs_leave_motors_off_and_recordings_readable(tmp_path):
    (kill,) = kills(1, 6, tmp_path, f"239.75.252.{os.getpid() % 250 + 1}", latest=1.5)
    assert kill.wrong == () and not kill.early


def test_a_motor_that_holds_its_load_is_not_taken_for_one_that_is_off():
    falling = iter([-0.4, -0.3, -0.1])
    assert falls(lambda: next(falling)) is True
    assert falls(lambda: 0.4, timeout=0.1) is False
    assert falls(lambda: 0.01) is None
