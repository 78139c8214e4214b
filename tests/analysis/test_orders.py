"""The orders of signals: waves of known amplitudes, and a drive whose ripple has a closed form."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from cosim.apps.analysis.orders import orders_of, signal_orders
from cosim.core.errors import InputError
from tests.kit.messages import Said
from tests.kit.refusals import raised
from tests.kit.samples import FOLDER

RIG = str(FOLDER / "drives" / "misaligned_encoder.yaml")


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_waves_have_their_amplitudes_whatever_the_speed_and_the_start(sign: float) -> None:
    """While the speed rises, and over turns that are not whole."""
    t = np.linspace(0.0, 1.0, 4001)
    angle = sign * (0.7 + 20.0 * t + 9.0 * t * t)  # 4.6 turns
    values = 3.0 + 0.5 * np.sin(angle + 0.2) + 0.03 * np.cos(7.0 * angle) + 0.004 * np.sin(24.0 * angle - 1.0)
    amplitudes, turns = orders_of(angle, values)
    assert turns == 4 and len(amplitudes) > 100
    expected = np.zeros(len(amplitudes))
    expected[[0, 1, 7, 24]] = 3.0, 0.5, 0.03, 0.004
    assert amplitudes == pytest.approx(expected, abs=1e-6)


def test_a_wave_beyond_the_highest_order_has_none_below() -> None:
    """The ticks see 40 waves per turn; no order is listed of which they see less than four ticks."""
    angle = np.linspace(0.0, 6.0 * math.pi, 3 * 160 + 1)
    amplitudes, turns = orders_of(angle, np.sin(50.0 * angle))
    assert turns == 3 and len(amplitudes) == 41
    assert amplitudes.max() < 0.02


def test_the_command_lists_them(command, tmp_path: Path) -> None:
    """p e tan δ of the torque once per turn of the motor, less what the velocity loop takes away."""
    figures = tmp_path / "orders.json"
    words = ("analyze", RIG, "--orders", "wrong/effort_setpoint,right/velocity", "--at", "700 ms", "--json")
    code, out, err = command(*words, str(figures))
    assert (code, err) == (0, [])
    assert "wrong/effort_setpoint  5 turns, orders up to 25, mean 1.35 N·m" in out
    found = json.loads(figures.read_text())
    wrong = found["wrong/effort_setpoint"]["amplitudes"]
    disturbing = wrong[0] * math.sin(math.radians(20.0)) * 4.0 * math.radians(1.0)
    s = 62.832j
    loop = 0.1 * (1.0 + 1.0 / (0.05 * s))
    closed = loop / (math.cos(math.radians(20.0)) * loop + 2.1e-3 * s + 0.02)
    assert wrong[1] == pytest.approx(disturbing * abs(closed), rel=0.02)
    assert max(found["right/velocity"]["amplitudes"][1:]) < 1e-6
    assert found["right/velocity"]["unit"] == "rad/s"


def test_a_recorded_run_has_those_of_the_run(command, tmp_path: Path) -> None:
    recording = tmp_path / "run.mcap"
    assert command("run", RIG, "--record", str(recording))[0] == 0
    words = ("--orders", "wrong/velocity", "--at", "0.7", "--json", "-")
    of_rig, of_run = (json.loads(command("analyze", path, *words)[1]) for path in (RIG, str(recording)))
    assert of_run == of_rig


@pytest.mark.parametrize(
    ("signal", "begin"),
    [
        ("wrong/velocty", 0.7),
        ("energy/kinetic", 0.7),
        ("wrong/velocity", 0.0),
        ("wrong/velocity", 1.15),
        ("wrong/velocity", 3.0),
    ],
)
def test_what_has_no_orders_is_refused(sample, said: Said, signal: str, begin: float) -> None:
    run = sample("drives/misaligned_encoder").run()
    said(str(raised(InputError, signal_orders, run, [signal], begin)))


def test_a_joint_that_slides_has_no_turns(sample, said: Said) -> None:
    run = sample("drives/stepper_axis").run(0.1)
    said(str(raised(InputError, signal_orders, run, ["slide/velocity"])))


def test_options_that_have_no_effect_are_refused(command, said: Said) -> None:
    code, _, err = command("analyze", RIG, "--orders", "wrong/velocity", "--plot", "x.png")
    assert code == 2
    said(err)
