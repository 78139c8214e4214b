"""Every controller that has a model carries the springs in the joints: it holds an arm without an error."""

import pytest

from cosim.rig.rig import Rig

SPRINGS = {"stiffness": 60.0, "unloaded_position": 0.5, "damping": 0.5, "limits": {"effort": 200.0}}
BODIES = [
    {"name": "upper", "joint": "shoulder", "axis": [0, 1, 0], "mass": 2.0, "com": [0, 0, -0.3], "inertia": [0.1] * 3},
    {"name": "lower", "joint": "elbow", "axis": [0, 1, 0], "mass": 1.0, "com": [0, 0, -0.2], "inertia": [0.05] * 3,
     "origin": {"xyz": [0, 0, -0.6]}},
]  # fmt: skip
GAINS = {"kp": 150.0, "kd": 30.0}
LARGEST = {"largest_position_error": "2 deg", "largest_velocity_error": "40 deg/s"}
# controller -> (keys, largest error at the end [rad]); a spring that is not carried is an error of about 0.1
CONTROLLERS = {
    "computed_torque": ({"bandwidth": "3 Hz"}, 1e-9),
    "feedforward_pd": (GAINS, 1e-9),
    "pd_gravity": (GAINS, 1e-7),
    "disturbance_observer": ({"bandwidth": "3 Hz", "observer": "6 Hz"}, 1e-7),
    "adaptive": ({"bandwidth": "3 Hz", "kd": 10.0, "largest_viscous": 0.1}, 1e-4),
    "joint_impedance": ({"stiffness": 150.0, "damping": 30.0}, 1e-9),
    "joint_admittance": ({**GAINS, "inertia": 1.0, "stiffness": 300.0, "damping": 40.0}, 1e-6),
    "lqr": (LARGEST, 1e-6),
    "mpc": ({**LARGEST, "horizon": 6, "observer": "10 Hz"}, 1e-6),
}


@pytest.mark.parametrize("name", CONTROLLERS)
def test_an_arm_with_springs_is_held_without_an_error(name):
    keys, largest = CONTROLLERS[name]
    motion = {"type": "quintic", "goal": [0.9, -0.7], "duration": "0.5 s"}
    rig = Rig.from_dict({
        "mechanism": {"bodies": [body | SPRINGS for body in BODIES]},
        "joints": {"all": {"actuator": {"type": "ideal"}}},
        "controllers": [{"type": name, "joints": ["shoulder", "elbow"], "trajectory": motion, **keys}],
        "schedule": {"step": "1 ms", "duration": "3 s"},
    })  # fmt: skip
    run = rig.run()
    ends = [run["shoulder/position"][-1] - 0.9, run["elbow/position"][-1] + 0.7]
    assert max(map(abs, ends)) < largest
