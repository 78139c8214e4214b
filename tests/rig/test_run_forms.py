"""A run in other forms: pickled, saved and loaded, as data frame, data set, figure and page; two runs compared."""

from __future__ import annotations

import dataclasses
import math
import pickle

import numpy as np
import pytest

from cosim import compare, load_run
from cosim.rig.rig import Rig
from cosim.rig.run.run import StoppedRun
from tests.kit.refusals import raised, refusal
from tests.rig.test_parameters import ARM

MOVING = {
    **ARM,
    "controllers": [
        {
            **ARM["controllers"][0],
            "type": "pid",
            "ki": 1.0,  # its other parameter is infinite
            "trajectory": {"type": "quintic", "goal": [0.3, 0.2], "duration": 0.1},
        }
    ],
}


@pytest.fixture(scope="module")
def rig():
    return Rig.from_dict(MOVING)


@pytest.fixture(scope="module")
def run(rig):
    return rig.run()


def same(a, b):
    """Whether two runs are equal in everything that is saved."""
    np.testing.assert_array_equal(a.values, b.values)
    np.testing.assert_array_equal(a.t, b.t)
    for field in dataclasses.fields(a):
        if field.name not in ("t", "values", "timing", "statistics"):
            assert getattr(a, field.name) == getattr(b, field.name), field.name
    assert a.summary == b.summary


def test_a_run_is_shown_pickled_and_saved(run, tmp_path):
    assert repr(run) == f"<Run arm: 0.2 s, {len(run.signals)} signals, finished>"
    same(pickle.loads(pickle.dumps(run)), run)
    run.save(tmp_path / "a.npz")
    same(load_run(tmp_path / "a.npz"), run)


def test_a_real_time_run_is_saved_with_its_timing(tmp_path):
    run = Rig.from_dict(ARM, realtime=True).run(0.05)
    run.save(tmp_path / "a.npz")
    again = load_run(tmp_path / "a.npz")
    same(again, run)
    assert again.timing.summary() == run.timing.summary()
    assert [axes.get_ylabel() for axes in run.plot(["timing/latency"]).axes] == ["s"]


def test_a_stopped_run_keeps_its_reason(tmp_path):
    wild = Rig.from_dict({**ARM, "joints": {"all": {"actuator": {"type": "ideal"}, "limits": {"velocity": 0.01}}},
                          "controllers": [{**ARM["controllers"][0], "trajectory": {"type": "sine", "amplitude": 1.0,
                                                                                    "frequency": 2.0}}]})  # fmt: skip
    caught = raised(StoppedRun, wild.run)
    error = pickle.loads(pickle.dumps(caught))
    assert str(error) == str(caught)
    error.run.save(tmp_path / "a.npz")
    again = load_run(tmp_path / "a.npz")
    same(again, caught.run)
    assert again.summary["outcome"] == caught.run.fault != ""


@pytest.mark.parametrize("realtime", [False, True])
def test_a_recording_is_loaded_as_a_run(tmp_path, realtime):
    run = Rig.from_dict(MOVING, realtime=realtime).run(0.05, record=tmp_path / "a.mcap")
    again = load_run(tmp_path / "a.mcap")
    np.testing.assert_array_equal(again.values, run.values)
    np.testing.assert_allclose(again.t, run.t, rtol=0, atol=1e-12)
    assert again.rig.drawing and again.rig == dataclasses.replace(run.rig, drawing=again.rig.drawing)
    assert again.summary["joints"] == run.summary["joints"]
    assert again.summary["speed"] is None
    assert again.summary["outcome"] == "finished" and math.isnan(again.busy)


def test_files_that_are_wrong(run, said, tmp_path):
    (tmp_path / "text.npz").write_text("t,x\n")
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    for name in ("none.npz", "text.npz", "other.npz"):
        said(refusal(load_run, tmp_path / name))
    said(refusal(run.save, tmp_path / "a.csv"))


def test_data_frames_and_data_sets_have_the_signals_and_their_units(run):
    frame, dataset = run.to_pandas(), run.to_xarray()
    np.testing.assert_array_equal(frame["elbow/position"], run["elbow/position"])
    np.testing.assert_array_equal(frame.index, run.t)
    assert frame.attrs["units"]["elbow/effort"] == "N*m"
    np.testing.assert_array_equal(dataset["elbow/position"], run["elbow/position"])
    assert dataset["elbow/position"].attrs["units"] == "rad"
    assert float(dataset["elbow/position"].sel(t=0.1, method="nearest")) == run["elbow/position"][100]


def test_a_run_plots_itself(run, tmp_path):
    assert len(run.plot().axes) > 4
    figure = run.plot(["elbow/velocity", "energy/stored"], file=tmp_path / "a.png")
    assert [axes.get_ylabel() for axes in figure.axes] == ["rad/s", "J"]
    assert (tmp_path / "a.png").stat().st_size > 1000


@pytest.mark.parametrize(
    "chosen",
    [{"signals": ["elbow/veloc"]}, {"joints": ["elbo"]}, {"joints": ["elbow"], "signals": ["energy/stored"]}],
    ids=str,
)
def test_what_does_not_exist_is_not_plotted(run, said, chosen):
    said(refusal(run.plot, **chosen))


def test_a_notebook_shows_the_summary_and_the_picture(run):
    page = run._repr_html_()
    assert "<td>elbow</td><td>actuated</td>" in page
    assert "data:image/png;base64," in page and "finished" in page


def test_equal_runs_are_equal_to_the_bit(rig, run):
    both = compare(run, rig.run())
    assert both.identical and both.changed == {}
    assert repr(both) == f"<Comparison arm, arm: 0 of {len(run.signals)} signals differ>"


def test_differences_are_those_of_the_signals_and_of_the_summary(rig, run):
    soft = rig.run(parameters={"hold.kp": 50})
    both = compare(run, soft)
    difference = np.abs(soft["elbow/position"] - run["elbow/position"])
    found = both.signals["elbow/position"]
    assert (found.max, found.unit) == (difference.max(), "rad")
    assert found.t == run.t[difference.argmax()]
    assert found.rms == pytest.approx(np.sqrt(np.mean(difference**2)), rel=1e-12)
    assert both.changed["parameters.hold.kp"] == ([100.0, 100.0], [50.0, 50.0])
    errors = tuple(r.summary["joints"]["elbow"]["error_rms"] for r in (run, soft))
    assert both.changed["joints.elbow.error_rms"] == errors
    assert not any(name.startswith("speed") for name in both.changed)


def test_runs_of_different_steps_and_lengths_are_compared_over_their_common_time(run):
    coarse = Rig.from_dict({**MOVING, "schedule": {"step": "2 ms", "duration": 0.1}}).run()
    both = compare(run, coarse)
    assert both.end == coarse.t[-1] and not both.identical
    assert both.signals["elbow/position"].max < 0.01
    assert both.changed["step_s"] == (0.001, 0.002)


def test_values_that_are_no_number_in_one_run_are_no_equality(run):
    other = pickle.loads(pickle.dumps(run))
    column = other.signals.index("elbow/position")
    other.values[7, column] = np.nan
    found = compare(run, other).signals["elbow/position"]
    assert (found.max, found.t) == (math.inf, run.t[7])
    assert compare(other, other).identical
