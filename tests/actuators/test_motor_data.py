"""The factors of docs/howto/motor-data.md, from values of data sheets to keys, by the terminals of simulated motors."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cosim import Rig, Run

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "motor-data.md").read_text()
KRPM = 1000.0 * math.pi / 30.0  # rad/s


def factor(motor: str, sheet: str, key: str) -> float:
    """The number of the row of a motor that begins with these words, for this key."""
    rows = re.findall(rf"^\| `?{re.escape(motor)}`? \| {re.escape(sheet)}[^|]*\| ([^|]*)\|", PAGE, re.MULTILINE)
    (cell,) = [row for row in rows if f"`{key}`" in row or key in row]
    (number,) = re.findall(r"(\d[\d.]*) [·/] value", cell)
    return float(number)


def run_of(motor: dict[str, Any], torque: float, speed: float, **drive: Any) -> Run:
    """A flywheel that keeps its speed, under a constant torque of the motor."""
    body = {"name": "wheel", "joint": "hub", "axis": [0, 0, 1], "type": "continuous", "mass": 1, "inertia": [1e6] * 3}
    goal = {"type": "trapezoidal", "goal": 1e7, "max_velocity": 1e6, "max_acceleration": 1e9}
    own = {"type": "drive", "motor": motor, "control": {"bandwidth": 1000}, "powers": True, **drive}
    joint = {"actuator": own, "limits": {"effort": torque}, "initial": {"velocity": speed}}
    return Rig.from_dict(
        {
            "mechanism": {"gravity": [0, 0, 0], "bodies": [body]},
            "joints": {"hub": joint},
            "controllers": [{"type": "pid", "kp": 1, "ki": 0, "kd": 0, "trajectory": goal}],
            "schedule": {"step": "0.1 ms", "duration": "0.05 s", "integrator": "rodas4", "substeps": 4},
        }
    ).run()


def last(run: Run, *names: str) -> float:
    """The root of the sum of squares."""
    return float(math.hypot(*(run[f"hub/{name}"][-1] for name in names)))


PMSM = {"type": "pmsm", "pole_pairs": 4, "resistance": 1.2, "inductance_d": 5e-3, "inductance_q": 5e-3}
TINY = 1e-6  # N·m


@pytest.mark.parametrize(("sheet", "per_amplitude"), [("RMS", math.sqrt(1.5)), ("peak", math.sqrt(3.0))])
def test_the_voltage_constant_of_a_synchronous_machine(sheet: str, per_amplitude: float) -> None:
    flux = factor("pmsm", f"voltage constant in V per 1000 rpm, line to line, {sheet}", "flux") * 76.8 / 4
    run = run_of({**PMSM, "flux": flux}, TINY, KRPM)
    assert last(run, "voltage_d", "voltage_q") * per_amplitude == pytest.approx(76.8, rel=1e-4)


def test_the_torque_constant_and_the_resistance_of_a_synchronous_machine() -> None:
    flux = factor("pmsm", "torque constant in N·m per A RMS", "flux") * 1.27 / 4
    resistance = factor("pmsm", "resistance, line to line", "resistance") * 2.4
    run = run_of({**PMSM, "flux": flux, "resistance": resistance}, 2.54, 0.0)
    rms = last(run, "current_d", "current_q") / factor("three phases", "current in A RMS", "current_limit")
    assert rms == pytest.approx(2.0, rel=1e-4)
    assert run["hub/copper_loss"][-1] == pytest.approx(1.5 * 2.4 * rms**2, rel=1e-4)
    ratio = 0.0077970 / 0.47140
    assert ratio == pytest.approx(0.016540, rel=1e-4) and "0.016540" in PAGE


def test_a_brushless_machine() -> None:
    motor = {"type": "bldc", "pole_pairs": 4, "inductance": 1e-3}
    motor["back_emf"] = factor("bldc", "torque constant", "back_emf") * 0.12
    motor["resistance"] = factor("bldc", "resistance, line to line", "resistance") * 0.8
    limit = factor("bldc", "voltage of the DC link", "voltage_limit") * 48.0
    run = run_of(motor, 0.6, 0.1, control={"bandwidth": 1000, "voltage_limit": limit})
    current = abs(run["hub/current"][-1])
    assert current == pytest.approx(0.6 / 0.12, rel=1e-2)
    assert run["hub/copper_loss"][-1] == pytest.approx(0.8 * current**2, rel=1e-2)
    # K of a phase, two in series: the voltage between two terminals at the flat parts is 2 K ω
    assert factor("bldc", "voltage constant", "back_emf") * 2.0 * KRPM == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize(
    ("sheet", "value", "constant"),
    [
        ("torque constant in N·m/A", 0.25, 0.25),
        ("voltage constant in V per 1000 rpm", 0.25 * KRPM, 0.25),
        ("speed constant in rpm/V", 30.0 / math.pi / 0.25, 0.25),
    ],
)
def test_a_dc_machine(sheet: str, value: float, constant: float) -> None:
    number = factor("dc_machine", sheet, "torque_constant")
    found = number / value if sheet.startswith("speed") else number * value
    motor = {"type": "dc_machine", "resistance": 1, "inductance": 1e-3, "torque_constant": found}
    assert run_of(motor, 0.5, 0.0)["hub/current"][-1] == pytest.approx(0.5 / constant, rel=1e-4)
    assert run_of(motor, TINY, KRPM)["hub/voltage"][-1] == pytest.approx(constant * KRPM, rel=1e-3)


def test_a_step_motor() -> None:
    """200 steps per turn, 1.9 N·m with 4.2 A in both phases: the amplitude of a field of both is √2 as large."""
    teeth = factor("stepper", "full steps per turn", "teeth") * 200
    constant = factor("stepper", "holding torque", "torque_constant") * 1.9 / 4.2
    motor = {"type": "stepper", "teeth": int(teeth), "resistance": 0.5, "inductance": 2e-3, "torque_constant": constant}
    run = run_of(motor, 1.9, 0.0)
    amplitude = last(run, "current_a", "current_b")
    assert teeth == 50
    assert amplitude == pytest.approx(4.2 * factor("stepper", "rated current", "steps.current"), rel=1e-4)
    assert constant == pytest.approx(1.9 / (math.sqrt(2.0) * 4.2), rel=1e-4)


def test_an_induction_machine() -> None:
    """Without load its flux follows the voltage at the frequency; 400 V, 50 Hz, X_m = 40 Ω."""
    number = factor("induction_machine", "reactance", "magnetising_inductance")
    motor = {
        "type": "induction_machine", "pole_pairs": 2, "stator_resistance": 1e-3, "rotor_resistance": 0.5,
        "magnetising_inductance": number * 40.0 / 50.0, "stator_leakage": 1e-6, "rotor_leakage": 1e-6, "inertia": 1e-2,
    }  # fmt: skip
    amplitude = factor("three phases", "voltage, line to line, RMS", "voltage_limit") * 400.0
    assert amplitude == pytest.approx(400.0 * math.sqrt(2.0 / 3.0), rel=1e-4)
    assert motor["magnetising_inductance"] == pytest.approx(40.0 / (100.0 * math.pi), rel=1e-4)
    flux = factor("induction_machine", "voltage in V, line to line", "flux") * 400.0 / 50.0
    # at synchronous speed the induced voltage p ω ψ of a phase is the supplied one
    assert 100.0 * math.pi * flux == pytest.approx(amplitude, rel=1e-4)
    run = run_of({**motor, "flux": flux, "excited": True}, TINY, 50.0 * math.pi)
    assert last(run, "voltage_d", "voltage_q") == pytest.approx(amplitude, rel=2e-3)
    link = factor("three phases, but `bldc`", "voltage of the DC link", "voltage_limit")
    assert link == pytest.approx(1.0 / math.sqrt(3.0), rel=1e-4)


def test_the_example_of_the_page() -> None:
    keys = {
        "flux": factor("pmsm", "torque constant in N·m per A RMS", "flux") * 1.27 / 4,
        "current_limit": factor("three phases", "current in A RMS", "current_limit") * 10.0,
        "voltage_limit": factor("three phases, but `bldc`", "voltage of the DC link", "voltage_limit") * 560.0,
    }
    for key, value in keys.items():
        (written,) = re.findall(rf"{key}: ([\d.]+)", PAGE)
        assert float(written) == pytest.approx(value, rel=2e-3), key
    by_voltage = factor("pmsm", "voltage constant in V per 1000 rpm, line to line, RMS", "flux") * 76.8 / 4
    assert by_voltage == pytest.approx(keys["flux"], rel=1e-2)
    assert np.isfinite(by_voltage)
