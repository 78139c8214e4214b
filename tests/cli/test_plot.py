"""`cosim plot`: recordings as pictures, several over each other."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from cosim import InputError, load_run, open_recording, plot_runs
from cosim.rig import Rig
from tests.kit.command import Command
from tests.rig.test_run_forms import MOVING


@pytest.fixture
def command(tmp_path, capsys, monkeypatch):
    """Beside `a.mcap` and `b.npz`, of other gains and half as long."""
    monkeypatch.chdir(tmp_path)
    rig = Rig.from_dict(MOVING)
    rig.run(record="a.mcap")
    rig.run(duration=0.5 * rig.run().t[-1]).save("b.npz")
    return Command(capsys, monkeypatch)


def test_a_recording_is_drawn_as_its_run_was(command):
    assert command("plot", "a.mcap") == (0, "wrote    a.png\n", [])
    with open("a.png", "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"


def test_a_recording_that_was_cut_off_is_drawn_and_a_warning_says_so(command):
    with open("a.mcap", "rb") as whole, open("cut.mcap", "wb") as cut:
        cut.write(whole.read()[:-9])
    fault = "the recording is cut off after t = 0.2 s: its program was killed, or is still writing it"
    for words in (["cut.mcap"], ["cut.mcap", "b.npz"]):
        assert command("plot", *words) == (0, f"wrote    cut.png\nwarning  cut.mcap: {fault}\n", [])


def test_signals_of_two_runs_are_rows_with_a_curve_for_each(command):
    runs = {"a": open_recording("a.mcap"), "b": load_run("b.npz")}
    chosen = [name for name in runs["a"].signals if name.endswith("/velocity")]
    figure = plot_runs(runs, ["*/velocity"])
    assert [axes.get_title(loc="left") for axes in figure.axes] == chosen
    for axes, name in zip(figure.axes, chosen, strict=True):
        for line, run in zip(axes.lines, runs.values(), strict=True):
            assert np.asarray(line.get_xdata())[-1] == run.t[-1]
            assert np.ptp(np.asarray(line.get_ydata())) == np.ptp(run[name])
        assert [line.is_dashed() for line in axes.lines] == [False, True]  # equal curves are both seen
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]


def test_position_errors_are_drawn_by_default(command):
    assert command("plot", "a.mcap", "b.npz", "-o", "both.svg") == (0, "wrote    both.svg\n", [])
    run = load_run("b.npz")
    figure = plot_runs({"a": run, "b": run})
    for axes in figure.axes:
        joint = axes.get_title(loc="left").removesuffix("/position_error")
        error = run[f"{joint}/reference_position"] - run[f"{joint}/position"]
        assert np.max(np.asarray(axes.lines[0].get_ydata())) == error.max()
    assert len(figure.axes) == sum(name.endswith("/reference_position") for name in run.signals) > 0


def test_files_of_one_name_are_told_apart_by_their_folders(command, tmp_path):
    (tmp_path / "old").mkdir()
    load_run("b.npz").save("old/a.npz")
    assert command("plot", "a.mcap", "old/a.npz")[0] == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("cart/position", "plot: there is no run to draw; give a recording (.mcap) or a file of run.save (.npz)"),
        ("a.mcap a.mcap", "plot: a.mcap is given twice; give each run once"),
        ("c.mcap", "c.mcap: cannot read the recording: No such file or directory; check the path"),
        ("a.mcap -o a.doc", "a.doc: cannot draw a plot as '.doc'; use .png, .svg, .pdf"),
        ("a.mcap no/position", "plot: there is no signal 'no/position'"),
        ("a.mcap b.npz no/position", "plot: there is no signal 'no/position'"),
    ],
)
def test_mistakes_in_the_words(command, words, expected):
    code, printed, (error,) = command("plot", *words.split())
    assert (code, printed) == (2, "") and error.startswith(expected)


def test_a_signal_in_other_units_is_refused(command):
    run = load_run("b.npz")
    name = run.signals[0]
    outline = dataclasses.replace(run.rig, units={**run.rig.units, name: "furlong"})
    with pytest.raises(InputError) as refused:
        plot_runs({"a": run, "b": dataclasses.replace(run, rig=outline)})
    unit = run.units[name]
    assert str(refused.value) == f"b: '{name}' is in furlong, in the runs before in {unit}; plot runs of one rig"


def test_too_many_signals_are_refused(command, monkeypatch):
    monkeypatch.setattr("cosim.rig.plot_runs.MOST_ROWS", 1)
    run = load_run("b.npz")
    with pytest.raises(InputError, match="signals are too many for one plot; choose 1 at most"):
        plot_runs({"a": run, "b": run}, ["*"])
