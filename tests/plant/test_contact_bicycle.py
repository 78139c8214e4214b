"""A bicycle on wheels that touch: it rolls as the benchmark of Meijaard, Papadopoulos, Ruina and Schwab (Proceedings of
the Royal Society A 463, 2007) says, and slips as Lagrange's equations say."""

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from tests.kit.contact_rigs import contact_rig
from tests.kit.lagrange import Lagrange

G = 9.81
WHEELBASE, TRAIL, TILT, REAR, FRONT = 1.02, 0.08, np.pi / 10, 0.3, 0.35  # m, m, rad, m, m
# x ahead, y left, z up, from the point below the rear wheel: mass [kg], its centre [m], inertia xx, yy, zz, xz [kg m²]
FRAME = 85.0, (0.3, 0.0, 0.9), (9.2, 11.0, 2.8, -2.4)
FORK = 4.0, (0.9, 0.0, 0.7), (0.05892, 0.06, 0.00708, 0.00756)
REAR_WHEEL = 2.0, (0.0, 0.0, REAR), (0.0603, 0.12, 0.0603, 0.0)
FRONT_WHEEL = 3.0, (WHEELBASE, 0.0, FRONT), (0.1405, 0.28, 0.1405, 0.0)
STEERING, PIVOT = np.array([np.sin(TILT), 0.0, -np.cos(TILT)]), np.array([WHEELBASE + TRAIL, 0.0, 0.0])

# their linear equations M q̈ + v C q̇ + (g K₀ + v² K₂) q = 0 of lean and steering
M = np.array([[80.81722, 2.31941332208709], [2.31941332208709, 0.29784188199686]])
C = np.array([[0.0, 33.86641391492494], [-0.85035641456978, 1.68540397397560]])
K0 = np.array([[-80.95, -2.59951685249872], [-2.59951685249872, -0.80329488458618]])
K2 = np.array([[0.0, 76.59734589573222], [0.0, 2.65431523794604]])


def of_rig(part, origin):
    mass, com, (xx, yy, zz, xz) = part
    relative = [float(a - b) for a, b in zip(com, origin, strict=True)]
    return f"mass: {mass}, com: {relative}, inertia: {[xx, yy, zz, 0.0, xz, 0.0]}"


def bicycle(lean, velocity, turning):
    """lean [rad]; velocity [m/s] along axes of the frame; turning [rad/s] of the wheels."""
    place = [0.0, 0.0, 0.0, float(np.sin(lean / 2)), 0.0, 0.0, float(np.cos(lean / 2))]
    to_front = [float(x) for x in np.array(FRONT_WHEEL[1]) - PIVOT]
    frame = f"name: frame, type: free, {of_rig(FRAME, (0, 0, 0))}"
    rear = f"name: rear, axis: [0, 1, 0], origin: {{xyz: [0, 0, {REAR}]}}, {of_rig(REAR_WHEEL, REAR_WHEEL[1])}"
    fork = f"name: fork, parent: frame, joint: steer, axis: {STEERING.tolist()}, origin: {{xyz: {PIVOT.tolist()}}}"
    front = f"name: front, axis: [0, 1, 0], origin: {{xyz: {to_front}}}, {of_rig(FRONT_WHEEL, FRONT_WHEEL[1])}"
    starts = {
        "frame": f"position: {place}, velocity: {[*map(float, velocity), 0.0, 0.0, 0.0]}",
        "rear": f"velocity: {turning[0]}",
        "steer": "position: 0",
        "front": f"velocity: {turning[1]}",
    }
    bodies = frame, rear, f"{fork}, {of_rig(FORK, PIVOT)}", front
    return [
        (f"    - {{{entry}}}\n", f"  {name}: {{initial: {{{start}}}}}\n")
        for entry, (name, start) in zip(bodies, starts.items(), strict=True)
    ]


def tyres(friction, stiffness):
    """Wheels so narrow that they do not stand by themselves."""
    return [
        f"name: {name}_tyre, link: {name}, cylinder: {{radius: {radius}, length: 1e-9}}, "
        f"origin: {{rpy: [{np.pi / 2}, 0, 0]}}, with: ground, friction: {friction}, stiffness: {stiffness}"
        for name, radius in (("rear", REAR), ("front", FRONT))
    ]


def pose(found):
    """(place (3, ticks), yaw, roll and pitch (3, ticks)) of the frame."""
    x = np.array([found[f"frame.{name}/position"] for name in ("x", "y", "z", "qx", "qy", "qz", "qw")])
    return x[:3], Rotation.from_quat(x[3:].T).as_euler("ZXY").T


# --- rolling ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stiffness", ["rigid", "1e7"])
@pytest.mark.parametrize("speed", [3.0, 5.0])
def test_it_weaves_as_the_linear_equations_of_rolling_say(tmp_path, stiffness, speed):
    """At 5 m/s it rights itself, at 3 m/s it does not."""
    lean = 1e-3
    rig = bicycle(lean, [speed, 0.0, 0.0], [speed / REAR, speed / FRONT])
    errors = []
    for step in (2e-3, 5e-4):
        found = contact_rig(tmp_path, rig, tyres(1.0, stiffness), 2.0, step).run()

        def flow(t, y):
            return [*y[2:], *np.linalg.solve(M, -speed * C @ y[2:] - (G * K0 + speed**2 * K2) @ y[:2])]

        span = (0.0, found.t[-1])
        exact = solve_ivp(flow, span, [lean, 0.0, 0.0, 0.0], "DOP853", found.t, rtol=1e-10, atol=1e-13).y[:2]
        own = np.array([pose(found)[1][1], found["steer/position"]])
        assert found["rear_tyre/slid"][-1] == found["front_tyre/slid"][-1] == 0.0
        errors.append((np.abs(own - exact).max(axis=1) / np.abs(exact).max(axis=1)).max())
    assert errors[0] < 3e-2
    assert errors[1] < 0.3 * errors[0], errors


# --- slipping -----------------------------------------------------------------------------------------------


def turned(axis, angle):
    x, y, z = axis
    K = ca.vertcat(ca.horzcat(0, -z, y), ca.horzcat(z, 0, -x), ca.horzcat(-y, x, 0))
    return ca.SX.eye(3) + ca.sin(angle) * K + (1 - ca.cos(angle)) * ca.mtimes(K, K)


class SlippingBicycle:
    """Coordinates: place of the frame, yaw, roll, pitch, steering, and angles of the wheels. Both wheels slide."""

    def __init__(self, friction):
        self.friction, self.system = friction, Lagrange(9, self._energies)
        q, v = ca.SX.sym("q", 9), ca.SX.sym("v", 9)
        rows = []
        for (R, centre), radius in zip(self._wheels(q), (REAR, FRONT), strict=True):
            axle, up = R[:, 1], ca.DM([0, 0, 1])
            down = -(up - ca.dot(up, axle) * axle)
            arm = radius * down / ca.norm_2(down)
            slip = ca.jtimes(centre, q, v) + ca.cross(self._rate(R, q, v), arm)
            height = ca.jacobian((centre + arm)[2], q)
            rows += [height, ca.mtimes(ca.jacobian(ca.mtimes(height, v), q), v), slip[:2], ca.jacobian(slip[:2], v)]
        self._rows = ca.Function("rows", [q, v], rows)

    @staticmethod
    def _rate(R, q, v):
        """Angular velocity along ground axes."""
        spin = ca.mtimes(ca.reshape(ca.jtimes(ca.vec(R), q, v), 3, 3), R.T)
        return ca.vertcat(spin[2, 1], spin[0, 2], spin[1, 0])

    @staticmethod
    def _bodies(q):
        """(rotation, place of the point below the rear wheel if it belonged to this body) of frame and fork."""
        yaw, roll, pitch = (turned(axis, q[3 + k]) for k, axis in enumerate(([0, 0, 1], [1, 0, 0], [0, 1, 0])))
        R = ca.mtimes([yaw, roll, pitch])
        fork = ca.mtimes(R, turned(STEERING, q[6]))
        return (R, q[:3]), (fork, q[:3] + ca.mtimes(R - fork, PIVOT))

    def _wheels(self, q):
        """(rotation, centre)"""
        for (R, place), part, k in zip(self._bodies(q), (REAR_WHEEL, FRONT_WHEEL), (7, 8), strict=True):
            yield ca.mtimes(R, turned([0, 1, 0], q[k])), place + ca.mtimes(R, ca.DM(part[1]))

    def _energies(self, q, v, t):
        bodies = [
            (R, place + ca.mtimes(R, ca.DM(part[1])), part)
            for (R, place), part in zip(self._bodies(q), (FRAME, FORK), strict=True)
        ]
        bodies += [
            (R, centre, part) for (R, centre), part in zip(self._wheels(q), (REAR_WHEEL, FRONT_WHEEL), strict=True)
        ]
        kinetic, potential = 0, 0
        for R, centre, (mass, _, (xx, yy, zz, xz)) in bodies:
            own, speed = ca.mtimes(R.T, self._rate(R, q, v)), ca.jtimes(centre, q, v)
            inertia = ca.DM([[xx, 0, xz], [0, yy, 0], [xz, 0, zz]])
            kinetic += 0.5 * mass * ca.dot(speed, speed) + 0.5 * ca.dot(own, ca.mtimes(inertia, own))
            potential += mass * G * centre[2]
        return kinetic, potential

    def flow(self, t, y):
        q, v = y[:9], y[9:]
        mass, rest = self.system.equations(q, v)
        found = [np.array(x) for x in self._rows(q, v)]
        normal, drift, pushed = [], [], []
        for height, bias, slip, across in (found[:4], found[4:]):
            normal.append(height[0])
            drift.append(bias[0, 0])
            pushed.append(height[0] - self.friction * across.T @ slip[:, 0] / np.linalg.norm(slip))
        free, given = np.linalg.solve(mass, -rest), np.linalg.solve(mass, np.transpose(pushed))
        forces = np.linalg.solve(normal @ given, -(normal @ free + drift))
        return np.concatenate([v, free + given @ forces])


@pytest.mark.parametrize("stiffness", ["rigid", "1e7"])
def test_it_slips_as_lagranges_equations_say(tmp_path, stiffness):
    """Thrown sideways with wheels that do not turn yet, until the front wheel has steered into its motion."""
    lean, friction, velocity, end = 0.1, 0.3, [3.0, -2.0, 0.0], 0.13
    across = Rotation.from_rotvec([lean, 0.0, 0.0]).inv().apply(velocity)
    rig, errors = bicycle(lean, across, [0.0, 0.0]), []
    start = np.zeros(18)
    start[4], start[9:12] = lean, velocity
    for step in (1e-3, 2.5e-4):
        found = contact_rig(tmp_path, rig, tyres(friction, stiffness), end, step).run()
        span = (0.0, found.t[-1])
        exact = solve_ivp(SlippingBicycle(friction).flow, span, start, "DOP853", found.t, rtol=1e-9, atol=1e-11).y
        place, angles = pose(found)
        own = np.array([*place, *angles, found["steer/position"], found["rear/position"], found["front/position"]])
        assert all(np.all(found[f"{wheel}_tyre/state"][1:] == 2.0) for wheel in ("rear", "front"))
        errors.append(np.abs(own - exact[:9]).max(axis=1))
    at_end = np.abs(exact[:9, -1])
    assert at_end[6] > 0.3 and at_end[7] > 0.9  # the fork has turned, and the wheels
    assert errors[1].max() < 1e-3
    if stiffness == "rigid":  # springs yield
        assert np.all(errors[1] < 0.3 * errors[0]), errors
