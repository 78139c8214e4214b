"""Layouts of viewers: which plots of which signals are in which tabs, for Foxglove with the mechanism in 3D, events and
parameters, and for PlotJuggler 3.x with curves by name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from cosim.core.recordings.sample_encoding import topics_of
from cosim.core.recordings.topics import LOG_TOPIC
from cosim.output.scene.scene import Scene
from cosim.output.signal_charts import EFFORT, POSITION, TRACKING_ERROR, VELOCITY, SignalCurve, charts_of, curves_beside

MOST_PLOTS = 12  # in a tab
MOST_ROWS = 4  # in a column of plots

# titles of the charts of joints that have a tab
JOINT_TABS = POSITION, TRACKING_ERROR, VELOCITY, EFFORT, "current", "temperature"
PARTS = "parts"  # tab of a rig without joints
RIG_TABS = ("energy", "timing")  # groups of signals, each in one plot

STACKED, SIDE_BY_SIDE = "-", "|"


class LayoutPlot(NamedTuple):
    """A chart in a tab of a viewer. curves: of a signal each."""

    title: str
    curves: tuple[SignalCurve, ...]


class LayoutTab(NamedTuple):
    title: str
    plots: tuple[LayoutPlot, ...]

    @property
    def columns(self) -> list[tuple[LayoutPlot, ...]]:
        """At most MOST_ROWS plots above each other."""
        return [self.plots[k : k + MOST_ROWS] for k in range(0, len(self.plots), MOST_ROWS)]


VIEW, PLOTS, LOG, PARAMETERS = "3D!view", "Tab!plots", "RosOut!events", "Parameters!parameters"  # kind of panel, name
SHOWN = ("/scene", "/tf", "/tf_static")
PLAIN = re.compile(r"[\w/]+")  # a topic that needs no quotes in a path
DEBUG = 1  # level of events


def tabs_of(units: Mapping[str, str], joints: Sequence[str]) -> list[LayoutTab]:
    """Tabs without plots, and plots without curves, are left out. units: of the signals by name."""
    tabs, charts = list[LayoutTab](), charts_of(units)
    for title in JOINT_TABS:
        found = [charts[joint][title] for joint in joints if title in charts.get(joint, {})]
        plots = [LayoutPlot(chart.owner, _in_viewers(chart.curves)) for chart in found]
        tabs += _numbered(title, [plot for plot in plots if plot.curves])
    groups = _by_owner(units)
    if not joints:
        tabs += _numbered(PARTS, [plot for plot in groups if plot.title not in RIG_TABS])
    return tabs + [LayoutTab(plot.title, (plot,)) for group in RIG_TABS for plot in groups if plot.title == group]


def _in_viewers(curves: Sequence[SignalCurve]) -> tuple[SignalCurve, ...]:
    """Viewers compute no differences, and draw no dashes, which would hide what is behind them."""
    return tuple(sorted((curve for curve in curves if len(curve.signals) == 1), key=lambda curve: not curve.dashed))


def _numbered(title: str, plots: Sequence[LayoutPlot]) -> Iterator[LayoutTab]:
    """Tabs of at most MOST_PLOTS."""
    for first in range(0, len(plots), MOST_PLOTS):
        last = min(first + MOST_PLOTS, len(plots))
        numbered = f"{title} {first + 1}–{last}" if len(plots) > MOST_PLOTS else title
        yield LayoutTab(numbered, tuple(plots[first:last]))


def _by_owner(signals: Iterable[str]) -> list[LayoutPlot]:
    """A plot of all signals of each group, part or bond."""
    groups: dict[str, list[str]] = {}
    for name in signals:
        groups.setdefault(name.rpartition("/")[0], []).append(name)
    return [LayoutPlot(owner, curves_beside(names, _word)) for owner, names in groups.items()]


def _word(signal: str) -> str:
    """Its name without its owner."""
    return signal.rpartition("/")[2]


def signal_path(signal: str) -> str:
    """The message path of a signal, of a recording and of `cosim foxglove`."""
    (topic,) = topics_of([(signal, "")])
    name = topic.name if PLAIN.fullmatch(topic.name) else f'"{topic.name}"'
    return f"{name}.{topic.fields[0][0]}"


def foxglove_layout(tabs: Sequence[LayoutTab], scene: Scene) -> str:
    panels: dict[str, Any] = {
        VIEW: _view(scene),
        LOG: {"topicToRender": LOG_TOPIC, "minLogLevel": DEBUG, "searchTerms": []},
        PARAMETERS: {"title": "Parameters"},
    }
    shown = []
    for tab in tabs:
        columns = []
        for plots in tab.columns:
            names = [f"Plot!{len(panels) + k}" for k in range(len(plots))]
            panels |= {name: _plot(plot) for name, plot in zip(names, plots, strict=True)}
            columns.append(_split("column", names))
        shown.append({"title": tab.title, "layout": _split("row", columns)})
    panels[PLOTS] = {"activeTabIdx": 0, "tabs": shown}
    left = _split("column", [VIEW, _split("row", [LOG, PARAMETERS])], 70)
    layout = {
        "configById": panels,
        "globalVariables": {},
        "userNodes": {},
        "playbackConfig": {"speed": 1},
        "layout": _split("row", [left, PLOTS], 45),
    }
    return json.dumps(layout, indent=1, ensure_ascii=False) + "\n"


def _split(direction: str, parts: Sequence[Any], percentage: float | None = None) -> Any:
    """Panels side by side (row) or above each other (column); of equal sizes without a percentage for the first."""
    first, *rest = parts
    if not rest:
        return first
    size = round(100 / len(parts), 3) if percentage is None else percentage
    return {"direction": direction, "first": first, "second": _split(direction, rest), "splitPercentage": size}


def _plot(plot: LayoutPlot) -> Mapping[str, Any]:
    paths = [
        {
            "value": signal_path(curve.signals[0]),
            "label": curve.label,
            "color": curve.color,
            "enabled": True,
            "timestampMethod": "receiveTime",
        }
        for curve in plot.curves
    ]
    return {
        "foxglovePanelTitle": plot.title,
        "paths": paths,
        "xAxisVal": "timestamp",
        "isSynced": True,
        "showXAxisLabels": True,
        "showYAxisLabels": True,
        "showLegend": True,
        "legendDisplay": "floating",
    }


def _view(scene: Scene) -> Mapping[str, Any]:
    """Seen from the front right, a little above."""
    extent = float(f"{scene.extent:.3g}")
    grid = {
        "layerId": "foxglove.Grid",
        "instanceId": "grid",
        "label": "Ground",
        "visible": True,
        "frameId": scene.bodies[0].name,
        "size": 8 * extent,
        "divisions": 16,
        "position": [0, 0, float(f"{scene.floor:.3g}")],
        "rotation": [0, 0, 0],
        "color": "#9aa0a640",
    }
    camera = {
        "perspective": True,
        "distance": 1.5 * extent,
        "phi": 65,
        "thetaOffset": 40,
        "target": [0, 0, 0],
        "targetOffset": [0, 0, 0.3 * extent],
        "targetOrientation": [0, 0, 0, 1],
        "fovy": 45,
        "near": 0.01 * extent,
        "far": 500 * extent,
    }
    return {
        "cameraState": camera,
        "followMode": "follow-none",
        "followTf": scene.bodies[0].name,
        "scene": {"transforms": {"visible": False}},
        "transforms": {},
        "topics": {topic: {"visible": True} for topic in SHOWN},
        "layers": {"grid": grid},
    }


def stream_name(signal: str) -> str:
    """The curve of a signal of a stream."""
    return f"/{signal}"


def recording_name(signal: str) -> str:
    """The curve of a signal of a recording."""
    (topic,) = topics_of([(signal, "")])
    return f"{topic.name}/{topic.fields[0][0]}"


def plotjuggler_layout(tabs: Sequence[LayoutTab], name: Callable[[str], str]) -> str:
    """name: the curve of a signal."""
    root = Element("root")
    widget = SubElement(root, "tabbed_widget", {"parent": "main_window", "name": "Main Window"})
    for tab in tabs:
        container = SubElement(SubElement(widget, "Tab", tab_name=tab.title, containers="1"), "Container")
        columns = _splitter(container, SIDE_BY_SIDE, len(tab.columns))
        for column in tab.columns:
            rows = _splitter(columns, STACKED, len(column))
            for plot in column:
                _add_plot(rows, plot, name)
    SubElement(widget, "currentTabIndex", index="0")
    SubElement(root, "use_relative_time_offset", enabled="1")
    indent(root, " ")
    return f"<?xml version='1.0' encoding='UTF-8'?>\n{tostring(root, encoding='unicode')}\n"


def _splitter(parent: Element, orientation: str, count: int) -> Element:
    sizes = ";".join([f"{1 / count:.6f}"] * count)
    return SubElement(parent, "DockSplitter", orientation=orientation, count=str(count), sizes=sizes)


def _add_plot(parent: Element, plot: LayoutPlot, name: Callable[[str], str]) -> None:
    area = SubElement(parent, "DockArea", name=plot.title)
    shown = SubElement(area, "plot", style="Lines", mode="TimeSeries", flip_x="false", flip_y="false")
    SubElement(shown, "limitY")
    for curve in plot.curves:
        SubElement(shown, "curve", name=name(curve.signals[0]), color=curve.color)
