"""Where a page has its data from: a run or a recording, behind one interface. Plain data, without protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from cosim.core.types import Level

Value = float | list[float]


class JointAbout(NamedTuple):
    """Bounds in rad or m; NaN where there are none. real: moved by a motor."""

    unit: str
    lower: float = float("nan")
    upper: float = float("nan")
    velocity: float = float("nan")
    effort: float = float("nan")
    real: bool = False


class ParameterAbout(NamedTuple):
    """What is known of a parameter. joints: of a list of values."""

    unit: str
    lower: float | None
    upper: float | None
    value: Value
    joints: tuple[str, ...] = ()


@dataclass(frozen=True)
class About:
    """What does not change during a run. units: signal -> unit, in the order of the columns; path: of the rig file, to
    be shown, never to be opened; drawing: of the mechanism, as text; moves: the real motors with their limits, a line
    each; bus_loads: driver -> fraction of its bus."""

    name: str
    units: Mapping[str, str]
    joints: Mapping[str, JointAbout] = field(default_factory=dict)
    parameters: Mapping[str, ParameterAbout] = field(default_factory=dict)
    step: float = float("nan")  # s
    path: str = ""
    drawing: str = ""
    moves: tuple[str, ...] = ()
    bus_loads: Mapping[str, float] = field(default_factory=dict)

    @property
    def real(self) -> bool:
        """Whether motors move."""
        return any(joint.real for joint in self.joints.values())

    def same_signals(self, other: About) -> bool:
        """Whether samples and parameters of both are alike, so that a page of one can show the other."""
        mine, its = ((about.name, list(about.units), list(about.parameters)) for about in (self, other))
        return mine == its


class PageEvent(NamedTuple):
    t: float
    text: str
    level: Level


class News(NamedTuple):
    """What came since the last call: times (k,) and samples (k, number of signals). restarted: forget what was."""

    t: np.ndarray
    values: np.ndarray
    events: tuple[PageEvent, ...] = ()
    restarted: bool = False


class Status(NamedTuple):
    """The state of a source and of the data that it delivers. state: of the run, or `replay`, `connecting`, `gone`;
    age: s since anything came; owner: of control."""

    state: str
    age: float = 0.0
    missed: int = 0  # ticks that the run could not hand over
    lost: int = 0  # samples that did not arrive
    owner: str = ""
    mine: bool = True  # control is held here
    reason: str = ""  # why it is gone, or has failed
    t: float | None = None  # s, of the run, which may be ahead of its samples


class Source(Protocol):
    """`poll` never waits."""

    @property
    def about(self) -> About | None:
        """None until it is known."""

    @property
    def status(self) -> Status: ...

    def poll(self) -> News: ...

    def close(self) -> None: ...
