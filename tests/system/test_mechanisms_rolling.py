"""A skate and a rolling wheel: non-holonomic rigs of rigs/mechanisms against closed forms and Newton's equations."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from cosim.simulation.plant.recorded_signals import recorded_of

# --- skate --------------------------------------------------------------------------------------------

MASS, SPIN, FORCE, MOMENT = 2.0, 0.15, 4.0, 0.3


def test_skate_follows_a_circle(sample):
    """φ = M t²/2J and v = F t/m, so ds/dφ = F J/(m M) is the radius."""
    run = sample("mechanisms/skate").run()
    heading, radius = 0.5 * MOMENT / SPIN * run.t**2, FORCE * SPIN / (MASS * MOMENT)
    speed = FORCE / MASS * run.t
    assert heading[-1] > 4.0 * np.pi  # twice round and more
    np.testing.assert_allclose(run["ice.angle/position"], heading, atol=1e-9)
    # the push is held for a tick while the edge turns under it
    np.testing.assert_allclose(run["ice.x/position"], radius * np.sin(heading), atol=2e-5)
    np.testing.assert_allclose(run["ice.y/position"], radius * (1.0 - np.cos(heading)), atol=2e-5)
    kinetic = 0.5 * MASS * speed**2 + 0.5 * SPIN * run["ice.angle/velocity"] ** 2
    np.testing.assert_allclose(run["energy/kinetic"], kinetic, rtol=1e-5)
    np.testing.assert_allclose(run["edge/force"], MASS * speed * run["ice.angle/velocity"], atol=2e-3)
    assert run["edge/slip"].max() < 1e-12 and run.summary["energy"]["residual_relative"] < 1e-9


def test_spinning_skate_on_a_slope_returns(sample):
    """The cycloid of Neimark and Fufaev: it does not run down the slope, it drifts across it."""
    pull, rate = 3.0, 2.0
    start = f"joints.ice={{initial: {{velocity: [0, 0, {rate}]}}}}"
    run = sample("mechanisms/skate", "controllers=[]", f"mechanism.gravity=[0, {-pull}, 0]", start).run()
    angle = rate * run.t
    x = pull / rate**2 * (0.5 * angle + 0.25 * np.sin(2.0 * angle) - np.sin(angle))
    y = pull / rate**2 * (np.cos(angle) - 0.75 - 0.25 * np.cos(2.0 * angle))
    np.testing.assert_allclose(run["ice.x/position"], x, atol=1e-9)
    np.testing.assert_allclose(run["ice.y/position"], y, atol=1e-9)
    np.testing.assert_allclose(run["energy/stored"], run["energy/stored"][0], atol=1e-9)
    assert y.min() == pytest.approx(-2.0 * pull / rate**2, rel=1e-6)
    assert run["ice.y/position"][run.t > 2.0].max() > -1e-6  # after one turn it is as high as it began


# --- rolling wheel ------------------------------------------------------------------------------------

M, RADIUS, ACROSS, ALONG, G = 2.0, 0.3, 0.045, 0.09, 9.81


def wheel(run):
    """(centre, axle), (k, 3) each."""

    def several(*names):
        return np.transpose([run[f"wheel.{name}/position"] for name in names])

    return several(*"xyz"), Rotation.from_quat(several("qx", "qy", "qz", "qw")).apply([0.0, 0.0, 1.0])


def rolled(times, lean, rates):
    """Newton's and Euler's equations of a disk of lean θ (axle to vertical) and heading ψ, rates ω (3,) along
    e₁ (level, ahead), e₂ (up in the disk) and e₃ (axle), all about the contact: no multipliers. Returns the centre
    and the axle, (k, 3) each."""
    e2, up = np.array([0.0, 1.0, 0.0]), np.array([0.0, 1.0, 1.0])
    inertia = np.diag([ACROSS, ACROSS, ALONG])

    def axes(lean, heading):
        return Rotation.from_euler("ZX", [heading, lean]).as_matrix()

    def flow(t, y):
        lean, heading, w = y[0], y[1], y[2:5]
        vertical = up * [0.0, np.sin(lean), np.cos(lean)]
        frame = np.array([w[0], w[1], w[1] / np.tan(lean)])  # of e₁, e₂, e₃: it does not spin
        speed = RADIUS * np.cross(w, e2)

        def moments(change):
            """Of inertia and weight about the contact, for ω̇ = change."""
            pull = M * (RADIUS * np.cross(change, e2) + np.cross(frame, speed) + G * vertical)
            return inertia @ change + np.cross(frame, inertia @ w) + np.cross(RADIUS * e2, pull)

        still = moments(np.zeros(3))
        change = np.linalg.solve(np.transpose([moments(e) - still for e in np.eye(3)]), -still)
        return np.concatenate([[w[0], w[1] / np.sin(lean)], change, (axes(lean, heading) @ speed)[:2]])

    start = [lean, 0.0, *rates, 0.0, 0.0]
    y = solve_ivp(flow, (0.0, times[-1]), start, "DOP853", times, rtol=1e-11, atol=1e-11).y
    axle = np.array([axes(*angles)[:, 2] for angles in y[:2].T])
    return np.transpose([y[5], y[6], RADIUS * np.sin(y[0])]), axle


def test_wheel_rolls_in_steady_precession(sample):
    run = sample("mechanisms/rolling_wheel").run()
    lean, rate = np.radians(60.0), 1.5
    s, c = np.sin(lean), np.cos(lean)
    spin = (ACROSS * rate**2 * s * c - M * G * RADIUS * c) / (rate * s * (ALONG + M * RADIUS**2))
    circle, turned = RADIUS * abs(spin) / rate, rate * run.t
    centre, axle = wheel(run)
    right = np.transpose([circle * np.sin(turned), circle * (1.0 - np.cos(turned)), 0.0 * turned + RADIUS * s])
    np.testing.assert_allclose(centre, right, atol=1e-7)
    leaning = np.transpose([s * np.sin(turned), -s * np.cos(turned), c + 0.0 * turned])
    np.testing.assert_allclose(axle, leaning, atol=1e-7)
    np.testing.assert_allclose(run["floor/force_z"], M * G, atol=1e-6)
    across = np.hypot(run["floor/force_x"], run["floor/force_y"])
    np.testing.assert_allclose(across, M * rate**2 * circle, rtol=1e-6)  # what keeps the centre on its circle
    assert run["floor/violation"].max() < 1e-12 and run["floor/slip"].max() < 1e-12
    assert run.summary["energy"]["residual_relative"] < 1e-9


def test_wobbling_wheel_equals_newtons_equations(sample):
    rates = 0.8, 1.0, -9.0  # neither steady nor upright
    linear = RADIUS * np.cross(rates, [0.0, 1.0, 0.0])
    override = f"joints.wheel.initial.velocity={[float(v) for v in (*linear, *rates)]}"
    run = sample("mechanisms/rolling_wheel", override).run(1.5)
    centre, axle = wheel(run)
    expected = rolled(run.t, np.radians(60.0), rates)
    np.testing.assert_allclose(centre, expected[0], atol=1e-7)
    np.testing.assert_allclose(axle, expected[1], atol=1e-7)
    assert np.ptp(axle[:, 2]) > 0.05
    np.testing.assert_allclose(run["energy/stored"], run["energy/stored"][0], rtol=1e-9)


def test_slip_is_that_of_the_contact_however_fast_it_lifts_off(sample):
    plant = sample("mechanisms/rolling_wheel").plant
    along_body = Rotation.from_rotvec([np.radians(60.0), 0.0, 0.0]).inv().apply([0.3, -0.4, 0.7])
    x = plant.initial() | {"velocity": np.array([*along_body, 0.0, 0.0, 0.0])}
    signals = recorded_of(plant, 0.0, x, np.zeros(6)).values
    assert signals["floor/slip"] == pytest.approx(0.5, rel=1e-12)
    assert signals["floor/violation"] < 1e-12
