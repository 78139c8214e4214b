"""Data of another program in a declared shape: types, dataclasses and TypedDicts are the declaration.

Whoever uses a field that came from a file or a socket reads it here first. A field that the shape does not name is
left out, so that a newer writer is understood.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

T = TypeVar("T")


class WrongShape(ValueError):
    """One line: the field, what is expected and what it is."""


def of_shape(data: Any, shape: type[T]) -> T:
    """Raises WrongShape."""
    from msgspec import convert

    return _checked(convert, data, shape)


def from_json(text: bytes | str, shape: type[T] = dict[str, Any]) -> T:
    """Raises WrongShape, also for what is no JSON."""
    from msgspec.json import decode

    return _checked(decode, text, shape)


def from_msgpack(data: bytes, shape: type[T] = dict[str, Any]) -> T:
    """Raises WrongShape, also for what is no MessagePack."""
    from msgspec.msgpack import decode

    return _checked(decode, data, shape)


def _checked(read: Any, data: Any, shape: type[T]) -> T:
    from msgspec import MsgspecError

    try:
        return read(data, type=shape)
    except MsgspecError as error:
        raise WrongShape(_told(str(error))) from None
    except RecursionError:
        raise WrongShape("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise WrongShape("a text is no UTF-8") from None


def _told(reason: str) -> str:
    """`Expected X, got Y - at $.a.b` as `a.b: expected X, got Y`."""
    what, _, place = reason.partition(" - at ")
    what = what[:1].lower() + what[1:] if what.startswith(("Expected", "Object")) else what
    path = re.sub(r"^\$\.?", "", place.strip("`"))
    return f"{path}: {what}" if path else what
