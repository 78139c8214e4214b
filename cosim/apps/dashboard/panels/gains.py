"""Sliders for the gains of a run, one joint at a time; undo, and the way into a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosim.apps.dashboard import words
from cosim.apps.dashboard.actions import tunable
from cosim.apps.dashboard.gains import GainHistory, GainRange, gain_range, refusal, write_overlay
from cosim.apps.dashboard.live import LiveRun
from cosim.core.errors import CosimError
from cosim.core.units import unit_sign

if TYPE_CHECKING:
    import viser

TYPING_PAUSE = 0.7  # s without a key, after which a typed number is complete
UNDO, REDO, SAVE = "undo", "redo", "save as overlay"
EVERY = "–"  # joint of a rig whose gains have none


class GainRow:
    """A gain of one joint: a slider, and the number with its unit. index: in a list of values."""

    def __init__(
        self, server: viser.ViserServer, panel: GainsPanel, name: str, index: int | None, order: float
    ) -> None:
        self.panel, self.name, self.index = panel, name, index
        gains, about = panel.gains, panel.gains.about[name]
        value = gains.at(name, index)
        self.range: GainRange = gain_range(value, about.lower, about.upper)
        low, high = self.range.ends
        label, unit = name.partition(".")[2] or name, unit_sign(about.unit)
        hint = f"{name}{f' [{unit}]' if unit else ''}"
        self.slider = server.gui.add_slider(
            label,
            min=low,
            max=high,
            step=self.range.step,
            initial_value=self.range.position(value),
            marks=self.range.marks,
            hint=hint,
            order=order,
        )
        # without its bounds: a value beyond them is refused with the reason, and not cut off without a word
        self.number = server.gui.add_number(unit or "value", value, step=_step(value), hint=hint, order=order + 0.5)
        # as set by `show`, or by the user and taken
        self._slider_known, self._number_known = self.slider.value, self.number.value
        self._typed: float | None = None  # time of the last key
        self.slider.on_update(self._slid)
        self.number.on_update(self._type)

    def _slid(self, event: Any) -> None:
        if event.client is not None:  # not by `show`
            position = self.slider.value
            self.panel.move(self, self.range.value(position))
            self._slider_known = position  # once it is taken: `show` leaves one alone that it does not know

    def _type(self, event: Any) -> None:
        if event.client is not None:
            self._number_known, self._typed = self.number.value, time.monotonic()

    def update(self, enabled: bool) -> None:
        if self._typed is not None and time.monotonic() - self._typed > TYPING_PAUSE:
            self._typed = None
            self._take(self.number.value)
        for handle in (self.slider, self.number):
            if handle.disabled == enabled:
                handle.disabled = not enabled

    def _take(self, number: object) -> None:
        """What was typed; or the present value again, with the reason."""
        reason = refusal(self.name, self.panel.gains.about[self.name], number)
        self.panel.say(reason, "error" if reason else "info")
        if not reason:
            self.panel.move(self, float(number))  # type: ignore[arg-type]

    @property
    def fits(self) -> bool:
        """Whether the slider can show the present value."""
        value = self.panel.gains.at(self.name, self.index)
        return self.range.low <= value <= self.range.high or self.range.value(self.slider.value) == value

    def show(self) -> None:
        """The present value, unless the user is typing one."""
        value = self.panel.gains.at(self.name, self.index)
        # a value of the user arrives in another thread, before it is taken: it must not be overwritten until then
        number, slider = self.number, self.slider
        if self._typed is None and value != number.value == self._number_known:
            number.value = self._number_known = value
        if slider.value == self._slider_known and self.range.value(slider.value) != value:
            slider.value = self._slider_known = self.range.position(value)

    def remove(self) -> None:
        self.slider.remove()
        self.number.remove()


class GainsPanel:
    def __init__(self, server: viser.ViserServer, place: Any, live: LiveRun, gains: GainHistory) -> None:
        """place: the tab that it stands in."""
        self.server, self.place, self.live, self.gains = server, place, live, gains
        self.rows: list[GainRow] = []
        self._rebuild = False
        joints = list(dict.fromkeys(joint for about in gains.about.values() for joint in about.joints)) or [EVERY]
        with place:
            self.style = server.gui.add_html(words.GAIN_STYLE)
            self.joint = server.gui.add_dropdown("joint", joints, initial_value=joints[0], visible=joints != [EVERY])
            self.buttons = server.gui.add_button_group("", (UNDO, REDO, SAVE), order=1e12)
            self.line = server.gui.add_html("", order=1e12 + 1)
        self.joint.on_update(lambda _: self._ask_to_rebuild())
        self.buttons.on_click(lambda _: self._press(self.buttons.value))
        self._build()

    def _ask_to_rebuild(self) -> None:
        self._rebuild = True

    def _build(self) -> None:
        """The rows of the chosen joint, and of gains that are one number for all."""
        for row in self.rows:
            row.remove()
        with self.place:
            self.rows = [
                GainRow(self.server, self, name, index, 2.0 * k + 1e9)
                for k, (name, index) in enumerate(gains_of(self.gains, self.joint.value))
            ]

    def move(self, row: GainRow, number: float) -> None:
        self.live.set(self.gains.move(row.name, row.index, number, time.monotonic()))

    def say(self, text: str, level: str) -> None:
        self.line.content = words.note_html(text, level) if text else ""

    def _press(self, button: str) -> None:
        if button == SAVE:
            self._save()
        elif tunable(self.live.situation):
            self.live.set(self.gains.undo() if button == UNDO else self.gains.redo())

    def _save(self) -> None:
        about = self.live.about
        if about is None or not (changed := self.gains.changed()):
            self.say("nothing was changed", "info")
            return
        try:
            path = write_overlay(Path.cwd(), about.name, about.path, changed)
        except CosimError as error:
            self.say(str(error), "error")
            return
        self.say(f"wrote {path}", "info")

    def update(self) -> None:
        enabled = tunable(self.live.situation)
        if self._rebuild or not all(row.fits for row in self.rows):
            self._rebuild = False
            self._build()
        for row in self.rows:
            row.update(enabled)
            row.show()

    def remove(self) -> None:
        for item in (*self.rows, self.style, self.joint, self.buttons, self.line):
            item.remove()


def gains_of(gains: GainHistory, joint: str) -> list[tuple[str, int | None]]:
    """(name, index) of the gains of a joint; a list without joints has all of its numbers."""
    found: list[tuple[str, int | None]] = []
    for name, about in gains.about.items():
        if not isinstance(gains.present[name], list):
            found.append((name, None))
        elif about.joints:
            found += [(name, k) for k, its in enumerate(about.joints) if its == joint]
        else:
            found += [(name, k) for k in range(len(gains.present[name]))]  # type: ignore[arg-type]
    return found


def _step(value: float) -> float:
    """That lets a number be typed with four digits."""
    return 10.0 ** (-4 if value == 0.0 else int(f"{abs(value):e}".partition("e")[2]) - 3)
