"""Polynomials of inputs: they go through their values and agree with numpy's, at steps of unequal length."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.coupling.extrapolation import line_before, polynomial, times_before, value_at

LENGTHS = st.floats(0.05, 3.0)


@pytest.mark.parametrize("order", [0, 1, 2])
@given(lengths=st.tuples(LENGTHS, LENGTHS), values=st.tuples(*[st.floats(-10.0, 10.0)] * 3))
def test_a_polynomial_has_its_values_at_its_times(order, lengths, values):
    times = times_before(lengths)[: order + 1]
    coefficients = polynomial(values[: order + 1], times)
    assert len(coefficients) == order + 1
    for time, value in zip(times, values, strict=False):
        assert value_at(coefficients, time) == pytest.approx(value, abs=1e-9)


def test_the_coefficients_are_those_of_numpy():
    times, values = [0.5, 0.0, -0.2], np.array([[1.0, 2.0], [-1.0, 0.5], [3.0, 0.0]])
    expected = [np.polyfit(times, column, 2)[::-1] for column in values.T]
    assert pytest.approx(np.array(expected)) == np.array(polynomial(list(values), times)).T


def test_a_quadratic_is_extrapolated_exactly():
    def exact(t: float) -> float:
        return 2.0 - 3.0 * t + 0.7 * t * t

    times = times_before([0.3, 0.1])
    assert times == pytest.approx([0.0, -0.3, -0.4])
    assert value_at(polynomial([exact(t) for t in times], times), 0.25) == pytest.approx(exact(0.25))


def test_a_past_on_a_line_makes_every_order_this_line():
    values = [1.0, *line_before(1.0, 1.5, 2)]
    for order in (1, 2):
        coefficients = polynomial(values[: order + 1], times_before([0.1, 0.1])[: order + 1])
        assert value_at(coefficients, 0.1) == pytest.approx(1.5)
        assert value_at(coefficients, 0.05) == pytest.approx(1.25)
