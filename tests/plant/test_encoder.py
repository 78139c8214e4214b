"""Encoders: counts, velocity from counts, delay, noise, and joints that have none."""

import numpy as np
import pytest
from scipy.stats import kstest

from cosim.core.compile import ArrayPort, compile
from cosim.core.layout import Layout
from cosim.simulation.plant import encoder
from cosim.simulation.plant.encoder import MODULUS, MULTIPLIER, Encoders

PERIOD = 0.01


def encoders(resolution=0.0, noise=0.0, late=False, seed=0):
    """Of one joint."""
    return Encoders([resolution], [noise], [late], PERIOD, seed)


def measured(encoder, positions, velocities=None, start=0.0, speed=0.0):
    """{interface: (k,)} that the encoder gives for true positions and velocities of one joint, effort 10 q."""
    state = encoder.initial(np.array([start]), np.array([speed]))
    found = {"position": [], "velocity": [], "effort": []}
    velocities = np.zeros(len(positions)) if velocities is None else velocities
    for q, v in zip(positions, velocities, strict=True):
        true = {"position": np.array([q]), "velocity": np.array([v]), "effort": np.array([10.0 * q])}
        state, given = encoder.update(0.0, encoder.params, state, true)
        for name, values in found.items():
            values.append(given[name].item())
    return {name: np.array(values) for name, values in found.items()}


def test_a_joint_without_an_encoder_is_measured_exactly_and_at_once():
    encoder = encoders()
    given = measured(encoder, [0.123, -4.5], [1.0, 2.0])
    np.testing.assert_array_equal(given["position"], [0.123, -4.5])
    np.testing.assert_array_equal(given["velocity"], [1.0, 2.0])
    np.testing.assert_array_equal(given["effort"], [1.23, -45.0])
    assert encoder.inexact.tolist() == [False]


def test_positions_are_rounded_to_the_nearest_count():
    true = [0.0, 0.249, 0.251, 0.7, -0.249, -0.251, -0.7, 100.1]
    given = measured(encoders(resolution=0.5), true)
    np.testing.assert_allclose(given["position"], [0.0, 0.0, 0.5, 0.5, 0.0, -0.5, -0.5, 100.0], atol=1e-15)
    np.testing.assert_allclose(given["effort"], np.multiply(10.0, true))  # only positions are counted


def test_velocity_is_counts_per_period():
    given = measured(encoders(resolution=0.5), [0.6, 0.9, 1.6, 1.4], [9.0] * 4)
    np.testing.assert_allclose(given["velocity"], np.array([0.5, 0.5, 0.5, 0.0]) / PERIOD, atol=1e-12)


def test_the_first_values_are_those_of_the_motion_before():
    given = measured(encoders(resolution=1e-9), [2.0], start=2.0, speed=3.0)
    assert given["velocity"][0] == pytest.approx(3.0, rel=1e-6)
    late = measured(encoders(late=True), [5.0], [1.0], start=2.0, speed=3.0)
    assert (late["position"][0], late["velocity"][0]) == (pytest.approx(2.0 - 3.0 * PERIOD, rel=1e-15), 3.0)


@pytest.mark.parametrize("resolution", [0.0, 0.5])
def test_a_late_encoder_gives_everything_one_period_later(resolution):
    true, speeds = [0.6, 1.2, 5.0], [1.0, 2.0, 3.0]
    now = measured(encoders(resolution), true, speeds)
    late = measured(encoders(resolution, late=True), true, speeds)
    for name in now:
        np.testing.assert_array_equal(late[name][1:], now[name][:-1])
    assert late["position"][0] == 0.0 and late["velocity"][0] == 0.0
    assert encoders(late=True).inexact.tolist() == [True]


def test_noise_is_white_and_the_same_for_the_same_seed():
    true = np.zeros(1000)
    first, again, other = (measured(encoders(noise=0.2, seed=seed), true)["position"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.mean(first != other) > 0.99
    assert np.mean(first) == pytest.approx(0.0, abs=0.02)
    assert np.std(first) == pytest.approx(0.2, rel=0.06)
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.08


def test_noise_comes_before_the_counts_and_shows_in_the_velocity():
    given = measured(encoders(resolution=0.5, noise=0.3), np.zeros(200), np.full(200, 7.0))
    np.testing.assert_allclose(given["position"] / 0.5, np.round(given["position"] / 0.5), atol=1e-12)
    assert len(np.unique(given["position"])) > 2
    np.testing.assert_allclose(given["velocity"][1:], np.diff(given["position"]) / PERIOD, atol=1e-9)


def test_the_generator_of_noise_is_exact_in_doubles():
    assert int(MULTIPLIER) * (int(MODULUS) - 1) < 2**53


def test_joints_of_a_group_keep_to_themselves():
    group = Encoders([0.0, 0.5, 0.0, 0.0], [0.0, 0.0, 0.1, 0.0], [False, False, False, True], PERIOD, 0)
    assert group.inexact.tolist() == [False, True, True, True]
    zero = np.zeros(4)
    state = group.initial(zero, zero)
    true = {"position": np.full(4, 0.7), "velocity": np.ones(4), "effort": zero}
    _, given = group.update(0.0, group.params, state, true)
    assert given["position"][[0, 1, 3]].tolist() == [0.7, 0.5, 0.0]
    assert given["position"][2] != 0.7
    assert given["velocity"][[0, 3]].tolist() == [1.0, 0.0]


def test_symbols_give_what_numbers_give():
    group = Encoders([0.0, 0.5, 0.1, 0.0], [0.0, 0.0, 0.3, 0.0], [False, True, False, True], PERIOD, 3)
    layout = Layout(group.initial(np.zeros(4), np.zeros(4)))

    def update(x, q, v, effort):
        true = {"position": q, "velocity": v, "effort": effort}
        x_next, given = group.update(0.0, group.params, layout.unpack(x), true)
        return layout.pack(x_next), given["position"], given["velocity"], given["effort"]

    compiled = compile(update, [ArrayPort("x", (layout.size,)), *(ArrayPort(n, (4,)) for n in "qve")], interpret=False)
    x = layout.pack(group.initial(np.full(4, 0.2), np.ones(4)))
    rng = np.random.default_rng(0)
    for _ in range(20):
        inputs = rng.uniform(-3.0, 3.0, (3, 4))
        expected = update(x, *inputs)
        for got, value in zip(compiled(x, *inputs), expected, strict=True):
            np.testing.assert_allclose(got, value, rtol=1e-12, atol=1e-12)
        x = expected[0]


def test_the_generator_of_the_noise():
    """The check of Park and Miller (1988): from 1 the 10,000th number is 1043618065."""
    random = np.ones(1)
    for _ in range(5000):  # two numbers each
        random, _ = encoder.normal(random)
    assert random.tolist() == [1043618065]


def test_the_noise_is_distributed_normally():
    random = np.random.default_rng(0).integers(1, int(MODULUS), 50_000).astype(float)
    _, errors = encoder.normal(random)
    assert kstest(errors, "norm").pvalue > 0.05


def test_the_phase_of_the_noise_is_a_fraction_of_a_turn():
    """Of a second number of a quarter, half and three quarters of the modulus: cosines 0, -1 and 0."""
    modulus, back = int(MODULUS), pow(int(MULTIPLIER), -1, int(MODULUS))
    states = [float(back * back * quarters * (modulus // 4) % modulus) for quarters in (1, 2, 3)]
    _, errors = encoder.normal(np.array(states))
    np.testing.assert_allclose(errors[[0, 2]], 0.0, atol=1e-7)
    assert errors[1] < -0.1


def test_the_exact_ones_have_neither_noise_nor_increments():
    """Velocities stay differences, and the delay stays too."""
    given = measured(encoders(0.1, 0.05).exact(), [0.123, 0.223], [7.0, 7.0])
    np.testing.assert_allclose(given["position"], [0.123, 0.223])
    np.testing.assert_allclose(given["velocity"], [12.3, 10.0])
    late = encoders(0.1, 0.05, late=True)
    np.testing.assert_allclose(measured(late.exact(), [0.123, 0.223])["position"], [0.0, 0.123])
    assert (late.params.noise.item(), late.params.resolution.item()) == (0.05, 0.1)
