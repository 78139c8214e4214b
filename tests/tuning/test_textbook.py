"""Plants whose optimal gains are known."""

import math

import numpy as np
import pytest
from scipy.signal import lti

from cosim import InputError, tune
from cosim.apps.tuning.optimisers.gradient import Slope
from cosim.apps.tuning.setup import evaluator_of, request_of
from tests.kit.refusals import raised
from tests.tuning.textbook import TURNTABLE, turntable

SEARCHES = ("tpe", "cma", "de", "gradient")


@pytest.mark.parametrize("optimiser", SEARCHES)
def test_the_integral_of_the_squared_error_is_smallest_with_half_of_the_critical_damping(optimiser):
    session = tune(turntable(), {"arm.kd": "1..40"}, optimiser=optimiser, trials=80, batch=8)
    damping = session.parameters["arm.kd"] / (2.0 * math.sqrt(100.0))
    assert damping == pytest.approx(0.5, rel=0.03)
    # ∫e² = (ζ + 1 / (4 ζ)) / ω, with ω = 10 rad/s, over 4 s
    assert session.best.outcome.cost == pytest.approx(math.sqrt(0.1 / 4.0), rel=0.01)


@pytest.mark.parametrize("optimiser", SEARCHES)
def test_a_limit_of_the_overshoot_is_reached_and_not_exceeded(optimiser):
    session = tune(
        turntable(), {"arm.kd": "1..40"}, limits={"overshoot": "5 %"}, optimiser=optimiser, trials=96, batch=8
    )
    assert session.best.outcome.figures["overshoot"][0] <= 0.05
    assert session.parameters["arm.kd"] / 20.0 == pytest.approx(0.6901, rel=0.03)  # exp(−π ζ / √(1 − ζ²)) = 5 %


def test_a_limit_of_the_phase_margin_is_reached_and_not_exceeded():
    """L = (kd s + kp) / s²: 60° where kd ω = √3 kp and ω⁴ = 4 kp², so kd = √3 kp / √(2 kp)."""
    session = tune(
        turntable(), {"arm.kd": "1..40"}, limits={"phase_margin": "60 deg"}, optimiser="cma", trials=80, batch=8
    )
    assert math.degrees(session.best.outcome.figures["phase_margin"][0]) >= 60.0
    assert session.parameters["arm.kd"] == pytest.approx(math.sqrt(3.0) * 100.0 / math.sqrt(200.0), rel=0.03)


def test_weights_of_error_and_effort_give_the_gains_of_the_linear_quadratic_regulator():
    """min ∫e² + r u² of a double integrator: kp = 1/√r, kd = √(2 kp). The sum of both roots of mean squares has the
    same minimum if its weight is r times their ratio there."""
    r = 1.0 / 30.0**2
    kp, kd = 30.0, math.sqrt(60.0)
    t = np.linspace(0.0, 4.0, 40_001)
    _, e = lti([1.0, kd], [1.0, kd, kp]).impulse(T=t)  # from e = 1 at rest
    u = kp * e + kd * np.gradient(e, t)
    weight = r * math.sqrt((u**2).mean() / (e**2).mean())
    session = tune(
        turntable(),
        {"arm.kp": "3..300", "arm.kd": "0.5..50"},
        {"error_rms": 1.0, "effort_rms": weight},
        optimiser="cma",
        trials=320,
    )
    assert session.parameters["arm.kp"] == pytest.approx(kp, rel=0.03)
    assert session.parameters["arm.kd"] == pytest.approx(kd, rel=0.03)


@pytest.mark.parametrize("at", [[0.1, 0.9], [0.5, 0.5], [0.95, 0.3]])
def test_the_slope_of_the_cost_is_that_of_differences(at):
    """In the unit cube, with logarithmic scales and weights."""
    request = request_of(
        turntable(),
        {"parameters": {"arm.kp": "10..1000", "arm.kd": "1..40"}, "minimise": {"error_rms": 2.0, "effort_rms": 0.01}},
    )
    evaluator = evaluator_of(turntable(), request)
    slope, x, h = Slope(evaluator)(np.array(at)), np.array(at), 1e-5
    points = np.vstack([x + h * np.eye(2), x - h * np.eye(2)])
    costs = np.array([outcome.cost for outcome in evaluator.evaluate(evaluator.space.values(points))])
    np.testing.assert_allclose(slope, (costs[:2] - costs[2:]) / (2.0 * h), rtol=1e-5)


def test_a_cost_without_derivative_is_refused(said):
    said(raised(InputError, tune, turntable(), {"arm.kd": "1..40"}, {"axis/velocity": 1.0}, optimiser="gradient"))


def test_loop_shaping_gives_the_gains_of_the_crossover_and_the_phase_margin():
    session = tune(turntable(), {"arm.kp": "1..1e5", "arm.kd": "0.1..1e3"}, optimiser="shape", trials=400)
    kp, kd = (np.array([trial.values[k] for trial in session.trials[1:]]) for k in (0, 1))
    omega = np.sqrt(0.5 * (kd**2 + np.sqrt(kd**4 + 4.0 * kp**2)))  # |L(jω)| = 1
    margins = np.degrees(np.arctan(kd * omega / kp))
    slow = omega < 30.0  # where half a tick of delay does not count
    nearest = np.abs(margins[:, None] - [45.0, 60.0, 75.0]).min(axis=1)
    assert slow.sum() > 20 and nearest[slow].max() < 1.5


def test_a_relay_finds_the_ultimate_gain_and_period_of_the_linear_model():
    """Where the phase of the plant, from its equations, is −180°."""
    viscous, bandwidth = 5.0, 50.0  # N·m·s/rad, rad/s of the loop of the current
    actuator = {
        "type": "dc_motor",
        "resistance": 0.01,
        "inductance": 1.0,
        "torque_constant": 1.0,
        "rotor_inertia": 0.0,
        "viscous": viscous,
        "bandwidth": f"{bandwidth / (2.0 * math.pi)} Hz",
        "voltage_limit": 1e6,
    }
    rig = turntable(joints={"axis": {"actuator": actuator}})
    session = tune(rig, {"arm.kp": "1..1e4", "arm.ki": "0..1e5", "arm.kd": "0.01..1e3"}, optimiser="relay", trials=20)
    kp, ki, kd = session.trials[1].values  # Ziegler and Nichols
    # 1 / (s (s + b) (1 + s / ω)): phase −180° at √(b ω), where the gain is 1 / (b (b + ω))
    ultimate, period = viscous * (viscous + bandwidth), 2.0 * math.pi / math.sqrt(viscous * bandwidth)
    assert kp == pytest.approx(0.6 * ultimate, rel=0.12)  # the describing function is an approximation
    assert kp / ki == pytest.approx(0.5 * period, rel=0.08)
    assert kd / kp == pytest.approx(period / 8.0, rel=0.08)


def test_a_relay_on_a_free_inertia_is_refused(said):
    said(raised(Exception, tune, turntable(), {"arm.kp": "1..1e4", "arm.kd": "0.01..1e3"}, optimiser="relay"))


def test_gains_that_hold_for_heavier_and_lighter_plants_are_stiffer_than_those_for_one():
    """The slowest of the plants is the heaviest: its error is smallest with the damping for its own inertia."""
    given = {"optimiser": "cma", "trials": 80, "batch": 8}
    one = tune(turntable(), {"arm.kd": "1..40"}, **given)
    several = tune(turntable(), {"arm.kd": "1..40"}, plants={"inertia": "50 %"}, **given)
    assert one.parameters["arm.kd"] == pytest.approx(10.0, rel=0.03)
    assert several.parameters["arm.kd"] == pytest.approx(10.0 * math.sqrt(1.5), rel=0.03)  # ζ = kd / (2 √(kp J)) = 0.5
    assert several.best.outcome.costs[2] == several.best.outcome.cost


def test_the_gains_of_the_rig_are_trial_0_and_may_be_the_best():
    data = {**TURNTABLE["controllers"][0], "kd": 10.0}
    session = tune(turntable(controllers=[data]), {"arm.kd": "5..40"}, optimiser="sobol", trials=8)
    assert session.best is session.start and session.start.values == (10.0,)
