"""The length of the segments of a run whose tape is bounded."""

import math

import pytest

from cosim.execution.gradients import segment_length


@pytest.mark.parametrize(
    ("count", "tape", "memory", "room", "length"),
    [
        (5001, 266, 318, 1e9, 5001),  # everything fits
        (5001, 266, 318, 266 * 1000, 1000),  # as many as fit
        (5001, 266, 318, 266 * 10, math.isqrt(5001 * 318 // 266) + 1),  # not fewer than √count suggests
        (3, 266, 318, 1.0, 2),
        (1, 266, 318, 1.0, 1),
    ],
)
def test_segments(count, tape, memory, room, length):
    assert segment_length(count, tape, memory, room) == length
