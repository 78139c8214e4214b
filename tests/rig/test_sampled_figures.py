"""Figures of a real joint come from its samples: one figure per sample, at the time at which it was taken."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cosim.apps.scenario.armed_rig import ArmedRig
from cosim.execution.hardware.emulation.fault_injection import FaultInjection
from cosim.output.signal_statistics import BLOCK, SignalStatistics
from cosim.rig.run.run_metadata import run_metadata_of
from cosim.rig.run.summary import _joint, followed_signals, sampled_signals
from cosim.rig.sections.rig_spec import read_rig
from tests.kit.samples import FOLDER

PAUSE, STALE = 40, "60 ms"  # ticks without an answer
JOINTS = ("base", "shoulder", "elbow")


def random_samples(rows=3 * BLOCK + 77, seed=1):
    """(k, 3): time of a sample, and two values that are held between samples, one of them with noise between."""
    rng = np.random.default_rng(seed)
    new = rng.uniform(size=rows) < 0.4
    new[0] = True
    last = np.maximum.accumulate(np.where(new, np.arange(rows), 0))
    times, values = 1e-3 * last, rng.normal(size=rows)
    return new, np.column_stack([times, values[last], np.where(new, values, 100.0 * rng.normal(size=rows))])


@pytest.mark.parametrize("parts", [1, 7, 500])
def test_what_is_measured_counts_once_per_sample(parts):
    new, rows = random_samples()
    followed = {name: (name, None) for name in ("held", "noise")}
    statistics = SignalStatistics(("time", "held", "noise"), followed, dict.fromkeys(followed, "time"))
    for block in np.array_split(rows, parts):
        statistics.add(block)
    for name, column in (("held", 1), ("noise", 2)):
        values, found = rows[new, column], statistics.by_name()[name]
        assert (found.min, found.max) == (values.min(), values.max())
        assert found.rms == pytest.approx(math.sqrt(np.mean(values**2)), rel=1e-12)
    again = SignalStatistics.of(statistics.names, statistics.count, statistics.figures)
    assert again.by_name() == statistics.by_name()
    assert SignalStatistics(("time",), {}, {}).figures.shape == (6, 0)


@pytest.fixture(scope="module")
def late():
    """(the armed rig, its signals (k, n)) of the arm, whose drives do not answer for a while at full speed."""
    armed = ArmedRig(read_rig(FOLDER / "arm_can.yaml", [f"guard.stale={STALE}"]), [])
    armed.begin()
    try:
        rows = [armed.run(1100)[0]]
        drop = FaultInjection("drop", armed.rig.spec.drivers[0].name, "", 0.0, "", 1.0, 0.0, 9.0, 1.0, 0.0, 0.0, "")
        for faults, ticks in (([drop], PAUSE), ([], 160)):
            armed.inject(faults)
            rows.append(armed.run(ticks)[0])
        return armed, armed.signals(np.concatenate(rows))
    finally:
        armed.close()


def test_the_figures_of_a_run_with_late_feedback_are_those_of_its_samples(late):
    armed, values = late
    column = {name: values[:, k] for name, k in armed.names.items()}
    assert len(values) == 1260 + PAUSE
    metadata = run_metadata_of(armed.rig)
    statistics = SignalStatistics(
        tuple(armed.names), followed_signals(metadata, armed.names), sampled_signals(metadata, armed.names)
    )
    statistics.add(values)
    figures = statistics.by_name()
    for joint in JOINTS:
        time = column[f"{joint}/sample_time"]
        new = np.diff(time, prepend=np.nan) != 0.0
        assert len(time) - new.sum() == pytest.approx(PAUSE, abs=2)
        errors = column[f"{joint}/measured_error"][new]
        found = _joint(metadata, figures, joint)
        assert found["error_max"] == np.abs(errors).max()
        assert found["error_rms"] == pytest.approx(np.sqrt(np.mean(errors**2)), rel=1e-9)
        assert found["speed_max"] == np.abs(column[f"{joint}/measured_velocity"]).max()
        assert found["position_max"] == column[f"{joint}/measured_position"].max()
        # the error is that at the time of the sample, the reference of which is between those of two ticks
        at = np.interp(time[new], np.arange(len(time)) * armed.step, column[f"{joint}/reference_position"])
        np.testing.assert_allclose(errors, at - column[f"{joint}/measured_position"][new], rtol=0, atol=1e-5)


def test_the_estimate_stays_close_to_the_last_sample_while_none_comes(late):
    armed, values = late
    for joint in JOINTS:
        position, measured = (values[:, armed.names[f"{joint}/{what}"]] for what in ("position", "measured_position"))
        speed = np.abs(values[:, armed.names[f"{joint}/measured_velocity"]]).max()
        # 4 time constants of the observer, two ticks and a half, and one of the row
        reach = 1.1 * speed * (4.0 / (2.0 * math.pi * 50.0) + 3.5e-3)
        silent = np.diff(values[:, armed.names[f"{joint}/sample_time"]], prepend=np.nan) == 0.0
        assert silent.sum() >= PAUSE - 2 and np.abs(position - measured)[silent].max() <= reach
