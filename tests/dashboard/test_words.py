"""What a page states about its run."""

import numpy as np

from cosim.apps.dashboard.curves import chart_of_signals, shown_charts, values_of
from cosim.apps.dashboard.health import at_limits, figures, percentiles
from cosim.apps.dashboard.run_control import Note
from cosim.apps.dashboard.source import JointAbout, PageEvent, Status
from cosim.apps.dashboard.words import MOST_EVENTS, control_html, events_html, gathered, headline
from cosim.output.signal_charts import charts_of

UNITS = {"a/position": "rad", "a/reference_position": "rad", "a/effort": "N*m", "b/position": "m"}


GONE = Status("gone", reason="its process was killed by signal 9")
STATES = [Status("running", 0.1), Status("running", 4.2), Status("waiting", 60.0), GONE, Status("paused")]


def test_the_headline_states_the_state_and_whether_data_are_old(said) -> None:
    """Of a paused run with its time to the millisecond."""
    said(": ".join(headline(status, "arm", 1.5)[:2]) for status in STATES)


def test_what_was_refused_and_what_will_move_stand_with_who_has_control() -> None:
    text = control_html("You have control.", Note("pause: <no>", "error"), ["driver can0: up to 34%"])
    assert "You have control." in text and "pause: &lt;no&gt;" in text and "driver can0: up to 34%" in text
    assert "data-moves" not in control_html("You have control.", Note(), [])


def test_the_load_of_a_bus_is_a_warning_near_its_end() -> None:
    rows = figures({}, {}.__getitem__, 1e-3, 0, {}, {"can0": 0.34, "can1": 0.9})
    expected = [("buses", "can0", "up to 34%", False), ("buses", "can1", "up to 90%", True)]
    assert [(row.group, row.name, row.value, row.warning) for row in rows] == expected


def test_events_are_listed_the_newest_first_and_cannot_be_html() -> None:
    text = events_html([PageEvent(1.0, "first", "info"), PageEvent(2.0, "<b>", "error")])
    assert text.index("2.000 s") < text.index("1.000 s")
    assert "&lt;b&gt;" in text and "<b>" not in text


def test_charts_of_a_joint_are_of_its_signals() -> None:
    charts = shown_charts(charts_of(UNITS)["a"])
    titles = [("position", "rad"), ("tracking error", "rad"), ("effort", "N·m")]
    assert [(chart.title, chart.unit) for chart in charts] == titles
    (error,) = charts[1].curves
    values = {"a/position": np.array([1.0, 2.0]), "a/reference_position": np.array([1.5, 2.0])}
    np.testing.assert_array_equal(values_of(error, values.__getitem__), [0.5, 0.0])
    untracked = charts_of({**UNITS, "b/velocity": "m/s"})["b"]
    assert [chart.title for chart in shown_charts(untracked)] == ["position", "velocity"]


def test_a_chart_of_signals_has_all_of_their_units() -> None:
    chart = chart_of_signals(["a/position", "a/effort"], UNITS)
    assert chart.unit == "rad, N·m" and len({curve.color for curve in chart.curves}) == 2


def test_the_energy_residual_is_what_the_balance_lacks() -> None:
    units = {"energy/stored": "J", "energy/work": "J", "energy/dissipated": "J"}
    columns = {name: np.array([value]) for name, value in zip(units, (7.0, 10.0, 4.5), strict=True)}
    rows = figures(units, columns.__getitem__, 1e-3, 0, {"energy/stored": 1.0})
    assert rows[-1].value == "-5.0e-01 J (-5e-02)"


def test_ticks_that_end_after_their_period_are_late() -> None:
    units = {"timing/end_to_end": "s", "a/temperature": "degC"}
    columns = {"timing/end_to_end": np.array([0.5e-3, 1.5e-3, 2e-3]), "a/temperature": np.array([81.0])}
    late, lost, hot = figures(units, columns.__getitem__, 1e-3, 3, {})[1:]
    assert (late.value, late.warning) == ("2 of 3", True)
    assert (lost.value, hot.name, hot.value, hot.warning) == ("3", "a temperature", "81 °C", True)


def test_percentiles_are_in_microseconds() -> None:
    assert percentiles(np.array([1e-6, 3e-6, np.nan, 2e-6])) == "2 · 3 · 3 µs"
    assert percentiles(np.array([np.nan])) == "–"


def test_joints_at_their_limits_are_found() -> None:
    joints = {"a": JointAbout("rad", -1.0, 1.0), "b": JointAbout("rad", -1.0, 1.0), "c": JointAbout("rad")}
    assert at_limits(joints, {"a": 0.99, "b": -1.2, "c": 5.0}) == {"a": "upper", "b": "lower"}
    assert at_limits(joints, {"a": 0.5}) == {}


def test_events_that_differ_in_numbers_alone_are_gathered():
    misses = [
        PageEvent(t, f"missed a deadline by {late} in read: wake-up latency", "warning")
        for t, late in ((1.0, "2.72 ms"), (1.5, "323 µs"), (2.25, "1e-05 s"))
    ]
    stop = PageEvent(2.5, "limit of joint 2 reached", "warning")
    assert gathered([*misses, stop]) == [(stop, 1, 2.5), (misses[2], 3, 1.0)]
    assert "1e-05 s in read: wake-up latency · 2 more like it since 1.000 s" in events_html(misses)
    hot = [
        PageEvent(float(k), f"wrist_{k}: temperature beyond its limit of 80 degC (warned)", "warning") for k in (1, 2)
    ]
    assert [group.number for group in gathered(hot)] == [1, 1]
    other = misses[0]._replace(level="error")
    assert [group.number for group in gathered([misses[0], other, misses[0]])] == [1, 1, 1]


def test_the_last_events_are_shown():
    events = [PageEvent(float(k), "ab"[k % 2], "info") for k in range(3 * MOST_EVENTS)]
    shown = gathered(events)
    assert len(shown) == MOST_EVENTS and shown[0].event is events[-1]
