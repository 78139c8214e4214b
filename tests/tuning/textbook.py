"""A turntable of 1 kg·m² that steps by 1 rad: the double integrator of textbooks."""

from typing import Any

from cosim import Rig

TURNTABLE: dict[str, Any] = {
    "name": "turntable",
    "mechanism": {
        "gravity": [0, 0, 0],
        "bodies": [
            {"name": "table", "joint": "axis", "axis": [0, 0, 1], "mass": 1.0, "com": [0, 0, 0], "inertia": [1, 1, 1]}
        ],
    },
    "controllers": [
        {
            "name": "arm",
            "type": "pid",
            "kp": 100.0,
            "ki": 0.0,
            "kd": 4.0,
            "trajectory": {"type": "quintic", "start": 1.0, "goal": 1.0, "duration": 1.0},
        }
    ],
    "schedule": {"step": "1 ms", "duration": 4.0},
}


def turntable(**sections: Any) -> Rig:
    """sections: replace the rig's, or some of their keys."""
    data = dict(TURNTABLE)
    for name, section in sections.items():
        data[name] = {**data[name], **section} if isinstance(section, dict) and name in data else section
    return Rig.from_dict(data)
