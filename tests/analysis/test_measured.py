"""Loops measured by experiments equal the linear rig's, in software and from recordings; what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest

from cosim import InputError, load_rig
from cosim.apps.analysis.experiment import at_rest, measure
from cosim.apps.analysis.linearisation import linearise
from cosim.apps.analysis.measured import beside, measured_response
from tests.kit.messages import Said
from tests.kit.refusals import raised
from tests.kit.samples import FOLDER

SERVO = """
name: servo
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: disk, joint: hinge, axis: [0, 0, 1], mass: 1 kg, inertia: [0.1, 0.1, 0.2]}]
joints: {hinge: {limits: {effort: 50}}}
controllers: [{name: hold, type: feedforward_pd, kp: 80, kd: 6}]
schedule: {step: 1 ms, duration: 1 s, integrator: rk4}
"""
J, KP, KD = 0.2, 80.0, 6.0


@pytest.fixture
def servo(tmp_path: Path) -> Path:
    path = tmp_path / "servo.yaml"
    path.write_text(SERVO)
    return path


@pytest.mark.parametrize(
    ("name", "kind"), [("ur5_sim", "multisine"), ("two_link", "chirp"), ("prescribed_wrist", "chirp")]
)
def test_a_measured_loop_is_that_of_the_linear_rig(name: str, kind: str) -> None:
    path = FOLDER / f"{name}.yaml"
    rig, settled = at_rest(path, ())
    linear = linearise(rig, settled)
    for joint in rig.spec.controllers[0].joints[: 2 if name == "two_link" else 1]:
        found = measure(path, (), linear, joint, kind, 1e-3)  # type: ignore[arg-type]
        assert found.gain_deviation < 0.5 and np.degrees(found.phase_deviation) < 3.0, joint
        hertz = found.response.omega / (2.0 * np.pi)
        assert hertz[-1] > 0.3 / linear.step and len(hertz) > 20
        measured, expected = found.margins
        assert measured.phase == pytest.approx(expected.phase, rel=0.02)


STATES = {  # of controllers that are set in their first call
    "low pass": "feedforward_pd, kp: 80, kd: 6, filters: [{type: low_pass, frequency: 60 Hz}]",
    "notch": "feedforward_pd, kp: 80, kd: 6, filters: [{type: notch, frequency: 8 Hz, width: 4 Hz}]",
    "filtered derivative": "pid, kp: 80, ki: 40, kd: 6, derivative_filter: 30 Hz",
    "filtered velocity": "cascade, position_gain: 10, velocity_gain: 6, integral_time: 0.3 s, velocity_filter: 60 Hz",
    "disturbance": "disturbance_observer, bandwidth: 3 Hz, observer: 10 Hz",
    "estimator": "lqg, position_noise: 1e-4, effort_noise: 1, largest_position_error: 0.05, load_noise: 1",
}


@pytest.mark.parametrize("name", STATES)
def test_a_loop_with_states_in_the_controller_is_measured_at_the_drive(servo: Path, name: str) -> None:
    """At t = 0 too, where the controller has been called once: the loop is the same at every time."""
    servo.write_text(SERVO.replace("feedforward_pd, kp: 80, kd: 6", STATES[name]))
    rig, settled = at_rest(servo, ())
    linear, first = linearise(rig, settled), linearise(rig)
    found = measure(servo, (), linear, "hinge", "multisine", 0.05)
    assert found.gain_deviation < 0.5 and np.degrees(found.phase_deviation) < 3.0
    np.testing.assert_allclose(beside(found.response, first).linear, found.linear, rtol=1e-6)


@pytest.mark.parametrize("kind", ["multisine", "chirp"])
@pytest.mark.parametrize("phase", [0, 2])
def test_a_loop_of_a_slow_controller_is_measured_at_its_rate(servo: Path, kind: str, phase: int) -> None:
    servo.write_text(SERVO.replace("kd: 6", f"kd: 6, period: 5 ms, phase: {phase} ms"))
    rig, settled = at_rest(servo, ())
    linear = linearise(rig, settled)
    found = measure(servo, (), linear, "hinge", kind, None)  # type: ignore[arg-type]
    assert linear.ticks == 5 and found.response.omega[-1] > 0.3 * 2.0 * np.pi / linear.step
    assert found.gain_deviation < 0.5 and np.degrees(found.phase_deviation) < 3.0


def test_a_loop_of_the_textbook(servo: Path) -> None:
    """The loop of a double integrator with its sample held, broken at the effort: L(z) = P(z) (kp + kd (z − 1)/z …);
    here in the frequency domain, below a tenth of the rate."""
    rig, settled = at_rest(servo, ())
    found = measure(servo, (), linearise(rig, settled), "hinge", "multisine", None)
    s = 1j * found.response.omega
    slow = found.response.omega < 2.0 * np.pi * 20.0
    # of the drive's loop: it holds its effort for a tick
    continuous = (KP + KD * s) / (J * s**2) * np.exp(-s * 0.5e-3)
    np.testing.assert_allclose(np.abs(found.response.loop[slow] / continuous[slow]), 1.0, rtol=0.02)
    assert np.abs(np.degrees(np.angle(found.response.loop[slow] / continuous[slow]))).max() < 3.0
    assert found.response.deviation.max() < 1e-3


def test_the_experiment_of_an_overlay_is_measured_from_its_recording(
    command: Callable, servo: Path, tmp_path: Path
) -> None:
    overlay, recording, figures = (tmp_path / name for name in ("excited.yaml", "run.mcap", "loops.json"))
    out = command.prints("analyze", servo, "--joint", "hinge", "--amplitude", "0.5", "--excitation", overlay)
    assert out.startswith(f"wrote     overlay {overlay}: hinge for ") and out.endswith(" s with an effort of 0.5\n")
    assert command("run", servo, "--overlay", overlay, "--record", recording)[0] == 0
    out = command.prints("analyze", servo, "--recorded", recording, "--json", figures)
    row = next(line for line in out.splitlines() if line.startswith("hinge") and "|" in line)
    assert "Hz" in row and "±" in row
    measured = orjson.loads(figures.read_bytes())["measured"]["hinge"]
    assert measured["gain_deviation_db"] < 0.1 and measured["phase_deviation"] < 0.01
    assert len(measured["omega"]) == len(measured["measured"]["real"]) == len(measured["linear"]["imag"])


def test_experiments_of_all_loops_are_printed_and_drawn(command: Callable, tmp_path: Path) -> None:
    plot = tmp_path / "loops.svg"
    out = command.prints("analyze", FOLDER / "two_link.yaml", "--measure", "multisine", "--plot", plot)
    rows = [line.split()[0] for line in out.splitlines() if " | " in line]
    assert rows == ["measured", "shoulder", "elbow"]
    assert plot.stat().st_size > 10_000


def refusal(command: Callable, *words: object) -> str:
    code, out, err = command("analyze", *words)
    assert code == 2 and len(err) == 1, (code, out, err)
    return err[0]


@pytest.mark.parametrize(
    "words",
    [
        "--measure multisine --at 1",
        "--measure multisine --amplitude 0",
        "--excitation e.yaml",
        "--joint hinges --excitation e.yaml",
    ],
)
def test_wrong_options(command: Callable, servo: Path, words: str, said: Said) -> None:
    said(command.refuses("analyze", servo, *words.split()))
    assert not Path("e.yaml").exists()


def test_rigs_that_cannot_be_measured(command: Callable, servo: Path, said: Said) -> None:
    servo.write_text(SERVO.replace("joints: {hinge: {limits: {effort: 50}}}\n", ""))
    said(refusal(command, servo, "--measure", "chirp"))
    slow = SERVO.replace("{limits: {effort: 50}}", "{limits: {effort: 50, velocity: 0.001}}")
    servo.write_text(slow + "guard: {actions: {velocity: stop}}\n")
    said(refusal(command, servo, "--measure", "multisine"), "stopped at tick .*? rad/s,")
    said(refusal(command, FOLDER / "pendulum_chain.yaml", "--measure", "chirp"))


SWEEP = "type: chirp, of: effort, f0: 1, f1: 9, duration: 0.1 s"


def test_recordings_of_no_experiment(command: Callable, servo: Path, tmp_path: Path, said: Said) -> None:
    two_link, run = FOLDER / "two_link.yaml", tmp_path / "run.mcap"
    one, both = (f"controllers.swing.trajectory={{{SWEEP}, amplitude: {size}}}" for size in ("[0, 1]", "1"))
    for rig, keys, evaluated in ((servo, [], servo), (two_link, [both], two_link), (two_link, [one], servo)):
        load_rig(rig, keys).run(0.2, record=run)
        said(refusal(command, evaluated, "--recorded", run))


def test_ticks_that_are_missing(servo: Path) -> None:
    run = load_rig(servo, [f"controllers.hold.trajectory={{{SWEEP}, amplitude: 1}}"]).run(0.2)
    kept = np.delete(np.arange(len(run.t)), [50, 51])
    holed = replace(run, t=run.t[kept], values=run.values[kept])
    assert str(raised(InputError, measured_response, holed, 1e-3)).endswith(
        ": 2 ticks are missing; measure again on a quieter machine"
    )


def test_counts_of_an_encoder_make_frequencies_uncertain_and_leave_them_out(servo: Path, command: Callable) -> None:
    servo.write_text(SERVO.replace("{limits:", "{encoder: {cpr: 4096}, limits:"))
    rig, settled = at_rest(servo, ())
    linear = linearise(rig, settled)
    unseen, coarse = (measure(servo, (), linear, "hinge", "multisine", size) for size in (0.02, 20.0))
    assert not unseen.trusted.any() and np.isnan(unseen.gain_deviation)
    far = np.abs(20.0 * np.log10(np.abs(coarse.response.loop / coarse.linear)))
    assert far.max() > 6.0 and 5 < coarse.trusted.sum() < len(far)
    assert coarse.gain_deviation == far[coarse.trusted].max() < 1.0
    code, out, err = command("analyze", servo, "--measure", "multisine", "--amplitude", "20", "--json", "f.json")
    (line,) = [line for line in out.splitlines() if line.startswith("warning")]
    assert (code, err) == (0, []) and line.startswith("warning   hinge: the loop gain is uncertain by more than 10% at")
    fix = "more --amplitude drowns counts of encoders and noise, less avoids friction and limits"
    assert line.endswith(f" Hz, left out of the deviations; {fix}")
    data = orjson.loads(Path("f.json").read_bytes())["measured"]["hinge"]
    assert data["trusted"] == coarse.trusted.tolist() and len(data["uncertainty"]) == len(far)


def test_a_linear_rig_is_certain_at_all_frequencies(servo: Path) -> None:
    rig, settled = at_rest(servo, ())
    found = measure(servo, (), linearise(rig, settled), "hinge", "multisine", 1e-3)
    assert found.trusted.all() and found.warning == "" and found.uncertainty.max() < 0.01
