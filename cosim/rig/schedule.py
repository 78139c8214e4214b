"""The schedule of a rig: its times as whole nanoseconds, periods as whole numbers of steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from cosim.rig.schema import Reading, read_fields
from cosim.types import param, params

Integrator = Literal["semi_implicit_euler", "rk4", "rosenbrock"]
LONGEST = 1e9  # s; longer times are slips of the pen
TOLERANCE = 1e-9  # relative, of a time that should be a whole number of something


@params
class _ScheduleFile:
    step: float = param(unit="s", min=1e-6, max=LONGEST, default=1e-3)
    duration: float = param(unit="s", above=0, max=LONGEST, default=5.0)
    integrator: Integrator = param(default="rk4")
    substeps: int = param(min=1, default=1)
    seed: int = param(min=0, default=0)


@dataclass(frozen=True)
class ScheduleSpec:
    step_ns: int
    duration_ns: int
    integrator: Integrator
    substeps: int
    seed: int


def read_schedule(data: Any, reading: Reading) -> ScheduleSpec:
    """The section `schedule`; what is wrong is noted in `reading` and None in the result."""
    at = ("schedule",)
    values: dict[str, Any] = read_fields(_ScheduleFile, data, at, reading)
    step_ns: Any = _step_ns(values["step"], reading) if "step" in values else None
    duration_ns: Any = round(values["duration"] * 1e9) if "duration" in values else None
    if step_ns and duration_ns is not None and duration_ns < step_ns:
        what = f"must be at least the step of {_time(step_ns)}, is {_time(duration_ns)}"
        reading.fail((*at, "duration"), what)
    rest = (values.get(key) for key in ("integrator", "substeps", "seed"))
    return ScheduleSpec(step_ns, duration_ns, *rest)  # type: ignore[arg-type]


def _step_ns(step: float, reading: Reading) -> int | None:
    whole = round(step * 1e9)
    if abs(step * 1e9 - whole) <= TOLERANCE * whole:
        return whole
    what = f"must be a whole number of nanoseconds, is {_time(step * 1e9)}; nearest: {_time(whole)}"
    return reading.fail(("schedule", "step"), what)


def read_ticks(period: float | None, step_ns: int | None, at: tuple, reading: Reading) -> int:
    """How many steps the period [s] at `at` has; 1 when it is not given, or cannot be judged."""
    if period is None or step_ns is None:
        return 1
    ratio = period * 1e9 / step_ns
    ticks = round(ratio)
    if abs(ratio - ticks) > TOLERANCE * ticks:
        near = sorted({max(math.floor(ratio), 1), max(math.ceil(ratio), 1)})
        nearest = " or ".join(_time(k * step_ns) for k in near)
        what = f"{_time(period * 1e9)} is no whole multiple of the step of {_time(step_ns)}"
        reading.fail((*at, "period"), f"{what}; nearest: {nearest}")
    return ticks


def _time(ns: float) -> str:
    unit, factor = next((u for u in (("s", 1e9), ("ms", 1e6)) if ns >= u[1]), ("us", 1e3))
    return f"{ns / factor:.10g} {unit}"
