"""What the user does with a run: its buttons, the time slider of a recording, and a marker among its events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cosim.apps.dashboard import words
from cosim.apps.dashboard.actions import ARM, ARM_TURNS, START, STEP, control_buttons, control_line, run_buttons
from cosim.apps.dashboard.live import LiveRun
from cosim.apps.dashboard.replay import Replay
from cosim.apps.dashboard.source import PageEvent

if TYPE_CHECKING:
    import viser

MOST_STEPS = 10_000  # ticks
ESTOP = "EMERGENCY STOP"
SPEEDS = {"¼×": 0.25, "1×": 1.0, "4×": 4.0}
STEPS = 1000  # of the slider
MOST_TEXT = 200  # characters of a marker


class RunPanel:
    """Only what can be done now has a button; the emergency stop always has."""

    def __init__(self, server: viser.ViserServer, live: LiveRun) -> None:
        self.live = live
        self.moves: list[str] = []  # what will move, a line each
        self.buttons = server.gui.add_button_group("run", ("–",), visible=False)
        self.ticks = server.gui.add_number("ticks per step", 1, min=1, max=MOST_STEPS, step=1, visible=False)
        self.control = server.gui.add_button_group("control", ("–",), visible=False)
        self.estop = server.gui.add_button(ESTOP, color="red", hint="immediately, whoever has control")
        self.line = server.gui.add_html("")
        self.buttons.on_click(lambda _: self._press(self.buttons.value))
        self.control.on_click(lambda _: self._press(self.control.value))
        self.estop.on_click(lambda _: live.estop())

    def _press(self, button: str) -> None:
        fields: dict[str, Any] = {"ticks": int(self.ticks.value)} if button == STEP else {}
        fields |= {"allow_turns": True} if button == ARM_TURNS else {}
        if button in (*run_buttons(self.live.situation), *control_buttons(self.live.situation)):
            self.live.do(button, **fields)

    def update(self) -> None:
        now = self.live.situation
        buttons = run_buttons(now)
        _show_buttons(self.buttons, buttons)
        _show_buttons(self.control, control_buttons(now))
        stepping = STEP in buttons
        if self.ticks.visible != stepping:
            self.ticks.visible = stepping
        asks = now.real and not {ARM, ARM_TURNS, START}.isdisjoint(buttons)
        moving = [*self.moves, *self.live.control.status.get("motion", ())] if asks else []
        content = words.control_html(control_line(now), self.live.note, moving)
        if self.line.content != content:
            self.line.content = content


def _show_buttons(group: Any, options: tuple[str, ...]) -> None:
    if options and group.options != options:
        group.options = options
    if group.visible != bool(options):
        group.visible = bool(options)


class ReplayPanel:
    def __init__(self, server: viser.ViserServer, replay: Replay) -> None:
        self.replay = replay
        length = max(replay.last - replay.first, 1e-9)
        self.slider = server.gui.add_slider(
            "t [s]", min=replay.first, max=replay.first + length, step=length / STEPS, initial_value=replay.first
        )
        self._set = self.slider.value  # by `update`, or by the user and taken
        self.play = server.gui.add_button("Play", color="blue")
        speed = server.gui.add_button_group("speed", tuple(SPEEDS))

        @self.slider.on_update
        def _(event: Any) -> None:
            if event.client is not None:  # not by `update`
                self._set = self.slider.value
                replay.seek(self._set)

        @self.play.on_click
        def _(_event: Any) -> None:
            replay.pause() if replay.playing else replay.play(replay.speed)

        @speed.on_click
        def _(_event: Any) -> None:
            replay.play(SPEEDS[speed.value])

    def update(self) -> None:
        label = "Pause" if self.replay.playing else "Play"
        if self.play.label != label:
            self.play.label = label
        # a value of the user arrives in another thread, before it is taken: it must not be overwritten until then
        if self.slider.value == self._set and self._set != self.replay.t:
            self.slider.value = self._set = self.replay.t


class EventsPanel:
    def __init__(self, server: viser.ViserServer, place: Any, live: LiveRun | None) -> None:
        """live: the run that takes markers, None of a recording."""
        with place:
            if live is not None:
                self.text = server.gui.add_text(
                    "marker", "", hint="a note into the events and the recording of the run"
                )
                self.button = server.gui.add_button_group("", ("Add the marker",))
                self.button.on_click(lambda _: self._mark(live))
            self.list = server.gui.add_html(words.events_html([]))

    def _mark(self, live: LiveRun) -> None:
        text = " ".join(self.text.value.split())[:MOST_TEXT]
        if text:
            live.mark(text)
            self.text.value = ""

    def update(self, events: Sequence[PageEvent]) -> None:
        content = words.events_html(events)
        if self.list.content != content:
            self.list.content = content
