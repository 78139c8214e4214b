"""Open mechanisms of rigs/mechanisms: motion, momentum and energy against independent equations."""

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.kit.lagrange import Lagrange


def of(run, names, what="position"):
    """(k, n) signals of dofs."""
    return np.transpose([run[f"{name}/{what}"] for name in names])


# --- triple pendulum ----------------------------------------------------------------------------------


def test_triple_pendulum_moves_by_lagranges_equations(sample):
    run = sample("mechanisms/triple_pendulum").run(2.0)
    names = "rod_1", "rod_2", "rod_3"
    q, v, a = (np.cumsum(of(run, names, what), axis=1)[::20] for what in ("position", "velocity", "acceleration"))

    def energies(q, v, t):
        x = y = height = kinetic = potential = 0.0  # (x, y) velocity and height of a hinge
        for k in range(3):
            speed = (x - ca.sin(q[k]) * v[k]) ** 2 + (y + ca.cos(q[k]) * v[k]) ** 2
            kinetic += 0.5 * speed + 0.5 * v[k] ** 2
            potential += height + ca.sin(q[k])
            x, y = x - 2 * ca.sin(q[k]) * v[k], y + 2 * ca.cos(q[k]) * v[k]
            height += 2 * ca.sin(q[k])
        return kinetic, potential

    reference = Lagrange(3, energies)
    missing = [reference.effort(*state) for state in zip(q, v, a, strict=True)]
    np.testing.assert_allclose(missing, 0.0, atol=1e-10)
    shown = of(run, ("energy",), "kinetic")[::20], of(run, ("energy",), "potential")[::20]
    right = np.array([reference.energies(*state) for state in zip(q, v, strict=True)])
    np.testing.assert_allclose(np.hstack(shown), right, atol=1e-10)
    assert right[:, 0].max() > 2.0


# --- floating chain -----------------------------------------------------------------------------------

# (mass, centre of mass, inertia, joint's origin, axis) of the bodies of floating_chain
CHAIN = (
    (20.0, [0.05, 0.0, 0.0], [1.5, 2.0, 2.5], None, None),
    (5.0, [0.4, 0.0, 0.0], [0.05, 0.4, 0.4], [0.5, 0.0, 0.1], [0, 0, 1]),
    (3.0, [0.3, 0.0, 0.0], [0.02, 0.15, 0.15], [0.8, 0.0, 0.0], [0, 1, 0]),
    (2.0, [0.0, 0.2, 0.05], [0.05, 0.02, 0.06], [0.6, 0.0, 0.0], [1, 0, 0]),
)


def chain_momenta(run, hinges=("boom_hinge", "link_hinge", "sail_hinge")):
    """(linear momentum, angular momentum about the origin, centre of mass), (k, 3) each, from positions and rates."""
    turn = Rotation.from_quat(of(run, [f"hull.{c}" for c in ("qx", "qy", "qz", "qw")]))
    place = of(run, ("hull.x", "hull.y", "hull.z"))
    v = turn.apply(of(run, ("hull.x", "hull.y", "hull.z"), "velocity"))
    w = turn.apply(of(run, ("hull.rx", "hull.ry", "hull.rz"), "velocity"))
    linear = angular = centre = 0.0
    for k, (mass, com, inertia, origin, axis) in enumerate(CHAIN):
        if k:
            arm = turn.apply(origin)
            place, v = place + arm, v + np.cross(w, arm)
            angle, rate = (run[f"{hinges[k - 1]}/{what}"] for what in ("position", "velocity"))
            turn = turn * Rotation.from_rotvec(np.outer(angle, axis))
            w = w + turn.apply(axis) * rate[:, None]
        arm = turn.apply(com)
        p = mass * (v + np.cross(w, arm))
        spin = turn.apply(np.array(inertia) * turn.inv().apply(w))
        linear, angular = linear + p, angular + np.cross(place + arm, p) + spin
        centre = centre + mass * (place + arm)
    return linear, angular, centre / sum(body[0] for body in CHAIN)


def test_floating_chain_conserves_momentum_and_energy_for_a_minute(sample):
    run = sample("mechanisms/floating_chain").run()
    linear, angular, centre = chain_momenta(run)
    np.testing.assert_allclose(linear, linear[:1].repeat(len(linear), 0), atol=1e-9)
    np.testing.assert_allclose(angular, angular[:1].repeat(len(angular), 0), atol=1e-8)
    np.testing.assert_allclose(centre, centre[0] + np.outer(run.t, linear[0] / 30.0), atol=1e-8)
    assert np.abs(angular[0]).max() > 1.0 and np.ptp(run["energy/kinetic"]) < 1e-9 * run["energy/kinetic"][0]
    quaternion = of(run, [f"hull.{c}" for c in ("qx", "qy", "qz", "qw")])
    np.testing.assert_allclose(np.linalg.norm(quaternion, axis=1), 1.0, atol=1e-12)


# --- arm on a moving base -----------------------------------------------------------------------------


def turned(axis, angle):
    s, c = ca.sin(angle), ca.cos(angle)
    rows = {
        "x": [[1, 0, 0], [0, c, -s], [0, s, c]],
        "y": [[c, 0, s], [0, 1, 0], [-s, 0, c]],
        "z": [[c, -s, 0], [s, c, 0], [0, 0, 1]],
    }[axis]
    return ca.vertcat(*(ca.horzcat(*row) for row in rows))


# (mass, centre of mass, inertia, joint's origin, axis) of the bodies of arm_on_moving_base
ARM = (
    (4.0, [0.02, 0.0, 0.1], [0.03, 0.03, 0.02], [0.0, 0.0, 0.0], "z"),
    (3.0, [0.2, 0.0, 0.0], [0.004, 0.04, 0.04], [0.0, 0.0, 0.2], "y"),
    (2.0, [0.15, 0.0, 0.0], [0.002, 0.02, 0.02], [0.4, 0.0, 0.0], "y"),
    (1.0, [0.0, 0.0, -0.15], [0.004, 0.004, 0.001], [0.3, 0.0, 0.0], "x"),
)
ARM_JOINTS = "turret", "shoulder", "elbow", "wrist"


def arm_energies(q, v, t):
    """The motion of the base enters through the time alone; velocities of rotation from Ṙ Rᵀ."""
    turn = 2.0 * np.pi
    place = ca.vertcat(0.2 * ca.sin(0.5 * turn * t), 0, 0.05 * ca.sin(turn * t + np.pi / 2))
    R = turned("z", np.radians(20.0) * ca.sin(0.4 * turn * t))

    def rate(x):
        return ca.reshape(ca.jacobian(ca.vec(x), q) @ v + ca.jacobian(ca.vec(x), t), x.shape)

    kinetic = potential = 0.0
    for k, (mass, com, inertia, origin, axis) in enumerate(ARM):
        place = place + R @ ca.DM(origin)
        R = R @ turned(axis, q[k])
        centre = place + R @ ca.DM(com)
        spin = ca.inv_skew(R.T @ rate(R))
        kinetic += 0.5 * mass * ca.sumsqr(rate(centre)) + 0.5 * ca.dot(spin, ca.DM(inertia) * spin)
        potential += mass * 9.81 * centre[2]
    return kinetic, potential


@pytest.fixture(scope="module")
def arm():
    return Lagrange(4, arm_energies, lambda q, v, t: [0, 0, 0, -0.02 * v[3]])


def test_efforts_of_the_arm_on_a_moving_base_equal_lagranges_equations(sample, arm):
    run = sample("mechanisms/arm_on_moving_base").run()
    assert run.summary["energy"]["residual_relative"] < 1e-9
    q, v, a, effort = (of(run, ARM_JOINTS, what) for what in ("position", "velocity", "acceleration", "effort"))
    for k in range(0, len(run.t), 100):
        np.testing.assert_allclose(arm.effort(q[k], v[k], a[k], run.t[k]), effort[k], atol=1e-8)
    assert np.abs(effort).max(axis=0)[:3].min() > 5.0 and not effort[:, 3].any()


REPLAY = """
import numpy as np
from cosim.plugin import ops
from cosim.plugin import COMMAND, joint_signals, param, params

@params
class Params:
    efforts: str = param()

class Replay:
    def __init__(self, params, context):
        self.n, self.params = len(context.joints), params
        self.inputs, self.outputs = joint_signals((), self.n), joint_signals(COMMAND, self.n)
        self.table = np.load(params.efforts)

    def initial(self):
        return {}

    def update(self, t, p, x, u):
        effort = self.table[round(float(t) / %r)]
        rest = np.zeros(self.n)
        return {}, {"position": rest, "velocity": rest, "effort": effort, "kp": rest, "kd": rest}

def load(params, context):
    return Replay(params, context)
"""


@pytest.mark.parametrize(
    ("name", "joints", "seconds", "tolerance"),
    [("arm_on_moving_base", ("turret", "shoulder", "elbow"), 1.0, 2e-4), ("slider_crank", ("crank",), 1.0, 2e-4)],
)
def test_inverse_dynamics_efforts_reproduce_the_motion(sample, tmp_path, name, joints, seconds, tolerance):
    rig = sample(f"mechanisms/{name}")
    prescribed = rig.run(seconds)
    # a command is held for a tick: its mean over the tick is the effort in the middle, to second order
    efforts = of(prescribed, joints, "effort")
    table, replay = tmp_path / "efforts.npy", tmp_path / "replay.py"
    np.save(table, np.vstack([0.5 * (efforts[1:] + efforts[:-1]), efforts[-1:]]))
    replay.write_text(REPLAY % rig.tick_model.step)
    controller = f"{{type: {replay}, joints: [{', '.join(joints)}], efforts: {table}}}"
    start = [f"joints.{j}.initial.velocity={prescribed[f'{j}/velocity'][0]}" for j in joints]
    freed = [f"joints.{j}.prescribed=null" for j in joints]
    free = sample(f"mechanisms/{name}", *freed, *start, f"controllers=[{controller}]").run(seconds)
    every = rig.joints
    np.testing.assert_allclose(of(free, every), of(prescribed, every), atol=tolerance)
    assert np.ptp(of(prescribed, joints), axis=0).min() > 0.05
    assert {free.summary["joints"][j]["role"] for j in joints} == {"actuated"}
