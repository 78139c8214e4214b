"""An array in a file is indexed as one in memory, and only what is used is read."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.core.recordings.stored_array import BLOCK, StoredArray

ROWS = 2 * BLOCK + 100
TABLE = np.random.default_rng(3).standard_normal((ROWS, 5))


def stored(read=None):
    def rows(begin, end, columns):
        if read is not None:
            read.append((begin, end))
        return TABLE[begin:end, columns]

    return StoredArray(rows, *TABLE.shape)


MASK = TABLE[:, 0] > 1.5


@pytest.mark.parametrize(
    "key",
    [
        0,
        -1,
        slice(None),
        slice(10, 3),
        slice(5, ROWS, 1000),
        slice(None, None, -7),
        [3, BLOCK + 2, 4],
        MASK,
        (slice(None), 2),
        (7, 2),
        (slice(3, 9), [4, 0]),
        (-5, slice(1, 4)),
        (slice(None), -1),
    ],
)
def test_it_is_indexed_as_an_array(key):
    np.testing.assert_array_equal(stored()[key], TABLE[key])


@pytest.mark.parametrize("key", [ROWS, (0, 5), (0, 0, 0), np.ones(3, bool)])
def test_what_is_outside_is_an_index_error(key):
    with pytest.raises(IndexError):
        stored()[key]


def test_numpy_takes_it_as_an_array():
    array = stored()
    np.testing.assert_array_equal(np.asarray(array), TABLE)
    np.testing.assert_array_equal(array * 2 + 1, TABLE * 2 + 1)
    assert array.max() == TABLE.max() and np.median(array) == np.median(TABLE)
    assert (array.shape, array.ndim, array.size, len(array)) == (TABLE.shape, 2, TABLE.size, ROWS)
    assert sum(1 for _ in array) == ROWS


def test_only_what_is_used_is_read():
    read = []
    array = stored(read)
    array[100:200, 1], array[-1], array[:: BLOCK + 1]
    assert read == [(100, 200), (ROWS - 1, ROWS), (0, BLOCK), (BLOCK, 2 * BLOCK), (2 * BLOCK, ROWS)]
    assert not hasattr(array, "no_method")
