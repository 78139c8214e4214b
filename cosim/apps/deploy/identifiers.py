"""Names of a rig as identifiers in C and C++, and the names that cannot be."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from cosim.core.errors import InputError, InputErrors, SourceLocation

# of C23 and C++23 with an underscore: every identifier here is of two words at least
KEYWORDS = frozenset(
    {
        "and_eq",
        "atomic_cancel",
        "atomic_commit",
        "atomic_noexcept",
        "char16_t",
        "char32_t",
        "char8_t",
        "co_await",
        "co_return",
        "co_yield",
        "const_cast",
        "dynamic_cast",
        "not_eq",
        "or_eq",
        "reinterpret_cast",
        "static_assert",
        "static_cast",
        "thread_local",
        "typeof_unqual",
        "wchar_t",
        "xor_eq",
    }
)


class CName(NamedTuple):
    """An identifier, what it stands for in the rig, and the place of that."""

    identifier: str
    what: str
    place: SourceLocation | str | None


def identifier(name: str) -> str:
    """The name with `_` for everything that an identifier cannot have; C++ reserves two of them in a row."""
    return re.sub("_+", "_", re.sub("[^A-Za-z0-9]", "_", name))


def macro(name: str) -> str:
    return identifier(name).upper()


def prefix_of(name: str, place: str) -> str:
    """With which the identifiers of a rig begin. Raises InputError for a name with which none can."""
    found = identifier(name)
    if not re.match("[A-Za-z]", found):
        what = f"the name '{name}' begins with '{name[:1]}', which no identifier of C does"
        raise InputError(f"{what}; rename the file", place)
    return found


def check_names(names: Iterable[CName]) -> None:
    """Raises InputErrors for two names that are the same identifier, and for one that is a keyword of C or C++."""
    first: dict[str, CName] = {}
    errors = []
    for name in names:
        before = first.setdefault(name.identifier, name)
        if name.identifier in KEYWORDS:
            what = f"{name.what} is the keyword {name.identifier} in C or C++"
            errors.append(InputError(f"{what}; rename it, or the file of the rig", name.place))
        elif before is not name:
            what = f"{name.what} and {before.what} are both {name.identifier} in C"
            errors.append(InputError(f"{what}; rename one of them", name.place))
    if errors:
        raise errors[0] if len(errors) == 1 else InputErrors(errors)
