"""Events, warnings and faults with their time; a marker of the user's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cosim.apps.dashboard import words
from cosim.apps.dashboard.live import LiveRun
from cosim.apps.dashboard.source import PageEvent

if TYPE_CHECKING:
    import viser

MOST_TEXT = 200  # characters of a marker


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
