"""Charts of reports: their axes, curves and marks."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from cosim.output.svg_chart import ChartAxis, SvgChart


@pytest.mark.parametrize(
    ("low", "high", "logarithmic", "ticks"),
    [
        (0.0, 5.0, False, [0, 1, 2, 3, 4, 5]),
        (-48.0, 65.0, False, [-40, -20, 0, 20, 40, 60]),
        (0.0011, 0.0019, False, [0.0012, 0.0014, 0.0016, 0.0018]),
        (0.01, 100.0, True, [0.01, 0.1, 1, 10, 100]),
        (2.0, 8.0, True, [2, 4, 8]),
    ],
)
def test_ticks(low, high, logarithmic, ticks):
    assert ChartAxis(low, high, logarithmic).ticks == pytest.approx(ticks)


def test_places_are_linear_or_logarithmic():
    values = np.array([1.0, 10.0, 100.0])
    assert ChartAxis(1.0, 100.0, True).places(values, 0.0, 200.0) == pytest.approx([0, 100, 200])
    assert ChartAxis(0.0, 100.0, False).places(values, 0.0, 200.0) == pytest.approx([2, 20, 200])
    assert np.isnan(ChartAxis(1.0, 100.0, True).places(np.array([-1.0]), 0.0, 1.0)).all()


def test_a_range_of_one_value_or_of_none_has_axes():
    for low, high in ((3.0, 3.0), (0.0, 0.0), (np.nan, np.nan)):
        axis = ChartAxis(low, high, True)
        assert axis.low < axis.high and axis.ticks


def test_a_chart_is_well_formed_and_interrupts_a_curve_where_it_is_not_finite():
    chart = SvgChart("a < b", "time [s]", log=(False, True))
    chart.line(np.arange(5.0), np.array([1.0, 10.0, np.nan, 100.0, 1000.0]), "#123456", "c & d")
    chart.dots(np.array([1.0, 2.0]), np.array([5.0, np.inf]), "#654321")
    chart.level(10.0)
    svg = chart.svg()
    ElementTree.fromstring(svg)
    (curve,) = re.findall(r'stroke="#123456"[^>]* d="([^"]*)"', svg)[:1]
    assert curve.count("M") == 2 and curve.count("L") == 2
    (dots,) = re.findall(r'stroke="#654321"[^>]* d="([^"]*)"', svg)
    assert dots.count("M") == 1  # what is infinite has no place


def test_a_band_lies_between_its_curves_and_keeps_their_peaks():
    x = np.arange(10000.0)
    low, high = np.zeros(10000), np.ones(10000)
    low[5000], high[7000] = -9.0, 21.0
    chart = SvgChart("a", "time [s]")
    chart.band(x, low, high, "#123456", "band")
    svg = chart.svg()
    ElementTree.fromstring(svg)
    (band,) = re.findall(r'fill="#123456"[^>]* d="(M[^"]*Z)"', svg)[:1]
    points = np.array([point.split(" ") for point in re.findall(r"[\d.]+ [\d.]+", band)], dtype=float)
    assert len(points) < 1000
    ticks = dict(re.findall(r'y="([\d.]+)" text-anchor="end"[^>]*>(-?[\d.]+)<', svg))
    places = sorted(ticks, key=float)
    per_unit = (float(places[-1]) - float(places[0])) / (float(ticks[places[0]]) - float(ticks[places[-1]]))
    assert np.ptp(points[:, 1]) == pytest.approx(30.0 * per_unit, abs=0.5)


def test_named_rows_are_read_from_the_top():
    chart = SvgChart("cost", "")
    chart.dots(np.array([1.0, 2.0]), np.array([0.0, 1.0]), "#123456")
    chart.name_rows(["first", "second"])
    svg = chart.svg()
    first, second = (float(re.findall(rf'y="([\d.]+)"[^>]*>{name}<', svg)[0]) for name in ("first", "second"))
    assert first < second


def test_a_shade_is_behind_the_curves_between_its_values():
    chart = SvgChart("drive", "time [s]", width=462, height=200)
    chart.line(np.array([0.0, 4.0]), np.array([0.0, 1.0]), "#123456")
    chart.shade(1.0, 3.0)
    svg = chart.svg()
    ((left, right),) = re.findall(r'<path fill="#[0-9a-f]+" d="M([\d.]+) [\d.]+V[\d.]+H([\d.]+)', svg)
    assert [float(left), float(right)] == [152.0, 352.0]  # of 400 pixels from 52 on
    assert svg.index("<path fill=") < svg.index('stroke="#123456"')
