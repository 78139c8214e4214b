"""Plots of runs: curves, labels and legends, thinning without loss of peaks, error messages."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cosim.errors import InputError
from cosim.output.plot import plot_run, thin
from cosim.output.plot.curves import thin_pieces

UNITS = {"position": "rad", "velocity": "rad/s", "effort": "N*m", "command_effort": "N*m"}


def run(joints, interfaces, k=200):
    """Times, artificial signals and units of a run."""
    t = np.linspace(0.0, 1.0, k)
    names = [f"{joint}/{interface}" for joint in joints for interface in interfaces]
    signals = {name: np.sin(t * (3 + i)) for i, name in enumerate(names)}
    return t, signals, {name: UNITS.get(name.split("/")[1], "rad") for name in names}


def texts(path):
    """The texts of an svg in order of drawing: matplotlib writes each as a comment beside its outlines."""
    found = re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [re.sub(r"\$\\mathdefault\{(.*)\}\$", r"\1", text) for text in found]


def numbers(path):
    return [text for text in texts(path) if re.fullmatch(r"[−\d.]+", text)]


def labels(path):
    return [text for text in texts(path) if not re.fullmatch(r"[−\d.]+", text)]


@pytest.fixture
def drawn(monkeypatch):
    """The figures that were saved."""
    from matplotlib.figure import Figure

    figures = []
    save = Figure.savefig

    def saved(figure, *arguments, **settings):
        save(figure, *arguments, **settings)
        figure.draw_without_rendering()  # extents are at the figure's own resolution again
        figures.append(figure)

    monkeypatch.setattr(Figure, "savefig", saved)
    return figures


def axes_of(figure):
    """The axes with curves, row by row; the panels of the mechanism are last."""
    return [axes for axes in figure.axes if axes.axison]


def keys(legend):
    return [text.get_text() for text in legend.get_texts()]


ALL = ("position", "reference_position", "velocity", "effort", "command_effort")


def test_joints_columns_units_legend_and_note_are_on_the_plot(tmp_path):
    path = tmp_path / "run.svg"
    t, signals, units = run(["shoulder", "elbow"], ALL)
    plot_run(path, t, signals, ["shoulder", "elbow"], "arm", units, "5 s in 0.1 s")
    found = labels(path)
    for once in ("shoulder", "elbow", "position", "effort", "tracking error", "arm", "5 s in 0.1 s"):
        assert found.count(once) == 1, once
    assert found.count("rad") == 4  # position and error of two joints
    assert found.count("N·m") == 2
    assert found.count("time [s]") == 3
    assert found[-4:] == ["actual", "reference", "commanded", "reference − actual"]
    assert "velocity" not in found


LONG = "an arm of two links that follows a point-to-point motion under computed feedforward torque " * 4


@pytest.mark.parametrize("title", ["arm", "a_rig_with_a_rather_long_name_" * 5])
@pytest.mark.parametrize("description", ["", "short", LONG])
@pytest.mark.parametrize("interfaces", [ALL, ("position",)])
def test_texts_legend_and_axes_are_inside_the_figure_and_do_not_overlap(
    tmp_path, drawn, title, description, interfaces
):
    t, signals, units = run(["elbow"], interfaces)
    plot_run(tmp_path / "a.png", t, signals, ["elbow"], title, units, LONG, description)
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
    plot_run(path, *run(["elbow"], ("position", "velocity", "effort"))[:2], ["elbow"], "arm", {})
    found = labels(path)
    assert "velocity" in found and "tracking error" not in found
    assert found[-1:] == ["actual"]


def test_columns_without_signals_are_left_out_and_missing_signals_are_marked(tmp_path):
    path = tmp_path / "run.svg"
    t, signals, units = run(["a", "b"], ("position", "effort"))
    del signals["b/effort"]
    plot_run(path, t, signals, ["a", "b"], "arm", units)
    found = labels(path)
    assert "velocity" not in found and "tracking error" not in found
    assert found.count("not recorded") == 1


def test_a_joint_without_a_reference_among_others_is_marked(tmp_path):
    path = tmp_path / "run.svg"
    t, signals, units = run(["a", "b"], ALL)
    del signals["b/reference_position"]
    plot_run(path, t, signals, ["a", "b"], "arm", units)
    assert labels(path).count("no reference") == 1


@pytest.mark.parametrize(("effort", "drawn"), [(0.0, False), (1e-9, True)])
def test_efforts_of_joints_that_swing_freely_are_not_drawn(tmp_path, effort, drawn):
    path = tmp_path / "run.svg"
    t, signals, units = run(["a", "b"], ("position", "velocity", "effort"))
    signals["a/effort"][:] = 0.0
    signals["b/effort"][:] = effort
    plot_run(path, t, signals, ["a", "b"], "arm", units)
    assert ("effort" in labels(path)) is drawn


def test_of_many_joints_the_first_eight_are_drawn_and_the_footer_states_it(tmp_path):
    path = tmp_path / "run.svg"
    joints = [f"j{i}" for i in range(10)]
    t, signals, units = run(joints, ("position",))
    plot_run(path, t, signals, joints, "many", units, "done")
    found = labels(path)
    assert [text for text in found if re.fullmatch(r"j\d", text)] == joints[:8]
    assert "done  ·  the first 8 of 10 joints" in found


def test_the_error_is_reference_minus_measured(tmp_path):
    path = tmp_path / "run.svg"
    t = np.linspace(0.0, 1.0, 50)
    signals = {"j/position": 10 * t, "j/reference_position": 10 * t + 700.0}
    plot_run(path, t, signals, ["j"], "arm", {})
    assert numbers(path)[-3:] == ["700", "720", "740"]


@pytest.mark.parametrize(
    ("suffix", "start"), [("png", b"\x89PNG"), ("PNG", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_the_suffix_chooses_the_format_and_equal_runs_give_equal_files(tmp_path, suffix, start):
    t, signals, units = run(["elbow"], ALL)
    for name in ("a", "b"):
        plot_run(tmp_path / f"{name}.{suffix}", t, signals, ["elbow"], "arm", units)
    # the names that matplotlib gives to the parts of an svg are random
    files = [(tmp_path / f"{name}.{suffix}").read_bytes() for name in ("a", "b")]
    first, second = (re.sub(rb"[#\"][mp][0-9a-f]{10}", b"", data) for data in files)
    assert first.startswith(start)
    assert first == second


@pytest.mark.parametrize("k", [0, 1, 2])
def test_short_runs_are_drawn_without_a_warning(tmp_path, k):
    t, signals, units = run(["elbow"], ALL, k)
    plot_run(tmp_path / "a.png", t, signals, ["elbow"], "arm", units)


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0, 1e99, 1e300, -1.7e308, 1.5])
def test_constant_and_diverged_signals_are_drawn_without_a_warning(tmp_path, value):
    t, signals, units = run(["elbow"], ALL)
    signals["elbow/position"][:] = value
    plot_run(tmp_path / "a.png", t, signals, ["elbow"], "arm", units)


def test_rounding_noise_is_drawn_as_a_flat_line(tmp_path):
    path = tmp_path / "a.svg"
    t = np.linspace(0.0, 1.0, 100)
    plot_run(path, t, {"j/position": 1.5 + 1e-15 * np.sin(40 * t)}, ["j"], "arm", {})
    assert numbers(path)[-3:] == ["1.49999", "1.50000", "1.50001"]


def test_dollars_and_underscores_in_names_stay_as_they_are(tmp_path):
    path = tmp_path / "a.svg"
    t, signals, units = run(["wrist_1$a$"], ("position",))
    plot_run(path, t, signals, ["wrist_1$a$"], "rig $x_1$", units, "$5 and $6")
    assert {"wrist_1$a$", "rig $x_1$", "$5 and $6"} <= set(texts(path))


def test_matplotlib_settings_of_the_user_have_no_effect_and_are_kept(tmp_path):
    import matplotlib

    t, signals, units = run(["elbow"], ALL)
    plot_run(tmp_path / "a.png", t, signals, ["elbow"], "arm", units)
    with matplotlib.rc_context({"font.size": 20.0, "savefig.dpi": 50.0, "axes.facecolor": "red"}):
        plot_run(tmp_path / "b.png", t, signals, ["elbow"], "arm", units)
        assert matplotlib.rcParams["font.size"] == 20.0
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_pyplot_with_its_windows_is_not_imported(tmp_path):
    program = (
        "import sys, numpy as np; from cosim.output.plot import plot_run; "
        "plot_run(sys.argv[1], np.arange(3.0), {'j/position': np.arange(3.0)}, ['j'], 'arm', {}); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", program, tmp_path / "a.png"], cwd=root).returncode == 0


# --- events ---------------------------------------------------------------------------------------


def names_of_events(figure):
    return [[text.get_text() for text in axes.texts] for axes in axes_of(figure)]


def test_events_are_lines_in_all_axes_an_entry_of_the_legend_and_names_above_the_first_row(tmp_path, drawn):
    t, signals, units = run(["a", "b"], ("position", "velocity"))
    signals["energy/stored"] = t
    events = [(0.7, "unlatch $a$"), (0.25, "latch a"), (1.5, "too late"), (0.7, "_brake b")]
    plot_run(tmp_path / "a.png", t, signals, ["a", "b"], "arm", units, events=events)
    (figure,) = drawn
    axes = axes_of(figure)
    assert len(axes) == 5
    for a in axes:
        (lines,) = a.collections
        np.testing.assert_allclose([x for (x, _), _ in lines.get_segments()], [0.25, 0.7])
        assert a.get_xlim() == (0.0, 1.0)
    assert keys(figure.legends[0]) == ["actual", "event"]
    assert names_of_events(figure) == [["latch a", "unlatch $a$, _brake b"]] * 2 + [[]] * 3


@pytest.mark.parametrize("events", [(), [(2.0, "after the end")], [(-1.0, "before")]])
def test_without_events_in_the_run_nothing_is_marked(tmp_path, drawn, events):
    t, signals, units = run(["a"], ("position",))
    plot_run(tmp_path / "a.png", t, signals, ["a"], "arm", units, events=events)
    assert keys(drawn[0].legends[0]) == ["actual"]
    assert not axes_of(drawn[0])[0].collections


def test_names_of_events_do_not_overlap_and_first_occurrences_have_priority(tmp_path, drawn):
    t, signals, units = run(["a"], ("position", "velocity"))
    signals["a/velocity"] *= 1e-7
    rare = {"begin": 0.0, "latch": 0.3, "slip": 0.45, "stick": 0.6, "unlatch": 0.75}
    events = [(0.005 + 0.01 * k, "stop") for k in range(97)] + [(time, name) for name, time in rare.items()]
    plot_run(tmp_path / "a.png", t, signals, ["a"], "arm", units, events=events)
    position, velocity = axes_of(drawn[0])
    assert set(names_of_events(drawn[0])[0]) == {*rare, "stop"}
    for axes in (position, velocity):
        boxes = [text.get_window_extent() for text in (*axes.texts, axes.yaxis.get_offset_text(), axes.title)]
        assert not any(box.overlaps(other) for i, box in enumerate(boxes) for other in boxes[:i] if box.width)
        for box in boxes:
            assert axes.bbox.x0 - 1.0 <= box.x0 and box.x1 <= axes.bbox.x1 + 1.0
    assert velocity.yaxis.get_offset_text().get_text()


def test_a_name_that_is_wider_than_the_axes_is_left_out(tmp_path, drawn):
    t, signals, units = run(["a"], ("position",))
    plot_run(tmp_path / "a.png", t, signals, ["a"], "arm", units, events=[(0.5, "x" * 200), (0.6, "seen")])
    assert names_of_events(drawn[0]) == [["seen"]]


def test_of_very_many_events_the_lines_stay_apart(tmp_path, drawn):
    t, signals, units = run(["a"], ("position",))
    events = [(0.5 + 5e-5 * k, "stop") for k in range(10_000)]
    plot_run(tmp_path / "a.png", t, signals, ["a"], "arm", units, events=events)
    (lines,) = axes_of(drawn[0])[0].collections
    times = [x for (x, _), _ in lines.get_segments()]
    assert len(times) == 75
    assert times[0] == 0.5 and np.diff(times).min() > 0.99 / 150


# --- the mechanism as a whole ---------------------------------------------------------------------


def mechanism(reactions, interfaces=("position", "velocity"), joint="a", **energies):
    """Times, signals and units of a run with energies and reactions `<constraint>/<row>` -> (value, unit)."""
    t, signals, units = run([joint], interfaces)
    signals |= {f"energy/{name}": np.full_like(t, value) for name, value in energies.items()}
    for row, (value, unit) in reactions.items():
        gap = f"{row.rpartition('/')[0]}/violation"
        signals |= {row: np.full_like(t, value), gap: np.zeros_like(t)}
        units |= {row: unit, gap: "m"}
    return t, signals, units


def heights(axes):
    return [line.get_ydata()[0] for line in axes.lines]


def test_energies_span_the_width_and_those_that_stay_zero_are_left_out(tmp_path, drawn):
    energies = {"kinetic": 1.0, "potential": 0.0, "stored": 3.0, "dissipated": 4.0, "work": 0.0}
    t, signals, units = mechanism({}, **energies)
    plot_run(tmp_path / "a.png", t, signals, ["a"], "arm", units)
    position, velocity, energy = axes_of(drawn[0])
    assert (energy.get_title(), energy.get_ylabel()) == ("energy", "J")
    assert keys(energy.get_legend()) == ["kinetic", "total", "dissipated"]
    assert heights(energy) == [1.0, 3.0, 4.0]
    assert energy.get_ylim()[0] < 0.0  # the axis includes 0
    assert energy.bbox.x0 == pytest.approx(position.bbox.x0)
    assert energy.bbox.x1 == pytest.approx(velocity.bbox.x1)


def test_a_total_that_is_zero_is_drawn(tmp_path, drawn):
    t, signals, units = mechanism({}, kinetic=0.0, stored=0.0)
    plot_run(tmp_path / "a.png", t, signals, ["a"], "arm", units)
    assert keys(axes_of(drawn[0])[-1].get_legend()) == ["total"]


FORCES = {"pin/force_x": (3.0, "N"), "pin/force_y": (-4.0, "N"), "pin/moment_z": (100.0, "N*m")}


@pytest.mark.parametrize("interfaces", [("position",), ("position", "velocity"), ("position", "velocity", "effort")])
def test_reactions_stand_beside_the_energies_in_line_with_the_columns(tmp_path, drawn, interfaces):
    t, signals, units = mechanism(FORCES, interfaces, stored=1.0)
    plot_run(tmp_path / "a.png", t, signals, ["a"], "arm", units)
    *row, energy, reactions = axes_of(drawn[0])
    assert [a.get_title() for a in (energy, reactions)] == ["energy", "reactions"]
    assert reactions.get_ylabel() == "N"
    assert keys(reactions.get_legend()) == ["pin"]
    assert heights(reactions) == [5.0]
    assert energy.bbox.x0 == pytest.approx(row[0].bbox.x0)
    assert reactions.bbox.x1 == pytest.approx(row[-1].bbox.x1)
    assert energy.bbox.y1 == pytest.approx(reactions.bbox.y1)
    if len(row) > 1:
        assert reactions.bbox.x0 == pytest.approx(row[-1].bbox.x0)


def test_the_moment_is_shown_where_there_is_no_force_and_names_tell_units_that_differ(tmp_path, drawn):
    rows = FORCES | {"mesh/effort": (-7.0, "N*m"), "own/count": (1.0, "1")}
    t, signals, units = mechanism(rows, stored=1.0)
    plot_run(tmp_path / "a.png", t, signals, ["a"], "arm", units)
    reactions = axes_of(drawn[0])[-1]
    assert keys(reactions.get_legend()) == ["pin [N]", "mesh [N·m]"]
    assert heights(reactions) == [5.0, 7.0]
    assert reactions.get_ylabel() == "N or N·m"


def test_the_effort_of_a_loop_that_has_a_coordinate_is_not_a_reaction(tmp_path, drawn):
    t, signals, units = mechanism({"pin/force_x": (3.0, "N")}, ("position", "effort"), "pin", stored=1.0)
    units["pin/effort"] = "N"
    plot_run(tmp_path / "a.png", t, signals, ["pin"], "arm", units)
    assert heights(axes_of(drawn[0])[-1]) == [3.0]


def test_a_constraint_that_only_slips_has_a_reaction(tmp_path, drawn):
    t, signals, units = mechanism({})
    signals |= {"skate/force": 2.0 + t, "skate/slip": 0.0 * t}
    plot_run(tmp_path / "a.png", t, signals, ["a"], "arm", units | {"skate/force": "N", "skate/slip": "m/s"})
    assert keys(axes_of(drawn[0])[-1].get_legend()) == ["skate"]


def test_of_many_constraints_the_first_six_are_drawn_and_the_footer_says_so(tmp_path, drawn):
    path = tmp_path / "a.svg"
    t, signals, units = mechanism({f"_c{k}$x$/force": (float(k), "N") for k in range(8)}, stored=1.0)
    plot_run(path, t, signals, ["a"], "arm", units, "done")
    reactions = axes_of(drawn[0])[-1]
    assert keys(reactions.get_legend()) == [f"_c{k}$x$" for k in range(6)]
    assert len({line.get_color() for line in reactions.lines}) == 6
    assert {"done  ·  reactions of the first 6 of 8 constraints", "_c0$x$"} <= set(texts(path))


@pytest.mark.parametrize("what", ["reference_position", "reference_velocity"])
def test_where_anything_is_tracked_there_is_no_row_of_the_whole(tmp_path, drawn, what):
    t, signals, units = mechanism(FORCES, stored=1.0)
    signals[f"other/{what}"] = t
    plot_run(tmp_path / "a.png", t, signals, ["a"], "arm", units)
    assert [axes.get_title() for axes in axes_of(drawn[0])] == ["position", "velocity"]


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_broken_energies_and_reactions_are_drawn_without_a_warning(tmp_path, value):
    rows = {"pin/force_x": (value, "N"), "pin/force_y": (value, "N")}
    t, signals, units = mechanism(rows, kinetic=value, stored=value)
    plot_run(tmp_path / "a.png", t, signals, ["a"], "arm", units, events=[(0.5, "latch")])


@pytest.mark.parametrize("k", [0, 1, 2])
def test_short_runs_of_mechanisms_are_drawn_without_a_warning(tmp_path, k):
    t, signals, units = mechanism(FORCES, stored=1.0)
    signals = {name: values[:k] for name, values in signals.items()}
    plot_run(tmp_path / "a.png", t[:k], signals, ["a"], "arm", units, events=[(0.0, "latch")])


@pytest.mark.parametrize("interfaces", [("position",), ("position", "velocity"), ("position", "velocity", "effort")])
@pytest.mark.parametrize("length", [1, 12, 80])
def test_all_parts_of_a_mechanism_stay_on_the_picture_and_apart(tmp_path, drawn, interfaces, length):
    rows = {f"{'c' * length}{k}/{w}": (1e7 * k, u) for k, (w, u) in enumerate([("force", "N"), ("effort", "N*m")] * 3)}
    energies = {"kinetic": 1e-5, "potential": 2e-5, "stored": 3e-5, "dissipated": 4e-5, "work": 5e-5}
    t, signals, units = mechanism(rows, interfaces, **energies)
    events = [(0.5, "latch a"), (0.98, "unlatch a"), (0.0, "brake a")]
    plot_run(tmp_path / "a.png", t, signals, ["a"], "arm", units, LONG, LONG, events)
    (figure,) = drawn
    boxes = [part.get_window_extent() for part in (*figure.texts, *figure.legends)]
    for axes in figure.axes:
        inside = [axes.bbox] if axes.axison else []
        inside += [part.get_window_extent() for part in (*axes.texts, axes.title) if axes.axison and part.get_text()]
        if axes.get_legend():
            inside += [axes.get_legend().get_window_extent(), axes.yaxis.get_offset_text().get_window_extent()]
        for i, box in enumerate(inside):
            assert not any(box.overlaps(other) for other in inside[:i])
        boxes.append(axes.get_tightbbox())
    for i, box in enumerate(boxes):
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1
        assert not any(box.overlaps(other) for other in boxes[:i])


# --- rotations in space ---------------------------------------------------------------------------


def tumbling(k=1000):
    """A joint whose rotation vector changes to the opposite one at t = 0.5, mostly along x."""
    t = np.linspace(0.0, 1.0, k)
    turned = np.where(t < 0.5, 1.0, -1.0)
    signals = {f"ball.{dof}/position": size * turned for dof, size in (("rx", 3.1), ("ry", 0.2), ("x", 1.0))}
    units = dict.fromkeys(("ball.rx/position", "ball.ry/position"), "rad") | {"ball.x/position": "m"}
    signals |= {"ball.rx/velocity": 9.0 * turned, "ball.qx/position": t}
    return t, signals, units | {"ball.rx/velocity": "rad/s", "ball.qx/position": "1"}


def gaps(axes):
    return [int(np.isnan(line.get_ydata()).sum()) for line in axes.lines]


def test_angles_of_a_rotation_break_where_it_jumps_in_all_parts_at_once(tmp_path, drawn):
    t, signals, units = tumbling()
    plot_run(tmp_path / "a.png", t, signals, ["ball.rx", "ball.ry", "ball.x"], "arm", units)
    axes = axes_of(drawn[0])
    assert [gaps(a) for a in axes[::2]] == [[1], [1], [0]]
    assert gaps(axes[1]) == [0]  # the velocity
    (line,) = axes[0].lines
    x, y = line.get_data()
    assert x[np.isnan(y)] == pytest.approx(t[499])
    np.testing.assert_array_equal(y[~np.isnan(y)], signals["ball.rx/position"])


@pytest.mark.parametrize("other", ["hinge", "ball.base", "bal"])
def test_joints_without_a_quaternion_do_not_break(tmp_path, drawn, other):
    t, signals, units = tumbling()
    signals = {name.replace("ball.rx", f"{other}.rx"): values for name, values in signals.items()}
    plot_run(tmp_path / "a.png", t, signals, [f"{other}.rx"], "arm", units | {f"{other}.rx/position": "rad"})
    assert gaps(axes_of(drawn[0])[0]) == [0]


def test_pieces_are_thinned_alone_and_lose_no_peak():
    x = np.arange(100_000.0)
    y = np.sin(x / 5000)
    y[[17, 50_010]] = [5.0, -7.0]
    kept_x, kept_y = thin_pieces(x, y, np.array([20, 50_000]), columns=100)
    gap = np.flatnonzero(np.isnan(kept_y))
    assert len(gap) == 2
    assert kept_x[gap[0] + 1] >= 20.0 and kept_x[gap[1] + 1] >= 50_000.0
    assert kept_x[gap[0]] < 20.0 and kept_x[gap[1]] < 50_000.0
    assert len(kept_x) < 220
    assert {17.0, 50_010.0} <= set(kept_x)


# --- thinning -------------------------------------------------------------------------------------


def test_short_curves_are_not_thinned():
    x = np.arange(20.0)
    kept_x, kept_y = thin(x, x**2, columns=10)
    np.testing.assert_array_equal(kept_x, x)
    np.testing.assert_array_equal(kept_y, x**2)


@pytest.mark.parametrize("k", [100_000, 99_999, 100_001, 12_345])
def test_thinning_keeps_every_peak_and_the_order(k):
    x = np.arange(float(k))
    y = np.sin(x / 500)
    y[[17, k // 2, k - 1]] = [5.0, -7.0, 9.0]
    kept_x, kept_y = thin(x, y, columns=100)
    assert len(kept_x) <= 200
    assert np.all(np.diff(kept_x) > 0)
    np.testing.assert_array_equal(kept_y, y[kept_x.astype(int)])
    assert {17.0, float(k // 2), k - 1.0} <= set(kept_x)


def test_gaps_stay_gaps_and_hide_no_peak():
    x = np.arange(1000.0)
    y = np.zeros(1000)
    y[200:400] = np.nan
    y[405] = np.inf
    y[409] = 3.0
    kept_x, kept_y = thin(x, y, columns=100)
    assert np.all(np.isnan(kept_y[(kept_x >= 200) & (kept_x < 400)]))
    assert np.sum((kept_x >= 200) & (kept_x < 400)) == 20
    assert kept_y[kept_x == 409.0] == 3.0
    assert not np.any(np.isinf(kept_y))


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "suffix"), [("run.gif", ".gif"), ("run", "."), ("run.", ".")])
def test_an_unknown_suffix_is_an_input_error(tmp_path, name, suffix):
    path = tmp_path / name
    t, signals, units = run(["elbow"], ALL)
    with pytest.raises(InputError) as error:
        plot_run(path, t, signals, ["elbow"], "arm", units)
    assert str(error.value) == f"{path}: cannot draw a plot as '{suffix}'; use png, svg, pdf"


def test_a_path_that_cannot_be_written_is_an_input_error(tmp_path):
    path = tmp_path / "missing" / "run.png"
    t, signals, units = run(["elbow"], ALL)
    with pytest.raises(InputError) as error:
        plot_run(path, t, signals, ["elbow"], "arm", units)
    what = "cannot write the plot: No such file or directory"
    fix = "name a file in a folder that exists and that you may write to"
    assert str(error.value) == f"{path}: {what}; {fix}"


def test_nothing_to_draw_is_an_input_error(tmp_path):
    path = tmp_path / "run.png"
    with pytest.raises(InputError) as error:
        plot_run(path, np.zeros(3), {"elbow/current": np.zeros(3)}, ["elbow"], "arm", {})
    what = "nothing to plot; no joint has a position, velocity or effort"
    assert str(error.value) == f"{path}: {what}"
    assert not path.exists()
