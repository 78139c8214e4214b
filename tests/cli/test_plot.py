"""`cosim plot`: recordings as pictures, several over each other."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from cosim import load_run, open_recording, plot_runs
from tests.kit.refusals import refusal


@pytest.fixture
def half(recorded):
    return load_run("half.npz")


def test_recordings_are_drawn(recorded, half):
    """Files of one name are told apart by their folders."""
    assert recorded("plot", "a.mcap") == (0, "wrote    a.png\n", [])
    assert Path("a.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    Path("old").mkdir()
    half.save("old/a.npz")
    assert recorded("plot", "a.mcap", "old/a.npz", "-o", "both.svg") == (0, "wrote    both.svg\n", [])


@pytest.mark.parametrize("words", ["cut.mcap", "cut.mcap half.npz"])
def test_a_recording_that_was_cut_off_is_drawn_and_a_warning_says_so(recorded, words, said):
    code, out, err = recorded("plot", *words.split(), "hinge/effort", "-o", "cut.svg")
    assert (code, err) == (0, [])
    said(out)


def test_signals_of_two_runs_are_rows_with_a_curve_for_each(half):
    runs, chosen = {"a": open_recording("a.mcap"), "b": half}, ["hinge/velocity", "hinge/reference_velocity"]
    figure = plot_runs(runs, ["*velocity"])
    assert [axes.get_title(loc="left") for axes in figure.axes] == chosen
    for axes, name in zip(figure.axes, chosen, strict=True):
        for line, run in zip(axes.lines, runs.values(), strict=True):
            assert np.asarray(line.get_xdata())[-1] == run.t[-1]
            assert np.ptp(np.asarray(line.get_ydata())) == np.ptp(run[name])
        assert [line.is_dashed() for line in axes.lines] == [False, True]  # equal curves are both seen
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]


def test_position_errors_are_drawn_by_default(half):
    (axes,) = plot_runs({"a": half, "b": half}).axes
    assert axes.get_title(loc="left") == "hinge/position_error"
    error = half["hinge/reference_position"] - half["hinge/position"]
    assert np.max(np.asarray(axes.lines[0].get_ydata())) == error.max()


MISTAKES = ["hinge/position", "a.mcap a.mcap", "c.mcap", "a.mcap -o a.doc", "a.mcap no/position"]


@pytest.mark.parametrize("words", [*MISTAKES, "a.mcap half.npz no/position"])
def test_mistakes_in_the_words(recorded, words, said):
    (line,) = recorded.refuses("plot", *words.split())
    said(line)


def test_what_does_not_fit_one_plot_is_refused(half, monkeypatch, said):
    name = half.signals[0]
    metadata = dataclasses.replace(half.rig, units={**half.rig.units, name: "furlong"})
    monkeypatch.setattr("cosim.rig.run.plot_runs.MOST_ROWS", 1)
    for other, signals in ((dataclasses.replace(half, rig=metadata), ()), (half, ("*",))):
        said(refusal(plot_runs, {"a": half, "b": other}, signals))
