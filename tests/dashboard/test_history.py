"""The samples that charts show."""

import numpy as np
import pytest

from cosim.apps.dashboard.curves import History, thinned


def filled(count: int, capacity: int, block: int = 7) -> History:
    history = History(2, capacity)
    for first in range(0, count, block):
        t = np.arange(first, min(first + block, count), dtype=float)
        history.add(t, np.stack([t * 10, -t], axis=1))
    return history


@pytest.mark.parametrize("count", [0, 1, 10, 20, 21, 95, 400])
def test_the_newest_samples_are_kept_in_their_order(count: int) -> None:
    history = filled(count, 10)
    assert min(count, 10) <= len(history) <= 20
    np.testing.assert_array_equal(history.t, np.arange(count - len(history), count))
    np.testing.assert_array_equal(history.column(1, slice(None, len(history))), -history.t)


def test_a_block_larger_than_the_table_leaves_its_end() -> None:
    history = filled(400, 10, block=400)
    np.testing.assert_array_equal(history.t, np.arange(390, 400))


def test_rows_are_found_by_time() -> None:
    history = filled(10, 10)
    assert history.row(3.5) is not None
    np.testing.assert_array_equal(history.row(3.5), [30.0, -3.0])
    np.testing.assert_array_equal(history.row(-1.0), [0.0, 0.0])
    np.testing.assert_array_equal(history.row(), [90.0, -9.0])
    assert history.last(2.0) == slice(7, 10)
    history.clear()
    assert history.row() is None and history.last(2.0) == slice(0, 0)


def test_thinned_curves_keep_their_peaks() -> None:
    t = np.linspace(0, 1, 100_000)
    spiky, smooth = np.zeros_like(t), np.sin(t)
    spiky[[123, 77_777]] = 5.0, -3.0
    times, (a, b) = thinned(t, [spiky, smooth])
    assert len(times) == len(a) == len(b) <= 1200
    assert (a.max(), a.min()) == (5.0, -3.0)
    assert np.all(np.diff(times) > 0)
    np.testing.assert_allclose(b, np.sin(times), atol=2e-3)


def test_few_samples_are_shown_as_they_are() -> None:
    t = np.arange(100.0)
    assert thinned(t, [t]) == (t, [t])
