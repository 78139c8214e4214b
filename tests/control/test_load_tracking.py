"""How well a load motor follows: against efforts whose delay and whose further load are known."""

import numpy as np
import pytest

from cosim.control.load_tracking import SUMS, added_load, delay, summed

STEP = 2e-4
T = np.arange(0.0, 1.0, STEP)
V, A = 2.0 * np.sin(7.0 * T) + np.cos(3.0 * T), 14.0 * np.cos(7.0 * T) - 3.0 * np.sin(3.0 * T)


def sums_of(error, rate):
    sums = np.zeros((SUMS, 1))
    for e, r, a, v in zip(error, rate, A, V, strict=True):
        sums = summed(sums, np.array([[e], [r], [a], [v]]))
    return sums


@pytest.mark.parametrize("late", [0.0, 1e-3, 4e-3])
def test_a_delay_is_found(late):
    def command(t):
        return 0.3 * np.sin(5.0 * t) + 0.1 * np.sin(11.0 * t)

    rate = np.gradient(command(T), STEP)
    assert delay(sums_of(command(T - late) - command(T), rate))[0] == pytest.approx(late, rel=0.02, abs=1e-12)


def test_a_further_inertia_and_damping_are_found():
    inertia, damping = added_load(sums_of(-(0.003 * A - 0.02 * V), 0.0 * T))
    assert (inertia[0], damping[0]) == (pytest.approx(0.003, rel=1e-9), pytest.approx(-0.02, rel=1e-9))


def test_at_rest_nothing_is_known():
    none = np.zeros((SUMS, 2))
    assert delay(none).tolist() == [0.0, 0.0]
    assert [part.tolist() for part in added_load(none)] == [[0.0, 0.0]] * 2
