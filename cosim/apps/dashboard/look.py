"""How a page looks."""

from __future__ import annotations

from typing import NamedTuple


class Look(NamedTuple):
    """dark: at the start, until the user switches; frame_rate: pictures of the 3D view per second."""

    dark: bool = False
    frame_rate: float = 30.0
