"""The buttons of a run: start, pause, step, stop, emergency stop, and who holds control."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cosim.apps.dashboard import words
from cosim.apps.dashboard.actions import ARM, ARM_TURNS, START, STEP, control_buttons, control_line, run_buttons
from cosim.apps.dashboard.live import LiveRun

if TYPE_CHECKING:
    import viser

MOST_STEPS = 10_000  # ticks
ESTOP = "EMERGENCY STOP"


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
