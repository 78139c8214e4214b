"""Relay experiments: the plant at its limit cycle is as in the textbook and the linear rig; what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from cosim import load_rig
from cosim.apps.analysis.relay import RelayPoint, RelayRequest, measure_relay
from tests.kit.messages import Said
from tests.kit.refusals import refusal
from tests.kit.samples import FOLDER

VISCOUS, LAG = 5.0, 50.0  # N·m·s/rad, rad/s of the loop of the current
SERVO = f"""
name: servo
mechanism:
  gravity: [0, 0, 0]
  bodies: [{{name: disk, joint: axis, axis: [0, 0, 1], mass: 1 kg, inertia: [1, 1, 1]}}]
joints:
  axis:
    limits: {{effort: 50}}
    actuator: {{type: dc_motor, resistance: 0.01, inductance: 1.0, torque_constant: 1.0, rotor_inertia: 0.0,
               viscous: {VISCOUS}, bandwidth: {LAG / (2.0 * math.pi)} Hz, voltage_limit: 1e6}}
controllers: [{{name: arm, type: feedforward_pd, kp: 100, kd: 4}}]
schedule: {{step: 1 ms, duration: 1 s, integrator: rk4}}
"""


@pytest.fixture
def servo(tmp_path: Path) -> Path:
    path = tmp_path / "servo.yaml"
    path.write_text(SERVO)
    return path


def refuse(lines: object) -> None:
    raise AssertionError(f"asked {lines}")


def point_of(path: Path, **request: float) -> RelayPoint:
    rig = load_rig(path)
    (point,) = measure_relay(rig, rig, ["axis"], RelayRequest(**request), refuse)
    return point


def test_the_limit_cycle_has_the_ultimate_gain_and_period_of_the_textbook(servo: Path) -> None:
    """1 / (s (s + b) (1 + s / ω)): phase −180° at √(b ω), where the gain is 1 / (b (b + ω))."""
    point = point_of(servo)
    assert point.amplitude == 5.0 and point.hysteresis == 0.0
    assert point.omega == pytest.approx(math.sqrt(VISCOUS * LAG), rel=0.08)
    assert point.ultimate_gain == pytest.approx(VISCOUS * (VISCOUS + LAG), rel=0.1)
    s = 1j * point.omega
    assert point.linear == pytest.approx(1.0 / (s * (s + VISCOUS) * (1.0 + s / LAG)), rel=0.02)
    assert abs(point.plant - point.linear) < 0.05 * abs(point.linear)


def test_hysteresis_moves_the_point_along_the_response(servo: Path) -> None:
    """To a lower frequency, where the phase is above −180°."""
    without, point = point_of(servo), point_of(servo, hysteresis=5e-3)
    assert point.omega < 0.9 * without.omega and point.plant.imag < 0.0
    angle = math.atan2(-point.plant.imag, -point.plant.real)
    assert angle == pytest.approx(math.asin(5e-3 / point.swing)) and math.degrees(angle) > 5.0
    assert abs(point.plant - point.linear) < 0.06 * abs(point.linear)


def test_an_encoder_has_a_hysteresis_of_two_counts(servo: Path) -> None:
    servo.write_text(SERVO.replace("limits: {effort: 50}", "limits: {effort: 50}\n    encoder: {cpr: 4096}"))
    point = point_of(servo)
    assert point.hysteresis == pytest.approx(2.0 * 2.0 * math.pi / 4096)
    assert abs(point.plant - point.linear) < 0.08 * abs(point.linear)


def test_the_point_is_printed_written_and_drawn(command: Callable, servo: Path, tmp_path: Path) -> None:
    plot, figures = tmp_path / "loops.svg", tmp_path / "loops.json"
    words = ("analyze", servo, "--measure", "relay", "--amplitude", "2", "--plot", plot, "--json", figures)
    out = command.prints(*words)
    lines = out.splitlines()
    head = next(k for k, line in enumerate(lines) if line.startswith("relay"))
    assert lines[head + 2].startswith("axis ") and " | " in lines[head + 2] and lines[head + 2].endswith("± 2")
    found = orjson.loads(figures.read_bytes())["relay"]["axis"]
    assert found["period"] == pytest.approx(2.0 * math.pi / found["omega"])
    assert found["ultimate_gain"] == pytest.approx(8.0 / (math.pi * found["swing"]))
    assert found["plant"]["real"] == pytest.approx(found["linear"]["real"], rel=0.05)
    command.prints("analyze", servo, "--plot", tmp_path / "bare.svg")
    assert plot.stat().st_size > (tmp_path / "bare.svg").stat().st_size  # … by its three marks


@pytest.mark.parametrize(
    "words",
    [("--amplitude", "60"), ("--hysteresis", "-1"), ("--at", "1"), ("--recorded", "a.mcap"), ("--joint", "axes")],
    ids=str,
)
def test_wrong_options(command: Callable, servo: Path, words: tuple[str, ...], said: Said) -> None:
    code, _, err = command("analyze", servo, "--measure", "relay", *words)
    assert code == 2
    said(err)


def test_hysteresis_is_of_a_relay(command: Callable, servo: Path) -> None:
    assert command("analyze", servo, "--hysteresis", "1")[2] == ["--hysteresis: is of a relay; add --measure relay"]


def test_joints_that_cannot_be_measured(command: Callable, servo: Path, said: Said) -> None:
    def error() -> str:
        code, _, err = command("analyze", servo, "--measure", "relay")
        assert code == 2 and len(err) == 1
        return err[0]

    servo.write_text(SERVO.replace("    limits: {effort: 50}\n", ""))
    said(error())
    servo.write_text(SERVO.replace("effort: 50", "effort: 50, velocity: 0.01") + "guard: {actions: {velocity: stop}}\n")
    found = error()
    assert found.startswith("--measure: the relay experiment of axis ended early: stopped at tick ")
    assert found.endswith("; give a smaller --amplitude")
    servo.write_text("\n".join(line for line in SERVO.splitlines() if "actuator" not in line and "viscous" not in line))
    said(error())


def test_real_motors_are_confirmed(command: Callable, said: Said) -> None:
    code, out, err = command("analyze", FOLDER / "arm_can.yaml", "--measure", "relay", "--joint", "base")
    assert code == 2 and out.startswith("arm_can moves real motors:\n")
    assert "base: a relay of ± 1 N·m about its initial position\n" in out
    said(err)


def test_joints_that_make_others_oscillate_get_more_hysteresis(said: Said) -> None:
    """The period of the shoulder wanders without it, as the joints that are held oscillate along."""
    rig = load_rig(FOLDER / "arm_sim.yaml", ["schedule.realtime=no"])
    base, shoulder = measure_relay(rig, rig, ["base", "shoulder"], RelayRequest(), refuse)
    assert base.hysteresis == 0.0 and shoulder.hysteresis > 0.0
    for point in (base, shoulder):
        assert abs(point.plant - point.linear) < 0.06 * abs(point.linear), point.joint
    said(refusal(measure_relay, rig, rig, ["shoulder"], RelayRequest(hysteresis=0.0), refuse))
