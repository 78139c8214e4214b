"""The page: panels on a server, updated from a source while a browser looks at it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.apps.dashboard import words
from cosim.apps.dashboard.curves import History
from cosim.apps.dashboard.health import at_limits, figures
from cosim.apps.dashboard.live import LiveRun
from cosim.apps.dashboard.panels.charts import ChartsPanel
from cosim.apps.dashboard.panels.gains import GainsPanel
from cosim.apps.dashboard.panels.run import EventsPanel, ReplayPanel, RunPanel
from cosim.apps.dashboard.panels.scene import Poses, ScenePanel, ViewPanel, light
from cosim.apps.dashboard.replay import Replay
from cosim.apps.dashboard.source import About, PageEvent, Source
from cosim.apps.dashboard.web_page import Look
from cosim.core.errors import InputError

if TYPE_CHECKING:
    import viser

    from cosim.output.view3d.drawing import Drawing

UPDATE_RATE = 30.0  # Hz, of updates
CHART_TICKS = 5  # updates per update of charts and figures
NARROW, WIDE = 0.75, 1.2  # width over height of the 3D view of a tablet held upright, and of a wide screen
MOST_EVENTS = 10_000  # that are kept of a run of any length
FIGURE_WINDOW = 10.0  # s, over which figures are computed


class Page:
    """What a browser shows of one source."""

    def __init__(self, server: viser.ViserServer, source: Source, look: Look) -> None:
        self.server, self.source, self.dark = server, source, look.dark
        self._frame, self._next_frame = 1.0 / look.frame_rate, 0.0
        self.about: About | None = None
        self.closed = False
        self.history = History(0)
        self.events: list[PageEvent] = []
        self.start: dict[str, float] = {}
        self.scene: ScenePanel | None = None
        self.charts: ChartsPanel | None = None
        self.drawing: Drawing | None = None
        self.poses: Poses | None = None
        self._followed: About | None = None
        self._ticks, self._shown, self._drawn = 0, "", ""
        light(server)
        server.gui.set_panel_label("cosim")
        self.head = server.gui.add_html("")
        self.live = source if isinstance(source, LiveRun) else None
        self.run_panel = None if self.live is None else RunPanel(server, self.live)
        self.replay: ReplayPanel | None = None
        if isinstance(source, Replay):
            with server.gui.add_folder("run"):
                self.replay = ReplayPanel(server, source)
        tabs = server.gui.add_tab_group()
        self.gains: GainsPanel | None = None
        self.gains_place = None if self.live is None else tabs.add_tab("Gains")
        self.event_panel = EventsPanel(server, tabs.add_tab("Events"), self.live)
        with tabs.add_tab("Health"):
            self.figures = server.gui.add_html(words.figures_html([]))
        self.view = ViewPanel(server, tabs.add_tab("View"), look.dark, self.paint, self._show_parts)
        server.gui.main_panel.dock_right()
        server.gui.main_panel.set_width(320)
        self.paint(look.dark)
        server.on_client_connect(self._welcome)

    # --- what is known of the run ---

    def describe(self, about: About) -> None:
        """Build the panels of a run, anew for one with other signals."""
        for panel in (self.charts, self.gains):
            if panel is not None:
                panel.remove()
        self.about, self.history, self.poses = about, History(len(about.units)), None
        self.charts = ChartsPanel(self.server, about, whole=isinstance(self.source, Replay))
        self.charts.paint(self.dark)
        if self.live is not None and self.live.gains is not None:
            self.gains = GainsPanel(self.server, self.gains_place, self.live, self.live.gains)
        if self.run_panel is not None and not self.run_panel.moves:
            names = ", ".join(name for name, joint in about.joints.items() if joint.real)
            self.run_panel.moves = list(about.moves) or [f"real motors move: {names}"]
        for client in self.server.get_clients().values():
            self._welcome(client)

    def draw(self, drawing: Drawing) -> None:
        self.scene, self.drawing = ScenePanel(self.server, drawing.scene), drawing
        self.scene.paint(self.dark)
        for client in self.server.get_clients().values():
            if _shape(client) < NARROW:
                self.scene.step_back(client)

    def _follow(self, about: About, drawing: Drawing) -> None:
        """Move the scene from now on, where the positions of all joints come."""
        self._followed = about
        try:
            self.poses = Poses(drawing, {name: k for k, name in enumerate(about.units)})
        except InputError as error:
            self.events.append(PageEvent(0.0, f"the mechanism is shown at its start: {error.what}", "warning"))
        self._show_ghost()

    def _show_parts(self) -> None:
        """Of the scene, as chosen."""
        if self.scene is not None:
            self.scene.show_inertias(self.view.inertia.value)
            self.scene.show_shadows(self.view.shadows.value)
        self._show_ghost()

    def _show_ghost(self) -> None:
        if self.scene is not None:
            self.scene.show_ghost(self.view.ghost.value and self.poses is not None and self.poses.has_reference)

    def paint(self, dark: bool) -> None:
        self.dark = dark
        self.server.gui.configure_theme(
            dark_mode=dark, show_logo=False, show_share_button=False, brand_color=(43, 108, 176)
        )
        for panel in (self.scene, self.charts):
            if panel is not None:
                panel.paint(dark)
        self._show_all()

    # --- updates ---

    def update(self) -> None:
        """Take what came, and show it if anyone looks."""
        news = self.source.poll()
        if (about := self.source.about) is None:
            if self.server.get_clients():
                self._show_status(None)
            return
        if about is not self.about:
            self.describe(about)
        assert self.about is not None
        if news.restarted:
            self.history.clear()
            self.events.clear()
            self.start.clear()
        if self.drawing is not None and self._followed is not self.about:
            self._follow(self.about, self.drawing)
        self.events += news.events
        if not isinstance(self.source, Replay):
            del self.events[:-MOST_EVENTS]
        if len(news.t):
            if isinstance(self.source, Replay):
                self.history = History(news.values.shape[1], capacity=len(news.t))
            self.history.add(news.t, news.values)
            if not self.start:
                self.start = dict(zip(self.about.units, map(float, news.values[0]), strict=True))
        if self.server.get_clients():
            with self.server.atomic():
                self._show()

    def _welcome(self, client: viser.ClientHandle) -> None:
        """Charts stand on the left, on a narrow upright screen under the controls."""
        shape = _shape(client)
        if self.charts is not None and shape < NARROW:
            self.charts.panel.dock_below(self.server.gui.main_panel)
        elif self.charts is not None and shape > WIDE:
            self.charts.panel.dock_left()
        if self.scene is not None and shape < NARROW:
            self.scene.step_back(client)
        self._show_all()

    def _show_all(self) -> None:
        """Charts and figures with the next update."""
        self._ticks, self._shown, self._drawn = 0, "", ""

    def _show(self) -> None:
        replay = self.source if isinstance(self.source, Replay) else None
        t = replay.t if replay else float(self.history.t[-1]) if len(self.history) else None
        row = self.history.row(t)
        self._show_status(t)
        if self.replay is not None:
            self.replay.update()
        if self.gains is not None:
            self.gains.update()
        key = f"{t} {len(self.history)}"
        if row is not None and t is not None and key != self._drawn and time.monotonic() >= self._next_frame:
            self._show_scene(row, t)
            self._drawn, self._next_frame = key, time.monotonic() + self._frame
        if self._ticks % CHART_TICKS == 0 and (key != self._shown or self._ticks == 0):
            self._show_figures(t if replay else None)
        if self._ticks % CHART_TICKS == 0:
            self._shown = key
        self._ticks += 1

    def _show_scene(self, row: np.ndarray, t: float) -> None:
        if self.scene is None or self.drawing is None or self.poses is None or self.about is None:
            return
        self.scene.show(*self.poses.actual(row, t))
        self.scene.show_forces(self.poses.forces(row))
        if self.poses.has_reference and self.view.ghost.value:
            self.scene.show_reference(*self.poses.reference(row, t))
        at = {name: float(row[k]) for k, name in enumerate(self.about.units) if name.endswith("/position")}
        positions = {name.removesuffix("/position"): value for name, value in at.items()}
        self.scene.mark(at_limits(self.about.joints, positions), self.drawing.carried)

    def _show_status(self, t: float | None) -> None:
        name, status = self.about.name if self.about else "", self.source.status
        if status.t is not None and t is not None:
            t = max(t, status.t)
        _assign(self.head, words.headline_html(words.headline(status, name, t)))
        if self.run_panel is not None:
            self.run_panel.update()

    def _show_figures(self, now: float | None) -> None:
        if self.charts is None or self.about is None:
            return
        self.charts.update(self.history, now)
        shown = [event for event in self.events if now is None or event.t <= now + 1e-9]
        self.event_panel.update(shown)
        end = len(self.history) if now is None else int(np.searchsorted(self.history.t, now, side="right"))
        begin = 0 if not end else int(np.searchsorted(self.history.t, self.history.t[end - 1] - FIGURE_WINDOW))
        columns = {name: k for k, name in enumerate(self.about.units)}
        status = self.source.status

        def column(name: str) -> np.ndarray:
            return self.history.column(columns[name], slice(begin, end))

        lost = status.missed + status.lost
        rows = figures(self.about.units, column, self.about.step, lost, self.start, self.about.bus_loads)
        _assign(self.figures, words.figures_html(rows))

    def close(self) -> None:
        """End the run if it belongs to the page, and the server."""
        self.closed = True
        self.source.close()
        self.server.stop()

    def run(self, look: Callable[[], object] = lambda: None) -> None:
        """Update until Ctrl-C, or until `look` raises."""
        period, due = 1.0 / UPDATE_RATE, time.monotonic()
        while True:
            self.update()
            look()
            due = max(due + period, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))


def _shape(client: viser.ClientHandle) -> float:
    """Width over height of the 3D view."""
    return client.camera.image_width / max(client.camera.image_height, 1)


def _assign(handle: Any, content: str) -> None:
    """Send only what is new."""
    if handle.content != content:
        handle.content = content
