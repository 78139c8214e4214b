"""An arm of two joints, the same arm with other numbers, and a recording of that one."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import yaml

from cosim import load_rig
from cosim.rig.reading.yaml_source import overlay_text

MOTOR = {
    "type": "dc_motor", "resistance": 0.5, "inductance": 0.001, "torque_constant": 0.06, "rotor_inertia": 4e-5,
    "ratio": 80, "viscous": 0.5, "coulomb": 0.8, "voltage_limit": 48,
}  # fmt: skip
ARM = {
    "name": "arm",
    "mechanism": {
        "bodies": [
            {"name": "upper", "joint": "shoulder", "mass": 2.0, "com": [0.2, 0.01, 0], "axis": [0, 1, 0],
             "inertia": [0.01, 0.03, 0.03]},
            {"name": "fore", "parent": "upper", "joint": "elbow", "origin": {"xyz": [0.4, 0, 0]}, "mass": 1.0,
             "com": [0.15, 0, 0.02], "axis": [0, 1, 0], "inertia": [0.005, 0.02, 0.02]},
        ]
    },
    "joints": {
        "all": {"actuator": MOTOR, "limits": {"lower": -2.5, "upper": 2.5, "velocity": 6, "effort": 60}},
        "elbow": {"actuator": MOTOR | {"ratio": 50}},
    },
    "controllers": [
        {"name": "track", "type": "feedforward_pd", "kp": 400, "kd": 20,
         "trajectory": {"type": "sine", "amplitude": [0.7, 0.9], "frequency": [0.43, 0.71], "ramp": 1}},
    ],
    "schedule": {"step": "1 ms", "integrator": "rk4", "substeps": 2, "duration": 12},
}  # fmt: skip
# what the other arm has
TRUTH = {
    "mechanism.numbers.fore": {"mass": 1.6, "com": [0.2, 0, 0.03], "inertia": [0.006, 0.03, 0.03]},
    "joints.all.actuator.viscous": 0.9,
    "joints.elbow.actuator.coulomb": 1.3,
}


def written(folder: Path, name: str = "arm.yaml", **changes) -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump(copy.deepcopy(ARM) | changes))
    return path


@pytest.fixture(scope="session")
def arm_file(tmp_path_factory) -> Path:
    return written(tmp_path_factory.mktemp("arm"))


@pytest.fixture
def arm(arm_file):
    return load_rig(arm_file)


@pytest.fixture(scope="session")
def truth(arm_file) -> Path:
    """The overlay of the other arm."""
    path = arm_file.parent / "truth.yaml"
    path.write_text(overlay_text(TRUTH, "arm.yaml"))
    return path


@pytest.fixture(scope="session")
def recording(arm_file, truth) -> Path:
    from cosim.rig.reading.yaml_source import read_overlay

    path = arm_file.parent / "truth.mcap"
    load_rig(arm_file, read_overlay(truth)).run(record=path)
    return path
