"""Names and lines of text that a rig gives to its parts."""

from __future__ import annotations

from typing import Annotated

from cosim.core.errors import shortened

LONGEST_NAME = 100  # characters
LONGEST_TEXT = 1000


def check_line(text: str, longest: int = LONGEST_TEXT) -> str:
    """The text without blanks around it. Raises ValueError unless it is one line of printable characters."""
    text = text.strip()
    if len(text) > longest:
        raise ValueError(f"must have at most {longest} characters, has {len(text)}; shorten it")
    if not text.isprintable():
        raise ValueError(f"must be one line of printable characters, is {shortened(repr(text))}")
    return text


def check_reference(text: str) -> str:
    """The name of something defined elsewhere. Raises ValueError for blanks."""
    if not text.strip():
        raise ValueError(f"expected a name, got '{text}'")
    return text


def check_title(text: str) -> str:
    """A new name without '/', which separates the parts of signals and topics."""
    return _without("/", text)


def check_name(text: str) -> str:
    """A new name without '/' and '.', which separate the parts of signals, topics and keys."""
    return _without("/.", text)


def _without(separators: str, text: str) -> str:
    name = check_line(check_reference(text), LONGEST_NAME)
    for separator in separators:
        if separator in name:
            raise ValueError(f"a name has no '{separator}', got '{name}'; use '_'")
    return name


Line = Annotated[str, check_line]
Reference = Annotated[str, check_reference]
Title = Annotated[str, check_title]
Name = Annotated[str, check_name]
