"""The order in which equations are evaluated, and the loops among them that are solved together."""

from __future__ import annotations

from collections import Counter
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
    taken = set(torn)
    while True:
        left = {item for item in group if item not in taken}
        links = {item: [used for used in uses(item) if used in left] for item in group if item in left}
        parts = in_order(links, links.__getitem__)
        looping = [part for part in parts if len(part) > 1 or part[0] in links[part[0]]]
        if not looping:
            return torn, [item for part in parts for item in part]
        for part in looping:
            own = set(part)
            users = Counter(used for item in part for used in set(links[item]))
            worst = max(part, key=lambda item: users[item] * sum(used in own for used in links[item]))
            torn.append(worst)
            taken.add(worst)
