"""Charts over time: for a joint, and one of signals that the user chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.apps.dashboard.curves import History, chart_of_signals, shown_charts, thinned, values_of
from cosim.apps.dashboard.source import About
from cosim.output.signal_charts import SignalChart, charts_of

if TYPE_CHECKING:
    import viser

WINDOWS = {"2 s": 2.0, "10 s": 10.0, "60 s": 60.0, "all": float("inf")}
HEIGHT = 132
CURSOR = "#868e96"


class ChartsPanel:
    def __init__(self, server: viser.ViserServer, about: About, whole: bool) -> None:
        """whole: show all of a recording, with a line at the shown time."""
        self.whole = whole
        self.server, self.about, self.dark = server, about, False
        self.columns = {name: k for k, name in enumerate(about.units)}
        self.charts = charts_of(about.units)
        self.handles: list[tuple[SignalChart, Any]] = []
        panel = server.gui.add_panel()
        self.place = panel.add_tab("Charts")
        with self.place:
            joints = list(about.joints) or ["–"]
            self.joint = server.gui.add_dropdown("joint", joints, initial_value=joints[0])
            self.window = server.gui.add_dropdown(
                "time", tuple(WINDOWS), initial_value="all" if whole else "10 s", hint="how much of it is shown"
            )
            self.hold = server.gui.add_checkbox("hold", False, hint="keep the charts as they are, to zoom and read")
        self.own_place = panel.add_tab("Signals")
        with self.own_place:
            names = list(about.units)
            self.signal = server.gui.add_dropdown("signal", names, initial_value=names[0])
            buttons = server.gui.add_button_group("chart", ("add", "remove", "clear"))
            self.chosen: list[str] = []
        self.own: tuple[SignalChart, Any] | None = None
        self.joint.on_update(lambda _: self.rebuild())

        @buttons.on_click
        def _(_event: Any) -> None:
            self._choose(buttons.value, self.signal.value)

        panel.dock_left()
        panel.set_width(380)
        self.panel = panel
        self.rebuild()

    def _choose(self, what: str, signal: str) -> None:
        if what == "add" and signal not in self.chosen:
            self.chosen.append(signal)
        elif what == "remove" and signal in self.chosen:
            self.chosen.remove(signal)
        elif what == "clear":
            self.chosen.clear()
        if self.own is not None:
            self.own[1].remove()
            self.own = None
        if self.chosen:
            chart = chart_of_signals(self.chosen, self.about.units)
            with self.own_place:
                self.own = chart, self._plot(chart, 320)

    def rebuild(self) -> None:
        """The charts of the chosen joint."""
        for _, handle in self.handles:
            handle.remove()
        charts = shown_charts(self.charts.get(self.joint.value, {}))
        with self.place:
            self.handles = [(chart, self._plot(chart, HEIGHT)) for chart in charts]

    def _plot(self, chart: SignalChart, height: int) -> Any:
        ink, grid = ("#c9ced6", "#3a3f47") if self.dark else ("#495057", "#e4e7eb")
        axis: Any = {"stroke": ink, "grid": {"stroke": grid, "width": 1}, "ticks": {"stroke": grid}}
        axis["font"] = "11px system-ui, sans-serif"
        axes: Any = ({**axis, "size": 28.0}, {**axis, "size": 56.0})
        series: list[Any] = [{"label": "t"}]
        for curve in chart.curves:
            color = curve.dark if self.dark else curve.color
            line = {"label": curve.label, "stroke": color, "width": curve.width, "points": {"show": False}}
            series.append(line | ({"dash": (6.0, 4.0)} if curve.dashed else {}))
        if self.whole:
            series.append({"label": "now", "stroke": CURSOR, "width": 1.0, "points": {"show": False}, "auto": False})
        unit = f" [{chart.unit}]" if chart.unit else ""
        # the browser keeps the zoom as fractions of the time that is shown, which must not be of length 0
        empty = [np.array([0.0, 1.0]), *(np.full(2, np.nan) for _ in series[1:])]
        return self.server.gui.add_uplot(
            tuple(empty),
            tuple(series),
            title=f"{chart.owner} {chart.title}{unit}".lstrip(),
            axes=axes,
            scales={"x": {"time": False}},
            legend={"show": len(chart.curves) > 1},
            cursor={"sync": {"key": "time"}, "drag": {"x": True, "y": False, "setScale": True}},
            height=height,
            padding=(10, 8, 0, 0),  # room for half a label
        )

    def update(self, history: History, now: float | None) -> None:
        """now: the shown time [s] of a replay, which a vertical line marks."""
        if self.hold.value or not len(history):
            return
        rows = history.last(WINDOWS[self.window.value])
        for chart, handle in [*self.handles, *([self.own] if self.own else [])]:
            t, curves = self._data(chart, history, rows)
            handle.data = _with_now(t, curves, now) if self.whole else tuple(map(np.array, (t, *curves)))

    def _data(self, chart: SignalChart, history: History, rows: slice) -> tuple[np.ndarray, list[np.ndarray]]:
        def column(name: str) -> np.ndarray:
            return history.column(self.columns[name], rows)

        return thinned(history.t[rows], [values_of(curve, column) for curve in chart.curves])

    def remove(self) -> None:
        self.panel.remove()

    def paint(self, dark: bool) -> None:
        self.dark = dark
        self.rebuild()
        if self.own is not None:
            self._choose("", "")


def _with_now(t: np.ndarray, curves: list[np.ndarray], now: float | None) -> tuple[np.ndarray, ...]:
    """With a last curve that is a vertical line at the time `now`."""
    line = np.full(len(t), np.nan)
    if now is not None and len(t):
        low = min((float(np.nanmin(curve)) for curve in curves if np.isfinite(curve).any()), default=0.0)
        high = max((float(np.nanmax(curve)) for curve in curves if np.isfinite(curve).any()), default=1.0)
        k = int(np.searchsorted(t, now))
        t = np.insert(t, k, [now, now])
        curves = [np.insert(curve, k, [curve[min(k, len(curve) - 1)]] * 2) for curve in curves]
        line = np.full(len(t), np.nan)
        line[k : k + 2] = low, high
    return (t, *(np.array(curve) for curve in curves), line)
