"""Controllers of an arm on a joint that a latch, a brake or a stop locks: the model moves with it locked, from event to
event, in both engines."""

import numpy as np
import pytest

from tests.kit.engines import python_rows

CART = """
mechanism:
  gravity: [{pull}, -9.81, 0]
  bodies:
    - {{name: cart, joint: rail, type: prismatic, axis: [1, 0, 0], mass: 4 kg, damping: 5}}
    - {{name: arm, joint: arm, axis: [0, 0, 1], mass: 3 kg, com: [0.4, 0, 0], inertia: [0.01, 0.05, 0.05]}}
joints:
  rail: {rail}
  arm: {{actuator: {{type: ideal}}, initial: {{position: -90 deg}}}}
controllers:
  - {controller}
    joints: [arm]
    trajectory: {{type: sine, amplitude: 40 deg, frequency: 1.5 Hz, ramp: 0.3 s}}
events: {events}
schedule: {{step: 1 ms, duration: 1.2 s}}
"""
TORQUE, FEEDFORWARD = "type: computed_torque\n    bandwidth: 8 Hz", "type: feedforward_pd\n    kp: 2000\n    kd: 100"
RAILS = {
    "free": ("{}", "[]"),
    "latched": ("{latched: true}", "[]"),
    "latched by events": (
        "{latched: true}",
        "[{do: unlatch, of: rail, at: 0.3 s}, {do: latch, of: rail, at: 0.6 s, name: again}]",
    ),
    "braked": ("{}", "[{do: brake, of: rail, at: 0.3 s, effort: 1 kN}]"),
    "at a stop": ("{stops: {lower: 0 m}}", "[]"),
}


@pytest.mark.parametrize("controller", [TORQUE, FEEDFORWARD])
@pytest.mark.parametrize("rail", RAILS)
def test_an_arm_tracks_on_a_joint_that_is_locked(rig_of, controller, rail):
    joint, events = RAILS[rail]
    pull = -40.0 if rail == "at a stop" else 0.0  # against it
    run = rig_of(CART.format(rail=joint, controller=controller, events=events, pull=pull)).run()
    error = np.abs(run["arm/reference_position"] - run["arm/position"])
    after_impact = np.isin(run.t // 0.1, (3, 4, 6, 7) if events != "[]" else ())  # 0.2 s of it
    assert error[~after_impact].max() < 2e-3
    moved = np.ptp(run["rail/position"])
    assert moved == 0.0 if rail in ("latched", "at a stop") else moved > 0.01


def test_engines_agree_on_locks(rig_of):
    joint, events = RAILS["latched by events"]
    rig = rig_of(CART.format(rail=joint, controller=TORQUE, events=events, pull=0), "schedule.duration=0.8 s")
    values = python_rows(rig, 801)
    np.testing.assert_allclose(values, rig.run().values, rtol=1e-9, atol=1e-9)


def test_a_controlled_joint_that_is_latched_is_at_rest_for_the_others(rig_of):
    """Both joints are commanded, and the first is latched: the second tracks as if it were the only one."""
    text = """
        mechanism:
          gravity: [0, -9.81, 0]
          bodies:
            - {name: upper, joint: j1, axis: [0, 0, 1], mass: 2 kg, com: [0.2, 0, 0], inertia: [0.01, 0.03, 0.03]}
            - {name: fore, joint: j2, axis: [0, 0, 1], origin: {xyz: [0.4, 0, 0]}, mass: 1 kg, com: [0.2, 0, 0],
               inertia: [0.01, 0.02, 0.02]}
        joints: {all: {actuator: {type: ideal}}, j1: {latched: true}}
        controllers:
          - {type: computed_torque, bandwidth: 8 Hz, trajectory: {type: quintic, goal: 60 deg, duration: 0.5 s}}
        schedule: {step: 1 ms, duration: 0.7 s}
    """
    run = rig_of(text).run()
    assert np.ptp(run["j1/position"]) == 0.0
    assert run.summary["joints"]["j2"]["error_max"] < 1e-3


def test_a_controller_drives_its_joint_out_of_a_stop(rig_of):
    """A stop that its own joint touches does not lock it for the controller."""
    text = """
        mechanism:
          gravity: [0, -9.81, 0]
          bodies: [{name: arm, joint: j, axis: [0, 0, 1], mass: 2 kg, com: [0.2, 0, 0], inertia: [0.01, 0.03, 0.03]}]
        joints: {j: {actuator: {type: ideal}, stops: {lower: 0 deg}}}
        controllers:
          - {type: computed_torque, bandwidth: 8 Hz, trajectory: {type: quintic, goal: 60 deg, duration: 0.5 s}}
        schedule: {step: 1 ms, duration: 0.7 s}
    """
    run = rig_of(text).run()
    assert run["j/position"][0] == 0.0
    assert run.summary["joints"]["j"]["error_max"] < 1e-3
