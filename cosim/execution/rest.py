"""Waiting until joints rest, motors off."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

Look = TypeVar("Look")  # where all joints stand

STILL = 0.8  # s without motion after which a joint rests: one that swings stands at its turning points


def wait_for_rest(
    look: Callable[[], Look],
    mover: Callable[[Look, Look], str],
    wait: Callable[[float], object],
    pause: float,
    longest: float,
    quick: bool = False,
    moves: Callable[[str], object] = lambda name: None,
) -> tuple[Look, str]:
    """(the last look, the joint that still moved then, "" if all rest). mover(before, now): the joint that has moved
    between two looks, ""; wait(seconds): until the next look; pause: that long [s]; longest: no more looks after so
    long [s]; quick: one look without motion is enough where all rest already; moves: gets the first joint that has
    moved."""
    most, enough = round(longest / pause), math.ceil(STILL / pause)
    before, still, moving = look(), enough - 1 if quick else 0, ""
    for _ in range(most):
        wait(pause)
        now = look()
        if name := mover(before, now):
            if not moving:
                moves(name)
            before, still, moving = now, 0, name
        elif (still := still + 1) >= enough:
            return now, ""
    return before, moving
