"""Plots of runs: curves, labels and legends, thinning without loss of peaks, error messages."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cosim.errors import InputError
from cosim.output.plot import RunPlot
from cosim.output.plot.joint_columns import BEFORE_DRIVE
from tests.kit.levels import one_of_each
from tests.output.plot_helpers import LONG, axes_of, run, texts


def numbers(path):
    return [text for text in texts(path) if re.fullmatch(r"[−\d.]+", text)]


def labels(path):
    return [text for text in texts(path) if not re.fullmatch(r"[−\d.]+", text)]


ALL = ("position", "reference_position", "velocity", "effort", "command_effort")


def test_joints_columns_units_legend_and_note_are_on_the_plot(tmp_path):
    path = tmp_path / "run.svg"
    t, signals, units = run(["shoulder", "elbow"], ALL)
    RunPlot(t, signals, ["shoulder", "elbow"], "arm", units, "5 s in 0.1 s").save(path)
    found = labels(path)
    for once in ("shoulder", "elbow", "position", "effort", "tracking error", "arm", "5 s in 0.1 s"):
        assert found.count(once) == 1, once
    assert found.count("rad") == 4  # position and error of two joints
    assert found.count("N·m") == 2
    assert found.count("time [s]") == 3
    assert found[-4:] == ["actual", "reference", BEFORE_DRIVE, "reference − actual"]
    assert "velocity" not in found


@one_of_each
@pytest.mark.parametrize("title", ["arm", "a_rig_with_a_rather_long_name_" * 5])
@pytest.mark.parametrize("description", ["", "short", LONG])
@pytest.mark.parametrize("interfaces", [ALL, ("position",)])
def test_texts_legend_and_axes_are_inside_the_figure_and_do_not_overlap(
    tmp_path, drawn, title, description, interfaces
):
    t, signals, units = run(["elbow"], interfaces)
    RunPlot(t, signals, ["elbow"], title, units, LONG, description).save(tmp_path / "a.png")
    (figure,) = drawn
    shown = [text for text in figure.texts if text.get_text()]
    assert len(shown) == 3 if description else 2
    assert [text.get_fontweight() for text in shown][:2] == ["bold", "normal"]
    boxes = [part.get_window_extent() for part in (*shown, *figure.legends)]
    boxes += [axes.get_tightbbox() for axes in figure.axes]
    for i, box in enumerate(boxes):
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1
        assert not any(box.overlaps(other) for other in boxes[:i])


def test_without_a_reference_the_third_column_is_the_velocity(tmp_path):
    path = tmp_path / "run.svg"
    RunPlot(*run(["elbow"], ("position", "velocity", "effort"))[:2], ["elbow"], "arm", {}).save(path)
    found = labels(path)
    assert "velocity" in found and "tracking error" not in found
    assert found[-1:] == ["actual"]


def test_columns_without_signals_are_left_out_and_missing_signals_are_marked(tmp_path):
    path = tmp_path / "run.svg"
    t, signals, units = run(["a", "b"], ("position", "effort"))
    del signals["b/effort"]
    RunPlot(t, signals, ["a", "b"], "arm", units).save(path)
    found = labels(path)
    assert "velocity" not in found and "tracking error" not in found
    assert found.count("not recorded") == 1


def test_a_joint_without_a_reference_among_others_is_marked(tmp_path):
    path = tmp_path / "run.svg"
    t, signals, units = run(["a", "b"], ALL)
    del signals["b/reference_position"]
    RunPlot(t, signals, ["a", "b"], "arm", units).save(path)
    assert labels(path).count("no reference") == 1


@pytest.mark.parametrize(("effort", "drawn"), [(0.0, False), (1e-9, True)])
def test_efforts_of_joints_that_swing_freely_are_not_drawn(tmp_path, effort, drawn):
    path = tmp_path / "run.svg"
    t, signals, units = run(["a", "b"], ("position", "velocity", "effort"))
    signals["a/effort"][:] = 0.0
    signals["b/effort"][:] = effort
    RunPlot(t, signals, ["a", "b"], "arm", units).save(path)
    assert ("effort" in labels(path)) is drawn


def test_of_many_joints_those_are_drawn_that_move_most_and_the_footer_states_it(tmp_path):
    path = tmp_path / "run.svg"
    joints = ["base.x", *(f"j{i}" for i in range(10))]
    t, signals, units = run(joints, ("position",))
    for k, joint in enumerate(joints):
        signals[f"{joint}/position"] = 0.1 * ((7 * k) % 11) * t
    signals["base.x/position"] = 100.0 * t
    RunPlot(t, signals, joints, "many", units, "done").save(path)
    found = labels(path)
    most = ["base.x", *(f"j{i}" for i in (0, 2, 3, 5, 6, 8, 9))]
    assert [text for text in found if re.fullmatch(r"j\d|base.x", text)] == most
    assert "done  ·  the 8 joints of 11 that move most" in found


def test_chosen_joints_are_drawn_in_their_order(tmp_path):
    path = tmp_path / "run.svg"
    t, signals, units = run(["a", "b", "c"], ALL)
    RunPlot(t, signals, ["a", "b", "c"], "arm", units, chosen_joints=["c", "a"]).save(path)
    assert [text for text in labels(path) if text in ("a", "b", "c")] == ["c", "a"]


def test_chosen_signals_have_a_row_for_each_unit(tmp_path, drawn):
    path = tmp_path / "run.svg"
    t, signals, units = run(["a", "b"], ALL)
    chosen = ["b/position", "a/effort", "a/position"]
    RunPlot(t, signals, ["a", "b"], "arm", units, "done", chosen_signals=chosen, stopped=True).save(path)
    found = labels(path)
    assert [text for text in found if "/" in text] == ["b/position", "a/position", "a/effort"]
    assert "stop" in found and "done" in found
    first, second = axes_of(drawn[0])
    assert [first.get_ylabel(), second.get_ylabel()] == ["rad", "N·m"]
    np.testing.assert_array_equal(first.lines[0].get_ydata(), signals["b/position"])


def test_an_effort_that_rises_from_zero_at_the_start_does_not_widen_its_axis(tmp_path, drawn):
    t = np.linspace(0.0, 1.0, 1001)
    rise = np.minimum(t / 0.004, 1.0)
    efforts = {"rises": rise * (-16.0 - t), "overshoots": rise * (-16.0 - t), "grows": -17.0 * t}
    efforts["overshoots"][3] = -30.0
    signals = {f"{joint}/effort": effort for joint, effort in efforts.items()}
    RunPlot(t, signals, list(efforts), "arm", {name: "N*m" for name in signals}).save(tmp_path / "a.png")
    rises, overshoots, grows = (axes.get_ylim() for axes in axes_of(drawn[0]))
    assert rises == pytest.approx((-17.08, -15.93), abs=2e-3)
    assert overshoots == pytest.approx((-32.4, 2.4))
    assert grows == pytest.approx((-18.36, 1.36))


def test_a_command_stays_visible_over_the_effort_that_equals_it(tmp_path, drawn):
    t = np.linspace(0.0, 1.0, 50)
    RunPlot(t, {"a/effort": t, "a/command_effort": t}, ["a"], "arm", {}).save(tmp_path / "a.png")
    (axes,) = axes_of(drawn[0])
    effort, command = axes.lines
    assert command.is_dashed() and not effort.is_dashed()
    assert command.get_zorder() > effort.get_zorder()
    assert command.get_label() == "commanded, gains included, before friction and losses"


def test_limits_are_drawn_where_the_curves_come_near(tmp_path, drawn):
    t = np.linspace(0.0, 1.0, 50)
    signals = {"a/position": 0.9 * t, "a/effort": 0.1 * t, "a/velocity": t - t**2}
    limits = {"a": {"lower": -5.0, "upper": 1.0, "effort": 0.15, "velocity": 30.0}}
    RunPlot(t, signals, ["a"], "arm", {}, limits=limits).save(tmp_path / "a.png")
    position, effort, velocity = axes_of(drawn[0])
    assert [line.get_ydata()[0] for line in position.lines[1:]] == [1.0]
    assert [line.get_ydata()[0] for line in effort.lines[1:]] == [0.15]  # not −0.15: it is farther than the range
    assert len(velocity.lines) == 1
    assert position.get_ylim()[1] > 1.0


def test_a_stop_and_missed_deadlines_are_marked(tmp_path, drawn):
    path = tmp_path / "a.svg"
    t, signals, units = run(["a"], ALL)
    late = [0.25, 0.2500001, 0.75]  # two in one pixel
    RunPlot(t, signals, ["a"], "arm", units, "fault", stopped=True, late=late).save(path)
    assert labels(path)[-2:] == ["stop", "missed deadline"]
    for axes in axes_of(drawn[0]):
        stop, marks = axes.lines[-2:]
        assert stop.get_xdata()[0] == t[-1]
        assert marks.get_xdata().tolist() == [0.25, 0.75]


def test_noise_of_a_micro_radian_does_not_fill_the_axis(tmp_path, drawn):
    t = np.linspace(0.0, 1.0, 100)
    signals = {"a/position": 1e-6 * np.sin(50 * t)}
    RunPlot(t, signals, ["a"], "arm", {"a/position": "rad"}).save(tmp_path / "a.png")
    (axes,) = axes_of(drawn[0])
    assert np.ptp(axes.get_ylim()) == pytest.approx(2e-5)


def test_the_error_is_reference_minus_measured(tmp_path):
    path = tmp_path / "run.svg"
    t = np.linspace(0.0, 1.0, 50)
    signals = {"j/position": 10 * t, "j/reference_position": 10 * t + 700.0}
    RunPlot(t, signals, ["j"], "arm", {}).save(path)
    assert numbers(path)[-3:] == ["700", "720", "740"]


@pytest.mark.parametrize(
    ("suffix", "start"), [("png", b"\x89PNG"), ("PNG", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_the_suffix_chooses_the_format_and_equal_runs_give_equal_files(tmp_path, suffix, start):
    t, signals, units = run(["elbow"], ALL)
    for name in ("a", "b"):
        RunPlot(t, signals, ["elbow"], "arm", units).save(tmp_path / f"{name}.{suffix}")
    # the names that matplotlib gives to the parts of an svg are random
    files = [(tmp_path / f"{name}.{suffix}").read_bytes() for name in ("a", "b")]
    first, second = (re.sub(rb"[#\"][mp][0-9a-f]{10}", b"", data) for data in files)
    assert first.startswith(start)
    assert first == second


@pytest.mark.parametrize("k", [0, 1, 2])
def test_short_runs_are_drawn_without_a_warning(tmp_path, k):
    t, signals, units = run(["elbow"], ALL, k)
    RunPlot(t, signals, ["elbow"], "arm", units).save(tmp_path / "a.png")


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0, 1e99, 1e300, -1.7e308, 1.5])
def test_constant_and_diverged_signals_are_drawn_without_a_warning(tmp_path, value):
    t, signals, units = run(["elbow"], ALL)
    signals["elbow/position"][:] = value
    RunPlot(t, signals, ["elbow"], "arm", units).save(tmp_path / "a.png")


def test_rounding_noise_is_drawn_as_a_flat_line(tmp_path):
    path = tmp_path / "a.svg"
    t = np.linspace(0.0, 1.0, 100)
    RunPlot(t, {"j/position": 1.5 + 1e-15 * np.sin(40 * t)}, ["j"], "arm", {}).save(path)
    assert numbers(path)[-3:] == ["1.49999", "1.50000", "1.50001"]


def test_dollars_and_underscores_in_names_stay_as_they_are(tmp_path):
    path = tmp_path / "a.svg"
    t, signals, units = run(["wrist_1$a$"], ("position",))
    RunPlot(t, signals, ["wrist_1$a$"], "rig $x_1$", units, "$5 and $6").save(path)
    assert {"wrist_1$a$", "rig $x_1$", "$5 and $6"} <= set(texts(path))


def test_matplotlib_settings_of_the_user_have_no_effect_and_are_kept(tmp_path):
    import matplotlib

    t, signals, units = run(["elbow"], ALL)
    RunPlot(t, signals, ["elbow"], "arm", units).save(tmp_path / "a.png")
    with matplotlib.rc_context({"font.size": 20.0, "savefig.dpi": 50.0, "axes.facecolor": "red"}):
        RunPlot(t, signals, ["elbow"], "arm", units).save(tmp_path / "b.png")
        assert matplotlib.rcParams["font.size"] == 20.0
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_pyplot_with_its_windows_is_not_imported(tmp_path):
    program = (
        "import sys, numpy as np; from cosim.output.plot import RunPlot; "
        "RunPlot(np.arange(3.0), {'j/position': np.arange(3.0)}, ['j'], 'arm', {}).save(sys.argv[1]); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", program, tmp_path / "a.png"], cwd=root).returncode == 0


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "what"),
    [("run.gif", "cannot draw a plot as '.gif'"), ("run", "no suffix"), ("run.", "no suffix"), (".png", "no suffix")],
)
def test_an_unknown_suffix_is_an_input_error(tmp_path, name, what):
    path = tmp_path / name
    t, signals, units = run(["elbow"], ALL)
    with pytest.raises(InputError) as error:
        RunPlot(t, signals, ["elbow"], "arm", units).save(path)
    assert str(error.value) == f"{path}: {what}; use .png, .svg, .pdf"


def test_a_path_that_cannot_be_written_is_an_input_error(tmp_path):
    path = tmp_path / "missing" / "run.png"
    t, signals, units = run(["elbow"], ALL)
    with pytest.raises(InputError) as error:
        RunPlot(t, signals, ["elbow"], "arm", units).save(path)
    what = "cannot write the plot: No such file or directory"
    fix = "name a file in a folder that exists and that you may write to"
    assert str(error.value) == f"{path}: {what}; {fix}"


def test_nothing_to_draw_is_an_input_error(tmp_path):
    path = tmp_path / "run.png"
    with pytest.raises(InputError) as error:
        RunPlot(np.zeros(3), {"elbow/current": np.zeros(3)}, ["elbow"], "arm", {}).save(path)
    what = "nothing to plot; no joint has a position, velocity or effort"
    assert str(error.value) == f"{path}: {what}"
    assert not path.exists()
