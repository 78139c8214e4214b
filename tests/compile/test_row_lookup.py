"""Row lookup: machine code finds the row that Python finds, for one state and for each lane of a batch."""

import math

import numpy as np
import pytest

from cosim.core import ops
from cosim.core.compile import Routine, compile
from cosim.core.compile.jacobian import Jacobian
from cosim.core.compile.row_lookup import RowLookup
from cosim.core.compile.trace import inlined, symbols
from cosim.core.errors import CompileError
from tests.compile.calls import ports


def table(count, width=3):
    random = np.random.default_rng(count)
    return np.cumsum(random.uniform(0.1, 1.0, count)), random.normal(size=(count, width))


def times(begins):
    """Each start, the numbers beside it, before all, after all, no number."""
    edges = [math.nextafter(begins, way) for begins in begins for way in (-math.inf, begins, math.inf)]
    return np.array([*edges, begins[0] - 1.0, begins[-1] + 1.0, -math.inf, math.inf, math.nan])


def by_hand(begins, rows, t):
    return rows[max([k for k, begin in enumerate(begins) if begin <= t], default=0)]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 64, 1000])
def test_the_last_row_that_begins_in_time_is_found(count):
    begins, rows = table(count)
    lookup = RowLookup(begins, rows)
    compiled = compile(lookup, ports(t=()))
    sample = times(begins[:: max(count // 50, 1)])
    expected = np.array([by_hand(begins, rows, t) for t in sample])
    np.testing.assert_array_equal([lookup.fn(t) for t in sample], expected)
    np.testing.assert_array_equal([compiled(t) for t in sample], expected)
    np.testing.assert_array_equal(compiled(sample), expected)


def test_it_is_called_from_other_code_and_its_cost_grows_with_the_logarithm():
    begins, rows = table(4096, width=2)
    lookup = RowLookup(begins, rows)
    weighted = Routine(lambda t, x: ops.sum(lookup(t + 1.0) * x), [(), (2,)], "weighted")
    assert lookup.operations == 12
    assert weighted.operations == 12 + 4  # a sum before the call, two products and their sum (or fused) after it
    found = compile(weighted, ports(t=(), x=(2,)))(70.0, np.array([2.0, -1.0]))
    row = by_hand(begins, rows, 71.0)
    assert found == pytest.approx(2.0 * row[0] - row[1], abs=1e-15)


def test_its_row_is_a_constant_of_derivatives():
    """Also where a row is looked up by another one; on numbers and in machine code."""
    lookup, factor = RowLookup(*table(5)), RowLookup(np.array([0.0, 1.0]), np.array([[2.0], [3.0]]), "factor")

    def fn(x):
        return ops.array([lookup(x[0] * factor(x[1])[0])[0] * x[1] ** 2])

    slope = Jacobian(fn, [(2,)], "slope")
    compiled = compile(Routine(slope, [(2,)], "compiled_slope"), ports(x=(2,)))
    for x in (np.array([1.0, 0.5]), np.array([2.0, 4.0])):
        row = lookup(x[0] * (2.0 if x[1] < 1.0 else 3.0))[0]
        np.testing.assert_allclose(slope(x), [[0.0, 2.0 * x[1] * row]])
        np.testing.assert_allclose(np.reshape(compiled(x), (1, 2)), slope(x))


def test_it_has_no_expression():
    lookup = RowLookup(*table(5))
    with inlined(), pytest.raises(CompileError, match="'row_lookup' is a search and has no expression"):
        lookup(symbols("t", ())[1])


@pytest.mark.parametrize(
    ("begins", "rows", "message"),
    [
        ([0.0, 1.0], [[1.0]], r"needed, got \(1, 1\) and \(2,\)"),
        ([], np.zeros((0, 1)), r"needed, got \(0, 1\) and \(0,\)"),
        ([0.0], [1.0], r"needed, got \(1,\) and \(1,\)"),
        ([0.0, 0.0], [[1.0], [2.0]], "begins must increase"),
        ([0.0, math.nan], [[1.0], [2.0]], "begins must increase"),
    ],
)
def test_a_table_that_is_none_is_refused(begins, rows, message):
    with pytest.raises(ValueError, match=message):
        RowLookup(np.array(begins), np.array(rows))
