"""Logs with uneven rows: their derivatives are as good as an even log's, and the numbers lie in their intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cosim import load_rig
from cosim.apps.identification.identification import identify
from cosim.apps.identification.recorded_motion import RecordedMotion, default_cutoff, read_motion, samples_of
from tests.identification import pendulum
from tests.kit.refusals import refusal
from tests.tables.uneven_logs import GAPS, JITTERS, position, written

SOURCES = ("effort",)


@pytest.fixture(scope="module")
def rig(tmp_path_factory):
    path = tmp_path_factory.mktemp("pendulum") / "rig.yaml"
    path.write_text(pendulum.RIG)
    return load_rig(path)


def errors(motion: RecordedMotion, cutoff: float) -> tuple[np.ndarray, int]:
    """(root mean squares of the errors of velocity and acceleration, number of samples)"""
    of = samples_of(motion, cutoff)
    t, kept = of.t[of.kept], of.kept
    pairs = ((of.velocity[kept, 0], position(t, 1)), (of.acceleration[kept, 0], position(t, 2)))
    return np.array([np.sqrt(np.mean((found - true) ** 2)) for found, true in pairs]), len(kept)


@pytest.mark.parametrize("rubbish", ["none", "nan", "spikes"])
@pytest.mark.parametrize("gaps", GAPS)
@pytest.mark.parametrize("jitter", [name for name in JITTERS if name != "even"])
def test_derivatives_are_as_good_as_of_an_even_log(rig, tmp_path, jitter, gaps, rubbish):
    """Of the even log of the same motion, averaged over the same intervals: what is left is the filter's own error."""
    motion = read_motion(rig, written(tmp_path, jitter, gaps, rubbish, ".csv").path, SOURCES)
    step = motion.window / 20
    t = np.arange(motion.t[0] - motion.window / 2, motion.t[-1] + motion.window, step)
    means = position(t)[: len(t) // 20 * 20].reshape(-1, 20).mean(axis=1)[: len(motion.t)]
    even = replace(motion, position=means[:, None], gaps=())
    cutoff = default_cutoff(motion)
    of_even, all_samples = errors(even, cutoff)
    found, samples = errors(motion, cutoff)
    assert (found < 1.1 * of_even + [2e-3, 5e-2]).all(), (found, of_even)
    assert samples == all_samples if not motion.gaps else 0.3 * all_samples < samples < all_samples


def test_what_is_in_a_gap_does_not_count(rig, tmp_path):
    """Whatever is put between the rows around it: every sample that is left stays as it was, to the bit."""
    motion = read_motion(rig, written(tmp_path, "jitter", "many", "none", ".csv").path, SOURCES)
    assert len(motion.gaps) == 3
    half = 0.5 * motion.window
    inside = np.zeros(len(motion.t), dtype=bool)
    for begin, end in motion.gaps:
        inside |= (motion.t + half > begin) & (motion.t - half < end)
    spoiled = replace(motion, position=motion.position.copy(), drive=motion.drive.copy())
    spoiled.position[inside] += 1e3
    spoiled.drive[inside] -= 1e3
    for delay in (0.0, 0.03):
        first, second = (samples_of(of, default_cutoff(motion), delay) for of in (motion, spoiled))
        np.testing.assert_array_equal(first.kept, second.kept)
        for name in ("position", "velocity", "acceleration", "drive", "drive_rate"):
            of_first, of_second = (of.smoothed(getattr(of, name)) for of in (first, second))
            np.testing.assert_array_equal(of_first, of_second, err_msg=name)
        np.testing.assert_array_equal(first.moving, second.moving)


def thinned(seed: int, jitter: str) -> dict[str, np.ndarray]:
    """The motion of a pendulum of 2 ms rows, of which some are left."""
    columns = pendulum.motion(seed)
    rng = np.random.default_rng(seed)
    steps = {
        "jitter": rng.integers(4, 7, 4000),
        "bursts": np.tile([1, 1, 1, 5], 2000),
        "slow": rng.integers(5, 9, 4000),
    }
    rows = np.cumsum(steps[jitter])
    t = columns["t"]
    rows = rows[rows < len(t)]
    rows = rows[(t[rows] < 6.0) | (t[rows] > 6.5)]
    return {name: values[rows] for name, values in columns.items()}


@pytest.mark.parametrize("jitter", ["jitter", "bursts", "slow"])
def test_the_numbers_of_an_uneven_log_lie_in_their_intervals(rig, tmp_path, jitter):
    path = pendulum.write(tmp_path / "f.csv", thinned(0, jitter))
    found = identify(rig, path)
    assert not found.failure
    assert [note for note in found.motion.notes if "uneven" in note]
    assert [note for note in found.motion.notes if note.startswith("1 gap")]
    assert any(line.startswith("note      rows are uneven") for line in found.lines())
    assert found.as_json()["notes"] == list(found.motion.notes)
    numbers = {number.name: number for number in found.numbers}
    for name, true in (("damping", pendulum.DAMPING), ("friction", pendulum.FRICTION)):
        number = numbers[f"mechanism.pivot.{name}"]
        assert abs(number.value - true) < 2.0 * number.interval, number
        assert number.interval < 0.4 * true
    mass, com = numbers["mechanism.bob.mass"].value, numbers["mechanism.bob.com.z"].value
    assert -mass * com == pytest.approx(pendulum.MASS * pendulum.LENGTH, rel=0.015)


def test_an_even_log_stays_to_the_bit(rig, tmp_path):
    columns = pendulum.motion()
    path = tmp_path / "f.npz"
    np.savez(path, **columns)  # type: ignore[arg-type]
    motion = read_motion(rig, path, SOURCES)
    np.testing.assert_array_equal(motion.t, columns["t"])
    np.testing.assert_array_equal(motion.position[:, 0], columns["pivot/position"])
    np.testing.assert_array_equal(motion.drive[:, 0], columns["pivot/effort"])
    assert (motion.window, motion.gaps, motion.notes) == (0.0, (), ())


def test_gaps_that_leave_too_little(rig, tmp_path, said):
    columns = thinned(0, "jitter")
    kept = (columns["t"] % 0.5) < 0.42
    path = pendulum.write(tmp_path / "f.csv", {name: values[kept] for name, values in columns.items()})
    said(refusal(identify, rig, path))
