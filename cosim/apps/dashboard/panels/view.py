"""How the page looks: colours, and what the 3D view shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import viser


class ViewPanel:
    def __init__(
        self, server: viser.ViserServer, place: Any, dark: bool, paint: Callable[[bool], None], show: Callable[[], None]
    ) -> None:
        """paint: with dark colours or light ones; show: the parts of the 3D view that are chosen here."""
        with place:
            self.dark = server.gui.add_checkbox("dark", dark)
            self.ghost = server.gui.add_checkbox("reference as ghost", True)
            self.inertia = server.gui.add_checkbox("inertia boxes", False)
            self.shadows = server.gui.add_checkbox("shadows", False, hint="slow where no GPU draws the page")
        self.dark.on_update(lambda _: paint(self.dark.value))
        for box in (self.ghost, self.inertia, self.shadows):
            box.on_update(lambda _: show())
