"""Drives with an induction machine: along its flux, and on a voltage over the frequency."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from cosim import Rig
from cosim.core.errors import InputError
from tests.actuators.test_open_loop_drive import gap_of
from tests.kit.messages import Said
from tests.kit.refusals import raised

MOTOR = {
    **{"type": "induction_machine", "pole_pairs": 2, "stator_resistance": 2.9338, "rotor_resistance": 1.355},
    **{"magnetising_inductance": 143.75e-3, "stator_leakage": 5.87e-3, "rotor_leakage": 5.87e-3},
    **{"inertia": 1.1e-3, "flux": 0.9},
}
CONTROL = {"bandwidth": 500, "voltage_limit": 400, "current_limit": 20}
VELOCITY = {"gain": 0.5, "integral_time": 0.05, "rate": "5 kHz"}
LOOPS = {"mode": "position", "velocity": VELOCITY, "position": {"gain": 40, "rate": "1 kHz"}}
FORMS: dict[str, dict[str, Any]] = {
    "continuous currents": {"loops": LOOPS},
    "sampled currents": {"loops": {**LOOPS, "current": {"rate": "10 kHz"}}},
    "volts per hertz": {
        "open_loop": {"volts_per_hertz": {"voltage": 325, "frequency": 50, "boost": 12}, "gain": 20},
    },
}


def one_joint(goal: float = 20.0, motor: Mapping[str, Any] | None = None, **drive: Any) -> dict[str, Any]:
    trajectory = {"type": "quintic", "goal": goal, "duration": 0.3}
    section = {"type": "drive", "motor": {**MOTOR, "excited": True, **(motor or {})}, "control": CONTROL, **drive}
    wheel = {"name": "wheel", "joint": "hinge", "axis": [0, 0, 1], "mass": 1, "inertia": [5e-3, 5e-3, 5e-3]}
    return {
        "name": "induction",
        "mechanism": {"gravity": [0, 0, 0], "bodies": [wheel]},
        "joints": {"hinge": {"actuator": section}},
        "controllers": [{"type": "passthrough", "kp": 1, "kd": 0, "trajectory": trajectory}],
        "schedule": {"step": "1 ms", "duration": "0.5 s", "integrator": "rk4", "substeps": 20},
    }


@pytest.mark.parametrize("form", FORMS)
def test_it_moves_a_wheel_to_its_goal(form: str) -> None:
    """There and at rest; along its flux exactly, without feedback with what it slips."""
    run = Rig.from_dict(one_joint(**FORMS[form])).run()
    exact = form != "volts per hertz"
    assert run["hinge/position"][-1] == pytest.approx(20.0, abs=2e-2 if exact else 2.0)
    assert abs(run["hinge/velocity"][-1]) < (0.2 if exact else 3.0)
    assert np.abs(run["hinge/velocity"]).max() > 100.0
    if exact:
        assert run["hinge/rotor_flux"] == pytest.approx(0.9, rel=2e-2)
        torque = 1.5 * 2 * run["hinge/rotor_flux"] * run["hinge/current_q"]
        given = run["hinge/measured_effort"]  # with what accelerates the rotor
        assert torque[5:] == pytest.approx(given[5:], abs=0.02 * np.abs(torque).max())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "schedule",
    [{"substeps": 80}, {"integrator": "rodas4", "substeps": "auto", "tolerance": 1e-10}],
    ids=["rk4", "rodas4"],
)
def test_its_energy_closes(form: str, schedule: dict[str, Any]) -> None:
    """It accelerates and brakes; with a saturated inductance and heat."""
    thermal = {"winding_capacity": 50, "housing_capacity": 500, "winding_to_housing": 0.5, "housing_to_ambient": 1}
    motor = {"saturation_flux": 1.0, "thermal": thermal}
    rig = one_joint(5.0, motor, **FORMS[form])
    run = Rig.from_dict({**rig, "schedule": {**rig["schedule"], **schedule}}).run()
    assert gap_of(run) < 1e-9
    assert run["hinge/effort"].min() < -0.2 and run["hinge/effort"].max() > 0.2


@pytest.mark.parametrize("form", FORMS)
def test_rosenbrock_closes_it_with_the_square_of_its_step(form: str) -> None:
    rig = one_joint(5.0, **FORMS[form])

    def gap(substeps: int) -> float:
        schedule = {"step": "1 ms", "duration": "0.2 s", "integrator": "rosenbrock", "substeps": substeps}
        return gap_of(Rig.from_dict({**rig, "schedule": schedule}).run())

    assert gap(80) < gap(40) / 3.0


def test_it_is_excited_before_it_turns() -> None:
    """From no flux: it rises with the time constant L_M / R_R of the rotor, and the torque with it."""
    run = Rig.from_dict(one_joint(motor={"excited": False}, loops=LOOPS)).run()
    rate = 1.355 / (143.75e-3 + 5.87e-3)
    expected = 0.9 * (1.0 - np.exp(-rate * run.t))
    assert run["hinge/rotor_flux"] == pytest.approx(expected, abs=0.02)


def test_its_largest_torque_is_what_its_current_leaves() -> None:
    """The integral of the velocity loop follows 3/2 p ψ √(I² − i_d²)."""
    run = Rig.from_dict(one_joint(400.0, control={**CONTROL, "current_limit": 8}, loops=LOOPS)).run()
    excites = 0.9 * (143.75e-3 + 5.87e-3) / 143.75e-3**2
    most = 1.5 * 2 * 0.9 * math.sqrt(8.0**2 - excites**2)
    assert np.abs(run["hinge/effort_setpoint"]).max() == pytest.approx(most, rel=1e-6)
    assert np.hypot(run["hinge/current_d"], run["hinge/current_q"]).max() < 8.1


MISTAKES: dict[str, dict[str, Any]] = {
    "no flux": {"motor": {"flux": None, "excited": False}},
    "excited without flux": {"motor": {"flux": None}},
    "no leakage": {"motor": {"stator_leakage": 0, "rotor_leakage": 0}},
    "no curve of the voltage": {"open_loop": {"mode": "velocity"}},
    "a boost beyond the voltage": {"open_loop": {"volts_per_hertz": {"voltage": 10, "frequency": 50, "boost": 12}}},
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused_with_its_fix(name: str, said: Said) -> None:
    said(str(raised(InputError, Rig.from_dict, one_joint(**MISTAKES[name]))))
