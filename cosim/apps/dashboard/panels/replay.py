"""The time slider of a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cosim.apps.dashboard.replay import Replay

if TYPE_CHECKING:
    import viser

SPEEDS = {"¼×": 0.25, "1×": 1.0, "4×": 4.0}
STEPS = 1000  # of the slider


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
