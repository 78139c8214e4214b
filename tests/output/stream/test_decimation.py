"""Samples stand for all ticks since the one before, however the ticks arrive."""

import numpy as np
import pytest

from cosim.output.stream.decimation import REDUCTIONS, Decimator, decimated_names

MS = 1_000_000


def samples(decimator, t_ns, rows, block):
    found = [s for k in range(0, len(t_ns), block) for s in decimator(t_ns[k : k + block], rows[k : k + block])]
    return [*found, *decimator.rest()]


@pytest.mark.parametrize("how", REDUCTIONS)
@pytest.mark.parametrize("block", [1, 7, 20, 1000])
def test_every_tick_counts_once(how, block):
    t_ns, rows = np.arange(1000) * MS, np.random.default_rng(0).standard_normal((1000, 3))
    found = samples(Decimator(30.0, how), t_ns, rows, block)
    due = [0, *(k for k in range(1, 1000) if k * MS * 30 // 10**9 > (k - 1) * MS * 30 // 10**9), 999]
    assert [t // MS for t, _ in found] == due
    for begin, end, (_, values) in zip([-1, *due], due, found, strict=False):
        ticks = rows[begin + 1 : end + 1]
        expected = {
            "last": ticks[-1],
            "mean": ticks.mean(axis=0),
            "min_max": np.r_[ticks[-1], ticks.min(axis=0), ticks.max(axis=0)],
        }[how]
        np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_a_number_that_is_not_finite_is_not_hidden():
    t_ns, rows = np.arange(3) * MS, np.array([[1.0], [np.nan], [2.0]])
    for how, hidden in (("last", [2.0]), ("mean", [np.nan]), ("min_max", [2.0, np.nan, np.nan])):
        decimator = Decimator(1.0, how)
        list(decimator(t_ns[:1], rows[:1]))
        ((_, values),) = samples(decimator, t_ns[1:], rows[1:], 1)
        np.testing.assert_array_equal(values, hidden)


def test_values_are_those_of_the_call_even_if_the_memory_is_used_again():
    rows = np.zeros((5, 1))
    decimator = Decimator(1.0, "last")
    list(decimator(np.arange(5) * MS, rows))
    rows[:] = 7.0
    ((_, values),) = decimator.rest()
    assert values.tolist() == [0.0]


def test_no_ticks_are_no_mistake():
    assert samples(Decimator(50.0, "mean"), np.zeros(0, np.int64), np.zeros((0, 2)), 1) == []


def test_names():
    assert decimated_names(("a/x", "b/y"), "mean") == ("a/x", "b/y")
    assert decimated_names(("a/x", "b/y"), "min_max") == (
        *("a/x", "b/y"),
        *("a/x_min", "b/y_min"),
        *("a/x_max", "b/y_max"),
    )
