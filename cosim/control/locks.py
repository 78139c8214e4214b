"""Which dofs of a mechanism may be locked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Locks:
    """Dofs that may be locked: latched at the start, by events later, and those that brakes and stops hold."""

    latched: tuple[int, ...] = ()
    latching: tuple[int, ...] = ()
    held: tuple[int, ...] = ()

    @property
    def changing(self) -> tuple[int, ...]:
        """The dofs whose lock may change."""
        return (*self.latching, *self.held)
