"""The section `schedule` of a rig: times in whole nanoseconds, periods in whole steps, task order, real time."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cosim.core.errors import did_you_mean
from cosim.core.types import param, params
from cosim.core.units import LONGEST_TIME, show_time
from cosim.mechanics.integrators.methods import INTEGRATORS, OF_CONTACTS
from cosim.mechanics.multibody.contact.contact_solver import SolverBounds
from cosim.rig.reading.schema import KeyPath, Reading, as_boolean, is_section, read_fields, show
from cosim.rig.reading.yaml_source import YamlValue
from cosim.simulation.loop.pacing import Pacing, Trigger
from cosim.simulation.tick.tick_model import ORDER

Integrator = Literal["semi_implicit_euler", "rk4", "rosenbrock", "rodas4", "multirate", "moreau"]
AUTO = "auto"  # number of substeps
WHOLE_TOLERANCE = 1e-9  # relative, of a time that must be a whole multiple
SHORTEST_TICK_NS = 50_000  # ns from tick to tick; the wake-up latency of a thread is a large part of it

# (earlier task, later task, message)
_ORDER_RULES = (
    ("read", "controllers", "'read' must come before 'controllers', which use the measurement; move it up"),
    ("read", "step", "'read' must come before 'step', which advances the measured state; move it up"),
    ("write", "step", "'write' must come before 'step', in which the drives apply the command; move it up"),
    ("guard", "publish", "'publish' must come after 'guard', which makes the final command; move it down"),
)

MOST_BODIES = 10_000


@params
class _ScheduleFile:
    step: float = param(unit="s", min=1e-6, max=LONGEST_TIME, default=1e-3)
    duration: float = param(unit="s", above=0, max=LONGEST_TIME, default=5.0)
    integrator: Integrator = param(default="rk4")
    substeps: int = param(min=1, default=1)
    tolerance: float = param(min=1e-12, max=0.1, default=1e-4)
    seed: int = param(min=0, default=0)
    order: tuple[str, ...] = param(default=ORDER)
    blend: float = param(unit="s", min=0, max=60, default=0.5)
    contact: SolverBounds | None = param(default=None)
    deadlines: dict | None = param(default=None)


is_section("schedule", _ScheduleFile)


@params
class _DeadlineKeys:
    read: float | None = param(unit="s", above=0, default=None)
    guard: float | None = param(unit="s", above=0, default=None)
    write: float | None = param(unit="s", above=0, default=None)
    step: float | None = param(unit="s", above=0, default=None)
    publish: float | None = param(unit="s", above=0, default=None)


@dataclass(frozen=True)
class ScheduleSpec:
    """The checked section `schedule`: the times of a run and of its ticks.

    substeps: 1 where the tolerance chooses them (`adaptive`); tolerance: of estimated errors, None for an
    integrator without an estimate; order: the tasks of a tick; contact: bounds of the solver of contacts; pacing:
    None for as fast as possible; blend: duration [s] of the transition of the references from the measured state to
    the trajectory when the rig is armed; deadlines: of tasks, where given [ns after the tick is due].
    """

    step_ns: int
    duration_ns: int
    integrator: Integrator
    substeps: int
    adaptive: bool
    tolerance: float | None
    seed: int
    order: tuple[str, ...]
    pacing: Pacing | None
    blend: float
    contact: SolverBounds
    deadlines: Mapping[str, int]

    @property
    def rate(self) -> float:
        """Seconds of the rig per second of the clock."""
        return self.pacing.rate if self.pacing else 1.0


def read_schedule(data: YamlValue, reading: Reading, contacts: str = "") -> ScheduleSpec:
    """The section `schedule`; errors are recorded in `reading`; wrong values are None or missing. contacts: the
    integrator that takes the contacts of the mechanism, "" where it has none."""
    at, data = ("schedule",), data or {}
    substeps = data.get("substeps")
    adaptive, is_word = substeps == AUTO, isinstance(substeps, str) and substeps.isalpha()
    if is_word and not adaptive:
        what = f"expected a number of substeps or '{AUTO}', got {show(substeps)}{did_you_mean(substeps, [AUTO])}"
        reading.fail((*at, "substeps"), what)
    fixed = {key: value for key, value in data.items() if not (is_word and key == "substeps")}
    values: dict[str, Any] = read_fields(_ScheduleFile, fixed, at, reading, besides=("realtime",))
    if data.get("contact") is not None and not contacts:
        reading.fail((*at, "contact"), "has no effect without mechanism.contacts; remove it")
    if contacts:
        values["integrator"] = _of_contacts(values, "integrator" in data, contacts, reading)
    step_ns: Any = _step_ns(values["step"], reading) if "step" in values else None
    duration_ns: Any = round(values["duration"] * 1e9) if "duration" in values else None
    if step_ns and duration_ns is not None and duration_ns < step_ns:
        what = f"must be at least the step of {show_time(step_ns)}, is {show_time(duration_ns)}"
        reading.fail((*at, "duration"), what)
    _check_order(values.get("order", ORDER), (*at, "order"), reading)
    tolerance = _read_tolerance(values, adaptive, "tolerance" in data, reading)
    pacing = _read_pacing(data.get("realtime"), step_ns, (*at, "realtime"), reading)
    spec: dict[str, Any] = {key: values.get(key) for key in ("integrator", "substeps", "seed", "order", "blend")}
    spec |= {
        "contact": values.get("contact") or SolverBounds(),
        "step_ns": step_ns,
        "duration_ns": duration_ns,
        "pacing": pacing,
    }
    spec |= {"adaptive": adaptive, "tolerance": tolerance}
    schedule = ScheduleSpec(**spec, deadlines={})
    times = read_fields(_DeadlineKeys, values.get("deadlines"), (*at, "deadlines"), reading)
    deadlines = {
        task: read_deadline(time, step_ns, schedule.rate, (*at, "deadlines", task), reading)
        for task, time in times.items()
        if time is not None
    }
    return dataclasses.replace(schedule, deadlines=deadlines)


def _of_contacts(values: Mapping[str, Any], given: bool, wanted: str, reading: Reading) -> str:
    """The integrator of a mechanism with contacts; records another one."""
    integrator = values.get("integrator")
    if given and integrator not in (None, wanted):
        kind = "contacts" if wanted == OF_CONTACTS else "exact contacts"
        fix = f"use {wanted}, which is the default of a mechanism with {kind}"
        what = f"{integrator} does not treat {kind}; {fix}"
        reading.fail(("schedule", "integrator"), what)
    return wanted


def _step_ns(step: float, reading: Reading) -> int | None:
    whole = round(step * 1e9)
    if abs(step * 1e9 - whole) <= WHOLE_TOLERANCE * whole:
        return whole
    what = f"must be a whole number of nanoseconds, is {show_time(step * 1e9)}; nearest: {show_time(whole)}"
    return reading.fail(("schedule", "step"), what)


def _read_tolerance(values: Mapping[str, Any], adaptive: bool, given: bool, reading: Reading) -> float | None:
    """The tolerance of an integrator that estimates its error; records keys that need one."""
    integrator = values.get("integrator")
    if integrator is None:
        return None
    method = INTEGRATORS[integrator]
    if method.estimate is not None and (adaptive or not method.doubles):
        return values.get("tolerance")
    if method.doubles:
        if given:
            what = f"{integrator} keeps a tolerance with 'substeps: {AUTO}' only; add it, or remove 'tolerance'"
            reading.fail(("schedule", "tolerance"), what)
        return None
    able = (name for name, other in INTEGRATORS.items() if other.estimate and (adaptive or not other.doubles))
    fix = f"use integrator: {' or '.join(able)}"
    why = f"{integrator} does not estimate its error; {fix}"
    if adaptive:
        reading.fail(("schedule", "substeps"), f"{why}, or give a number of substeps")
    if given:
        reading.fail(("schedule", "tolerance"), f"{why}, or remove 'tolerance'")
    return None


def _check_order(order: tuple[str, ...], at: KeyPath, reading: Reading) -> None:
    """Record unknown, missing and duplicate tasks, or else violated rules of the order."""
    before = len(reading.errors)
    for k, task in enumerate(order):
        if task not in ORDER:
            reading.fail((*at, k), f"unknown task '{task}'{did_you_mean(task, ORDER)}")
        elif task in order[:k]:
            reading.fail((*at, k), f"'{task}' is in the order already; each task runs once, take this one out")
    if len(reading.errors) > before:
        return  # a missing task is most likely a misspelt one
    if missing := [f"'{task}'" for task in ORDER if task not in order]:
        words = "tasks" if len(missing) > 1 else "task"
        return reading.fail(at, f"missing the {words} {', '.join(missing)}; give each of {', '.join(ORDER)} once")
    for first, then, rule in _ORDER_RULES:
        if order.index(first) > order.index(then):
            reading.fail(at, rule)
    if order.index("guard") != order.index("controllers") + 1:
        reading.fail(
            at, "'guard' must come directly after 'controllers', so that every command is checked; move it there"
        )


def _read_pacing(data: YamlValue, step_ns: int | None, at: KeyPath, reading: Reading) -> Pacing | None:
    """The word or section `realtime`, None for as fast as possible; wrong values get their defaults."""
    if data == "strict":
        data = {"strict": True}
    if not isinstance(data, dict):
        wanted = False if data is None else as_boolean(data)
        if wanted is None:
            return reading.fail(at, f"expected strict, yes, no or a mapping, got {show(data)}")
        if not wanted:
            return None
        data = {}
    values = read_fields(Pacing, data, at, reading)
    triggered = data.get("trigger") is not None
    if triggered:
        for key, neutral in (("rate", 1.0), ("spin", 0.0)):
            if values.pop(key, neutral) != neutral:
                what = f"has no effect with an external trigger; remove '{key}' or 'trigger'"
                reading.fail((*at, key), what)
        if values.get("trigger"):
            values["trigger"] = _check_trigger(values["trigger"], data["trigger"], (*at, "trigger"), reading)
    if "max_consecutive" in data and values.get("overrun") == "skip":
        reading.fail((*at, "max_consecutive"), "has no effect with overrun: skip; remove it")
    cpu, count = values.get("cpu"), os.cpu_count() or 1
    if cpu is not None and cpu >= count:
        known = "CPU 0 only" if count == 1 else f"{count} of them, 0 to {count - 1}"
        reading.fail((*at, "cpu"), f"there is no CPU {cpu}; this machine has {known}")
    pacing = Pacing(**values)
    if step_ns and step_ns / pacing.rate < SHORTEST_TICK_NS:
        slower = "" if triggered else f", or a rate of {step_ns / SHORTEST_TICK_NS:.10g} at most"
        fix = f"use a schedule.step of {show_time(math.ceil(SHORTEST_TICK_NS * pacing.rate))} at least{slower}"
        at = (*at, "rate") if "rate" in data else at
        what = f"{show_time(math.floor(step_ns / pacing.rate))} from tick to tick"
        reading.fail(at, f"{what} is less than {show_time(SHORTEST_TICK_NS)}, too short for real time; {fix}")
    return pacing


def _check_trigger(trigger: Trigger, written: Mapping[str, YamlValue], at: KeyPath, reading: Reading) -> Trigger:
    """The trigger with its file relative to the rig's folder; records missing and superfluous keys."""
    bus = [key for key in ("interface", "channel") if getattr(trigger, key)]
    if trigger.file and bus:
        reading.fail(at, f"both 'file' and '{bus[0]}' are given; keep the file or the CAN bus")
    elif not trigger.file and not bus:
        reading.fail(at, "give the source of the trigger: a 'file', or 'interface' and 'channel' of a CAN bus")
    elif not trigger.file and len(bus) == 1:
        missing = "channel" if bus == ["interface"] else "interface"
        reading.fail(at, f"missing key '{missing}'; a CAN bus has both 'interface' and 'channel'")
    elif trigger.file and "id" in written:
        reading.fail((*at, "id"), "has no effect with a file; remove it")
    if not trigger.file:
        return trigger
    file = reading.file(trigger.file, (*at, "file"))
    return trigger if file is None else dataclasses.replace(trigger, file=str(file))


def read_ticks(
    time: float | None, step_ns: int | None, at: KeyPath, reading: Reading, minimum: int = 1, maximum: float = math.inf
) -> int | None:
    """The time [s] at `at` in steps, 1 if it is not given; None if it is wrong or if the step is unknown.

    minimum, maximum: bounds [steps] of the nearest valid times that the message proposes.
    """
    if time is None:
        return 1
    if step_ns is None:
        return None
    ratio = time * 1e9 / step_ns
    ticks = round(ratio)
    if abs(ratio - ticks) > WHOLE_TOLERANCE * ticks:
        near = sorted({min(max(k, minimum), maximum) for k in (math.floor(ratio), math.ceil(ratio))})
        nearest = " or ".join(show_time(k * step_ns) for k in near)
        what = f"{show_time(time * 1e9)} is no whole multiple of the step of {show_time(step_ns)}"
        return reading.fail(at, f"{what}; nearest: {nearest}")
    return ticks


def read_deadline(time: float, step_ns: int | None, rate: float, at: KeyPath, reading: Reading) -> int:
    """The deadline [s] at `at` in ns of the clock; a step takes step/rate. Records one longer than a step."""
    deadline = max(round(time * 1e9), 1)
    if step_ns is not None and deadline > step_ns / rate:
        what = (
            f"must be at most the {show_time(math.floor(step_ns / rate))} from tick to tick, is {show_time(deadline)}"
        )
        reading.fail(at, what)
    return deadline
