"""Force laws in Python files: motions against closed forms, the energy balance, machine code, controllers that"
" know them."""

import numpy as np
import pytest
from scipy.integrate import quad

from tests.kit.rigs import rig_in

HEAD = """
import numpy as np
from cosim.plugin import ops
from cosim.plugin import ForceLaw
from cosim.plugin import param, params

@params
class Params:
    size: float = param(default=1.0)

def load(params):
"""
CUBIC = HEAD + "    return ForceLaw(efforts=lambda frames, q, v, t: [-params.size * q[0] * q[0] * q[0]])\n"
DRAG = (
    HEAD
    + """
    def wrenches(frames, q, v, t):
        speed = frames[0].linear
        return [-params.size * ops.sqrt(speed @ speed + 1e-30) * speed]
    return ForceLaw(wrenches)
"""
)
MAGNET = (
    HEAD
    + """
    def wrenches(frames, q, v, t):
        apart = frames[1].position - frames[0].position
        distance = ops.sqrt(apart @ apart)
        pull = params.size / (distance * distance * distance) * apart
        return [pull, -pull]
    return ForceLaw(wrenches)
"""
)
CONTACT = (
    HEAD
    + """
    def wrenches(frames, q, v, t):
        height = frames[0].position[2]
        return [[0.0, 0.0, ops.where(height < 0.0, -params.size * height, 0.0)]]
    return ForceLaw(wrenches)
"""
)
PUSH = (
    HEAD
    + """
    def wrenches(frames, q, v, t):
        f = params.size * ops.sin(5.0 * t)
        return [[0.3 * f, f, 0.0, 0.0, 0.2 * f, -0.1 * f]]
    return ForceLaw(wrenches, lambda frames, q, v, t: [0.5 * ops.cos(t) - 0.1 * v[0]], timed=True)
"""
)


def balance(run):
    return run.summary["energy"]["residual_relative"]


def test_the_period_of_a_cubic_spring(tmp_path):
    """T = 4 √(2 m / k) ∫₀ᴬ dx / √(A⁴ − x⁴), which depends on the amplitude A."""
    text = """
mechanism:
  bodies: [{name: cart, joint: rail, type: prismatic, axis: [1, 0, 0], mass: 2 kg}]
  forces: [{name: spring, type: cubic.py, joints: [rail], params: {size: %g}}]
joints: {rail: {initial: {position: %g}}}
schedule: {step: 1 ms, duration: 6, integrator: rk4}
"""
    for stiffness, amplitude in ((300.0, 0.2), (300.0, 0.6)):
        run = rig_in(tmp_path, text % (stiffness, amplitude), cubic=CUBIC).run()
        x = run["rail/position"]
        down = np.flatnonzero((x[:-1] > 0.0) & (x[1:] <= 0.0))
        times = run.t[down] + x[down] / (x[down] - x[down + 1]) * 1e-3
        integral = quad(lambda u: 1.0 / np.sqrt(1.0 + u * u) / np.sqrt(1.0 + u), 0.0, 1.0, weight="alg", wvar=(0, -0.5))
        period = 4.0 * np.sqrt(2.0 * 2.0 / stiffness) / amplitude * integral[0]
        assert len(times) >= 2
        np.testing.assert_allclose(np.diff(times), period, rtol=1e-6)
        potential = 0.25 * stiffness * x**4
        np.testing.assert_allclose(run["energy/forces"], potential[0] - potential, atol=1e-8)
        assert balance(run) < 1e-8


def test_a_body_falls_at_its_terminal_velocity(tmp_path):
    """m v̇ = m g − c v²: v = v∞ tanh(g t / v∞), v∞ = √(m g / c); the drag takes the energy."""
    text = """
mechanism:
  bodies: [{name: ball, joint: way, type: free, mass: 0.5 kg, inertia: [0.01, 0.01, 0.01]}]
  forces: [{name: drag, type: drag.py, between: [ball], params: {size: 0.2}}]
schedule: {step: 1 ms, duration: 4, integrator: rk4}
"""
    run = rig_in(tmp_path, text, drag=DRAG).run()
    terminal = np.sqrt(0.5 * 9.81 / 0.2)
    np.testing.assert_allclose(-run["way.z/velocity"], terminal * np.tanh(9.81 * run.t / terminal), atol=1e-9)
    assert run["way.z/velocity"][-1] == pytest.approx(-terminal, rel=1e-6)
    np.testing.assert_allclose(run["drag/power"], 0.2 * run["way.z/velocity"] ** 3, atol=1e-9)
    assert run.summary["energy"]["work_of_forces"] == pytest.approx(run["energy/forces"][-1])
    assert balance(run) < 1e-9


def test_a_magnet_keeps_momentum_and_energy(tmp_path):
    """Two bodies that attract each other off their centres of mass: angular momentum about the ground is kept."""
    text = """
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: one, joint: a, type: free, mass: 1 kg, inertia: [0.02, 0.03, 0.04]}
    - {name: two, joint: b, type: free, parent: base, mass: 2 kg, inertia: [0.05, 0.04, 0.03]}
  forces:
    - {name: magnet, type: magnet.py, between: [one, two], points: [[0.1, 0, 0], [0, 0.1, 0]], params: {size: 0.3}}
joints: {b: {initial: {position: [0.8, 0.1, 0.2, 0, 0, 0, 1], velocity: [0, 0.5, 0.1, 0.3, 0.2, 0.1]}}}
schedule: {step: 1 ms, duration: 0.5, integrator: rk4}
"""
    rig = rig_in(tmp_path, text, magnet=MAGNET)
    run, model = rig.run(), rig.plant.model
    names = model.coordinate_names
    q = np.column_stack([run[f"{name}/position"] for name in names])
    v = np.column_stack([run[f"{name}/velocity"] for name in model.dof_names])
    momentum = model.centroidal_momentum(q, v)
    assert np.abs(v - v[0]).max() > 0.1
    np.testing.assert_allclose(momentum, np.tile(momentum[0], (len(momentum), 1)), atol=1e-8)
    apart = np.linalg.norm(
        (model.frame_pose(q, "two") @ [0, 0.1, 0, 1] - model.frame_pose(q, "one") @ [0.1, 0, 0, 1])[:, :3], axis=1
    )
    np.testing.assert_allclose(run["energy/forces"], 0.3 / apart - 0.3 / apart[0], atol=1e-7)
    assert balance(run) < 1e-8


def test_a_penalty_contact_with_a_plane(tmp_path):
    """The ball leaves an elastic plane with its speed, after half a period of mass and spring about the static"
    " depth."""
    text = """
mechanism:
  bodies: [{name: ball, joint: way, type: prismatic, axis: [0, 0, 1], mass: 0.5 kg}]
  forces: [{name: plane, type: contact.py, between: [ball], points: [[0, 0, -0.1]], params: {size: 5000}}]
joints: {way: {initial: {position: 0.1, velocity: -2}}}
schedule: {step: 0.1 ms, duration: 0.06, integrator: rk4}
"""
    run = rig_in(tmp_path, text, contact=CONTACT).run()
    z, omega, depth = run["way/position"] - 0.1, np.sqrt(5000 / 0.5), 0.5 * 9.81 / 5000
    angle = np.arctan2(2.0 / omega, depth)
    contact = 2.0 * (np.pi - angle) / omega
    assert run.t[np.flatnonzero(z < 0.0)[-1]] == pytest.approx(contact, abs=2e-4)
    assert z.min() == pytest.approx(-(depth + np.hypot(depth, 2.0 / omega)), rel=1e-5)
    assert run["way/velocity"][np.flatnonzero(z < 0.0)[-1] + 1] == pytest.approx(2.0, abs=3e-3)
    assert balance(run) < 1e-4


ARM = """
mechanism:
  gravity: [0, -9.81, 0]
  moving_base: {y: {type: sine, amplitude: 0.05, frequency: 3 Hz}}
  bodies:
    - {name: upper, joint: a, mass: 2 kg, com: [0.2, 0, 0], inertia: [0.01, 0.03, 0.03], damping: 0.1}
    - {name: fore, joint: b, origin: {xyz: [0.4, 0, 0]}, mass: 1 kg, com: [0.2, 0, 0], inertia: [0.01, 0.02, 0.02]}
    - {name: finger, joint: c, origin: {xyz: [0.3, 0, 0]}, mass: 0.2 kg, com: [0.1, 0, 0],
       inertia: [0.001, 0.001, 0.001], mimic: {joint: b, multiplier: 0.5}}
  forces:
    - {name: push, type: push.py, between: [finger], points: [[0.1, 0.05, 0]], joints: [b], params: {size: 4}}
joints: {a: {initial: {position: -0.4}}, b: {prescribed: {type: sine, amplitude: 0.4, frequency: 2 Hz}}}
schedule: {step: 1 ms, duration: 0.5, integrator: rk4}
"""


def test_forces_in_time_on_an_arm_with_a_moving_base_a_prescribed_joint_and_a_mimic(tmp_path):
    run = rig_in(tmp_path, ARM, push=PUSH).run()
    assert abs(run.summary["energy"]["work_of_forces"]) > 0.01
    assert balance(run) < 1e-6
    free = rig_in(tmp_path, ARM.replace("size: 4", "size: 0"), push=PUSH.replace("0.5 *", "0.0 *")).run()
    assert np.abs(free["a/position"] - run["a/position"]).max() > 0.01


def test_machine_code_computes_what_python_does(tmp_path):
    fast, slow = (rig_in(tmp_path, ARM, interpret=plain, push=PUSH).run(0.02) for plain in (False, True))
    np.testing.assert_allclose(fast.values, slow.values, rtol=1e-9, atol=1e-9)


def test_the_effort_of_a_prescribed_joint_is_less_what_the_law_gives(tmp_path):
    text = """
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: cart, joint: rail, type: prismatic, axis: [1, 0, 0], mass: 2 kg}]
  forces: [{name: spring, type: cubic.py, joints: [rail], params: {size: 30}}]
joints: {rail: {prescribed: {type: sine, amplitude: 0.4, frequency: 2 Hz}}}
schedule: {duration: 0.3, integrator: rk4}
"""
    run = rig_in(tmp_path, text, cubic=CUBIC).run()
    expected = 2.0 * run["rail/acceleration"] + 30.0 * run["rail/position"] ** 3
    np.testing.assert_allclose(run["rail/effort"], expected, atol=1e-12)


def test_a_controller_knows_the_forces(tmp_path):
    """Computed torque compensates the spring: the joint follows its linear response. Not one that it does not know."""
    text = """
mechanism:
  bodies: [{name: cart, joint: rail, type: prismatic, axis: [1, 0, 0], mass: 2 kg}]
  forces: [{name: spring, type: cubic.py, joints: [rail], params: {size: 3000}}]
joints: {rail: {initial: {position: 0.5}}}
controllers: [{type: computed_torque, bandwidth: 5 Hz, trajectory: {type: quintic, goal: 0.2, duration: 0.2}}]
schedule: {step: 0.2 ms, duration: 1.5, integrator: rk4}
"""
    run = rig_in(tmp_path, text, cubic=CUBIC).run()
    assert np.abs(run["rail/reference_position"] - run["rail/position"]).max() < 2e-4
    run = rig_in(tmp_path, text.replace("3000}", "3000}, known: no"), cubic=CUBIC).run()
    x = run["rail/position"][-1]  # where the spring is in balance with the stiffness m ω² of the controller
    assert 2.0 * (2.0 * np.pi * 5.0) ** 2 * (0.2 - x) == pytest.approx(3000.0 * x**3, rel=1e-6)
    assert balance(run) < 1e-6
