"""Filters against the formulas of continuous ones and the sections of scipy, on numbers and compiled."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from cosim.core import filters, ops
from cosim.core.compile import ArrayPort, compile
from cosim.core.filters import Section

PERIOD = 1e-3


def gain(sections: tuple[Section, ...], frequency: float) -> complex:
    z = np.exp(-2j * np.pi * frequency * PERIOD)
    return complex(np.prod([(s.b0 + s.b1 * z + s.b2 * z * z) / (1.0 + s.a1 * z + s.a2 * z * z) for s in sections]))


@pytest.mark.parametrize("order", [1, 2, 5, 8])
def test_a_low_pass_is_the_butterworth_filter_of_scipy(order: int) -> None:
    sections = filters.low_pass(60.0, order, PERIOD)
    expected = signal.butter(order, 60.0, fs=1.0 / PERIOD, output="sos")
    frequencies = np.array([0.0, 1.0, 30.0, 60.0, 200.0, 400.0])
    _, response = signal.sosfreqz(expected, frequencies, fs=1.0 / PERIOD)
    np.testing.assert_allclose([gain(sections, f) for f in frequencies], response, rtol=1e-9, atol=1e-12)
    assert abs(gain(sections, 60.0)) == pytest.approx(np.sqrt(0.5), rel=1e-9)


@pytest.mark.parametrize("frequency", [3.0, 80.0, 300.0])
@pytest.mark.parametrize("depth", [0.0, 0.1, 0.5])
def test_a_notch_has_its_depth_at_its_frequency_and_its_width(frequency: float, depth: float) -> None:
    width = 0.4 * frequency
    sections = filters.notch(frequency, width, depth, PERIOD)
    assert abs(gain(sections, frequency)) == pytest.approx(depth, abs=1e-9)
    assert abs(gain(sections, 0.0)) == pytest.approx(1.0) and abs(gain(sections, 499.999)) == pytest.approx(1.0)
    b, a = signal.iirnotch(frequency, frequency / width, fs=1.0 / PERIOD)
    (own,) = filters.notch(frequency, width, 0.0, PERIOD)
    np.testing.assert_allclose([own.b0, own.b1, own.b2], b, rtol=1e-9)
    np.testing.assert_allclose([1.0, own.a1, own.a2], a, rtol=1e-9)


def test_a_filter_begins_at_rest_and_then_follows_its_difference_equation() -> None:
    sections = (*filters.notch(np.array([20.0, 50.0]), 10.0, 0.2, PERIOD), *filters.low_pass(100.0, 3, PERIOD))
    u = np.random.default_rng(0).normal(size=(200, 2)) + np.array([5.0, -3.0])
    u[:10] = u[0]
    state, seen = filters.initial(sections, 2), []
    for row in u:
        y, state = filters.filtered(sections, state, row)
        seen.append(y)
    np.testing.assert_allclose(seen[:10], np.tile(u[0], (10, 1)), rtol=1e-12)
    for joint in range(2):
        rows = [[float(np.broadcast_to(c, 2)[joint]) for c in s] for s in sections]
        sos = np.array([[b0, b1, b2, 1.0, a1, a2] for b0, b1, b2, a1, a2 in rows])
        expected, _ = signal.sosfilt(sos, u[:, joint], zi=signal.sosfilt_zi(sos) * u[0, joint])
        np.testing.assert_allclose(np.array(seen)[:, joint], expected, rtol=1e-9)


def test_a_compiled_filter_with_its_frequency_as_an_input_equals_the_numeric_one() -> None:
    def step(frequency, state, u):
        return filters.filtered(filters.low_pass(frequency, 3, PERIOD), state, u)

    ports = [ArrayPort("frequency", (2,)), ArrayPort("state", (7, 2)), ArrayPort("u", (2,))]
    compiled = compile(step, ports, "filter")
    state, frequency = filters.initial(filters.low_pass(1.0, 3, PERIOD), 2), np.array([30.0, 90.0])
    for u in np.random.default_rng(1).normal(size=(20, 2)):
        y, after = step(frequency, state, u)
        found, found_state = compiled(frequency, state, u)
        np.testing.assert_allclose(found, y, rtol=1e-10)
        np.testing.assert_allclose(found_state, np.asarray(after, dtype=float), rtol=1e-10, atol=1e-12)
        state = ops.array(after)


CHANGES = {
    "low_pass": (filters.low_pass(20.0, 3, PERIOD), filters.low_pass(200.0, 3, PERIOD)),
    "notch": (filters.notch(30.0, 5.0, 0.0, PERIOD), filters.notch(90.0, 40.0, 0.3, PERIOD)),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_other_parameters_of_a_filter_at_rest_change_nothing(kind: str) -> None:
    before, after = CHANGES[kind]
    u, state = np.array([4.0, -7.0]), filters.initial(before, 2)
    for sections in [before] * 5 + [after] * 50 + [before] * 50:
        y, state = filters.filtered(sections, state, u)
        np.testing.assert_allclose(y, u, rtol=1e-9)


@pytest.mark.parametrize("kind", CHANGES)
def test_a_filter_that_is_changed_goes_on_with_the_past_samples(kind: str) -> None:
    """The first sample after the change follows from the samples of all signals before it, the difference equations of
    the new filter alone, and the step of a filter that is changed a little is a little one."""
    before, after = CHANGES[kind]
    signals = np.sin(np.arange(60) * 0.05)[:, None]
    state = filters.initial(before, 1)
    past = [signals[[0, 0]], *(signals[[0, 0]] for _ in before)]  # latest first
    for u in signals[:-1]:
        _, state = filters.filtered(before, state, u)
        for section, (b0, b1, b2, a1, a2) in enumerate(before):
            first, second = past[section], past[section + 1]
            new = b0 * u + b1 * first[0] + b2 * first[1] - a1 * second[0] - a2 * second[1]
            past[section], u = np.array([u, first[0]]), new
        past[-1] = np.array([u, past[-1][0]])
    u = signals[-1]
    for section, (b0, b1, b2, a1, a2) in enumerate(after):
        first, second = past[section], past[section + 1]
        u = b0 * u + b1 * first[0] + b2 * first[1] - a1 * second[0] - a2 * second[1]
    changed, _ = filters.filtered(after, state, signals[-1])
    np.testing.assert_allclose(changed, u, rtol=1e-9)
