"""Which curves belong in one chart, and in which style."""

from collections import Counter
from typing import get_args

import numpy as np
import pytest

from cosim import load_rig
from cosim.apps.dashboard.curves import shown_charts
from cosim.apps.deploy.page.page import chart_facts
from cosim.core.types import Role, Signal
from cosim.core.units import quantity_unit
from cosim.output.layouts import tabs_of
from cosim.output.palette import DARK, PALETTE
from cosim.output.plot import RunPlot
from cosim.output.signal_charts import ORDER, STYLES, charts_of
from cosim.simulation.tick.signals import JOINT_SIGNALS
from tests.output.plot_helpers import axes_of

EVERYTHING = {f"j/{word}": quantity_unit(signal.unit, "rad") for word, signal in JOINT_SIGNALS.items()}
MOTION = {f"j/{word}": EVERYTHING[f"j/{word}"] for word in ("reference_position", "position", "velocity")}


def curves_by_title(units, declared=None):
    (charts,) = charts_of(units, declared or {}).values()
    return {title: [(curve.label, curve.signals) for curve in chart.curves] for title, chart in charts.items()}


def test_each_role_has_a_style_of_its_own():
    assert set(STYLES) == set(get_args(Role))
    for field in ("label", "color"):
        assert len({getattr(style, field) for style in STYLES.values()}) == len(STYLES)
    assert {style.color for style in STYLES.values()} <= set(PALETTE) == set(DARK)


def test_each_declared_signal_of_a_joint_is_in_one_chart():
    charts = charts_of(EVERYTHING)["j"]
    shown = Counter(signal for chart in charts.values() for curve in chart.curves for signal in curve.signals)
    assert shown == Counter(list(EVERYTHING))
    assert tuple(charts)[: len(ORDER)] == ORDER
    for title, chart in charts.items():
        words = [curve.signals[0].removeprefix("j/") for curve in chart.curves]
        assert {JOINT_SIGNALS[word].chart or word for word in words} == {title}
        looks = {(curve.color, curve.dashed) for curve in chart.curves}
        assert len({curve.label for curve in chart.curves}) == len(looks) == len(words)


def test_what_was_measured_is_behind_the_actual_value_and_the_reference_before_it():
    units = {**MOTION, "j/measured_position": "rad"}
    assert [label for label, _ in curves_by_title(units)["position"]] == ["measured", "actual", "reference"]


def test_the_tracking_error_is_a_difference_where_none_was_measured():
    assert curves_by_title(MOTION)["tracking error"] == [("reference − actual", ("j/reference_position", "j/position"))]
    measured = curves_by_title({**MOTION, "j/measured_error": "rad"})
    assert measured["tracking error"] == [("reference − actual", ("j/measured_error",))]
    assert "tracking error" not in curves_by_title({"j/position": "rad"})


def test_signals_that_nobody_declares_have_a_chart_of_their_own():
    charts = charts_of({**MOTION, "j/integral": "N*m", "arm/predicted_cost": "1"})
    assert tuple(charts["j"]) == ("position", "tracking error", "velocity", "integral")
    (curve,) = charts["arm"]["predicted_cost"].curves
    assert (curve.label, charts["j"]["integral"].unit) == ("predicted_cost", "N·m")


def test_a_second_curve_of_a_role_has_its_name_and_a_colour_that_is_free():
    """Of what a drive holds, the command of the controller is the first."""
    units = {"j/effort_setpoint": "N*m", "j/effort": "N*m", "j/command_effort": "N*m"}
    declared = {name: Signal((), "N*m", role="command", chart="effort") for name in units if name != "j/effort"}
    effort = charts_of(units, declared)["j"]["effort"].curves
    assert [curve.label for curve in effort] == ["actual", "commanded", "effort setpoint"]
    assert len({curve.color for curve in effort}) == 3


def test_a_signal_in_another_unit_stays_out_of_a_chart():
    units = {"j/position": "rad", "j/turns": "1"}
    charts = charts_of(units, {"j/turns": Signal((), "1", chart="position")})["j"]
    assert [chart.unit for chart in charts.values()] == ["rad", ""]


@pytest.fixture(scope="module")
def rig():
    return load_rig("rigs/drives/servo_axis.yaml")


def test_all_that_draws_a_rig_shows_the_same_curves(rig):
    """Its plot, its layouts, its dashboard, and its page."""
    declared = rig.tick_model.signals.declared
    units = {name: signal.unit for name, signal in declared.items()}
    charts = charts_of(units)["axis"]
    known = {title: [curve.label for curve in chart.curves] for title, chart in charts.items()}
    t = np.linspace(0.0, 1.0, 5)
    plot = RunPlot(t, {name: t + k for k, name in enumerate(units)}, ["axis"], "servo_axis", units).draw()
    columns = {a.get_title(): [line.get_label() for line in a.lines] for a in axes_of(plot) if a.get_title() in known}
    assert columns == {title: known[title] for title in ("position", "effort", "tracking error")}
    tabs = {tab.title: {curve.label for curve in tab.plots[0].curves} for tab in tabs_of(units, ["axis"])}
    assert {title: labels for title, labels in tabs.items() if title in known} == {
        title: set(known[title]) for title in ("position", "velocity", "effort")
    }
    assert {chart.title: [curve.label for curve in chart.curves] for chart in shown_charts(charts)} == columns
    of_page = {fact["title"]: fact for fact in chart_facts(declared) if fact["owner"] == "axis"}
    names = list(declared)
    for title in ("position", "tracking error"):
        shown = [(curve["label"], tuple(names[k] for k in curve["of"])) for curve in of_page[title]["curves"]]
        assert shown == [(curve.label, curve.signals) for curve in charts[title].curves]
    assert Counter(k for f in chart_facts(declared) for c in f["curves"] if len(c["of"]) == 1 for k in c["of"]) == (
        Counter(range(len(declared)))
    )
