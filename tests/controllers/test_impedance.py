"""Impedances and admittances in joint and task space: deflections, passivity, contact, dynamics, errors."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cosim import load_rig
from cosim.core.errors import InputError
from cosim.core.types import ControllerContext
from cosim.mechanics.multibody import Model
from cosim.plugins.controllers import joint_admittance, joint_impedance, task_impedance
from cosim.plugins.controllers._external_effort import ExternalEffort
from cosim.plugins.controllers._required_effort import TrackingEffort
from tests.kit.engines import python_rows
from tests.kit.messages import Said
from tests.kit.refusals import raised
from tests.kit.rigs import rig_in

UR5 = Path(__file__).parents[2] / "rigs" / "robots" / "ur5.urdf"
FORCE = np.array([10.0, -20.0, 30.0])
PUSH = """
from cosim.plugin import ops
from cosim.plugin import ForceLaw
from cosim.plugin import param, params

@params
class Params:
    force: tuple[float, float, float] = param(unit="N", default=(10.0, -20.0, 30.0))
    swing: bool = param(default=False)

def load(params):
    def wrenches(frames, q, v, t):
        force = ops.array(params.force)
        if params.swing:
            waves = [ops.sin((5.0 + 3.7 * k) * t + k) + ops.sin((23.0 - 4.1 * k) * t) for k in range(3)]
            return [ops.clip(t / 0.1, 0.0, 1.0) * force * ops.array(waves)]
        return [ops.clip(t / 0.1, 0.0, 1.0) * force]

    return ForceLaw(wrenches, timed=True)
"""
WALL = """
from cosim.plugin import ops
from cosim.plugin import ForceLaw
from cosim.plugin import param, params

@params
class Params:
    at: float = param(unit="m")
    stiffness: float = param(unit="N/m", default=20000.0)
    damping: float = param(unit="N*s/m", default=100.0)

def load(params):
    def wrenches(frames, q, v, t):
        depth, speed = params.at - frames[0].position[2], -frames[0].linear[2]
        push = ops.maximum(params.stiffness * depth + params.damping * speed, 0.0)
        return [ops.where(depth > 0.0, push, 0.0) * ops.array([0.0, 0.0, 1.0])]

    return ForceLaw(wrenches)
"""
ARM = f"""
    mechanism:
      urdf: {UR5}
      frames: [{{name: tip, link: tool0}}]
      forces: [FORCES]
    joints:
      all:
        limits: {{velocity: 50 rad/s}}
        actuator: {{type: dc_motor, resistance: 1.1 ohm, inductance: 2.2 mH, torque_constant: 0.095 N*m/A,
                   rotor_inertia: 0.06 kg*cm^2, ratio: 101}}
      shoulder_lift_joint: {{initial: {{position: -80 deg}}}}
      elbow_joint: {{initial: {{position: 100 deg}}}}
      wrist_1_joint: {{initial: {{position: -110 deg}}}}
      wrist_2_joint: {{initial: {{position: -90 deg}}}}
    controllers:
      - {{CONTROLLER}}
    schedule: {{step: 1 ms, duration: 3 s}}
"""
PUSHED = "{name: push, type: push.py, between: [tool0], known: false}"
LOOP = "kp: [4000, 4000, 3000, 800, 800, 400], kd: [200, 200, 120, 25, 25, 12]"
JOINT_IMPEDANCE = "type: joint_impedance, stiffness: 200"
TASK_IMPEDANCE = "type: task_impedance, frame: tool0, stiffness: [1 N/mm, 2 N/mm, 3 N/mm], rotational_stiffness: 200"
JOINT_ADMITTANCE = f"type: joint_admittance, inertia: 2, damping: 40, stiffness: 200, {LOOP}"
TASK_ADMITTANCE = (
    "type: task_admittance, frame: tool0, mass: [5, 5, 5], damping: [200, 200, 200], stiffness: [1000, 2000, 3000],"
    f" {LOOP}"
)
TURNING = "rotational_inertia: 0.2, rotational_damping: 10, rotational_stiffness: 50"


@pytest.fixture
def rig_of(tmp_path: Path) -> Any:
    """A rig of a text with the force laws above beside it."""
    return lambda text, *overrides: rig_in(tmp_path, text, *overrides, push=PUSH, wall=WALL)


def arm(rig_of: Any, controller: str, forces: str = PUSHED, *overrides: str) -> Any:
    text = ARM.replace("FORCES", forces).replace("CONTROLLER", controller)
    return rig_of(text, *overrides)


def way(run: Any) -> np.ndarray:
    """(3, k) of the tip from its start."""
    return np.array([run[f"tip.{axis}/position"] - run[f"tip.{axis}/position"][0] for axis in "xyz"])


# --- deflection = F / K ---------------------------------------------------------------------------


@pytest.mark.parametrize("controller", [TASK_IMPEDANCE, TASK_ADMITTANCE, f"{TASK_ADMITTANCE}, {TURNING}"])
def test_a_force_on_the_frame_moves_it_by_force_over_stiffness(rig_of: Any, controller: str) -> None:
    deflection = way(arm(rig_of, controller).run())[:, -1]
    np.testing.assert_allclose(deflection, FORCE / [1000.0, 2000.0, 3000.0], rtol=2e-4)


@pytest.mark.parametrize("controller", [JOINT_IMPEDANCE, JOINT_ADMITTANCE])
def test_a_force_moves_the_joints_by_effort_over_stiffness(rig_of: Any, controller: str) -> None:
    rig = arm(rig_of, controller)
    run, model = rig.run(), Model.from_urdf(UR5)
    q = np.array([run[f"{name}/position"] for name in model.joint_names])
    effort = model.frame_jacobian(q[:, -1], "tool0")[:3].T @ FORCE
    np.testing.assert_allclose(q[:, -1] - q[:, 0], effort / 200.0, atol=2e-6)


def test_an_orientation_without_stiffness_is_free_and_with_it_is_kept(rig_of: Any) -> None:
    rig, turned = arm(rig_of, f"name: arm, {TASK_IMPEDANCE}"), []
    for stiffness in (0.0, 200.0):
        run = rig.run(parameters={"arm.rotational_stiffness": stiffness})
        turned.append(max(np.ptp(run[f"tip.{axis}/position"][[0, -1]]) for axis in ("pitch", "yaw")))
    assert turned[1] < 1e-6 < 1e-3 < turned[0]


# --- passivity: what comes out of the port was put in before --------------------------------------


@pytest.mark.parametrize("controller", [JOINT_IMPEDANCE, TASK_IMPEDANCE])
def test_an_impedance_never_gives_more_energy_than_it_got(rig_of: Any, controller: str) -> None:
    """Pushed about with sums of sines from rest. The sampling takes K T / 2 from the damping, so some is needed."""
    push = "{name: push, type: push.py, between: [tool0], known: false, params: {force: [60, -60, 60], swing: true}}"
    rig = arm(rig_of, f"name: arm, {controller}", push, "schedule.step=0.5 ms", "schedule.duration=2 s")
    for ratio in (0.1, 0.7):
        run = rig.run(parameters={"arm.damping_ratio": ratio})
        energy = np.cumsum(run["push/power"]) * 0.5e-3
        assert np.abs(way(run)).max() > 0.01
        assert energy.min() >= -1e-3 * energy.max()


def test_a_controller_that_cancels_the_coriolis_effects_is_not_passive() -> None:
    """Why the effort of an impedance keeps them: the work of C(q, v) v comes from the changing inertia."""
    model, rng = Model.from_urdf(UR5), np.random.default_rng(0)
    kept, cancelled = [], []
    for _ in range(20):
        q, v = model.random_configuration(rng), rng.normal(size=6)
        coriolis = model.nonlinear_effects(q, v) - model.gravity_effort(q)
        rate = (
            v @ (model.mass_matrix(model.integrate(q, 1e-6 * v)) - model.mass_matrix(model.integrate(q, -1e-6 * v))) @ v
        )
        kept.append(0.5 * rate / 2e-6 - v @ coriolis)
        cancelled.append(v @ coriolis)
    np.testing.assert_allclose(kept, 0.0, atol=1e-7)
    assert np.abs(cancelled).max() > 0.1


# --- the effort of the reference ------------------------------------------------------------------


def context(model: Model, period: float = 1e-3, closing: tuple[str, ...] = ()) -> ControllerContext:
    n = model.nv
    return ControllerContext(
        model.joint_names, np.arange(n), model, period, model.limits, np.zeros(n, dtype=bool), closing
    )


def test_the_tracking_effort_is_bilinear_in_the_velocities() -> None:
    """C(q, v) v_ref is half the derivative of the quadratic C(q, v) v along v_ref."""
    model, rng = Model.from_urdf(UR5), np.random.default_rng(1)
    effort, zero = TrackingEffort(context(model)), np.zeros(6)
    q, v, wanted, acceleration, own = model.random_configuration(rng), *rng.normal(size=(4, 6))
    u = {"velocity": v, "reference_velocity": wanted, "reference_acceleration": acceleration, "reference_effort": own}
    u |= {"all_position": q, "all_velocity": v, "all_effort": zero, "all_acceleration": zero, "all_locked": zero}
    _, by_velocity, mass = model.inverse_dynamics_derivatives(q, v, zero)
    expected = mass @ acceleration + 0.5 * by_velocity @ wanted + model.gravity_effort(q) + own
    np.testing.assert_allclose(effort(0.0, u, False), expected, rtol=1e-10)
    np.testing.assert_allclose(effort(0.0, u, True), expected + model.friction_effort(wanted), rtol=1e-10)


@pytest.mark.parametrize("controller", [JOINT_IMPEDANCE, TASK_IMPEDANCE, JOINT_ADMITTANCE, TASK_ADMITTANCE])
def test_a_reference_is_tracked_and_the_engines_agree(rig_of: Any, controller: str) -> None:
    line = "trajectory: {type: line, frame: tool0, displacement: [0, 20 cm, -10 cm], duration: 0.8 s}"
    rig = arm(rig_of, f"{controller}, {line}", "", "schedule.duration=1 s")
    run = rig.run()
    errors = [run.summary["joints"][name]["error_max"] for name in rig.joints]
    assert max(errors) < 0.02
    np.testing.assert_allclose(way(run)[:, -1], [0.0, 0.2, -0.1], atol=3e-3)
    values = python_rows(rig, 40)
    np.testing.assert_allclose(values, run.values[: len(values)], rtol=1e-7, atol=1e-7)


# --- dynamics -------------------------------------------------------------------------------------

AXIS = """
    mechanism:
      gravity: [0, 0, 0]
      bodies: [{name: cart, joint: rail, type: prismatic, axis: [0, 0, 1], mass: 2 kg}]
      forces: [{name: push, type: push.py, between: [cart], known: false, params: {force: [0, 0, 8]}}]
    joints: {rail: {actuator: {type: ideal}}}
    controllers: [{CONTROLLER}]
    schedule: {step: 0.5 ms, duration: 1.5 s}
"""


def oscillation(t: np.ndarray, mass: float, damping: float, stiffness: float) -> np.ndarray:
    """The answer to a force of 8 N that rises over 0.1 s."""
    root, decay = math.sqrt(stiffness / mass - (damping / (2 * mass)) ** 2), damping / (2 * mass)

    def ramp(s: np.ndarray) -> np.ndarray:
        """∫ of the step response 1/K (1 − e^(−δs) (cos + δ/ω sin))."""
        a = damping / stiffness
        free = np.exp(-decay * s) * (a * np.cos(root * s) + (a * decay - 1.0) / root * np.sin(root * s))
        return np.where(s > 0.0, 80.0 / stiffness * (s - a + free), 0.0)

    return ramp(t) - ramp(t - 0.1)


@pytest.mark.parametrize("ratio", [0.1, 0.5])
@pytest.mark.parametrize(
    "space", ["joint_impedance, stiffness: 800", "task_impedance, frame: cart, stiffness: [1, 1, 800]"]
)
def test_an_impedance_has_the_natural_mass_and_the_damping_ratio(rig_of: Any, space: str, ratio: float) -> None:
    run = rig_of(AXIS.replace("CONTROLLER", f"type: {space}, damping_ratio: {ratio}")).run()
    damping = 2.0 * ratio * math.sqrt(800.0 * 2.0)
    np.testing.assert_allclose(run["rail/position"], oscillation(run.t, 2.0, damping, 800.0), atol=2.5e-4)


@pytest.mark.parametrize(
    "space",
    [
        "joint_admittance, inertia: MASS, damping: 20, stiffness: 200",
        "task_admittance, frame: cart, mass: [1, 1, MASS], damping: [0, 0, 20], stiffness: [0, 0, 200]",
    ],
)
@pytest.mark.parametrize("mass", [1.0, 8.0])
def test_an_admittance_has_the_mass_that_is_asked_for(rig_of: Any, space: str, mass: float) -> None:
    """Half and four times the mass of the cart; the force is known late by its filter."""
    controller = f"type: {space.replace('MASS', str(mass))}, kp: 4000, kd: 180, bandwidth: 100 Hz"
    run = rig_of(AXIS.replace("CONTROLLER", controller)).run()
    expected = oscillation(run.t, mass, 20.0, 200.0)
    np.testing.assert_allclose(run["rail/position"], expected, atol=0.03 * expected.max())


def test_the_external_effort_is_what_pushes_the_joints() -> None:
    model, rng, period = Model.from_urdf(UR5), np.random.default_rng(3), 1e-3
    external = ExternalEffort(20.0, context(model))
    q, v, a = model.random_configuration(rng), rng.normal(size=6), rng.normal(size=6)
    pushed, state = rng.normal(size=6), external.initial()
    for k in range(400):
        motor = model.inverse_dynamics(q, v, a) + model.friction_effort(v) - pushed
        state, found = external(0.0, state, {"all_position": q, "all_velocity": v, "all_effort": motor})
        if k == 0:
            np.testing.assert_array_equal(found, 0.0)
        a = -5.0 * v
        v = v + period * a
        q = model.integrate(q, period * v)
    np.testing.assert_allclose(found, pushed, atol=2e-2)


# --- contact --------------------------------------------------------------------------------------


@pytest.mark.parametrize("controller", [TASK_IMPEDANCE, TASK_ADMITTANCE])
def test_a_tool_that_is_led_into_a_wall_presses_with_the_springs_in_series(rig_of: Any, controller: str) -> None:
    """The wall is 3 cm below the tool, the reference ends 10 cm below: 7 cm of both springs in series."""
    start = Model.from_urdf(UR5).frame_pose(np.radians([0.0, -80.0, 100.0, -110.0, -90.0, 0.0]), "tool0")[2, 3]
    wall = f"{{name: wall, type: wall.py, between: [tool0], known: false, params: {{at: {start - 0.03} m}}}}"
    line = "trajectory: {type: line, frame: tool0, displacement: [0, 0, -10 cm], duration: 1 s}"
    run = arm(rig_of, f"{controller}, {line}", wall).run()
    series = 3000.0 * 20000.0 / 23000.0
    depth = -0.03 - way(run)[2]
    assert depth[-1] * 20000.0 == pytest.approx(0.07 * series, rel=2e-3)
    assert np.ptp(depth[-200:]) < 1e-6
    assert np.abs(way(run)[:2, -1]).max() < 1e-4
    assert depth.max() < 1.5 * depth[-1]


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["task_impedance", "task_admittance"])
def test_an_unknown_frame_is_refused(rig_of: Any, name: str, said: Said) -> None:
    controller = {"task_impedance": TASK_IMPEDANCE, "task_admittance": TASK_ADMITTANCE}[name]
    said(raised(InputError, lambda: arm(rig_of, controller.replace("tool0", "tool")).run()))


def test_drives_with_loops_of_their_own_are_refused(said: Said) -> None:
    model = Model.from_urdf(UR5)
    params = task_impedance.Params(frame="tool0", stiffness=(1.0, 1.0, 1.0), joint_damping=(0.0,) * 6)
    said(raised(InputError, task_impedance.load, params, context(model, closing=("elbow_joint",))))


def test_a_filter_faster_than_the_period_is_refused(said: Said) -> None:
    model, six = Model.from_urdf(UR5), (1.0,) * 6
    params = joint_admittance.Params(inertia=six, damping=six, stiffness=six, kp=six, kd=six, bandwidth=30.0)
    said(raised(InputError, joint_admittance.load, params, context(model, 0.01)))


@pytest.mark.parametrize("controller", [TASK_IMPEDANCE, JOINT_ADMITTANCE], ids=str)
def test_closed_loops_are_refused(controller: str, said: Said) -> None:
    closed = load_rig(Path(__file__).parents[2] / "rigs" / "mechanisms" / "four_bar.yaml").plant.controller_model
    where = ControllerContext(
        ("a",), np.array([0]), closed, 1e-3, closed.limits.at(np.array([0])), np.zeros(closed.nv, dtype=bool)
    )
    one = (1.0,)
    with pytest.raises(InputError) as caught:
        if controller is TASK_IMPEDANCE:
            params = task_impedance.Params(frame="x", stiffness=(1.0, 1.0, 1.0), joint_damping=one)
            task_impedance.load(params, where)
        else:
            joint = joint_admittance.Params(inertia=one, damping=one, stiffness=one, kp=one, kd=one)
            joint_admittance.load(joint, where)
    said(caught.value)


def test_negative_stiffness_is_refused_at_its_line(rig_of: Any, said: Said) -> None:
    said(raised(InputError, arm, rig_of, TASK_IMPEDANCE.replace("1 N/mm", "-1 N/mm")))


def test_the_damping_ratio_uses_the_inertia_of_the_joint() -> None:
    model = Model.from_urdf(UR5)
    block = joint_impedance.load(
        joint_impedance.Params(stiffness=(100.0,) * 6, damping_ratio=(0.5,) * 6), context(model)
    )
    q = model.random_configuration(np.random.default_rng(0))
    u = {name: np.zeros(signal.shape) for name, signal in block.inputs.items()} | {"all_position": q}
    _, command = block.update(0.0, block.params, {}, u)
    np.testing.assert_allclose(command["kd"], np.sqrt(100.0 * np.diag(model.mass_matrix(q))))
    given = joint_impedance.Params(stiffness=(100.0,) * 6, damping_ratio=(0.5,) * 6, damping=(3.0,) * 6)
    _, command = joint_impedance.load(given, context(model)).update(0.0, given, {}, u)
    np.testing.assert_array_equal(command["kd"], 3.0)
