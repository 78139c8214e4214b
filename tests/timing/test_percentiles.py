"""Order statistics of blocks are the same as of all numbers at once."""

import numpy as np
import pytest

from cosim.execution.timing.percentiles import percentiles, percentiles_of

RNG = np.random.default_rng(0)
SERIES = {
    "wide": lambda n: RNG.integers(0, 1 << 50, n),
    "few values": lambda n: RNG.integers(-3, 3, n),
    "one value": lambda n: np.full(n, 7),
    "latencies": lambda n: RNG.lognormal(11.0, 1.0, n).astype(np.int64),
    "one far away": lambda n: np.append(RNG.integers(0, 1000, n - 1), 1 << 60),
}


@pytest.mark.parametrize("n", [1, 2, 3, 101, 5000, 100_000])
@pytest.mark.parametrize("kind", SERIES)
def test_the_figures_are_those_of_numpy_to_the_bit(kind, n):
    ns = SERIES[kind](n)
    parts = np.split(ns, np.sort(RNG.integers(0, n, 7)))  # some are empty
    median, p99 = np.percentile(ns, (50, 99))
    expected = {"median_s": median / 1e9, "p99_s": p99 / 1e9, "max_s": int(ns.max()) / 1e9}
    assert percentiles(lambda: ([part] for part in parts), 1) == [expected]
    assert percentiles_of(ns) == expected


def test_several_series_and_none():
    blocks = [[np.array([1, 2]), np.array([], dtype=np.int64)], [np.array([9]), np.array([], dtype=np.int64)]]
    first, second = percentiles(lambda: blocks, 2)
    assert first is not None and first["median_s"] == 2e-9 and second is None
    assert percentiles_of(np.zeros(0, dtype=np.int64)) is None
