"""Which units of real joints a run has proven, from the mask that its ticks leave behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

SIGNAL = "units_proven"


class UnitsSummary(TypedDict):
    """Whether the first motion has proven the reported velocity, the effort or motion that follows a command, and the
    reported effort against the model."""

    velocity: bool
    command: bool
    model: bool


def proven_units(mask: float) -> UnitsSummary:
    """mask: the last value of the signal of a joint."""
    velocity, command, model = (int(mask) >> bit & 1 == 1 for bit in range(3))
    return {"velocity": velocity, "command": command, "model": model}


def unit_lines(joints: Mapping[str, UnitsSummary]) -> list[str]:
    """For each proof the joints that have it and those that do not, in one line; none without real joints."""
    if not joints:
        return []
    texts = []
    for what in UnitsSummary.__annotations__:
        proven = [name for name, units in joints.items() if units[what]]
        open_ = [name for name in joints if name not in proven]
        if not open_:
            texts.append(f"{what} of all real joints")
        elif not proven:
            texts.append(f"{what} of none")
        else:
            texts.append(f"{what} of {', '.join(proven)}, not of {', '.join(open_)}")
    return [f"units    proven by the motion: {'; '.join(texts)}"]
