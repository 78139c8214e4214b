"""Gains of schedules and numbers of filters as parameters that change in a run."""

from __future__ import annotations

import numpy as np
import pytest

from cosim import load_rig
from cosim.apps.tuning.tune import tune
from cosim.rig.parameter_table import table_of
from cosim.rig.reading.yaml_source import read_overlay
from cosim.rig.run.recorded_run import Change
from tests.controllers.arms import arm
from tests.kit.refusals import refusal

CONTROLLER = """{name: arm, type: feedforward_pd, kd: 12,
    kp: {gains: [[400, 200], [600, 300]], over: {signal: elbow/position, values: [-40 deg, 50 deg]}},
    filters: [{type: notch, frequency: 40 Hz, width: 10 Hz, joints: [elbow]}, {type: low_pass, frequency: 150 Hz}],
    trajectory: {type: quintic, goal: [20 deg, -40 deg], duration: 0.3 s}}"""
NAMES = ("arm.filters.0.frequency", "arm.filters.0.width", "arm.filters.0.depth", "arm.filters.1.frequency")


def filtered(folder, duration=0.3, push="{size: 4, frequency: 30}", interpret=False):
    return arm(folder, CONTROLLER, push, duration=duration, interpret=interpret)


@pytest.fixture(scope="module")
def rig(tmp_path_factory):
    return filtered(tmp_path_factory.mktemp("arm"))


def test_their_names_values_and_units(rig):
    assert rig.parameters["arm.filters.0.frequency"] == [40.0]
    assert rig.parameters["arm.filters.1.frequency"] == [150.0, 150.0]
    assert rig.parameters["arm.kp.gains.1"] == [600.0, 300.0] and "arm.kp" not in rig.parameters
    units = [table_of(rig).live[name].unit for name in (*NAMES[:3], "arm.kp.gains.0")]
    assert units == ["Hz", "Hz", "1", "N*m/rad"]


@pytest.mark.parametrize("interpret", [False, True])
def test_a_value_that_is_set_is_that_of_a_file_with_it(tmp_path, interpret):
    rig, duration = filtered(tmp_path, interpret=interpret), 0.03 if interpret else 0.1
    given = {"filters.0.frequency": 25.0, "filters.1.frequency": 60.0, "kp.gains.1": [900.0, 500.0]}
    found = rig.run(duration).values
    for name, value in given.items():
        before = found
        rig.set(f"arm.{name}", value)
        found = rig.run(duration).values
        assert np.abs(found - before).max() > 1e-4
    overrides = [f"controllers.arm.{name}={value}" for name, value in given.items()]
    other = load_rig(tmp_path / "rig.yaml", overrides, interpret=interpret)
    np.testing.assert_allclose(found, other.run(duration).values, rtol=1e-9, atol=1e-9)


def test_their_gradients_are_those_of_differences(rig):
    h, names = 1e-4, [*NAMES, "arm.kp.gains.0"]
    start = {name: np.atleast_1d(rig.parameters[name]) + (0.1 if name.endswith("depth") else 0.0) for name in names}
    gradient = rig.gradient("error_rms", {name: values[None] for name, values in start.items()})
    for name in names:
        rows = {other: np.array([values] * 2) for other, values in start.items()}
        rows[name] = rows[name] + np.array([[-h], [h]])
        low, high = np.sum(rig.rollouts(parameters=rows, metrics=["error_rms"])["error_rms"], axis=1)
        slope = np.sum(gradient[name])
        assert slope == pytest.approx((high - low) / (2.0 * h), rel=1e-3, abs=1e-12), name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("arm.filters.0.frequency", -1.0),
        ("arm.filters.0.depth", 2.0),
        ("arm.filters.1.frequency", 500.0),
        ("arm.kp.gains.0", -1.0),
        ("arm.filters.2.frequency", 1.0),
    ],
)
def test_what_a_file_could_not_have_is_refused(rig, said, name, value):
    said(refusal(rig.set, name, value))


def test_a_filter_that_is_changed_in_a_run_does_not_jump(rig):
    """The effort goes on from the history of the filter: its step at the change is not larger than those around it."""
    tick, plain = 150, rig.run()
    changed = rig.run(changes=[Change(tick, "arm.filters.1.frequency", (40.0, 40.0))])
    ends = [run["elbow/effort"] for run in (plain, changed)]
    np.testing.assert_array_equal(ends[1][:tick], ends[0][:tick])
    assert np.abs(ends[1][tick:] - ends[0][tick:]).max() > 0.01
    steps = np.abs(np.diff(ends[1][tick - 40 : tick + 40]))
    assert steps[39] <= 1.5 * max(steps[:39].max(), steps[42:].max())


def test_what_tune_finds_is_loaded_from_its_overlay(tmp_path):
    rig = filtered(tmp_path, 0.2)
    ranges = {"arm.filters.1.frequency/elbow": "160..400", "arm.kp.gains.0/elbow": "250..800"}
    session = tune(rig, ranges, ["error_rms"], trials=4, seed=1, folder=tmp_path / "session")
    loaded = load_rig(tmp_path / "rig.yaml", read_overlay(tmp_path / "session" / "gains.yaml"))
    found = session.best.values
    assert loaded.parameters["arm.filters.1.frequency"][1] == pytest.approx(found[0], rel=1e-9)
    assert loaded.parameters["arm.kp.gains.0"][1] == pytest.approx(found[1], rel=1e-9)
    assert 160.0 <= found[0] <= 400.0 and 250.0 <= found[1] <= 800.0
