"""Thinned curves."""

import numpy as np
import pytest

from cosim.output.plot import thin
from cosim.output.plot.curves import thin_pieces


def test_pieces_are_thinned_alone_and_lose_no_peak():
    x = np.arange(100_000.0)
    y = np.sin(x / 5000)
    y[[17, 50_010]] = [5.0, -7.0]
    kept_x, kept_y = thin_pieces(x, y, np.array([20, 50_000]), columns=100)
    gap = np.flatnonzero(np.isnan(kept_y))
    assert len(gap) == 2
    assert kept_x[gap[0] + 1] >= 20.0 and kept_x[gap[1] + 1] >= 50_000.0
    assert kept_x[gap[0]] < 20.0 and kept_x[gap[1]] < 50_000.0
    assert len(kept_x) < 220
    assert {17.0, 50_010.0} <= set(kept_x)


def test_short_curves_are_not_thinned():
    x = np.arange(20.0)
    kept_x, kept_y = thin(x, x**2, columns=10)
    np.testing.assert_array_equal(kept_x, x)
    np.testing.assert_array_equal(kept_y, x**2)


@pytest.mark.parametrize("k", [100_000, 99_999, 12_345])
def test_thinning_keeps_every_peak_and_the_order(k):
    x = np.arange(float(k))
    y = np.sin(x / 500)
    y[[17, k // 2, k - 1]] = [5.0, -7.0, 9.0]
    kept_x, kept_y = thin(x, y, columns=100)
    assert len(kept_x) <= 200
    assert np.all(np.diff(kept_x) > 0)
    np.testing.assert_array_equal(kept_y, y[kept_x.astype(int)])
    assert {17.0, float(k // 2), k - 1.0} <= set(kept_x)


def test_gaps_stay_gaps_and_hide_no_peak():
    x = np.arange(1000.0)
    y = np.zeros(1000)
    y[200:400] = np.nan
    y[405] = np.inf
    y[409] = 3.0
    kept_x, kept_y = thin(x, y, columns=100)
    assert np.all(np.isnan(kept_y[(kept_x >= 200) & (kept_x < 400)]))
    assert np.sum((kept_x >= 200) & (kept_x < 400)) == 20
    assert kept_y[kept_x == 409.0] == 3.0
    assert not np.any(np.isinf(kept_y))
