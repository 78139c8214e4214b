"""An arm of two joints with drives that are solved together with the mechanism."""

from __future__ import annotations

import copy
from typing import Any

from tests.bondgraph.test_rigid_graphs import rotational

LINK = {"mass": 1, "com": [0.2, 0, 0], "inertia": [0, 0.02, 0.02]}
ARM = [
    {"name": "upper", "joint": "shoulder", **LINK},
    {"name": "fore", "joint": "elbow", "origin": {"xyz": [0.4, 0, 0]}, **LINK},
]
# the ring turns freely: its speed is a state whose rate follows the acceleration of the joint
PLANETARY = {
    "components": {"gear": {"type": "planetary", "ring_ratio": 2.5}},
    "elements": {
        "motor": rotational("Se", law="request / 3.5"),
        "sun_inertia": rotational("I", inertia=0.01),
        "ring_inertia": rotational("I", inertia=0.05),
        "drag": rotational("R", resistance=0.2),
    },
    "junctions": {"sun": 1, "ring": 1, "arm": 1},
    "bonds": [
        "motor -> sun -> sun_inertia",
        "sun -> gear.sun",
        "gear.ring -> ring -> ring_inertia",
        "ring -> drag",
        "gear.arm -> arm -> joint",
    ],
}
# a mass behind a ratio that depends on the position
LEVER = {
    "elements": {
        "motor": rotational("Se", law="request"),
        "lever": rotational("TF", to="translational", law="0.1 + 0.05*sin(position)"),
        "mass": {"type": "I", "domain": "translational", "inertia": 4},
    },
    "junctions": {"shaft": 1, "slide": 1},
    "bonds": ["motor -> shaft -> lever -> slide -> mass", "shaft -> joint"],
}
ROTORS = 0.02, 0.05  # of the differential, which couple its joints
SIDES = ((1.0, 1.0), (1.0, -1.0))  # their speeds by the velocities of both joints
DIFFERENTIAL = {
    "elements": {
        "left": rotational("Se", law="(pitch.request + roll.request) / 2"),
        "right": rotational("Se", law="(pitch.request - roll.request) / 2"),
        "left_rotor": rotational("I", inertia=ROTORS[0]),
        "right_rotor": rotational("I", inertia=ROTORS[1]),
        "straight": rotational("TF", ratio=1),
        "reversed": rotational("TF", ratio=-1),
    },
    "junctions": {"left_shaft": 1, "right_shaft": 1, "at_left": 0, "at_right": 0, "yoke": 1, "tool": 1},
    "bonds": [
        "left -> left_shaft -> left_rotor",
        "right -> right_shaft -> right_rotor",
        "left_shaft -> at_left -> yoke -> pitch",
        "right_shaft -> at_right -> yoke",
        "at_left -> straight -> tool -> roll",
        "at_right -> reversed -> tool",
    ],
}
WRIST = {
    "joints": {"pitch": "shoulder", "roll": "elbow"},
    "graph": DIFFERENTIAL,
    "signals": {"spin": "left_shaft.flow", "inertial": "left_rotor.effort"},
}
DRIVES: dict[str, dict[str, Any]] = {
    "a planetary gear": {"joints": {"shoulder": {"actuator": {"type": "bond_graph", "graph": PLANETARY}}}},
    "a lever": {"joints": {"shoulder": {"actuator": {"type": "bond_graph", "graph": LEVER}}}},
    "a differential": {"joints": {"shoulder": {}}, "bond_graphs": {"wrist": WRIST}},
}
TRAJECTORY = {"type": "quintic", "goal": [1, -1], "duration": 0.4}
FEEDFORWARD = {"type": "feedforward_pd", "kp": 20, "kd": 2, "trajectory": TRAJECTORY}
PD = {"type": "pid", "kp": 20, "ki": 0, "kd": 2, "trajectory": TRAJECTORY}


def arm(drive: str, controller: dict[str, Any] | None = FEEDFORWARD, **schedule: Any) -> dict[str, Any]:
    """The data of a rig, to be changed."""
    data: dict[str, Any] = {
        "name": "arm",
        "mechanism": {"gravity": [0, -9.81, 0], "bodies": ARM},
        **DRIVES[drive],
        "controllers": [] if controller is None else [controller],
        "schedule": {"step": "1 ms", "duration": "0.1 s", "integrator": "rk4", **schedule},
    }
    data = copy.deepcopy(data)
    data["joints"]["shoulder"]["initial"] = {"velocity": 0.5}
    data["joints"]["elbow"] = {"initial": {"velocity": -0.3}}
    return data
