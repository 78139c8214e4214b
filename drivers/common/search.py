"""How drives are found on a connection: what a family sends, and the drives that it recognises in the answers. Pure.

A family whose drives can be found has a module `scan.py` with

    ORDER       when it is searched for, before families with a larger one: 0 if no other family can take what it sends
                for a command, 1 if others decode it as nothing that has an effect, 2 for everything else
    search(connection)  the search on a connection with these parameters, a generator of questions; see `Search`
    commands()  what programs send to drives of this family that are in use
    BAUDRATES   bit rates of a serial port, the most likely one first; only for families with a `port`
    FINDS       what it can find, for a report without drives; only where that is not every drive of the family

Nothing that a search sends may enable a drive, move it or change a setting of it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, NamedTuple, TypeAlias

from cosim.plugins.drivers.transport import CanFrame


class Question(NamedTuple):
    """Items to send, and the time in which answers come after the last of them."""

    items: tuple[CanFrame | bytes, ...]
    seconds: float


class FoundDrive(NamedTuple):
    """A drive that has answered. keys: of its joint in a rig, empty for one that must be set up first; about:
    model, firmware and serial number in words, and the keys that the drive does not report; listens: 11-bit identifiers
    that it may take for commands."""

    keys: Mapping[str, float | str]
    about: str
    listens: frozenset[int] = frozenset()


# yields questions, is sent the items that came in their time, and returns the drives
Search: TypeAlias = Generator[Question, list[Any], list[FoundDrive]]
