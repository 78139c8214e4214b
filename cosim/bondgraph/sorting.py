"""The order in which equations are evaluated, and the loops among them that are solved together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

V = TypeVar("V", bound=Hashable)


def in_order(items: Iterable[V], uses: Callable[[V], Iterable[V]]) -> list[list[V]]:
    """Groups of items that use each other, each after the groups that it uses: the strongly connected components in
    topological order (Tarjan 1972)."""
    number: dict[V, int] = {}
    lowest: dict[V, int] = {}
    stack: list[V] = []
    waiting: set[V] = set()  # on the stack
    groups: list[list[V]] = []
    for start in items:
        if start in number:
            continue
        path = [(start, iter(tuple(uses(start))))]
        number[start] = lowest[start] = len(number)
        stack.append(start)
        waiting.add(start)
        while path:
            item, rest = path[-1]
            for used in rest:
                if used not in number:
                    number[used] = lowest[used] = len(number)
                    stack.append(used)
                    waiting.add(used)
                    path.append((used, iter(tuple(uses(used)))))
                    break
                if used in waiting:
                    lowest[item] = min(lowest[item], number[used])
            else:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[item])
                if lowest[item] == number[item]:
                    cut = stack.index(item)
                    groups.append(stack[cut:])
                    waiting.difference_update(groups[-1])
                    del stack[cut:]
    return groups


def tear(group: Sequence[V], uses: Callable[[V], Iterable[V]], guessed: Iterable[V]) -> tuple[list[V], list[V]]:
    """(items that are guessed, the others in the order in which they follow from these) of a group that uses itself:
    those given, and as long as there are loops, the item in the most of its links."""
    torn = list(guessed)
    while True:
        left = [item for item in group if item not in torn]

        def inside(item: V, left: Sequence[V] = left) -> list[V]:
            return [used for used in uses(item) if used in left]

        parts = in_order(left, inside)
        looping = [part for part in parts if len(part) > 1 or part[0] in inside(part[0])]
        if not looping:
            return torn, [item for part in parts for item in part]
        for part in looping:
            users = {item: sum(item in inside(other) for other in part) for item in part}
            torn.append(max(part, key=lambda item: users[item] * len([u for u in inside(item) if u in part])))
