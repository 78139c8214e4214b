"""The modes of the closed loop: poles with their frequency, damping, and the part that takes part most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.apps.analysis.linearisation import LinearRig

DELAY = 1e-4  # |z| of a mode that ends within a tick; several of them at 0 are found up to this size
UNDAMPED = 1e-4  # a smaller growth comes from the steps of an oscillation without damping
HELD = 1e-8  # |z − 1| of what is held or integrated


@dataclass(frozen=True)
class ClosedLoopMode:
    """A pole s [rad/s], 0 of what is held or integrated; of a conjugate pair the one with the positive imaginary part.
    part: of the state with the largest participation factor (Perez-Arriaga, Verghese and Schweppe 1982)."""

    pole: complex
    part: str

    @property
    def frequency(self) -> float:
        """|s| [rad/s]."""
        return abs(self.pole)

    @property
    def grows(self) -> bool:
        return self.damping < -UNDAMPED

    @property
    def damping(self) -> float:
        """1: no oscillation; below 0: it grows."""
        return -self.pole.real / self.frequency if self.frequency else 1.0


def modes_of(rig: LinearRig) -> list[ClosedLoopMode]:
    """The slowest first."""
    z, right = np.linalg.eig(rig.A)
    left = np.linalg.pinv(right)
    found = []
    for k in np.flatnonzero((np.abs(z) > DELAY) & (np.imag(z) >= 0.0)):
        part = rig.states[int(np.argmax(np.abs(right[:, k] * left[k])))]
        pole = 0.0 if abs(z[k] - 1.0) < HELD else np.log(complex(z[k])) / rig.step
        found.append(ClosedLoopMode(complex(pole), part))
    return sorted(found, key=lambda mode: mode.frequency)
