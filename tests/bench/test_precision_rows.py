"""Work against precision: both sides solve the same problem, each with the loosest tolerance that is precise enough."""

import numpy as np
import pytest

from benchmarks import rows_precision
from benchmarks.paired_timing import Budget
from benchmarks.rows import NotMeasured
from benchmarks.rows_precision import EFFORTS, ERROR, TICKS, TOLERANCES, loosest, scipy_method, stiff_arm


class Errors:
    """A problem whose motion is its own error."""

    def error(self, motion):
        return motion


def test_the_loosest_tolerance_that_is_precise_enough_is_taken():
    made = []

    def solver(tolerance):
        made.append(tolerance)
        return lambda: 3.0 * tolerance

    found = loosest(Errors(), solver, TOLERANCES, ERROR)
    assert found() <= ERROR < 3.0 * made[-2]
    assert made == list(TOLERANCES[: len(made)])


def test_a_method_without_a_precise_enough_tolerance_is_not_measured():
    with pytest.raises(NotMeasured, match="no tolerance keeps an error of 1e-07"):
        loosest(Errors(), lambda tolerance: lambda: 1.0, TOLERANCES, ERROR)


def test_sampled_efforts_are_held_for_a_tick():
    sampled, constant = stiff_arm(True), stiff_arm(False)
    assert constant.pieces == [(0, TICKS)] and len(sampled.pieces) == TICKS
    assert (constant.efforts == EFFORTS).all() and not (np.diff(sampled.efforts, axis=0) == 0.0).all(axis=1).any()
    seen = []
    sampled.by_pieces(lambda x, t: seen.append((t[0], sampled.held.copy())) or np.stack([x, x + 1.0]))
    np.testing.assert_array_equal([effort for _, effort in seen], sampled.efforts)
    np.testing.assert_allclose([t for t, _ in seen], np.arange(TICKS) * 1e-3)


def test_programs_of_other_people_agree_on_the_motion():
    of = stiff_arm(True)
    exact, lsoda = of.reference, scipy_method(of, "LSODA", 1e-9)()
    assert of.error(lsoda) < 1e-7 < of.error(np.broadcast_to(exact[0], exact.shape))


def test_a_row_from_end_to_end(monkeypatch):
    monkeypatch.setattr(rows_precision, "TOLERANCES", (1e-8,))
    measured = rows_precision.stiff("LSODA", True, Budget(pairs=1, block=1e-4, starts=1))
    assert measured.samples.ours.shape == measured.samples.other.shape == (1,)
    assert measured.note.startswith("largest errors ")
