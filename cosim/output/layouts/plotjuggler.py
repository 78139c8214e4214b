"""A layout of PlotJuggler 3.x: tabs of plots, with curves by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from cosim.output.layouts.tabs import PALETTE, LayoutPlot, LayoutTab
from cosim.output.sample_encoding import topics_of

STACKED, SIDE_BY_SIDE = "-", "|"


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
    for k, signal in enumerate(plot.signals):
        SubElement(shown, "curve", name=name(signal), color=PALETTE[k % len(PALETTE)])
