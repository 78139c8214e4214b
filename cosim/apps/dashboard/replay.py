"""A recording as the source of a page."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from cosim.apps.dashboard.source import About, JointAbout, News, PageEvent, Status

if TYPE_CHECKING:
    from cosim.rig.run.run import Run

NO_LIMITS: Mapping[str, float] = {}


class Replay:
    """All samples, and a position in time that moves while it plays."""

    def __init__(self, run: Run, clock: Callable[[], float] = time.monotonic) -> None:
        metadata = run.rig
        joints = {name: _joint(run, name, metadata.limits.get(name, NO_LIMITS)) for name in run.joints}
        step = metadata.step_ns * 1e-9
        self.about = About(metadata.name, run.units, joints, {}, step, metadata.path, metadata.drawing)
        self.status = Status("replay", reason=run.fault)
        events = [PageEvent(event.t, event.name, event.level) for event in run.events]
        if run.fault:
            events.append(PageEvent(float(run.t[-1]), run.fault, "error"))
        self._news: News | None = News(run.t, np.asarray(run.values), tuple(events))
        self.first, self.last = float(run.t[0]), float(run.t[-1])
        self._clock, self._t, self._since = clock, self.first, None
        self.speed = 1.0

    @property
    def playing(self) -> bool:
        return self._since is not None

    @property
    def t(self) -> float:
        """The shown time [s]; playing ends at the end."""
        if self._since is None:
            return self._t
        t = self._t + self.speed * (self._clock() - self._since)
        if t >= self.last:
            self.seek(self.last)
            self._since = None
        return min(t, self.last)

    def seek(self, t: float) -> None:
        self._t = min(max(t, self.first), self.last)
        if self._since is not None:
            self._since = self._clock()

    def play(self, speed: float = 1.0) -> None:
        """From the start again if it is at the end."""
        if self.t >= self.last:
            self._t = self.first
        self.speed, self._since = speed, self._clock()

    def pause(self) -> None:
        self._t, self._since = self.t, None

    def poll(self) -> News:
        news, self._news = self._news, None
        return news or News(np.empty(0), np.empty((0, len(self.about.units))))

    def close(self) -> None:
        pass


def _joint(run: Run, name: str, limits: Mapping[str, float]) -> JointAbout:
    bounds = [limits.get(key, math.nan) for key in ("lower", "upper", "velocity", "effort")]
    return JointAbout(run.units.get(f"{name}/position", ""), *bounds, real=run.rig.roles[name] == "real")
