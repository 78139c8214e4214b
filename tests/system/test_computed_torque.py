"""Computed torque in whole rigs: errors of the controlled joints follow ë + 2 ζ ω ė + ω² e = 0, whatever else moves."""

from pathlib import Path

import numpy as np
import pytest

from cosim import Rig
from cosim.plugins.controllers.computed_torque import largest_bandwidth
from tests.kit.rigs import rig_in

# a reference that steps to `goal` before the run: at rest from t = 0
GOAL = """
import numpy as np
from cosim.plugin import PerJoint, param, params

@params
class Params:
    goal: PerJoint = param(unit="joint position")

class Goal:
    end = 0.0

    def __init__(self, goal):
        self.goal = np.array(goal)

    def sample(self, t):
        zero = np.zeros(len(self.goal))
        return {"position": self.goal, "velocity": zero, "acceleration": zero, "effort": zero}

def load(params, joints, folder, start):
    return Goal(params.goal)
"""
ARM = """
mechanism:
  gravity: [0, -9.81, 0]
  bodies:
    - {name: upper, joint: shoulder, mass: 3 kg, com: [0.25, 0.02, 0], inertia: [0.01, 0.04, 0.04]}
    - {name: fore, joint: elbow, origin: {xyz: [0.5, 0, 0]}, mass: 2 kg, com: [0.2, 0, 0.1],
       inertia: [0.01, 0.03, 0.03], stiffness: 8 N*m/rad}
    - {name: hand, joint: wrist, axis: [0, 1, 0], origin: {xyz: [0.4, 0, 0]}, mass: 0.5 kg, com: [0.1, 0, 0.05],
       inertia: [0.001, 0.002, 0.002], damping: 0.05}
"""
START = "{shoulder: {initial: {position: -0.4}}, elbow: {initial: {position: 0.9}}, wrist: {initial: {position: 0.3}}}"


def rig_of(folder: Path, text: str, step: float = 1e-4, duration: float = 0.25) -> Rig:
    schedule = f"schedule: {{step: {step}, duration: {duration}, integrator: rk4}}\n"
    return rig_in(folder, text + schedule, goal=GOAL)


def response(t: np.ndarray, error: float, bandwidth: float, damping: float = 1.0) -> np.ndarray:
    """e(t) from e(0) = error at rest: the closed form for ζ = 1 and for ζ < 1."""
    omega = 2.0 * np.pi * bandwidth
    if damping == 1.0:
        return error * (1.0 + omega * t) * np.exp(-omega * t)
    fast = omega * np.sqrt(1.0 - damping**2)
    return error * np.exp(-damping * omega * t) * (np.cos(fast * t) + damping * omega / fast * np.sin(fast * t))


def test_the_error_is_a_linear_oscillation_of_each_joint_by_itself(tmp_path):
    """Bandwidths and damping ratios per joint; the elbow has a spring and a step, the shoulder no error at all."""
    text = f"""{ARM}
joints: {START}
controllers:
  - {{type: computed_torque, bandwidth: {{shoulder: 6 Hz, elbow: 3 Hz, wrist: 12}}, damping: [1, 0.5, 0.8],
     friction: no, trajectory: {{type: goal.py, goal: [-0.4, 1.4, -0.1]}}}}
"""
    text = text.replace(", damping: 0.05}", "}")
    worst = []
    for step in (2e-4, 1e-4):
        run = rig_of(tmp_path, text, step).run()
        elbow = 1.4 - run["elbow/position"] - response(run.t, 0.5, 3.0, 0.5)
        wrist = -0.1 - run["wrist/position"] - response(run.t, -0.4, 12.0, 0.8)
        shoulder = run["shoulder/position"] + 0.4
        worst.append([np.abs(error).max() for error in (elbow, wrist, shoulder)])
    assert np.ptp(run["elbow/position"]) > 0.5
    (elbow, wrist, shoulder), ratio = worst[1], np.divide(*worst)
    assert max(elbow, wrist) < 1.5e-3 and shoulder < 3e-4
    np.testing.assert_allclose(ratio, 2.0, rtol=0.05)  # what is left comes from holding the effort for a step


def test_a_passive_joint_in_the_middle_and_a_prescribed_base(tmp_path):
    text = f"""{ARM}
joints:
  shoulder: {{prescribed: {{type: sine, amplitude: 0.3, frequency: 2 Hz}}}}
  elbow: {{initial: {{position: 0.9, velocity: 1}}}}
controllers:
  - {{type: computed_torque, joints: [wrist], bandwidth: 8 Hz, trajectory: {{type: goal.py, goal: 0.5}}}}
"""
    run = rig_of(tmp_path, text.replace("stiffness: 8", "damping: 0.3, stiffness: 8")).run()
    assert np.ptp(run["elbow/position"]) > 0.2  # it swings
    # the friction of the wrist is compensated at the reference, at rest: it adds to the damping
    inertia = np.abs(run["wrist/effort"]).max()
    assert inertia > 0.0
    error = 0.5 - run["wrist/position"]
    assert np.abs(error - response(run.t, 0.5, 8.0)).max() < 0.03
    run = rig_of(tmp_path, text.replace(", damping: 0.05}", "}")).run()
    assert np.abs(0.5 - run["wrist/position"] - response(run.t, 0.5, 8.0)).max() < 1e-3


def test_two_controllers_share_an_arm(tmp_path):
    """Each takes the measured effort of the joint of the other into account."""
    text = f"""{ARM}
joints: {START}
controllers:
  - {{name: one, type: computed_torque, joints: [shoulder, wrist], bandwidth: 5 Hz, friction: no,
     trajectory: {{type: goal.py, goal: [-0.2, 0.3]}}}}
  - {{name: two, type: computed_torque, joints: [elbow], bandwidth: 5 Hz, friction: no,
     trajectory: {{type: goal.py, goal: 1.2}}}}
"""
    run = rig_of(tmp_path, text.replace(", damping: 0.05}", "}")).run()
    for joint, goal, start in (("shoulder", -0.2, -0.4), ("elbow", 1.2, 0.9), ("wrist", 0.3, 0.3)):
        assert np.abs(goal - run[f"{joint}/position"] - response(run.t, goal - start, 5.0)).max() < 2e-3, joint


FIVE_BAR = """
mechanism:
  gravity: [0, -9.81, 0]
  bodies:
    - {name: left, joint: A, mass: 1 kg, com: [0.15, 0, 0], inertia: [0, 0.01, 0.01]}
    - {name: left_rod, joint: B, origin: {xyz: [0.3, 0, 0]}, mass: 0.5 kg, com: [0.2, 0, 0], inertia: [0, 0.01, 0.01]}
    - {name: right, joint: C, parent: base, origin: {xyz: [0.3, 0, 0]}, mass: 1 kg, com: [0.15, 0, 0],
       inertia: [0, 0.01, 0.01]}
    - {name: right_rod, joint: D, parent: right, origin: {xyz: [0.3, 0, 0]}, mass: 0.5 kg, com: [0.2, 0, 0],
       inertia: [0, 0.01, 0.01]}
  loops:
    - {name: tip, parent: left_rod, child: right_rod, origin: {xyz: [0.45, 0, 0]}, child_origin: {xyz: [0.45, 0, 0]}}
joints:
  A: {initial: {position: 120 deg}}
  C: {initial: {position: 60 deg}}
  B: {initial: {guess: -70 deg}}
  D: {initial: {guess: 70 deg}}
"""


def test_a_five_bar_linkage(tmp_path):
    text = f"""{FIVE_BAR}
controllers:
  - {{type: computed_torque, joints: [A, C], bandwidth: [4, 7], trajectory: {{type: goal.py, goal: [2.3, 0.9]}}}}
"""
    rig = rig_of(tmp_path, text)
    assert rig.tick_model.untraceable == {}
    run = rig.run()
    assert np.ptp(run["B/position"]) > 0.1 and np.ptp(run["D/position"]) > 0.1
    for joint, goal, start, bandwidth in (("A", 2.3, 2 * np.pi / 3, 4.0), ("C", 0.9, np.pi / 3, 7.0)):
        error = goal - run[f"{joint}/position"]
        assert np.abs(error - response(run.t, goal - start, bandwidth)).max() < 1e-3


def test_an_arm_on_a_floating_base(tmp_path):
    text = """
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: craft, joint: b, type: free, mass: 5 kg, inertia: [0.2, 0.3, 0.4]}
    - {name: arm, joint: a, axis: [0, 1, 0], origin: {xyz: [0.1, 0, 0]}, mass: 1 kg, com: [0.3, 0, 0],
       inertia: [0.01, 0.03, 0.03]}
joints: {b: {initial: {velocity: [0, 0, 0, 0.3, 0.2, 0.1]}}}
controllers:
  - {type: computed_torque, joints: [a], bandwidth: 5 Hz, trajectory: {type: goal.py, goal: 0.6}}
"""
    run = rig_of(tmp_path, text).run()
    assert np.abs(0.6 - run["a/position"] - response(run.t, 0.6, 5.0)).max() < 1e-3


DELAYED = """
mechanism:
  bodies: [{name: rotor, joint: axle, mass: 1 kg, inertia: [0.1, 0.1, 0.1]}]
joints: {axle: {encoder: {delay: 1}}}
controllers: [{type: computed_torque, bandwidth: %.6f, trajectory: {type: goal.py, goal: 1}}]
"""


def test_the_largest_bandwidth_with_a_measurement_delayed_by_a_period(tmp_path, command, said):
    limit = largest_bandwidth(1.0, 1e-3)
    run = rig_of(tmp_path, DELAYED % (0.99 * limit), 1e-3, 3.0).run()
    error = np.abs(1.0 - run["axle/position"])
    assert error[20:200].max() > 0.2  # it oscillates …
    assert error[-200:].max() < 1e-6  # … and decays
    (tmp_path / "rig.yaml").write_text(DELAYED % 70)
    said(command.refuses("check", "rig.yaml"))


@pytest.mark.parametrize("gains", ["kp: 100, kd: 10", "kd: 10"])
@pytest.mark.parametrize("fallback", [False, True])
def test_the_gains_of_the_controller_of_this_name_before(command, tmp_path, said, fallback, gains):
    section = f"{{type: computed_torque, {gains}}}"
    section = f"{{type: pd_gravity, kp: 1, kd: 1, fallback: {section}}}" if fallback else section
    (tmp_path / "rig.yaml").write_text(ARM + f"controllers:\n  - {section}\n")
    said(command.refuses("check", "rig.yaml"))
