"""The vectors of a step: what one side packs, the other side unpacks."""

import numpy as np
import pytest

from cosim.core.types import Signal
from cosim.simulation.fmi.frames import StepFrames

INPUTS = {"rate": Signal((), "rad/s"), "forces": Signal((2, 3), "N"), "angle": Signal((), "rad")}
OUTPUTS = {"y": Signal((), "m"), "z": Signal((3,), "m"), "matrix": Signal((2, 2), "m")}


def values(signals, *lead):
    rng = np.random.default_rng(3)
    return {name: rng.normal(size=(*lead, *signal.shape)) for name, signal in signals.items()}


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_inputs(rows):
    frames, given = StepFrames(INPUTS, OUTPUTS, rows), values(INPUTS, rows)
    vector = frames.pack_inputs(0.25, 1e-3, given)
    assert vector.shape == (frames.given,) == (2 + 8 * rows,)
    t, h, found = frames.unpack_inputs(vector)
    assert (t, h) == (0.25, 1e-3) and list(found) == list(given)
    for name, value in given.items():
        np.testing.assert_array_equal(found[name], value)


def test_shorter_polynomials_end_with_zeros():
    frames = StepFrames(INPUTS, OUTPUTS, 3)
    given = values(INPUTS, 3) | {"angle": np.array([2.0]), "forces": np.ones((2, 2, 3))}
    _, _, found = frames.unpack_inputs(frames.pack_inputs(0.0, 1.0, given))
    np.testing.assert_array_equal(found["angle"], [2.0, 0.0, 0.0])
    np.testing.assert_array_equal(found["forces"], [*np.ones((2, 2, 3)), np.zeros((2, 3))])


def test_outputs():
    frames, given = StepFrames(INPUTS, OUTPUTS, 1), values(OUTPUTS)
    vector = frames.pack_outputs(given)
    assert vector.shape == (frames.results,) == (8,)
    found = frames.unpack_outputs(vector)
    assert list(found) == list(given)
    for name, value in given.items():
        np.testing.assert_array_equal(found[name], value)
        assert found[name].shape == value.shape
