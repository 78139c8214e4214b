"""Responses from the current of a motor to the motor and the joint, against the closed form of two masses."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cosim.apps.analysis.linearisation import memory_at
from cosim.apps.analysis.signal_responses import SignalResponse, signal_responses
from cosim.core.types import Array
from cosim.rig.rig import Rig
from tests.kit.messages import Said
from tests.kit.sampled_drives import MOTORS, RIGID, drive, rig_of
from tests.kit.samples import FOLDER

CURRENTS = {"dc_machine": "current", "pmsm": "current_q", "stepper": "current_b"}
FORMS = ["velocity", "position", "effort", "continuous", "no loops"]
N, K, D = 20.0, 50.0, 0.002  # turns, stiffness and damping at the motor
J, B = 0.12 + 0.1**2, 0.3  # of the joint


def form_of(motor: str, form: str, gears: Any = None) -> Any:
    given = {"gears": gears} if gears else {}
    if form in ("continuous", "no loops"):
        own = drive(motor, "velocity", sampled=False, **given)
        return own if form == "continuous" else {key: value for key, value in own.items() if key != "loops"}
    return drive(motor, form, **given)


def responses(rig: Rig, *signals: str, at: float = 0.0) -> list[SignalResponse]:
    given, *others = (f"axis_0/{name}" for name in signals)
    return signal_responses(rig.tick_model, memory_at(rig, at), given, others)


def two_masses(omega: Array, inertia: float) -> tuple[Array, Array]:
    """Speeds of the motor and of the joint per torque of the motor:
    J_m s ω_m = M − c (ω_m − N ω),  J s ω = N c (ω_m − N ω) − b ω,  c = k / s + d."""
    s = 1j * omega
    c, load = K / s + D, J * s + B
    joint = N * c / ((inertia * s + c) * (load + N**2 * c) - (N * c) ** 2)
    return joint * (load + N**2 * c) / (N * c), joint


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("motor", CURRENTS)
def test_an_elastic_gear_is_two_masses(motor: str, form: str) -> None:
    """Whatever drives the current: the response at all frequencies to 1e-6, the resonances and the antiresonance."""
    rig, inertia = rig_of(form_of(motor, form)), MOTORS[motor]["inertia"]
    of_motor, of_joint = responses(rig, CURRENTS[motor], "motor_speed", "velocity")
    expected = two_masses(of_motor.omega, inertia)
    constant = np.real(of_motor.values[0] / expected[0][0])
    if motor != "pmsm":  # else in axes of another scale
        assert constant == pytest.approx(MOTORS[motor]["torque_constant"], rel=1e-6)
    for found, closed in zip((of_motor, of_joint), expected, strict=True):
        assert np.abs(found.values / (constant * closed) - 1.0).max() < 1e-6
    zeros = np.roots([J, N**2 * D + B, N**2 * K])
    poles = np.roots([inertia * J, inertia * (B + N**2 * D) + D * J, inertia * N**2 * K + D * B + K * J, K * B])
    for resonances, roots in ((of_motor.antiresonances, zeros), (of_motor.resonances, poles)):
        (found,), (root,) = resonances, roots[np.imag(roots) > 0.0]
        assert found.frequency == pytest.approx(abs(root), rel=1e-6)
        assert found.damping == pytest.approx(-root.real / abs(root), rel=1e-5)
    (resonance,) = of_joint.resonances
    assert resonance.frequency == pytest.approx(of_motor.resonances[0].frequency, rel=1e-9)
    assert not of_joint.antiresonances


@pytest.mark.parametrize("form", FORMS)
def test_a_rigid_gear_is_one_mass(form: str) -> None:
    rig = rig_of(form_of("dc_machine", form, RIGID))
    (found,) = responses(rig, "current", "velocity", at=0.05)
    whole = J + N**2 * MOTORS["dc_machine"]["inertia"]
    assert found.values == pytest.approx(0.1 * N / (whole * 1j * found.omega + B), rel=1e-6)
    assert not found.resonances and not found.antiresonances


def test_an_effort_without_a_drive_moves_a_pendulum(rig_of: Any) -> None:
    rig = rig_of(
        """
        mechanism:
          bodies: [{name: bob, joint: hinge, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5],
                    inertia: [0.01, 0.01, 0.01], damping: 0.02}]
        controllers: [{type: feedforward_pd, kp: 1, kd: 1, trajectory: {type: quintic, goal: 0, duration: 1 s}}]
        schedule: {step: 1 ms, duration: 1 s}
        """
    )
    model = rig.tick_model
    (found,) = signal_responses(model, memory_at(rig, 0.0), "hinge/effort", ["hinge/position"])
    (resonance,) = found.resonances
    assert resonance.frequency == pytest.approx(math.sqrt(9.81 * 0.5 / 0.26), rel=1e-3)
    s = 1j * found.omega
    gravity = np.real(1.0 / found.values[0] + found.omega[0] ** 2 * 0.26)
    assert gravity == pytest.approx(9.81 * 0.5, rel=1e-3)
    assert found.values == pytest.approx(1.0 / (0.26 * s**2 + 0.02 * s + gravity), rel=1e-6)


def test_the_command(command: Any, said: Said, tmp_path: Path) -> None:
    rig, target, picture = FOLDER / "drives" / "servo_axis.yaml", tmp_path / "r.json", tmp_path / "r.png"
    for signals in (
        "axis/current_q",
        "axis/curent_q,axis/velocity",
        "energy/kinetic,axis/velocity",
        "axis/current_q,axis/measured_position",
    ):
        said(command.refuses("analyze", rig, "--response", signals))
    said(command.refuses("analyze", rig, "--response", "axis/current_q,axis/velocity", "--joint", "axis"))
    signals = "axis/current_q,axis/velocity"
    out = command.prints("analyze", rig, "--at", "0.3", "--response", signals, "--json", target, "--plot", picture)
    found = json.loads(target.read_text())["axis/velocity"]
    assert "axis/velocity by axis/current_q" in out and picture.stat().st_size > 10_000
    assert found["from"] == "axis/current_q" and len(found["omega"]) == len(found["real"]) == len(found["imag"])
