"""Signals chosen by patterns, such as `elbow/position` or `*/effort`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from cosim.core.errors import InputError, InputErrors, SourceLocation, near_names


def matching_columns(
    patterns: Sequence[str], names: Sequence[str], place: Callable[[int], SourceLocation | str | None]
) -> tuple[int, ...]:
    """The columns of the names that match a pattern, in the order of the names; all of them without patterns.

    place: of the pattern with this number. Raises InputErrors for patterns that match nothing.
    """
    if not patterns:
        return tuple(range(len(names)))
    errors = [
        InputError(f"there is no signal '{pattern}'{near_names(pattern, names)}", place(number))
        for number, pattern in enumerate(patterns)
        if not any(fnmatchcase(name, pattern) for name in names)
    ]
    if errors:
        raise InputErrors(errors)
    return tuple(k for k, name in enumerate(names) if any(fnmatchcase(name, pattern) for pattern in patterns))
