"""Plots of runs: curves, labels and legends, formats, error messages."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cosim.output.plot import RunPlot
from tests.kit.refusals import refusal
from tests.output.plot_helpers import ALL, LONG, assert_on_the_picture_and_apart, axes_of, figure_of, keys, run, words


def test_joints_columns_units_legend_and_note_are_on_the_plot():
    figure = figure_of(run(["shoulder", "elbow"]), ["shoulder", "elbow"], note="5 s in 0.1 s")
    found = words(figure)
    for once in ("shoulder", "elbow", "position", "effort", "tracking error", "arm", "5 s in 0.1 s"):
        assert found.count(once) == 1, once
    assert found.count("rad") == 4  # position and error of two joints
    assert found.count("N·m") == 2
    assert found.count("time [s]") == 3
    assert keys(figure.legends[0]) == ["actual", "reference", "commanded", "reference − actual"]
    assert "velocity" not in found


@pytest.mark.parametrize(
    ("interfaces", "description", "title"),
    [(ALL, LONG, "arm"), (("position",), "", "a_rig_with_a_rather_long_name_" * 5), (("position",), "short", "arm")],
)
def test_texts_legend_and_axes_are_inside_the_figure_and_do_not_overlap(interfaces, description, title):
    figure = figure_of(run(["a"], interfaces), title=title, note=LONG, description=description)
    shown = [text for text in figure.texts if text.get_text()]
    assert len(shown) == 3 if description else 2
    assert [text.get_fontweight() for text in shown][:2] == ["bold", "normal"]
    boxes = [part.get_window_extent() for part in (*shown, *figure.legends)]
    assert_on_the_picture_and_apart(figure, boxes + [axes.get_tightbbox() for axes in figure.axes])


def test_without_a_reference_the_third_column_is_the_velocity():
    figure = figure_of(run(["a"], ("position", "velocity", "effort")))
    assert "velocity" in words(figure) and "tracking error" not in words(figure)
    assert keys(figure.legends[0]) == ["actual"]


def test_columns_without_signals_are_left_out_and_missing_signals_are_marked():
    made = run(["a", "b"], ("position", "effort"))
    del made[1]["b/effort"]
    found = words(figure_of(made, ["a", "b"]))
    assert "velocity" not in found and "tracking error" not in found
    assert found.count("not recorded") == 1


def test_a_joint_without_a_reference_among_others_is_marked():
    made = run(["a", "b"])
    del made[1]["b/reference_position"]
    assert words(figure_of(made, ["a", "b"])).count("no reference") == 1


@pytest.mark.parametrize(("effort", "drawn"), [(0.0, False), (1e-9, True)])
def test_efforts_of_joints_that_swing_freely_are_not_drawn(effort, drawn):
    made = run(["a", "b"], ("position", "effort"))
    made[1]["a/effort"][:], made[1]["b/effort"][:] = 0.0, effort
    assert ("effort" in words(figure_of(made, ["a", "b"]))) is drawn


def test_of_many_joints_those_are_drawn_that_move_most_and_the_footer_states_it():
    joints = ["base.x", *(f"j{i}" for i in range(10))]
    t, signals, units = run(joints, ("position",))
    for k, joint in enumerate(joints):
        signals[f"{joint}/position"] = 0.1 * ((7 * k) % 11) * t
    signals["base.x/position"] = 100.0 * t
    found = words(figure_of((t, signals, units), joints, note="done"))
    most = ["base.x", *(f"j{i}" for i in (0, 2, 3, 5, 6, 8, 9))]
    assert [text for text in found if re.fullmatch(r"j\d|base.x", text)] == most
    assert "done  ·  the 8 joints of 11 that move most" in found


def test_chosen_joints_are_drawn_in_their_order():
    found = words(figure_of(run(["a", "b", "c"], ("position",)), ["a", "b", "c"], chosen_joints=["c", "a"]))
    assert [text for text in found if text in ("a", "b", "c")] == ["c", "a"]


def test_chosen_signals_have_a_row_for_each_unit():
    made, chosen = run(["a", "b"]), ["b/position", "a/effort", "a/position"]
    figure = figure_of(made, ["a", "b"], note="done", chosen_signals=chosen, stopped=True)
    found = words(figure)
    assert [text for text in found if "/" in text] == ["b/position", "a/position", "a/effort"]
    assert "stop" in found and "done" in found
    first, second = axes_of(figure)
    assert [first.get_ylabel(), second.get_ylabel()] == ["rad", "N·m"]
    np.testing.assert_array_equal(first.lines[0].get_ydata(), made[1]["b/position"])


def test_an_effort_that_rises_from_zero_at_the_start_does_not_widen_its_axis():
    t = np.linspace(0.0, 1.0, 1001)
    rise = np.minimum(t / 0.004, 1.0)
    efforts = {"rises": rise * (-16.0 - t), "overshoots": rise * (-16.0 - t), "grows": -17.0 * t}
    efforts["overshoots"][3] = -30.0
    signals = {f"{joint}/effort": effort for joint, effort in efforts.items()}
    figure = figure_of((t, signals, dict.fromkeys(signals, "N*m")), list(efforts))
    rises, overshoots, grows = (axes.get_ylim() for axes in axes_of(figure))
    assert rises == pytest.approx((-17.08, -15.93), abs=2e-3)
    assert overshoots == pytest.approx((-32.4, 2.4))
    assert grows == pytest.approx((-18.36, 1.36))


def test_a_command_stays_visible_over_the_effort_that_equals_it():
    t = np.linspace(0.0, 1.0, 50)
    (axes,) = axes_of(figure_of((t, {"a/effort": t, "a/command_effort": t}, {})))
    effort, command = axes.lines
    assert command.is_dashed() and not effort.is_dashed()
    assert command.get_zorder() == effort.get_zorder()  # so what comes later is in front
    assert (effort.get_label(), command.get_label()) == ("actual", "commanded")


def test_limits_are_drawn_where_the_curves_come_near():
    t = np.linspace(0.0, 1.0, 50)
    signals = {"a/position": 0.9 * t, "a/effort": 0.1 * t, "a/velocity": t - t**2}
    limits = {"a": {"lower": -5.0, "upper": 1.0, "effort": 0.15, "velocity": 30.0}}
    position, effort, velocity = axes_of(figure_of((t, signals, {}), limits=limits))
    assert [line.get_ydata()[0] for line in position.lines[1:]] == [1.0]
    assert [line.get_ydata()[0] for line in effort.lines[1:]] == [0.15]  # not −0.15: it is farther than the range
    assert len(velocity.lines) == 1
    assert position.get_ylim()[1] > 1.0


def test_a_stop_and_missed_deadlines_are_marked():
    made, late = run(["a"]), [0.25, 0.2500001, 0.75]  # two in one pixel
    figure = figure_of(made, note="fault", stopped=True, late=late)
    assert keys(figure.legends[0])[-2:] == ["stop", "missed deadline"]
    for axes in axes_of(figure):
        stop, marks = axes.lines[-2:]
        assert stop.get_xdata()[0] == made[0][-1]
        assert marks.get_xdata().tolist() == [0.25, 0.75]


@pytest.mark.parametrize(
    ("middle", "noise", "width"), [(0.0, 1e-6, 2e-5), (1.5, 1e-15, 3e-5)], ids=["a micro radian", "rounding"]
)
def test_noise_does_not_fill_the_axis(middle, noise, width):
    t = np.linspace(0.0, 1.0, 100)
    (axes,) = axes_of(figure_of((t, {"a/position": middle + noise * np.sin(50 * t)}, {"a/position": "rad"})))
    assert np.ptp(axes.get_ylim()) == pytest.approx(width)


def test_the_error_is_reference_minus_measured():
    t = np.linspace(0.0, 1.0, 50)
    figure = figure_of((t, {"a/position": 10 * t, "a/reference_position": 12 * t + 700.0}, {}))
    np.testing.assert_allclose(axes_of(figure)[-1].lines[0].get_ydata(), 2 * t + 700.0)


@pytest.mark.parametrize("k", [0, 1, 2])
def test_short_runs_are_drawn_without_a_warning(k):
    figure_of(run(["a"], k=k)).draw_without_rendering()


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0, 1e300, -1.7e308])
def test_constant_and_diverged_signals_are_drawn_without_a_warning(value):
    made = run(["a"], ("position", "reference_position"))
    made[1]["a/position"][:] = value
    figure_of(made).draw_without_rendering()


def tumbling(joint="ball"):
    """A joint whose rotation vector changes to the opposite one at t = 0.5, mostly along x."""
    t = np.linspace(0.0, 1.0, 100)
    turned = np.where(t < 0.5, 1.0, -1.0)
    signals = {"ball.rx/position": 3.1 * turned, "ball.ry/position": 0.2 * turned, "ball.x/position": turned}
    signals |= {"ball.rx/velocity": 9.0 * turned, "ball.qx/position": t}
    units = {"ball.rx/position": "rad", "ball.ry/position": "rad", "ball.x/position": "m", "ball.rx/velocity": "rad/s"}
    return (
        t,
        {name.replace("ball.rx", f"{joint}.rx"): values for name, values in signals.items()},
        {name.replace("ball.rx", f"{joint}.rx"): unit for name, unit in units.items()},
    )


def gaps(axes):
    return [int(np.isnan(line.get_ydata()).sum()) for line in axes.lines]


def test_angles_of_a_rotation_break_where_it_jumps_in_all_parts_at_once():
    t, signals, units = tumbling()
    axes = axes_of(figure_of((t, signals, units), ["ball.rx", "ball.ry", "ball.x"]))
    assert [gaps(a) for a in axes[::2]] == [[1], [1], [0]]
    assert gaps(axes[1]) == [0]  # the velocity
    (line,) = axes[0].lines
    x, y = line.get_data()
    assert x[np.isnan(y)] == pytest.approx(t[49])
    np.testing.assert_array_equal(y[~np.isnan(y)], signals["ball.rx/position"])


@pytest.mark.parametrize("other", ["ball.base", "bal"])
def test_joints_without_a_quaternion_do_not_break(other):
    assert gaps(axes_of(figure_of(tumbling(other), [f"{other}.rx"]))[0]) == [0]


def flexible(joints):
    """A run of these joints, of which the first one alone has a reference and an effort."""
    t, signals, units = run(joints, ("position", "velocity", "effort", "reference_position"))
    for name in joints[1:]:
        del signals[f"{name}/reference_position"]
        signals[f"{name}/effort"] = np.zeros(len(t))
    return t, signals, units


def test_joints_without_effort_and_reference_have_a_cell_each():
    joints = ["hub", *(f"arm.bend_y_{k}" for k in range(1, 5))]
    made = flexible(joints)
    axes = axes_of(figure_of(made, joints))
    assert [a.get_title() for a in axes] == ["position", "effort", "tracking error", *joints[1:]]
    for a, name in zip(axes[3:], joints[1:], strict=True):
        (line,) = a.lines
        np.testing.assert_array_equal(line.get_ydata(), made[1][f"{name}/position"])
        assert a.get_ylabel() == "rad"
    assert [a.get_xlabel() for a in axes[3:]] == ["", "", "", "time [s]"]


def test_a_passive_joint_that_gets_an_effort_has_a_row():
    made = flexible(["hub", "pole"])
    made[1]["pole/effort"][-1] = 1.0
    assert len(axes_of(figure_of(made, ["hub", "pole"]))) == 6


def test_a_deflection_has_a_curve_for_each_axis_along_which_it_is():
    t, signals, units = flexible(["hub"])
    for axis, size in {"x": 0.0, "y": 1.0, "z": 2.0}.items():
        signals[f"tip.{axis}/deflection"], units[f"tip.{axis}/deflection"] = size * t, "m"
    cell = axes_of(figure_of((t, signals, units), ["hub"]))[-1]
    assert (cell.get_title(), cell.get_ylabel()) == ("deflection of tip", "m")
    assert keys(cell.get_legend()) == ["y", "z"]
    np.testing.assert_array_equal(cell.lines[1].get_ydata(), 2.0 * t)


@pytest.mark.parametrize(("suffixes", "start"), [("png PNG", b"\x89PNG"), ("svg svg", b"<?xml"), ("pdf pdf", b"%PDF")])
def test_equal_runs_give_equal_files_whatever_the_settings_of_the_user_are(tmp_path, suffixes, start):
    import matplotlib

    t, signals, units = run(["a$b$"], ("position",), k=10)
    plot = RunPlot(t, signals, ["a$b$"], "rig $x_1$", units, "$5 and $6")
    paths = [tmp_path / f"{name}.{suffix}" for name, suffix in zip("ab", suffixes.split(), strict=True)]
    plot.save(paths[0])
    with matplotlib.rc_context({"font.size": 20.0, "savefig.dpi": 50.0, "axes.facecolor": "red"}):
        plot.save(paths[1])
        assert matplotlib.rcParams["font.size"] == 20.0
    # the names that matplotlib gives to the parts of an svg are random
    first, second = (re.sub(rb"[#\"][mp][0-9a-f]{10}", b"", path.read_bytes()) for path in paths)
    assert first.startswith(start)
    assert first == second
    assert start != b"<?xml" or {b"a$b$", b"rig $x_1$", b"$5 and $6"} <= set(re.findall(rb"<!-- (.*?) -->", first))


WITHOUT = """
import sys
from cosim.output.plot import RunPlot, timing_plot
assert 'matplotlib' not in sys.modules
RunPlot([0.0, 1.0], {'j/position': [0.0, 1.0]}, ['j'], 'arm', {}).draw()
assert 'matplotlib.figure' in sys.modules and 'matplotlib.pyplot' not in sys.modules
""".replace("[0.0, 1.0]", "__import__('numpy').arange(2.0)")


def test_matplotlib_is_imported_late_and_pyplot_with_its_windows_never():
    subprocess.run([sys.executable, "-c", WITHOUT], cwd=Path(__file__).parents[2], check=True)


@pytest.mark.parametrize("name", ["run.gif", "run", "run.", ".png", "missing/run.png", "nothing.png"])
def test_plots_that_are_refused(tmp_path, said, name):
    path = tmp_path / name
    t, signals, units = run(["a"], ("current",) if name == "nothing.png" else ("position",), k=3)
    said(refusal(RunPlot(t, signals, ["a"], "arm", units).save, path))
    assert not path.exists()


@pytest.mark.parametrize("length", [10, 40, 300])
def test_long_names_fit_into_their_rows(length):
    """Matplotlib warns of axes that collapse."""
    from matplotlib.figure import Figure

    from cosim.output.plot.text_layout import draw_row_name, text_width

    figure, name = Figure(figsize=(2.0, 2.0)), "n" * length
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    draw_row_name(axes, name, 1.7)
    (text,) = axes.texts
    assert (text.get_text() == name) == (length < 300)
    assert text.get_fontsize() >= 3.5
    assert text_width(text.get_text(), text.get_fontsize()) <= 1.05 * 1.7


def test_long_names_of_signals_are_shortened_in_legends():
    from cosim.output.plot.signal_figure import _fitting

    assert _fitting(["elbow/position", "shoulder/position"]) == ["elbow/position", "shoulder/position"]
    shown = _fitting([f"{'n' * 300}{k}/position" for k in range(3)])
    assert all("…" in name and len(name) < 60 for name in shown)
