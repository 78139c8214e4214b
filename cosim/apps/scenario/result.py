"""The result of a scenario, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ScenarioResult:
    """happened: in short; sentence: why the run was stopped, "" if it was not; failures: what was not as expected;
    reaction_ticks, reaction [s]: from the beginning of the last fault to the stop, the tick in which it began included;
    events: (t [s], what) of the faults; seconds: of computation; recording: the file, "" for none."""

    name: str
    faults: tuple[str, ...]
    expected: tuple[str, ...]
    happened: str
    sentence: str
    failures: tuple[str, ...]
    reaction_ticks: int | None
    reaction: float | None
    events: tuple[tuple[float, str], ...]
    seconds: float
    recording: str = ""

    @property
    def ok(self) -> bool:
        return not self.failures

    @classmethod
    def of(cls, data: dict[str, Any]) -> ScenarioResult:
        """From what JSON has of it."""
        values: dict[str, Any] = data | {key: tuple(data[key]) for key in ("faults", "expected", "failures")}
        values["events"] = tuple((t, what) for t, what in data["events"])
        return cls(**values)
