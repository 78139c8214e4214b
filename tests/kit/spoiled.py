"""Plain data with one place spoiled: missing, of another name, or of another kind than it was."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

WRONG = (None, True, -5, 0, 1e300, 2**70, "text", "", [], ["text"], [1, "x"], [[]], {}, {"x": None}, {"x": "text"},
         {"x": 1.0}, {"x": {"y": 1.0}})  # fmt: skip
INSIDE = 2  # items of a list or mapping whose insides are spoiled


def spoiled(data: Any) -> Iterator[tuple[str, Any]]:
    """(what is spoiled, the data with it), for every place and each of WRONG."""
    for path in _paths(data):
        name = ".".join(map(str, path))
        yield f"{name} missing", _changed(data, path)
        if isinstance(path[-1], str):
            yield f"{name} renamed", _changed(_changed(data, path), (*path[:-1], "other"), _at(data, path))
        for value in WRONG:
            yield f"{name} = {value!r}", _changed(data, path, value)


def _paths(data: Any) -> Iterator[tuple[Any, ...]]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for number, (key, value) in enumerate(items):
        yield (key,)
        if number < INSIDE or len(data) > 5 * INSIDE:
            yield from ((key, *path) for path in _paths(value))


def _at(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


def _changed(data: Any, path: tuple[Any, ...], *value: Any) -> Any:
    found = copy.deepcopy(data)
    place = _at(found, path[:-1])
    if value:
        place[path[-1]] = value[0]
    else:
        del place[path[-1]]
    return found
