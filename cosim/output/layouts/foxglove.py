"""A layout of Foxglove: the mechanism in 3D, tabs of plots, events and parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from cosim.output.layouts.tabs import PALETTE, LayoutPlot, LayoutTab
from cosim.output.recording_topics import LOG_TOPIC
from cosim.output.sample_encoding import topics_of
from cosim.output.scene.scene import Scene

VIEW, PLOTS, LOG, PARAMETERS = "3D!view", "Tab!plots", "RosOut!events", "Parameters!parameters"  # kind of panel, name
SHOWN = ("/scene", "/tf", "/tf_static")
PLAIN = re.compile(r"[\w/]+")  # a topic that needs no quotes in a path
DEBUG = 1  # level of events


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
            "value": signal_path(signal),
            "label": signal.rpartition("/")[2],
            "color": PALETTE[k % len(PALETTE)],
            "enabled": True,
            "timestampMethod": "receiveTime",
        }
        for k, signal in enumerate(plot.signals)
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
