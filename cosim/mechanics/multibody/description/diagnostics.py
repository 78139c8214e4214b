"""Errors, warnings and notes collected while a mechanism is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cosim.core.errors import ErrorList, InputError, InputErrors, SourceLocation

NO_CONTACTS = "contacts of the file are not taken"  # begins what readers say of bodies that touch


@dataclass
class Diagnostics:
    """Collected errors, which a reader reports together at its end; warnings of what is lost and changes the motion,
    with the fix; and notes. angles: the place of each frame that was read, and its roll, pitch and yaw (3,) [rad]."""

    errors: ErrorList = field(default_factory=ErrorList)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    angles: list[tuple[SourceLocation, Sequence[float]]] = field(default_factory=list)

    def error(self, what: str, place: SourceLocation) -> None:
        self.errors.append(InputError(what, place))

    def note(self, what: str, place: SourceLocation) -> None:
        self.notes.append(f"{place}: {what}")

    def warn(self, what: str, place: SourceLocation) -> None:
        self.warnings.append(f"{place}: {what}")

    def raise_errors(self) -> None:
        """Raises InputErrors with every error in the order of their lines, if there is one."""
        if self.errors:
            raise InputErrors(sorted(self.errors, key=_line))


def _line(error: InputError) -> int:
    return error.place.line or 0 if isinstance(error.place, SourceLocation) else 0
