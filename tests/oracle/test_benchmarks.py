"""Benchmark problems of multibody dynamics: rigs against the reference values of the literature."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim import load_rig
from cosim.rig.run.run import StoppedRun

RIGS = Path(__file__).parents[2] / "rigs" / "mechanisms"


@cache
def ran(name, *overrides):
    """The run of a rig, with `schedule` changed where overrides say so."""
    return load_rig(RIGS / f"{name}.yaml", [f"schedule.{change}" for change in overrides]).run()


def at(run, t, *signals):
    """(n,) signals at a time that is a tick."""
    tick = round(t / run.summary["step_s"])
    assert run.t[tick] == pytest.approx(t, abs=1e-12)
    return np.array([run[signal][tick] for signal in signals])


def mechanical(run):
    return run["energy/kinetic"] + run["energy/potential"]


def widest_gap(run):
    return max(run[name].max() for name in run.signals if name.endswith("/violation"))


# --- simple pendulum in Cartesian coordinates: IFToMM A01; values recomputed with tight tolerances, 12 decimals ---


def test_point_pendulum():
    run = ran("point_pendulum", "step=500 us")
    for t, expected in ((1.0, (0.986291751132, -0.165010853126)), (10.0, (-0.275087462577, -0.961419205099))):
        np.testing.assert_allclose(at(run, t, "x/position", "y/position"), expected, rtol=0, atol=2e-11)
    assert widest_gap(run) < 1e-14
    assert np.ptp(mechanical(run)) < 1e-10
    np.testing.assert_allclose(run["rod/force"], 3.0 * 9.81 * run["y/position"], rtol=0, atol=1e-8)


# --- two four-bars in a row: IFToMM A02, N = 2; values recomputed from the exact equation, 12 decimals ---


def test_four_bars():
    """Through every singular position."""
    run, n, g = ran("four_bars", "step=1 ms"), 2, 9.81
    for t, expected in (
        (1.0, (-0.195020301949, -0.980799205662)),
        (5.0, (-0.811310460999, -0.584615545357)),
        (10.0, (0.328458111533, 0.944518538181)),
    ):
        (theta,) = at(run, t, "A_0/position")
        np.testing.assert_allclose((np.cos(theta), np.sin(theta)), expected, rtol=0, atol=1e-6)

    def pendulum(t, state):
        theta, omega = state
        return omega, -((n + 1) / 2 + n) * g * np.cos(theta) / ((n + 1) / 3 + n)

    exact = solve_ivp(pendulum, (0.0, 10.0), (np.pi / 2, -1.0), "DOP853", run.t, rtol=1e-12, atol=1e-12)
    assert np.diff(np.signbit(np.sin(exact.y[0]))).sum() >= 10
    for crank in ("A_0", "A_1", "A_2"):
        np.testing.assert_allclose(run[f"{crank}/position"], exact.y[0], rtol=0, atol=1e-6)
        np.testing.assert_allclose(run[f"{crank}/velocity"], exact.y[1], rtol=0, atol=1e-5)
    assert mechanical(run)[0] == pytest.approx(35.835, abs=1e-9)
    assert np.ptp(mechanical(run)) < 1e-8
    assert widest_gap(run) < 1e-12


# --- Andrews' squeezing mechanism: Hairer and Wanner II, IVP test set ---

# at 0.03 s, recomputed, 12 to 14 decimals
ANDREWS = {
    "beta": 15.810771195153,
    "theta": -15.756371058411,
    "gamma": 0.040822240119626,
    "phi": -0.53473011634212,
    "delta": 0.52440996587995,
    "omega": 0.53473011634211,
    "epsilon": 1.0480807410419,
}


def test_andrews():
    run = ran("andrews", "step=10 us")
    found = at(run, 0.03, *(f"{joint}/position" for joint in ANDREWS))
    np.testing.assert_allclose(found, list(ANDREWS.values()), rtol=0, atol=1e-10)
    (x, y), angle = at(run, 0.0, "P3/force_x", "P3/force_y"), sum(at(run, 0.0, "beta/position", "theta/position"))
    s, c = np.sin(angle), np.cos(angle)  # they are given along the axes of K2, the published ones along the ground's
    published = 98.5668703962411, -6.12268834425567
    np.testing.assert_allclose((c * x - s * y, s * x + c * y), published, rtol=1e-12)
    others = [f"{loop}/force_{axis}" for loop in ("P4", "P6") for axis in "xy"]
    np.testing.assert_allclose(at(run, 0.0, *others), 0.0, atol=1e-11)
    turned = ANDREWS["beta"] - run["beta/position"][0]
    assert run["energy/work"][-1] == pytest.approx(0.033 * turned, rel=1e-8)
    assert run.summary["energy"]["dissipated"] == 0.0
    assert run.summary["energy"]["residual_relative"] < 1e-8
    assert widest_gap(run) < 1e-14


# --- stiff flyball governor: IFToMM A05; values recomputed with tight tolerances, 8 and 9 decimals ---

# t -> lift of the slider [m], angle of the rods [deg], speed of the shaft [rad/s]
GOVERNOR = {
    0.5: (0.743249425, 14.86776098, 5.103415422),
    2.0: (0.505909294, 29.60265502, 6.236223614),
    10.0: (0.619622917, 22.34957681, 5.548203623),
}


@pytest.mark.parametrize(
    ("schedule", "tolerance"),  # the tolerance of the three values
    [
        (("step=1 ms", "integrator=rosenbrock"), (3e-5, 2e-3, 2e-4)),
        (("step=100 us", "integrator=rk4"), (2e-9, 2e-8, 2e-9)),
    ],
    ids=["rosenbrock", "rk4"],
)
def test_flyball_governor(schedule, tolerance):
    run = ran("flyball_governor", *schedule)
    for t, expected in GOVERNOR.items():
        lift, rod, spin = at(run, t, "lift/position", "hinge_1/position", "spin/velocity")
        error = np.abs(np.array((lift, np.degrees(rod), spin)) - expected)
        assert np.all(error < tolerance), error


def test_flyball_governor_is_symmetric_and_its_dampers_take_the_energy_that_is_lost():
    run = ran("flyball_governor", "step=100 us", "integrator=rk4")
    np.testing.assert_allclose(run["hinge_1/position"], run["hinge_2/position"], rtol=0, atol=1e-10)
    energy = run.summary["energy"]
    assert energy["dissipated"] > 1e-3
    assert energy["residual_relative"] < 1e-9


def test_flyball_governor_is_stiff():
    with pytest.raises(StoppedRun):
        load_rig(RIGS / "flyball_governor.yaml", ["schedule.integrator=rk4"]).run()


# --- car axis: IVP test set; published values, 18 digits ---

CAR_AXIS = {
    "left_x": (0.0493455784275402809, -0.0770583684040972358),
    "left_y": (0.496989460230171154, 0.00744686658723778553),
    "right_x": (1.04174252488542152, 0.0175568157537232222),
    "right_y": (0.373911027265361257, 0.770341043779251976),
}


def test_car_axis():
    run = ran("car_axis", "step=100 us")
    found = [at(run, 3.0, f"{joint}/position", f"{joint}/velocity") for joint in CAR_AXIS]
    np.testing.assert_allclose(found, list(CAR_AXIS.values()), rtol=0, atol=1e-9)
    np.testing.assert_allclose(at(run, 0.0, "stand/force", "axle/force"), 0.0, atol=1e-15)
    assert widest_gap(run) < 1e-14
    assert run.summary["energy"]["work_in"] > 1e-4
    assert run.summary["energy"]["residual_relative"] < 1e-11


# --- double pendulum: Modelica Standard Library; published values, 4 decimals ---


def test_double_pendulum():
    run = ran("double_pendulum", "step=1 ms")
    angles = at(run, 3.0, "hinge_1/position", "hinge_2/position")
    np.testing.assert_allclose(angles, (-2.3179, -1.7365), rtol=0, atol=1e-4)
    speeds = at(run, 3.0, "hinge_1/velocity", "hinge_2/velocity")
    np.testing.assert_allclose(speeds, (4.0941, -0.0504), rtol=0, atol=2e-4)
    taken = np.trapezoid(0.1 * run["hinge_1/velocity"] ** 2, run.t)
    assert run.summary["energy"]["dissipated"] == pytest.approx(taken, rel=1e-5)
    assert run.summary["energy"]["residual_relative"] < 1e-8
