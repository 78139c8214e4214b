"""The section `controllers` of a rig, and the joints that each controller commands."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from cosim.core.errors import SourceLocation, did_you_mean
from cosim.core.plugin_loading import CONTROLLER, TRAJECTORY
from cosim.core.types import param, params
from cosim.core.units import LONGEST_TIME, show_time
from cosim.mechanics.multibody.mechanism import Joint
from cosim.rig.reading.names import Name
from cosim.rig.reading.plugins import Plugin, name_of, read_plugin
from cosim.rig.reading.schema import Reading, read_fields, show
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.filters import FilterSpec, read_filters
from cosim.rig.sections.gain_schedules import (
    GainScheduleSpec,
    at_row,
    check_schedules,
    is_scheduled,
    read_schedules,
    unscheduled,
)
from cosim.rig.sections.joints import bound_reason, kinds_of
from cosim.rig.sections.schedule import WHOLE_TOLERANCE, read_deadline, read_ticks
from cosim.simulation.tick.tick_model import ORDER

# names of times of a tick, which controllers cannot have
RESERVED = {*ORDER, "latency", "end_to_end", "tick"}


@params
class _ControllerFile:
    name: Name | None = param(default=None)
    joints: tuple[str, ...] | None = param(default=None)
    period: float | None = param(unit="s", above=0, max=LONGEST_TIME, default=None)
    phase: float = param(unit="s", min=0, max=LONGEST_TIME, default=0.0)
    deadline: float | None = param(unit="s", above=0, default=None)
    priority: int = param(default=0)
    trajectory: dict | None = param(default=None)
    fallback: dict | None = param(default=None)
    filters: list | None = param(default=None)
    modes: Literal["reference", "measured"] | None = param(default=None)


# keys of every controller, besides its type and its own parameters
KEYS = tuple(field.name for field in fields(_ControllerFile))


@dataclass(frozen=True)
class ControllerSpec:
    """A controller of `joints`, called every `ticks` steps from tick `phase` on; without a trajectory the initial
    positions of its joints are the reference.

    deadline_ns: from when a tick is due, default one step; priority: higher ones are called first within a tick;
    fallback: takes over its joints permanently when it fails; schedules: of its parameters;
    filters: of the effort of both; modes: source of the modes of elastic links, None: the default.
    """

    name: str
    plugin: Plugin
    joints: tuple[str, ...]
    period_ns: int
    ticks: int
    trajectory: Plugin | None
    phase: int
    deadline_ns: int | None
    priority: int
    fallback: Plugin | None
    schedules: tuple[GainScheduleSpec, ...] = ()
    filters: tuple[FilterSpec, ...] = ()
    modes: Literal["reference", "measured"] | None = None


def by_priority(controllers: Iterable[ControllerSpec]) -> list[ControllerSpec]:
    """In calling order within a tick: by decreasing priority, equal ones in the order of the file."""
    return sorted(controllers, key=lambda controller: -controller.priority)


def read_controllers(
    items: list[YamlValue],
    joints: Mapping[str, Joint] | None,
    by_name: Collection[str],
    prescribed: set[str],
    step_ns: int | None,
    reading: Reading,
    rate: float = 1.0,
) -> list[ControllerSpec]:
    """The section `controllers`; errors are recorded in `reading`.

    joints: all of the mechanism, in model order, None if it could not be read; by_name: dofs that a controller commands
    only if it names them; prescribed: joints that no controller may command; step_ns: None if unknown; rate: seconds of
    the rig per second of the clock, for deadlines.
    """
    movable = [name for name, joint in (joints or {}).items() if not bound_reason(joint)]
    free = [name for name in movable if name not in prescribed]
    names: dict[str, str] = {}  # controller -> text of its line
    assigned: dict[str, str] = {}  # joint -> its controller
    specs = []
    for i, data in enumerate(items):
        at = ("controllers", i)
        if not isinstance(data, dict):
            reading.fail(at, f"expected a mapping, got {show(data)}")
            continue
        written = {key: data[key] for key in KEYS if key in data}
        head: dict[str, Any] = read_fields(_ControllerFile, written, at, reading)
        name = head.get("name") or name_of(str(data.get("type", f"number {i}")))
        here = _in_line(reading.place(at))
        if name in names:
            what = f"controller '{name}' exists already{names[name]}; give this one another name"
            reading.fail((*at, "name") if "name" in data else at, what)
        names.setdefault(name, here)
        if name in RESERVED:
            what = f"controller '{name}': the name is reserved for a task of the tick; give this one another name"
            reading.fail((*at, "name") if "name" in data else at, what)
        given = head.get("joints", ())
        chosen = [name for name in free if name not in by_name] if given is None else given
        for k, joint in enumerate(chosen):
            if what := _not_commandable(joint, joints, free, prescribed, assigned):
                reading.fail(at if given is None else (*at, "joints", k), what)
            assigned.setdefault(joint, f"controller '{name}'{here}")
        known = "joints" in head and (given is not None or joints is not None)
        if known and not chosen:
            driven = [name for name in movable if name in prescribed]
            _no_joint(at, given is not None, [name for name in free if name in by_name], driven, reading)
        group = kinds_of(chosen, joints) if known else None
        n = len(chosen) if known else None
        plugin, schedules = _plugin(data, at, group, n, joints, reading)
        trajectory = head.get("trajectory")
        if trajectory is not None:
            way = (*at, "trajectory")
            trajectory = read_plugin(TRAJECTORY, trajectory, way, reading, group, n, all_joints=tuple(joints or ()))
        fallback = _fallback(head.get("fallback"), (*at, "fallback"), reading, group, n)
        ticks: Any = None
        if "period" in head:
            ticks = read_ticks(head["period"], step_ns, (*at, "period"), reading)
        phase = _phase(head.get("phase", 0.0), step_ns, ticks, (*at, "phase"), reading)
        deadline = head.get("deadline")
        if deadline is not None:
            deadline = read_deadline(deadline, step_ns, rate, (*at, "deadline"), reading)
        specs.append(
            ControllerSpec(
                name=name,
                plugin=plugin,
                joints=tuple(chosen),
                period_ns=(ticks or 0) * (step_ns or 0),
                ticks=ticks,
                trajectory=trajectory,
                phase=phase,
                deadline_ns=deadline,
                priority=head.get("priority", 0),
                fallback=fallback,
                schedules=schedules,
                filters=read_filters(head.get("filters"), tuple(chosen), group, (*at, "filters"), reading),
                modes=head.get("modes"),
            )
        )
    return specs


def _plugin(
    data: dict[str, YamlValue],
    at: tuple,
    group: Mapping[str, str | None] | None,
    n: int | None,
    joints: Mapping[str, Joint] | None,
    reading: Reading,
) -> tuple[Any, tuple[GainScheduleSpec, ...]]:
    """(the controller, the schedules of its parameters); None after an error."""
    if not check_schedules(data, at, reading):
        return None, ()
    first = reading
    for key in (key for key, value in data.items() if is_scheduled(value)):
        first = at_row(first, at, key, 0)
    plugin = read_plugin(CONTROLLER, unscheduled(data), at, first, group, n, KEYS)
    return plugin, read_schedules(data, plugin, at, joints, reading.of(group, n), ("type", *KEYS))


def _no_joint(at: tuple, given: bool, by_name: Sequence[str], prescribed: Sequence[str], reading: Reading) -> None:
    """Record a controller that commands nothing; given: whether it has the key `joints`."""
    if prescribed and not given:
        what = f"joint '{prescribed[0]}' is prescribed and needs no controller, and there is no other one to command"
        return reading.fail(at, f"{what}; take out the controller or 'prescribed'")
    if by_name and not given:
        what = f"there is no joint of one dof to command; name dofs in 'joints', such as {by_name[0]}"
        return reading.fail(at, what)
    reading.fail((*at, "joints") if given else at, "there is no joint to command")


def _phase(phase: float, step_ns: int | None, ticks: int | None, at: tuple, reading: Reading) -> Any:
    """The phase in steps, None after an error; ticks: the period, None if unknown."""
    if step_ns is None or ticks is None:
        return None
    if phase * 1e9 >= ticks * step_ns * (1.0 - WHOLE_TOLERANCE):
        what = f"must be below the period of {show_time(ticks * step_ns)}, is {show_time(phase * 1e9)}"
        return reading.fail(at, what)
    return read_ticks(phase, step_ns, at, reading, minimum=0, maximum=ticks - 1)


def _fallback(
    data: dict[str, YamlValue] | None,
    at: tuple,
    reading: Reading,
    group: Mapping[str, str | None] | None,
    n: int | None,
) -> Plugin | None:
    """The controller that takes over; it has a type and parameters, all else comes from the one that failed."""
    if data is None:
        return None
    for key in (key for key in KEYS if key in data):
        reading.fail((*at, key), "a fallback has a type and its parameters only; take it out")
    own = {key: value for key, value in data.items() if key not in KEYS}
    return read_plugin(CONTROLLER, own, at, reading, group, n)


def _not_commandable(
    name: str,
    joints: Mapping[str, Joint] | None,
    free: Iterable[str],
    prescribed: Container[str],
    assigned: Mapping[str, str],
) -> str:
    """Why the joint cannot be commanded, empty if it can."""
    if joints is not None and name not in joints:
        return f"unknown joint '{name}'{did_you_mean(name, free)}"
    if joints is not None and (bound := bound_reason(joints[name])):
        return f"joint '{name}' {bound}; it cannot be commanded"
    if name in prescribed:
        return f"joint '{name}' is prescribed; it cannot be commanded"
    return f"joint '{name}' is already commanded by {assigned[name]}" if name in assigned else ""


def _in_line(place: SourceLocation) -> str:
    return f" (line {place.line})" if place.line is not None else ""
