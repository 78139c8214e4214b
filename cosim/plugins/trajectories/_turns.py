"""Positions of continuous joints, which are the same a turn further: the way between them that is chosen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from cosim.core import ops
from cosim.core.types import Numeric, param
from cosim.core.units import TURN

Wrap = Literal["keep", "shortest"]


def wrap_key() -> Any:
    return param(default="keep", doc="shortest: each position a turn nearer, if that is the shorter way from the last")


def along(start: Numeric, points: Iterable[Numeric], wrap: Wrap) -> list[Numeric]:
    """The start and the points (n,) each [rad], by the way that is chosen."""
    found = [start]
    for point in points:
        found.append(point if wrap == "keep" else nearest(point, found[-1]))
    return found


def nearest(angle: Numeric, to: Numeric) -> Numeric:
    """The angle, by whole turns within half a turn of the other [rad]."""
    return angle - TURN * ops.floor((angle - to) / TURN + 0.5)
