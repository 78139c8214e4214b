"""The chain of ten rods: against Lagrange's equations, and how the integrators' errors fall with the step."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim.mechanics.multibody import equations

N, MASS, LENGTH, G = 10, 1.0, 0.1, 9.81
SPIN = 10.0 / (12 * N**3)  # of a rod about its centre of mass [kg m²]


@pytest.fixture(scope="module")
def lagrange():
    """(k, N) angles of the rods from the x axis at k times, without any sweep over bodies.

    With absolute angles θ the kinetic energy is ½ Σ_ij c_ij cos(θ_i − θ_j) θ̇_i θ̇_j, c_ij = m L² (rods beyond the
    farther of i and j, plus ½, on the diagonal ¼) + J on the diagonal, and the weight is Σ_i w_i sin θ_i.
    """
    k = np.arange(N)
    beyond = N - 1 - np.maximum.outer(k, k)
    c = MASS * LENGTH**2 * (beyond + 0.5 - 0.25 * np.eye(N)) + SPIN * np.eye(N)
    w = MASS * G * LENGTH * (N - 0.5 - k)

    def flow(t, y):
        angle, rate = y[:N], y[N:]
        difference = np.subtract.outer(angle, angle)
        force = -(c * np.sin(difference)) @ rate**2 - w * np.cos(angle)
        return np.concatenate([rate, np.linalg.solve(c * np.cos(difference), force)])

    def solve(times):
        start = np.concatenate([-np.ones(N), np.zeros(N)])
        return solve_ivp(flow, (0.0, times[-1]), start, "DOP853", times, rtol=1e-12, atol=1e-12).y[:N].T

    return solve


@pytest.fixture
def run_of(sample):
    def run(integrator, step_ms, seconds=1.0):
        overrides = f"schedule.integrator={integrator}", f"schedule.step={step_ms} ms"
        return sample("pendulum_chain", *overrides).run(seconds)

    return run


def rods(run):
    """(k, N) angles of the rods from the x axis."""
    return np.cumsum([run[f"hinge_{k + 1}/position"] for k in range(N)], axis=0).T


def test_it_equals_lagranges_equations(run_of, lagrange):
    run = run_of("rk4", 1)
    np.testing.assert_allclose(rods(run), lagrange(run.t), atol=3e-7)


def test_mass_matrix_at_rest_is_that_of_one_rod(sample):
    rig = sample("pendulum_chain")
    model = rig.plant.model
    q = np.zeros(N)
    q[0] = -1.0
    assert model.nv == N
    np.testing.assert_allclose(rig.plant.position, q)
    tip = model.frame_pose(q, "rod_10")[:3, :3] @ [LENGTH, 0, 0] + model.frame_pose(q, "rod_10")[:3, 3]
    start = model.frame_pose(q, "rod_1")[:3, 3]
    np.testing.assert_allclose(tip - start, [np.cos(1.0), -np.sin(1.0), 0.0], atol=1e-12)
    # at rest and stretched out it is one rod of 10 kg and 1 m about its end
    assert model.mass_matrix(q)[0, 0] == pytest.approx(10.0 / 3.0, rel=1e-12)


def test_energy_is_conserved_over_the_run(sample):
    run = sample("pendulum_chain").run()
    energy = run["energy/kinetic"] + run["energy/potential"]
    assert np.ptp(energy) / run["energy/kinetic"].max() < 1e-6
    assert run.summary["energy"]["residual_relative"] < 1e-8
    assert np.all(run["energy/work"] == 0.0) and np.all(run["energy/dissipated"] == 0.0)
    assert np.ptp(run["energy/kinetic"]) > 5.0  # it does move
    hinge = run.summary["joints"]["hinge_1"]
    assert hinge["role"] == "passive" and hinge["error_rms"] is hinge["error_max"] is None
    assert hinge["effort_rms"] == hinge["effort_peak"] == 0.0
    assert (hinge["position_min"], hinge["position_max"]) == (run["hinge_1/position"].min(), -1.0)
    assert hinge["speed_max"] == np.abs(run["hinge_1/velocity"]).max()


def test_substeps_equal_smaller_steps(run_of, sample):
    fine = run_of("rk4", 1)
    coarse = sample("pendulum_chain", "schedule.step=2 ms", "schedule.substeps=2").run(1.0)
    assert coarse.summary["substeps"] == 2
    np.testing.assert_allclose(rods(coarse), rods(fine)[::2], atol=1e-12)


# --- many bodies: sweeps are loops inside a tick too, and derivatives remain exact ---

CHAIN = """
mechanism:
  bodies:
    - {name: rod, joint: hinge, repeat: 6, axis: [0, 1, 0], origin: {xyz: [0.1, 0, 0]}, mass: 1, com: [0.05, 0, 0],
       inertia: [0, 8e-4, 8e-4], damping: 0.01}
controllers:
  - {type: feedforward_pd, joints: [hinge_1], kp: 50, kd: 5, trajectory: {type: sine, amplitude: 0.3, frequency: 1}}
schedule: {duration: 0.05, step: 1 ms}
"""


@pytest.mark.parametrize("integrator", ["rk4", "rosenbrock", "semi_implicit_euler"])
def test_rolled_sweeps_in_a_tick_equal_straight_line_code(rig_of, monkeypatch, integrator):
    override = f"schedule.integrator={integrator}"
    straight = rig_of(CHAIN, override).run()
    monkeypatch.setattr(equations, "ROLLED_FROM", 3)
    looped = rig_of(CHAIN, override).run()
    np.testing.assert_allclose(looped.values, straight.values, rtol=1e-9, atol=1e-9)
