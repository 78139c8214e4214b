"""Directed graphs without loops, as what comes after each vertex: their ways and their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter

After = Mapping[int, Iterable[int]]


def leads(after: After, start: int, end: int) -> bool:
    """Whether a way leads from one vertex to the other; to itself always."""
    waiting, seen = [start], {start}
    while waiting:
        vertex = waiting.pop()
        if vertex == end:
            return True
        new = [other for other in after[vertex] if other not in seen]
        seen.update(new)
        waiting += new
    return False


def in_order(after: After) -> list[int]:
    """Each vertex before those after it."""
    return [*TopologicalSorter(after).static_order()][::-1]
