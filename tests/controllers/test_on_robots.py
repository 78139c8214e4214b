"""Every controller on two robots: a UR5 with its drives, and a Panda of example-robot-data with ideal ones, in a point
to point motion. The bounds are the largest error of any joint."""

import sysconfig
from pathlib import Path

import numpy as np
import pytest
import yaml

from cosim import load_rig
from tests.kit.plugins import modules, name_of

ROBOTS = Path(sysconfig.get_path("purelib")) / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
UR5 = Path(__file__).parents[2] / "rigs" / "ur5_sim.yaml"
PANDA_URDF = ROBOTS / "panda_description" / "urdf" / "panda.urdf"
PANDA = """
joints:
  all: {actuator: {type: ideal}}
  panda_joint4: {initial: {position: -1.5}}
  panda_joint6: {initial: {position: 1.5}}
  panda_finger_joint1: {latched: true, initial: {position: 0.02}}
controllers:
  - name: arm
    joints: [panda_joint1, panda_joint2, panda_joint3, panda_joint4, panda_joint5, panda_joint6, panda_joint7]
    trajectory: {type: quintic, goal: [0.6, 0.4, -0.5, -1.9, 0.4, 1.2, 0.6], duration: 1 s}
schedule: {step: 1 ms, duration: 1.1 s, integrator: rk4}
"""
UR5_FRICTION = "viscous: [2.2, 2.2, 2.2, 0.6, 0.6, 0.6], coulomb: [3.5, 3.5, 3.5, 0.9, 0.9, 0.9]"
GAINS = {
    "ur5": "kp: [2500, 2500, 2000, 400, 400, 200], kd: [250, 250, 200, 30, 30, 15]",
    "panda": "kp: [600, 1200, 600, 600, 200, 200, 40], kd: [18, 40, 15, 20, 8, 6, 1.5]",
}
ADMITTANCE = "mass: [5, 5, 5], damping: [300, 300, 300], stiffness: [2000, 2000, 2000]"
# controller -> (its keys for the UR5, largest error [rad], the same for the Panda)
CASES = {
    "passthrough": (GAINS["ur5"], 0.05, GAINS["panda"], 0.05),
    "pd_gravity": (GAINS["ur5"], 0.05, GAINS["panda"], 0.05),
    "pid": (f"{GAINS['ur5']}, ki: 3000, tracking_time: 0.1 s", 0.05, f"{GAINS['panda']}, ki: 3000", 0.05),
    "cascade": (
        "position_gain: 12, velocity_gain: [250, 250, 200, 30, 30, 15], integral_time: 60 ms",
        0.02,
        "position_gain: 12, velocity_gain: [18, 40, 15, 20, 8, 6, 1.5], integral_time: 60 ms",
        0.05,
    ),
    "feedforward_pd": (f"{GAINS['ur5']}, {UR5_FRICTION}", 1e-4, GAINS["panda"], 1e-4),
    "lqr": (
        "largest_position_error: 2 deg, largest_velocity_error: 40 deg/s, largest_integral: 0.02",
        0.02,
        "largest_position_error: 2 deg, largest_velocity_error: 40 deg/s, largest_integral: 0.02",
        1e-3,
    ),
    "lqg": (
        "largest_position_error: 3 deg, position_noise: 1e-5, effort_noise: 10, load_noise: 300",
        0.02,
        "largest_position_error: 3 deg, position_noise: 1e-5, effort_noise: 10, load_noise: 300",
        1e-3,
    ),
    "disturbance_observer": ("bandwidth: 5 Hz, observer: 10 Hz", 5e-3, "bandwidth: 5 Hz, observer: 10 Hz", 1e-3),
    "adaptive": (
        "bandwidth: 3 Hz, kd: [250, 250, 200, 30, 30, 15], largest_viscous: 5, largest_coulomb: 8 N*m, load: tool0, "
        "largest_mass: 5 kg, adaptation: 2",
        5e-3,
        "bandwidth: 3 Hz, kd: [18, 40, 15, 20, 8, 6, 1.5], load: panda_hand, largest_mass: 5 kg, adaptation: 2",
        1e-3,
    ),
    "mpc": (
        "largest_position_error: 2 deg, largest_velocity_error: 40 deg/s, horizon: 6, observer: 10 Hz, period: 2 ms",
        0.02,
        "largest_position_error: 2 deg, largest_velocity_error: 40 deg/s, horizon: 6, observer: 10 Hz",
        1e-3,
    ),
    "joint_impedance": (
        "stiffness: [2500, 2500, 2000, 400, 400, 200]",
        0.05,
        "stiffness: [600, 1200, 600, 600, 200, 200, 40], damping: [18, 40, 15, 20, 8, 6, 1.5]",
        1e-3,
    ),
    "task_impedance": (
        "frame: tool0, stiffness: [3000, 3000, 3000], rotational_stiffness: 300, joint_damping: 5",
        0.3,
        "frame: panda_hand, stiffness: [1000, 1000, 1000], rotational_stiffness: 50, joint_damping: 1",
        0.05,
    ),
    "joint_admittance": (
        f"{GAINS['ur5']}, inertia: 1, stiffness: 300, damping: 40",
        0.3,
        f"{GAINS['panda']}, inertia: 1, stiffness: 300, damping: 40",
        0.05,
    ),
    "task_admittance": (
        f"{GAINS['ur5']}, frame: tool0, {ADMITTANCE}",
        0.3,
        f"{GAINS['panda']}, frame: panda_hand, {ADMITTANCE}",
        0.05,
    ),
    "computed_torque": (f"bandwidth: 5 Hz, {UR5_FRICTION}", 1e-3, "bandwidth: 5 Hz", 1e-3),
}


def test_every_controller_is_tried():
    assert CASES.keys() == {name_of(module) for module in modules("cosim.plugins.controllers")}


@pytest.mark.parametrize("name", [name for name in CASES if not name.endswith(("impedance", "admittance"))])
def test_on_a_ur5(tmp_path, name):
    """With the friction and limits of its drives; impedances on it are in `test_impedance.py`."""
    keys, bound, *_ = CASES[name]
    rig = yaml.safe_load(UR5.read_text())
    rig["mechanism"]["urdf"] = str(UR5.parent / rig["mechanism"]["urdf"])
    check(tmp_path, rig, name, keys, bound)


@pytest.mark.parametrize("name", CASES)
def test_on_a_panda(tmp_path, name):
    *_, keys, bound = CASES[name]
    check(tmp_path, yaml.safe_load(PANDA) | {"mechanism": {"urdf": str(PANDA_URDF)}}, name, keys, bound)


def test_beside_prescribed_joints_and_with_the_friction_of_the_drives(sample):
    """The wrist moves as prescribed; what this does to the other joints is known, so that they hardly leave their
    references."""
    plain = sample("prescribed_wrist").run().summary["joints"]
    friction = sample("prescribed_wrist", "controllers.arm.viscous=2.2", "controllers.arm.coulomb=3.5 N*m").run()
    for name in ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint"):
        assert plain[name]["error_max"] > 1e-3
        assert friction.summary["joints"][name]["error_max"] < 1e-4


def check(folder, rig, name, keys, bound):
    (arm,) = rig["controllers"]
    kept = {key: arm[key] for key in ("name", "joints", "trajectory") if key in arm}
    rig["controllers"] = [{"type": name, **kept, **yaml.safe_load(f"{{{keys}}}")}]
    (folder / "rig.yaml").write_text(yaml.safe_dump(rig))
    run = load_rig(folder / "rig.yaml").run()
    errors = [joint["error_max"] for joint in run.summary["joints"].values() if joint.get("error_max") is not None]
    assert len(errors) >= 6 and max(errors) < bound
    assert np.isfinite(run.values).all()
