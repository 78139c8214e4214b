"""Drives with a brushless DC machine that commutates by Hall sensors."""

from typing import Any

import numpy as np
import pytest

from cosim import Rig
from cosim.core.errors import InputError
from tests.actuators.test_open_loop_drive import gap_of
from tests.kit.messages import Said
from tests.kit.refusals import raised

MOTOR = {"type": "bldc", "pole_pairs": 4, "resistance": 0.2, "inductance": 2e-4, "back_emf": 0.03, "inertia": 2e-5}
CONTROL = {"bandwidth": 1000, "voltage_limit": 24, "current_limit": 20}
VELOCITY = {"gain": 0.05, "rate": "5 kHz"}
LOOPS = {"mode": "position", "velocity": VELOCITY, "position": {"gain": 60, "rate": "1 kHz"}}
FORMS: dict[str, dict[str, Any]] = {
    "continuous current": {"loops": LOOPS},
    "sampled current": {"loops": {**LOOPS, "current": {"rate": "20 kHz"}}},
    "elastic gear": {
        "loops": {**LOOPS, "velocity": {"gain": 0.2, "rate": "5 kHz"}},
        "gears": [{"ratio": 2, "stiffness": 5, "damping": 0.01, "backlash": 0.01}],
    },
}
ACCURATE = {"integrator": "rodas4", "substeps": "auto", "tolerance": 1e-9}


def one_joint(schedule: dict[str, Any] = ACCURATE, **drive: Any) -> dict[str, Any]:
    drive = {"type": "drive", "motor": MOTOR, "control": CONTROL, **drive}
    wheel = {"name": "wheel", "joint": "hinge", "axis": [0, 0, 1], "mass": 1, "inertia": [1e-4, 1e-4, 1e-4]}
    trajectory = {"type": "quintic", "goal": 10.0, "duration": 0.1}
    return {
        "name": "bldc",
        "mechanism": {"gravity": [0, 0, 0], "bodies": [wheel]},
        "joints": {"hinge": {"actuator": drive}},
        "controllers": [{"type": "passthrough", "kp": 1, "kd": 0, "trajectory": trajectory}],
        "schedule": {"step": "1 ms", "duration": "0.15 s", **schedule},
    }


@pytest.mark.parametrize("form", FORMS)
def test_it_moves_a_wheel_to_its_goal_and_its_energy_closes(form: str) -> None:
    """Over many commutations, accelerating and braking, with some current in all three phases."""
    run = Rig.from_dict(one_joint(**FORMS[form])).run()
    assert run["hinge/position"][-1] == pytest.approx(10.0, abs=0.05)
    assert gap_of(run) < 1e-9
    assert run["hinge/effort"].min() < -0.02 and run["hinge/effort"].max() > 0.02
    phases = np.array([run[f"hinge/current_{phase}"] for phase in "abc"])
    assert np.abs(phases.sum(axis=0)).max() < 1e-9
    assert (np.abs(phases).max(axis=1) > 0.5).all()
    assert np.abs(phases).max() < 20.5
    legs = np.array([run[f"hinge/voltage_{phase}"] for phase in "abc"])
    assert np.abs(legs).max() <= 24.0 + 1e-9


def test_commutations_are_as_exact_as_the_tolerance() -> None:
    """With steps of chosen length; fixed ones cross them, and are worse."""
    ends = {}
    for tolerance in (1e-5, 1e-7, 1e-10):
        run = Rig.from_dict(one_joint({**ACCURATE, "tolerance": tolerance}, **FORMS["continuous current"])).run()
        ends[tolerance] = run["hinge/position"]
    gaps = [np.abs(ends[tolerance] - ends[1e-10]).max() for tolerance in (1e-5, 1e-7)]
    assert gaps[0] < 1e-6 and gaps[1] < 1e-8
    run = Rig.from_dict(one_joint({"integrator": "rk4", "substeps": 400}, **FORMS["continuous current"])).run()
    assert np.abs(run["hinge/position"] - ends[1e-10]).max() < 2e-5


def test_steps_that_are_too_long_for_an_open_leg_are_named(recwarn: pytest.WarningsRecorder) -> None:
    run = Rig.from_dict(one_joint({"integrator": "rk4", "substeps": 200}, **FORMS["continuous current"])).run(0.01)
    assert any("time constant of" in str(warning.message) for warning in recwarn)
    assert run.warnings


def test_an_open_leg_needs_its_rails(said: Said) -> None:
    said(str(raised(InputError, Rig.from_dict, one_joint(control={"bandwidth": 1000}))))
