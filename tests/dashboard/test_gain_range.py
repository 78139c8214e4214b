"""The scale of the slider of a gain."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.apps.dashboard.gains import GainRange, gain_range
from cosim.rig.reading.schema import SMALLEST_NUMBER


@pytest.mark.parametrize(
    ("value", "lower", "upper", "expected"),
    [
        (2500.0, 0.0, None, GainRange(100.0, 1e5, True)),  # without an upper bound: decades around the value
        (2500.0, 0.0, 4000.0, GainRange(0.0, 4000.0, False)),
        (0.5, 0.0, 1000.0, GainRange(0.01, 1000.0, True)),
        (2500.0, SMALLEST_NUMBER, None, GainRange(100.0, 1e5, True)),  # above 0 is no number of decades
        (2500.0, SMALLEST_NUMBER, 4000.0, GainRange(SMALLEST_NUMBER, 4000.0, False)),
        (0.3, 0.1, 0.9, GainRange(0.1, 0.9, False)),
        (0.3, 0.001, 10.0, GainRange(0.001, 10.0, True)),
        (0.0, 0.0, None, GainRange(0.0, 1.0, False)),
        (0.0, 0.0, 5.0, GainRange(0.0, 5.0, False)),
        (-2.0, None, None, GainRange(-20.0, 20.0, False)),
        (0.0, None, 0.5, GainRange(-1.0, 0.5, False)),
        (2.0, -1.0, 3.0, GainRange(-1.0, 3.0, False)),
    ],
)
def test_a_range_follows_from_the_bounds_and_the_value(value, lower, upper, expected) -> None:
    assert gain_range(value, lower, upper) == expected


def test_decades_are_marked() -> None:
    assert gain_range(2500.0, 0.0, None).marks == ((2.0, "100"), (3.0, "1k"), (4.0, "10k"), (5.0, "100k"))
    assert gain_range(0.3, 0.1, 0.9).marks == ((0.1, "0.1"), (0.9, "0.9"))


@given(st.floats(1e-9, 1e9), st.sampled_from([None, 0.0, SMALLEST_NUMBER]), st.sampled_from([None, 1e10]))
def test_the_slider_shows_the_value_and_sets_three_digits(value, lower, upper) -> None:
    shown = gain_range(value, lower, upper)
    assert shown.low <= value <= shown.high and shown.ends[0] < shown.ends[1]
    assert math.isclose(shown.value(shown.position(value)), value, rel_tol=5.1e-3)
    assert shown.value(1e300) == shown.high and shown.value(-1e300) == shown.low


def test_a_value_beyond_is_at_the_end() -> None:
    assert gain_range(0.3, 0.1, 0.9).position(7.0) == 0.9
