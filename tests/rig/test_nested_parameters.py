"""Gains of schedules and numbers of filters as parameters that change in a run."""

from __future__ import annotations

import numpy as np
import pytest

from cosim import load_rig
from cosim.errors import InputErrors
from cosim.rig.parameters import unit_of
from cosim.rig.reading.overlay import read_overlay
from cosim.rig.recorded_run import Change
from cosim.tuning.tune import tune
from tests.controllers.arms import arm

CONTROLLER = """{name: arm, type: feedforward_pd, kd: 12,
    kp: {gains: [[400, 200], [600, 300]], over: {signal: elbow/position, values: [-40 deg, 50 deg]}},
    filters: [{type: notch, frequency: 40 Hz, width: 10 Hz, joints: [elbow]}, {type: low_pass, frequency: 150 Hz}],
    trajectory: {type: quintic, goal: [20 deg, -40 deg], duration: 0.3 s}}"""
NAMES = ("arm.filters.0.frequency", "arm.filters.0.width", "arm.filters.0.depth", "arm.filters.1.frequency")


def filtered(folder, duration=0.3, push="{size: 4, frequency: 30}", interpret=False):
    return arm(folder, CONTROLLER, push, duration=duration, interpret=interpret)


def test_their_names_values_and_units(tmp_path):
    rig = filtered(tmp_path)
    assert rig.parameters["arm.filters.0.frequency"] == [40.0]
    assert rig.parameters["arm.filters.1.frequency"] == [150.0, 150.0]
    assert rig.parameters["arm.kp.gains.1"] == [600.0, 300.0] and "arm.kp" not in rig.parameters
    units = [unit_of(rig, name) for name in (*NAMES[:3], "arm.kp.gains.0")]
    assert units == ["Hz", "Hz", "1", "N*m/rad"]


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize(
    ("name", "value"), [("filters.0.frequency", 25.0), ("filters.1.frequency", 60.0), ("kp.gains.1", [900.0, 500.0])]
)
def test_a_value_that_is_set_is_that_of_a_file_with_it(tmp_path, name, value, interpret):
    rig = filtered(tmp_path, 0.1, interpret=interpret)
    before = rig.run().values
    rig.set(f"arm.{name}", value)
    other = load_rig(tmp_path / "rig.yaml", [f"controllers.arm.{name}={value}"], interpret=interpret)
    changed = rig.run().values
    assert np.abs(changed - before).max() > 1e-4
    np.testing.assert_allclose(changed, other.run().values, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [*NAMES, "arm.kp.gains.0"])
def test_its_gradient_is_that_of_differences(tmp_path, name):
    rig, h = filtered(tmp_path), 1e-4
    start = np.atleast_1d(rig.parameters[name]) + (0.1 if name.endswith("depth") else 0.0)
    rig.set(name, start.tolist())
    slope = np.sum(rig.gradient("error_rms", [name])[name])
    batch = rig.rollouts(parameters={name: np.array([start - h, start + h])}, metrics=["error_rms"])
    low, high = np.sum(batch["error_rms"], axis=1)
    assert slope == pytest.approx((high - low) / (2.0 * h), rel=1e-3, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("arm.filters.0.frequency", -1.0, "must be above 0 Hz, is -1 Hz"),
        ("arm.filters.0.depth", 2.0, "must be at most 1, is 2"),
        (
            "arm.filters.1.frequency",
            500.0,
            "500 Hz of joint 'shoulder' is not below half the rate of the controller, 500 Hz; lower it, or shorten "
            "the period",
        ),
        ("arm.kp.gains.0", -1.0, "must be at least 0 N*m/rad, is -1 N*m/rad"),
        ("arm.filters.2.frequency", 1.0, "there is no such parameter; did you mean 'arm.filters.1.frequency'?"),
    ],
)
def test_what_a_file_could_not_have_is_refused(tmp_path, name, value, what):
    rig = filtered(tmp_path)
    with pytest.raises(InputErrors) as error:
        rig.set(name, value)
    assert str(error.value).endswith(what)


def test_a_filter_that_is_changed_in_a_run_does_not_jump(tmp_path):
    """The effort goes on from the history of the filter: its step at the change is not larger than those around it."""
    rig, tick = filtered(tmp_path), 150
    plain = rig.run()
    changed = rig.run(changes=[Change(tick, "arm.filters.1.frequency", (40.0, 40.0))])
    ends = [run["elbow/effort"] for run in (plain, changed)]
    np.testing.assert_array_equal(ends[1][:tick], ends[0][:tick])
    assert np.abs(ends[1][tick:] - ends[0][tick:]).max() > 0.01
    steps = np.abs(np.diff(ends[1][tick - 40 : tick + 40]))
    assert steps[39] <= 1.5 * max(steps[:39].max(), steps[42:].max())


def test_what_tune_finds_is_loaded_from_its_overlay(tmp_path):
    rig = filtered(tmp_path, 0.2)
    ranges = {"arm.filters.1.frequency/elbow": "160..400", "arm.kp.gains.0/elbow": "250..800"}
    session = tune(rig, ranges, ["error_rms"], trials=6, seed=1, folder=tmp_path / "session")
    loaded = load_rig(tmp_path / "rig.yaml", read_overlay(tmp_path / "session" / "gains.yaml"))
    found = session.best.values
    assert loaded.parameters["arm.filters.1.frequency"][1] == pytest.approx(found[0], rel=1e-9)
    assert loaded.parameters["arm.kp.gains.0"][1] == pytest.approx(found[1], rel=1e-9)
    assert 160.0 <= found[0] <= 400.0 and 250.0 <= found[1] <= 800.0
