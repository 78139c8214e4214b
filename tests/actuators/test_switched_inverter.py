"""Drives on a switched inverter."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from cosim import Rig, Run
from cosim.core.errors import InputError
from tests.actuators.test_open_loop_drive import gap_of
from tests.kit.messages import Said
from tests.kit.refusals import raised

ROTOR = {"inertia": 2e-5}
MOTORS: dict[str, dict[str, Any]] = {
    "dc_machine": {"resistance": 0.4, "inductance": 4e-4, "torque_constant": 0.06},
    "stepper": {"teeth": 50, "resistance": 0.5, "inductance": 1e-3, "torque_constant": 0.3},
    "induction_machine": {
        **{"pole_pairs": 1, "stator_resistance": 0.3, "rotor_resistance": 0.2, "magnetising_inductance": 8e-3},
        **{"stator_leakage": 3e-4, "rotor_leakage": 3e-4, "flux": 0.03, "excited": True},
    },
    "bldc": {"pole_pairs": 4, "resistance": 0.2, "inductance": 2e-4, "back_emf": 0.03},
    "pmsm": {"pole_pairs": 4, "resistance": 0.2, "inductance_d": 2e-4, "inductance_q": 2e-4, "flux": 5e-3},
}
INVERTER = {"dead_time": "1 us", "switching_frequency": "20 kHz", "supply_voltage": 48}
LOOPS = {
    "mode": "position",
    "current": {"rate": "20 kHz"},
    "velocity": {"gain": 0.05, "rate": "5 kHz"},
    "position": {"gain": 60, "rate": "1 kHz"},
}


def moved(motor: str, switched: bool = True, schedule: Mapping[str, Any] | None = None) -> Run:
    control = {"bandwidth": 1500, "voltage_limit": 24, "current_limit": 20}
    drive = {"type": "drive", "motor": {"type": motor, **ROTOR, **MOTORS[motor]}, "loops": LOOPS}
    drive |= {"control": {**control, "inverter": {**INVERTER, "switched": switched}}}
    wheel = {"name": "wheel", "joint": "hinge", "axis": [0, 0, 1], "mass": 1, "inertia": [1e-4, 1e-4, 1e-4]}
    trajectory = {"type": "quintic", "goal": 2.0, "duration": 0.05}
    rig = {
        "name": "switched",
        "mechanism": {"gravity": [0, 0, 0], "bodies": [wheel]},
        "joints": {"hinge": {"actuator": drive}},
        "controllers": [{"type": "passthrough", "kp": 1, "kd": 0, "trajectory": trajectory}],
        "schedule": {"step": "1 ms", "duration": "60 ms", "integrator": "rk4", "substeps": 1, **(schedule or {})},
    }
    return Rig.from_dict(rig).run()


IMPLICIT = {"integrator": "rodas4", "substeps": "auto", "tolerance": 1e-9}


@pytest.mark.parametrize("motor", ["dc_machine", "stepper", "induction_machine"])
def test_its_substeps_see_the_ripple(motor: str) -> None:
    """One substep per step is raised to 16 per period of the triangle: the motion is the one of four times as many, and
    nearly the one of the averaged inverter; its energy closes."""
    coarse, fine = (moved(motor, schedule={"substeps": substeps}) for substeps in (1, 1280))
    scale = np.ptp(fine["hinge/position"])
    assert np.abs(coarse["hinge/position"] - fine["hinge/position"]).max() < 1e-6 * scale
    assert gap_of(coarse) < 1e-6 and gap_of(fine) < 1e-9
    averaged = moved(motor, switched=False, schedule={"substeps": 320})
    assert np.abs(averaged["hinge/position"] - fine["hinge/position"]).max() < 1e-3 * scale
    assert gap_of(averaged) < 1e-6


@pytest.mark.parametrize("motor", ["dc_machine", "stepper", "induction_machine", "bldc"])
def test_its_energy_closes_with_steps_of_chosen_length(motor: str) -> None:
    assert gap_of(moved(motor, schedule={**IMPLICIT, "duration": "20 ms"})) < 1e-9


def test_a_motor_whose_inverter_is_averaged_is_refused(said: Said) -> None:
    said(str(raised(InputError, moved, "pmsm")))
