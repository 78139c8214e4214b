"""What a run recorded: signals over time, events, timing. Plain data, without the rig."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypedDict

import numpy as np

from cosim.core.errors import near_names
from cosim.execution.hardware.manager import BusReport
from cosim.execution.timing.deadlines import DeadlineRecord
from cosim.output.events import AlarmCount, RunEvent
from cosim.output.signal_statistics import SignalStatistics
from cosim.rig.run.run_metadata import RunMetadata


class StreamSummary(TypedDict):
    """Where a stream was published, and how much of the run it got. missed: ticks that the stream did not get; failure:
    why it ended before the run, or None."""

    endpoint: str
    open: bool  # to other users of this machine
    missed: int
    failure: str | None


class Change(NamedTuple):
    """Before the tick, the parameter `name` got these values in SI; or a controlled stop was ordered, value (1.0,)."""

    tick: int
    name: str
    value: tuple[float, ...]


@dataclass(eq=False)
class RecordedRun:
    """Signals of a finished or stopped run: `run.t` in s, `run["elbow_joint/position"]`.

    Of a run that keeps its signals on the disk, and of an opened recording, `t` and `values` are read from there where
    they are used.
    """

    rig: RunMetadata
    t: np.ndarray  # (k,), of the kept ticks
    values: np.ndarray  # (k, number of kept signals)
    busy: float  # s of processor time in ticks
    wall: float  # s of the whole run, recording and telemetry included
    fault: str = ""
    events: tuple[RunEvent, ...] = ()
    timing: DeadlineRecord | None = None  # of a run in real time
    guard: Mapping[str, Mapping[str, AlarmCount]] = field(default_factory=dict)  # joint -> limit -> its alarms
    connections: tuple[BusReport, ...] = ()  # traffic of the connections of real drives
    statistics: SignalStatistics | None = None  # over all ticks of the run, for its summary
    kept: tuple[str, ...] | None = None  # names of the columns of `values`; None for all signals of the rig
    stream: StreamSummary | None = None
    changes: tuple[Change, ...] = ()  # of the rig while it ran
    # of a recording that is damaged or lacks a file: (last tick before, first one behind) times without ticks [s]
    gaps: tuple[tuple[float, float], ...] = ()
    unstable: tuple[str, ...] = ()  # what was unstable in the rig before the run …
    misfits: tuple[str, ...] = ()  # … and what did not fit
    cause: str = ""  # why the energy balance does not close, where a comparison of two steps has found it
    causes_of_violations: Mapping[str, str] = field(default_factory=dict)  # signal -> the same of a violated constraint
    lacks: str = ""  # what a recording does not have of its run, which is a part of its fault

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the columns of `values`: all signals of the rig, or those that are kept."""
        return tuple(self.rig.units) if self.kept is None else self.kept

    @property
    def units(self) -> Mapping[str, str]:
        """Signal -> unit."""
        return {name: self.rig.units[name] for name in self.signals}

    @property
    def joints(self) -> tuple[str, ...]:
        return self.rig.joints

    def __getitem__(self, name: str) -> np.ndarray:
        """One signal (k,), which cannot be written to. Raises KeyError naming the signals that exist."""
        column = self._columns.get(name)
        if column is None:
            raise KeyError(f"no signal '{name}'{near_names(str(name), self.signals)}")
        signal = self.values[:, column]
        signal.flags.writeable = False
        return signal

    def chosen(self, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Some signals by name, each (k,); of a recording in one pass through its file."""
        if isinstance(self.values, np.ndarray):
            return {name: self[name] for name in names}
        values = self.values[:, [self._columns[name] for name in names]]
        return dict(zip(names, values.T, strict=True))

    def __iter__(self) -> Iterator[str]:
        """The names of the signals."""
        return iter(self.signals)

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.signals)}
