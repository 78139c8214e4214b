"""The page: panels on a server, updated from a source while a browser looks at it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.dashboard import words
from cosim.dashboard.health import at_limits, figures
from cosim.dashboard.history import History
from cosim.dashboard.look import Look
from cosim.dashboard.panels.charts import ChartsPanel
from cosim.dashboard.panels.replay import ReplayPanel
from cosim.dashboard.panels.scene import ScenePanel
from cosim.dashboard.poses import Poses
from cosim.dashboard.replay import Replay
from cosim.dashboard.source import About, PageEvent, Source
from cosim.multibody.model import Model
from cosim.output.scene.scene import Scene

if TYPE_CHECKING:
    import viser

RATE = 30.0  # Hz, of updates
CHART_TICKS = 5  # updates per update of charts and figures
NARROW, WIDE = 0.75, 1.2  # width over height of the 3D view of a tablet held upright, and of a wide screen
MOST_EVENTS = 10_000  # that are kept of a run of any length
RECENT = 10.0  # s, over which figures are computed


class Page:
    """What a browser shows of one source."""

    def __init__(self, server: viser.ViserServer, source: Source, look: Look) -> None:
        self.server, self.source, self.dark = server, source, look.dark
        self._frame, self._next_frame = 1.0 / look.frame_rate, 0.0
        self.about: About | None = None
        self.history = History(0)
        self.events: list[PageEvent] = []
        self.start: dict[str, float] = {}
        self.scene: ScenePanel | None = None
        self.charts: ChartsPanel | None = None
        self.model: Model | None = None
        self.poses: Poses | None = None
        self.links: dict[str, str] = {}
        self._ticks, self._shown, self._drawn = 0, "", ""
        server.gui.set_panel_label("cosim")
        self.head = server.gui.add_html("")
        self.replay: ReplayPanel | None = None
        if isinstance(source, Replay):
            with server.gui.add_folder("run"):
                self.replay = ReplayPanel(server, source)
        tabs = server.gui.add_tab_group()
        with tabs.add_tab("Events"):
            self.event_list = server.gui.add_html(words.events_html([]))
        with tabs.add_tab("Health"):
            self.figures = server.gui.add_html(words.figures_html([]))
        with tabs.add_tab("View"):
            self.dark_box = server.gui.add_checkbox("dark", look.dark)
            self.ghost_box = server.gui.add_checkbox("reference as ghost", True)
            self.inertia_box = server.gui.add_checkbox("inertia boxes", False)
            self.shadow_box = server.gui.add_checkbox("shadows", False, hint="slow where no GPU draws the page")
        self.dark_box.on_update(lambda _: self.paint(self.dark_box.value))
        self.inertia_box.on_update(lambda _: self.scene and self.scene.show_inertias(self.inertia_box.value))
        self.shadow_box.on_update(lambda _: self.scene and self.scene.show_shadows(self.shadow_box.value))
        self.ghost_box.on_update(lambda _: self._show_ghost())
        server.gui.main_panel.dock_right()
        server.gui.main_panel.set_width(320)
        self.paint(look.dark)
        server.on_client_connect(self._welcome)

    # --- what is known of the run ---

    def describe(self, about: About) -> None:
        """Build the panels of a run."""
        self.about, self.history = about, History(len(about.units))
        self.charts = ChartsPanel(self.server, about, whole=isinstance(self.source, Replay))
        self.charts.paint(self.dark)

    def draw(self, scene: Scene) -> None:
        self.scene = ScenePanel(self.server, scene)
        self.scene.paint(self.dark)

    def _follow(self, about: About, model: Model) -> None:
        """Move the scene from now on."""
        self.poses = Poses(model, {name: k for k, name in enumerate(about.units)})
        self.links = {joint.name: joint.child for joint in model.joints}
        self._show_ghost()

    def _show_ghost(self) -> None:
        if self.scene is not None:
            self.scene.show_ghost(self.ghost_box.value and self.poses is not None and self.poses.has_reference)

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
        if self.about is None:
            if (about := self.source.about) is None:
                if self.server.get_clients():
                    self._show_status(None)
                return
            self.describe(about)
            assert self.about is not None
        if self.model is not None and self.poses is None and self.scene is not None:
            self._follow(self.about, self.model)
        if news.restarted:
            self.history.clear()
            self.events.clear()
            self.start.clear()
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
        shape = client.camera.image_width / max(client.camera.image_height, 1)
        if self.charts is not None and shape < NARROW:
            self.charts.panel.dock_below(self.server.gui.main_panel)
        elif self.charts is not None and shape > WIDE:
            self.charts.panel.dock_left()
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
        if self.scene is None or self.poses is None or self.about is None:
            return
        self.scene.show(*self.poses.actual(row, t))
        if self.poses.has_reference and self.ghost_box.value:
            self.scene.show_reference(*self.poses.reference(row, t))
        at = {name: float(row[k]) for k, name in enumerate(self.about.units) if name.endswith("/position")}
        positions = {name.removesuffix("/position"): value for name, value in at.items()}
        self.scene.mark(at_limits(self.about.joints, positions), self.links)

    def _show_status(self, t: float | None) -> None:
        name = self.about.name if self.about else ""
        _assign(self.head, words.headline_html(words.headline(self.source.status, name, t)))

    def _show_figures(self, now: float | None) -> None:
        if self.charts is None or self.about is None:
            return
        self.charts.update(self.history, now)
        shown = [event for event in self.events if now is None or event.t <= now + 1e-9]
        _assign(self.event_list, words.events_html(shown))
        end = len(self.history) if now is None else int(np.searchsorted(self.history.t, now, side="right"))
        begin = 0 if not end else int(np.searchsorted(self.history.t, self.history.t[end - 1] - RECENT))
        columns = {name: k for k, name in enumerate(self.about.units)}
        status = self.source.status

        def column(name: str) -> np.ndarray:
            return self.history.column(columns[name], slice(begin, end))

        rows = figures(self.about.units, column, self.about.step, status.missed + status.lost, self.start)
        _assign(self.figures, words.figures_html(rows))

    def run(self, ended: Callable[[], bool] = lambda: False) -> None:
        """Update until Ctrl-C, or `ended`."""
        period, due = 1.0 / RATE, time.monotonic()
        while not ended():
            self.update()
            due = max(due + period, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))


def _assign(handle: Any, content: str) -> None:
    """Send only what is new."""
    if handle.content != content:
        handle.content = content
