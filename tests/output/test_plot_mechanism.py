"""Plots: events, energies and reactions."""

import numpy as np
import pytest

from tests.output.plot_helpers import (
    LONG,
    assert_apart,
    assert_on_the_picture_and_apart,
    axes_of,
    figure_of,
    keys,
    run,
    words,
)


def names_of_events(figure):
    return [[text.get_text() for text in axes.texts] for axes in axes_of(figure)]


def test_events_are_lines_in_all_axes_an_entry_of_the_legend_and_names_above_the_first_row():
    t, signals, units = run(["a", "b"], ("position", "velocity"))
    signals["energy/stored"] = t
    events = [(0.7, "unlatch $a$"), (0.25, "latch a"), (1.5, "too late"), (0.7, "_brake b")]
    figure = figure_of((t, signals, units), ["a", "b"], events=events)
    axes = axes_of(figure)
    assert len(axes) == 5
    for a in axes:
        (lines,) = a.collections
        np.testing.assert_allclose([x for (x, _), _ in lines.get_segments()], [0.25, 0.7])
        assert a.get_xlim() == (0.0, 1.0)
    assert keys(figure.legends[0]) == ["actual", "event"]
    assert names_of_events(figure) == [["latch a", "unlatch $a$, _brake b"]] * 2 + [[]] * 3


@pytest.mark.parametrize("events", [(), [(2.0, "after the end")], [(-1.0, "before")]])
def test_without_events_in_the_run_nothing_is_marked(events):
    t, signals, units = run(["a"], ("position",))
    figure = figure_of((t, signals, units), events=events)
    assert keys(figure.legends[0]) == ["actual"]
    assert not axes_of(figure)[0].collections


def test_names_of_events_do_not_overlap_and_first_occurrences_have_priority():
    t, signals, units = run(["a"], ("position", "velocity"))
    signals["a/velocity"] *= 1e-7
    rare = {"begin": 0.0, "latch": 0.3, "slip": 0.45, "stick": 0.6, "unlatch": 0.75}
    events = [(0.005 + 0.01 * k, "stop") for k in range(97)] + [(time, name) for name, time in rare.items()]
    figure = figure_of((t, signals, units), events=events)
    position, velocity = axes_of(figure)
    assert set(names_of_events(figure)[0]) == {*rare, "stop"}
    for axes in (position, velocity):
        boxes = [text.get_window_extent() for text in (*axes.texts, axes.yaxis.get_offset_text(), axes.title)]
        assert_apart([box for box in boxes if box.width])
        for box in boxes:
            assert axes.bbox.x0 - 1.0 <= box.x0 and box.x1 <= axes.bbox.x1 + 1.0
    assert velocity.yaxis.get_offset_text().get_text()


def test_a_name_that_is_wider_than_the_axes_is_left_out():
    t, signals, units = run(["a"], ("position",))
    figure = figure_of((t, signals, units), events=[(0.5, "x" * 200), (0.6, "seen")])
    assert names_of_events(figure) == [["seen"]]


def test_of_very_many_events_the_lines_stay_apart():
    t, signals, units = run(["a"], ("position",))
    events = [(0.5 + 5e-5 * k, "stop") for k in range(10_000)]
    figure = figure_of((t, signals, units), events=events)
    (lines,) = axes_of(figure)[0].collections
    times = [x for (x, _), _ in lines.get_segments()]
    assert len(times) == 75
    assert times[0] == 0.5 and np.diff(times).min() > 0.99 / 150


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


def test_energies_span_the_width_and_those_that_stay_zero_are_left_out():
    energies = {"kinetic": 1.0, "potential": 0.0, "stored": 3.0, "dissipated": 4.0, "work": 0.0}
    t, signals, units = mechanism({}, **energies)
    figure = figure_of((t, signals, units))
    position, velocity, energy = axes_of(figure)
    assert (energy.get_title(), energy.get_ylabel()) == ("energy", "J")
    assert keys(energy.get_legend()) == ["kinetic", "total", "dissipated"]
    assert heights(energy) == [1.0, 3.0, 4.0]
    assert energy.get_ylim()[0] < 0.0  # the axis includes 0
    assert energy.bbox.x0 == pytest.approx(position.bbox.x0)
    assert energy.bbox.x1 == pytest.approx(velocity.bbox.x1)


def test_the_potential_energy_starts_at_zero():
    t, signals, units = mechanism({}, kinetic=1.0, dissipated=0.0)
    signals |= {"energy/potential": 27.0 - t, "energy/stored": 28.0 - t}
    figure = figure_of((t, signals, units))
    energy = axes_of(figure)[-1]
    assert energy.get_title() == "energy; potential: its change"
    assert keys(energy.get_legend()) == ["kinetic", "potential", "total"]
    assert heights(energy) == [1.0, 0.0, 1.0]
    assert [line.get_ydata()[-1] for line in energy.lines] == [1.0, -1.0, 0.0]


def test_a_total_that_is_zero_is_drawn():
    t, signals, units = mechanism({}, kinetic=0.0, stored=0.0)
    figure = figure_of((t, signals, units))
    assert keys(axes_of(figure)[-1].get_legend()) == ["total"]


FORCES = {"pin/force_x": (3.0, "N"), "pin/force_y": (-4.0, "N"), "pin/moment_z": (100.0, "N*m")}


@pytest.mark.parametrize("interfaces", [("position",), ("position", "velocity", "effort")])
def test_reactions_stand_beside_the_energies_in_line_with_the_columns(interfaces):
    t, signals, units = mechanism(FORCES, interfaces, stored=1.0)
    figure = figure_of((t, signals, units))
    *row, energy, reactions = axes_of(figure)
    assert [a.get_title() for a in (energy, reactions)] == ["energy", "reactions"]
    assert reactions.get_ylabel() == "N"
    assert keys(reactions.get_legend()) == ["pin"]
    assert heights(reactions) == [5.0]
    assert energy.bbox.x0 == pytest.approx(row[0].bbox.x0)
    assert reactions.bbox.x1 == pytest.approx(row[-1].bbox.x1)
    assert energy.bbox.y1 == pytest.approx(reactions.bbox.y1)
    if len(row) > 1:
        assert reactions.bbox.x0 == pytest.approx(row[-1].bbox.x0)


def test_the_moment_is_shown_where_there_is_no_force_and_names_have_units_that_differ():
    rows = FORCES | {"mesh/effort": (-7.0, "N*m"), "own/count": (1.0, "1")}
    t, signals, units = mechanism(rows, stored=1.0)
    figure = figure_of((t, signals, units))
    reactions = axes_of(figure)[-1]
    assert keys(reactions.get_legend()) == ["pin [N]", "mesh [N·m]"]
    assert heights(reactions) == [5.0, 7.0]
    assert reactions.get_ylabel() == "N or N·m"


def test_the_effort_of_a_loop_that_has_a_coordinate_is_not_a_reaction():
    t, signals, units = mechanism({"pin/force_x": (3.0, "N")}, ("position", "effort"), "pin", stored=1.0)
    units["pin/effort"] = "N"
    figure = figure_of((t, signals, units), ["pin"])
    assert heights(axes_of(figure)[-1]) == [3.0]


def test_a_constraint_that_only_slips_has_a_reaction():
    t, signals, units = mechanism({})
    signals |= {"skate/force": 2.0 + t, "skate/slip": 0.0 * t}
    figure = figure_of((t, signals, units | {"skate/force": "N", "skate/slip": "m/s"}))
    assert keys(axes_of(figure)[-1].get_legend()) == ["skate"]


def test_of_many_constraints_the_first_six_are_drawn_and_the_footer_states_it():
    t, signals, units = mechanism({f"_c{k}$x$/force": (float(k), "N") for k in range(8)}, stored=1.0)
    figure = figure_of((t, signals, units), note="done")
    reactions = axes_of(figure)[-1]
    assert keys(reactions.get_legend()) == [f"_c{k}$x$" for k in range(6)]
    assert len({line.get_color() for line in reactions.lines}) == 6
    assert {"done  ·  reactions of the first 6 of 8 constraints", "_c0$x$"} <= set(words(figure))


@pytest.mark.parametrize("what", ["reference_position", "reference_velocity"])
def test_where_anything_is_tracked_there_is_no_row_of_the_whole(what):
    t, signals, units = mechanism(FORCES, stored=1.0)
    signals[f"other/{what}"] = t
    figure = figure_of((t, signals, units))
    assert [axes.get_title() for axes in axes_of(figure)] == ["position", "velocity"]


@pytest.mark.parametrize("value", [np.nan, 1e300])
def test_broken_energies_and_reactions_are_drawn_without_a_warning(value):
    rows = {"pin/force_x": (value, "N"), "pin/force_y": (value, "N")}
    t, signals, units = mechanism(rows, kinetic=value, stored=value)
    figure_of((t, signals, units), events=[(0.5, "latch")]).draw_without_rendering()


@pytest.mark.parametrize("k", [0, 1, 2])
def test_short_runs_of_mechanisms_are_drawn_without_a_warning(k):
    t, signals, units = mechanism(FORCES, stored=1.0)
    signals = {name: values[:k] for name, values in signals.items()}
    figure_of((t[:k], signals, units), events=[(0.0, "latch")]).draw_without_rendering()


@pytest.mark.parametrize(
    ("length", "interfaces"),
    [(1, ("position",)), (12, ("position", "velocity")), (80, ("position", "velocity", "effort"))],
)
def test_all_parts_of_a_mechanism_stay_on_the_picture_and_apart(interfaces, length):
    rows = {f"{'c' * length}{k}/{w}": (1e7 * k, u) for k, (w, u) in enumerate([("force", "N"), ("effort", "N*m")] * 3)}
    energies = {"kinetic": 1e-5, "potential": 2e-5, "stored": 3e-5, "dissipated": 4e-5, "work": 5e-5}
    t, signals, units = mechanism(rows, interfaces, **energies)
    events = [(0.5, "latch a"), (0.98, "unlatch a"), (0.0, "brake a")]
    figure = figure_of((t, signals, units), note=LONG, description=LONG, events=events)
    boxes = [part.get_window_extent() for part in (*figure.texts, *figure.legends)]
    for axes in figure.axes:
        inside = [axes.bbox] if axes.axison else []
        inside += [part.get_window_extent() for part in (*axes.texts, axes.title) if axes.axison and part.get_text()]
        if axes.get_legend():
            inside += [axes.get_legend().get_window_extent(), axes.yaxis.get_offset_text().get_window_extent()]
        assert_apart(inside)
        boxes.append(axes.get_tightbbox())
    assert_on_the_picture_and_apart(figure, boxes)
