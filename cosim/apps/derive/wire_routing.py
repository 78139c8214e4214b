"""Wires in a channel between two columns of a block diagram: horizontal from pins to a vertical track of their own.

Tracks are ordered so that a wire from the left and one to the right at the same height do not lie on each other, and
beyond that for few crossings. Pure geometry, lengths in inches.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from cosim.apps.derive.acyclic import in_order, leads

CLEARANCE = 0.07  # between parallel wires
TRACK = 0.11  # distance of tracks


class Net(NamedTuple):
    """The heights of the pins at both sides of a channel that one value joins."""

    left: tuple[float, ...]
    right: tuple[float, ...]

    @property
    def low(self) -> float:
        return min(self.left + self.right)

    @property
    def high(self) -> float:
        return max(self.left + self.right)

    @property
    def is_straight(self) -> bool:
        """Whether it needs no track."""
        return len(self.left) < 2 and len(self.right) < 2 and self.high == self.low


def tracks(nets: Sequence[Net]) -> tuple[list[int], int]:
    """(the track of each net, from the left, −1 of one that is straight; the number of tracks)."""
    bent = [k for k, net in enumerate(nets) if not net.is_straight]
    after: dict[int, set[int]] = {k: set() for k in bent}  # of each net those right of it
    wishes: list[tuple[float, int, int]] = []
    for a, b in combinations(bent, 2):
        if not _beside(nets[a], nets[b]):
            continue
        first, second = _cost(nets[a], nets[b]), _cost(nets[b], nets[a])
        one, other = (a, b) if first <= second else (b, a)
        wishes.append((-abs(first - second), one, other))
    for _, one, other in sorted(wishes):
        if leads(after, other, one):
            one, other = other, one
        after[one].add(other)
    place = dict.fromkeys(bent, 0)
    for k in in_order(after):
        for other in after[k]:
            place[other] = max(place[other], place[k] + 1)
    return [place.get(k, -1) for k in range(len(nets))], max(place.values(), default=-1) + 1


def _beside(one: Net, other: Net) -> bool:
    """Whether they cannot have the same track."""
    return one.low < other.high + CLEARANCE and other.low < one.high + CLEARANCE


def _cost(first: Net, second: Net) -> float:
    """Of the first net left of the second: crossings, and much more for wires on each other."""
    crossings = sum(second.low < y < second.high for y in first.right)
    crossings += sum(first.low < y < first.high for y in second.left)
    return crossings + 1000.0 * sum(abs(y - z) < 0.6 * CLEARANCE for y in first.right for z in second.left)
