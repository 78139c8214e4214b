"""The work of a drive from its samples, with numbers."""

import numpy as np

from cosim.control.energy_account import accounted, effort_of_drive, without_gap

YES, NO = np.array(True), np.array(False)


def test_the_work_between_two_samples_is_that_of_the_trapezoid():
    interval = np.array([0.5, 2.0])
    power, work = accounted(np.array([2.0, -1.0]), np.array([5.0, 7.0]), np.array([4.0, 3.0]), interval, interval, NO)
    assert (power.tolist(), work.tolist()) == ([4.0, 3.0], [6.5, 9.0])


def test_without_a_new_sample_nothing_changes():
    power, work = accounted(np.array([2.0]), np.array([5.0]), np.array([9.0]), np.zeros(1), np.zeros(1), NO)
    assert (power.tolist(), work.tolist()) == ([2.0], [5.0])


def test_the_account_begins_with_the_first_sample_however_old_the_one_before_is():
    for interval in (np.array([0.0]), np.array([3.0]), np.array([1e9])):
        power, work = accounted(np.array([2.0]), np.array([5.0]), np.array([9.0]), interval, interval, YES)
        assert (power.tolist(), work.tolist()) == ([9.0], [5.0])


def test_after_a_gap_the_power_is_known_and_the_work_over_the_gap_is_not():
    power, work = accounted(np.array([2.0]), np.array([5.0]), np.array([9.0]), np.array([0.5]), np.zeros(1), NO)
    assert (power.tolist(), work.tolist()) == ([9.0], [5.0])


def test_a_gap_is_no_part_of_the_residual_energy():
    taken, done, residual = np.array([3.0]), np.array([1.0]), np.array([0.25])
    on_time, late, none = (np.array([0.5]),) * 2, (np.array([0.5]), np.zeros(1)), (np.zeros(1), np.zeros(1))
    found = [
        tuple(float(value[0]) for value in without_gap(taken, done, residual, *samples, first))
        for samples, first in ((on_time, NO), (late, NO), (none, NO), (none, YES), (late, YES))
    ]
    assert found == [(1.0, 2.0), (2.75, 0.25), (1.0, 0.25), (1.0, 2.0), (1.0, 2.0)]


def test_the_commanded_effort_stands_in_for_one_that_is_no_number():
    reported, commanded = np.array([1.0, np.nan, np.inf, 0.0]), np.array([5.0, 6.0, 7.0, 8.0])
    assert effort_of_drive(reported, commanded).tolist() == [1.0, 6.0, 7.0, 0.0]
