"""Proofs of units by least squares: right units are proven, wrong ones found with their factor."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.control import unit_proof
from cosim.control.differentiated import SampleTrack, followed
from cosim.control.differentiated import initial as initial_track
from cosim.control.unit_proof import UnitSample

STEP, TICKS = 2e-3, 2000
VELOCITY, TIMES = "reports a velocity that is", "times the change of its position"
EFFORT = "reports {factor} times the effort that it is commanded"
RPM, DEGREES = "rpm and rad/s, or a unit and its tenths", "degrees and radians, or per minute and per second"
T = STEP * np.arange(TICKS)
RNG = np.random.default_rng(7)


def motion(amplitude: float = 0.3, frequency: float = 0.7) -> dict[str, np.ndarray]:
    """A joint of 0.02 kg·m² that follows an effort, (k,) each."""
    w = 2.0 * np.pi * frequency
    q, v, a = amplitude * (1 - np.cos(w * T)), amplitude * w * np.sin(w * T), amplitude * w * w * np.cos(w * T)
    work = np.concatenate([[0.0], np.cumsum(0.5 * 0.02 * (a[1:] + a[:-1]) * np.diff(q))])
    return {"position": q, "velocity": v, "effort": 0.02 * a, "commanded": q, "request": 0.02 * a, "work": work}


def lagged(x: np.ndarray, time: float) -> np.ndarray:
    """Through a filter of the first order."""
    y = np.zeros_like(x)
    for k in range(1, len(x)):
        y[k] = x[k] + (y[k - 1] - x[k]) * np.exp(-STEP / time)
    return y


def outcome(closed: bool, signals: dict[str, np.ndarray], interval: np.ndarray | None = None):
    """(what is wrong or "", which proofs are done) of one joint after all ticks, or at its stop."""
    mode = np.array([closed])
    state, track = unit_proof.initial(1), SampleTrack(**initial_track(1))
    since = np.full(TICKS, STEP) if interval is None else interval
    for k in range(TICKS):
        sample = UnitSample(**{name: values[k : k + 1] for name, values in signals.items()})
        track = followed(track, sample.position, since[k : k + 1], STEP, k == 0)
        state, worst = unit_proof.updated(state, sample, since[k : k + 1], track.noise, STEP, mode, k < 2)
        if worst.item() > 1.0:
            break
    proofs = [row[0] for row in unit_proof.proofs_of(mode)]
    wrong, _ = unit_proof.finding(proofs, unit_proof.BLOCKS, state["sums"][..., 0], state["proven"][:, 0])
    return wrong, state["proven"][:, 0].tolist()


@pytest.mark.parametrize("closed", [False, True])
def test_right_units_are_proven(closed):
    assert outcome(closed, motion()) == ("", [1.0, 1.0, 1.0])


@pytest.mark.parametrize("closed", [False, True])
def test_lags_noise_and_counts_are_no_wrong_units(closed):
    x = motion()
    x["velocity"] = 0.024 * np.trunc(lagged(x["velocity"], 0.05) / 0.024)
    x["effort"] = lagged(x["effort"], 0.01) + RNG.normal(0.0, 0.005, TICKS)
    x["commanded"] = np.concatenate([x["position"][40:], np.full(40, x["position"][-1])])  # 80 ms ahead
    x["position"] = np.round(x["position"] / 1.5e-3) * 1.5e-3
    wrong, proven = outcome(closed, x)
    assert wrong == "" and proven[0] == 1.0


def test_dry_friction_is_no_wrong_unit():
    x = motion()
    x["effort"] = x["request"] = x["effort"] + 0.3 * np.sign(x["velocity"])  # five times what the motion takes
    assert outcome(False, x) == ("", [1.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("name", "factor", "says", "asks"),
    [
        ("velocity", 60 / (2 * np.pi), f"{VELOCITY} 9.549 {TIMES} (9.07 to 10)", f"{RPM} mixed up"),
        ("velocity", 2 * np.pi / 60, f"{VELOCITY} 0.1047 {TIMES} (0.0995 to 0.11)", f"{RPM} mixed up"),
        ("velocity", 180 / np.pi, f"{VELOCITY} 57.3 {TIMES} (54.4 to 60.2)", f"{DEGREES} mixed up"),
        ("velocity", 7.0, f"{VELOCITY} 7 {TIMES} (6.65 to 7.35)", "a gear ratio, pole pairs or counts"),
        ("velocity", -1.0, f"{VELOCITY} -1 {TIMES} (-1.05 to -0.95)", "a wrong sign"),
        ("effort", 1000.0, f"{EFFORT} (950 to 1.05e+03)", "a unit and its thousandths mixed up"),
        ("effort", 9.80665, f"{EFFORT} (9.32 to 10.3)", "kgf and N, or a unit and its tenths mixed up"),
        ("effort", -1.0, f"{EFFORT} (-1.05 to -0.95)", "a wrong sign"),
    ],
)  # fmt: skip
def test_a_wrong_unit_is_found_with_its_factor(name, factor, says, asks):
    x = motion()
    x[name] = factor * x[name]
    assert outcome(False, x)[0] == f"{says.format(factor=f'{factor:.4g}')}: {asks}?"


def test_a_command_in_another_unit_is_found():
    x = motion()
    x["commanded"] = x["commanded"] / 13.0
    says = "moves 13 times as far as it is commanded (12.3 to 13.7): a gear ratio, pole pairs or counts?"
    assert outcome(True, x)[0] == says


def test_an_effort_in_another_unit_is_found_by_the_model_where_the_drive_closes_the_loop():
    x = motion()
    x["effort"] = 1000.0 * x["effort"]
    assert "times the effort that the model requires for its motion" in outcome(True, x)[0]


def test_efforts_that_are_too_small_for_the_model_say_nothing():
    x = motion()
    x["effort"] = 0.001 * x["effort"]
    assert outcome(True, x) == ("", [1.0, 1.0, 0.0])


@pytest.mark.parametrize("wrong", [{"velocity": 0.0}, {"velocity": 9.5, "effort": 1000.0}])
def test_without_motion_nothing_is_known(wrong):
    x = {name: 0.0 * values for name, values in motion().items()}
    x["position"] = RNG.normal(0.0, 1e-4, TICKS)
    x |= {name: factor * RNG.normal(0.0, 1e-3, TICKS) for name, factor in wrong.items()}
    wrong_unit, proven = outcome(False, x)
    assert wrong_unit == "" and proven[0] == proven[2] == 0.0


def test_a_drive_that_reports_no_effort_is_judged_by_its_velocity_alone():
    x = motion()
    x["effort"] = np.full(TICKS, np.nan)
    assert outcome(False, x) == ("", [1.0, 0.0, 0.0])


def test_blocks_with_a_late_sample_do_not_count():
    """Of every second sample that is late, no block is left."""
    interval = np.tile([STEP, 9 * STEP], TICKS // 2)
    x = motion()
    x["velocity"] = 9.5 * x["velocity"]
    assert outcome(False, x, interval)[0] == ""


def test_what_was_proven_stays_so():
    x = motion()
    x["velocity"] = np.where(T > 2.0, 9.5, 1.0) * x["velocity"]
    assert outcome(False, x)[0] == ""
