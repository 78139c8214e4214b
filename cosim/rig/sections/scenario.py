"""The section `scenario` of a rig: faults by the names of their scenarios, and the reaction that is expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cosim.core.errors import SourceLocation
from cosim.core.types import param, params
from cosim.core.units import format_seconds
from cosim.execution.hardware.emulation.fault_injection import FaultInjection
from cosim.rig.reading.names import check_line
from cosim.rig.reading.overlay import overrides_of
from cosim.rig.reading.schema import KeyPath, Reading, read_fields, show
from cosim.rig.reading.yaml_source import Override, YamlValue
from cosim.rig.sections.expectations import Bound, ExpectedEnd, read_expectations
from cosim.rig.sections.faults import FaultKeys, injection_of, read_fault


@params
class ScenarioKeys:
    faults: list = param(doc="what is injected")
    expect: list = param(doc="the reaction: one sentence or a list of them")
    set: dict | None = param(default=None, doc="values of the rig that are replaced, as by --set")
    duration: float | None = param(unit="s", above=0, default=None, doc="of the run; default: the rig's")


@params
class ScenarioFaultKeys(FaultKeys):
    after: float | None = param(unit="s", min=0, default=None, doc="from the beginning of the fault before it")


@params
class ConditionKeys:
    signal: str = param(doc="of the rig, such as `<joint>/velocity`")
    above: str | None = param(default=None, doc="holds when the signal is above this, in its unit")
    below: str | None = param(default=None, doc="holds when the signal is below this, in its unit")


@dataclass(frozen=True)
class Condition:
    """factor · (signal − bound) > 0; bound: as it is written, in a unit of the signal."""

    signal: str
    factor: float
    bound: str
    key: KeyPath


@dataclass(frozen=True)
class ScenarioFault:
    """It begins `spec.at` [s] after the start, after `when` first held or, if it follows, after the beginning of the
    fault before it."""

    spec: FaultInjection
    when: Condition | None
    follows: bool
    key: KeyPath


@dataclass(frozen=True)
class ScenarioSpec:
    name: str
    faults: tuple[ScenarioFault, ...]
    expect: tuple[ExpectedEnd | Bound, ...]
    overrides: tuple[Override, ...]
    duration: float  # s
    place: Callable[[KeyPath], SourceLocation]  # of a key in its file
    key: KeyPath


@dataclass(frozen=True)
class ScenarioContext:
    """What a scenario may name. drives, simulated: joint -> its kind, of those with a drive on a bus and of the others;
    duration [s]: of the rig."""

    drivers: tuple[str, ...]
    drives: Mapping[str, str | None]
    simulated: Mapping[str, str | None]
    controllers: tuple[str, ...]
    duration: float

    @property
    def named(self) -> tuple[str, ...]:
        return (*self.drives, *self.simulated, *self.drivers, *self.controllers)


def read_scenarios(data: YamlValue, context: ScenarioContext, reading: Reading) -> tuple[ScenarioSpec, ...]:
    """The scenarios by their names; errors are recorded in `reading`. Signals are looked up when the rig is wired."""
    found = []
    for name, item in reading.mapping(data, ("scenario",)).items():
        at: KeyPath = ("scenario", name)
        try:
            check_line(str(name))
        except ValueError as error:
            reading.fail(at, str(error))
        scenario = _scenario(str(name), item, at, context, reading)
        if scenario is not None:
            found.append(scenario)
    return tuple(found)


def _scenario(
    name: str, item: YamlValue, at: KeyPath, context: ScenarioContext, reading: Reading
) -> ScenarioSpec | None:
    before = len(reading.errors)
    data = _with_list(reading.mapping(item, at))
    values: dict[str, Any] = read_fields(ScenarioKeys, data, at, reading)
    if not {"faults", "expect", "duration", "set"} <= values.keys():
        return None
    duration = context.duration if values["duration"] is None else values["duration"]
    if not values["faults"]:
        reading.fail((*at, "faults"), "a scenario needs a fault")
    faults = [_fault(fault, (*at, "faults", k), context, reading) for k, fault in enumerate(values["faults"])]
    for fault in faults:
        if fault is not None and not fault.when and fault.spec.at >= duration:
            begins, lasts = format_seconds(fault.spec.at), format_seconds(duration)
            what = f"begins after {begins}, and the scenario lasts {lasts}; give it a longer 'duration'"
            reading.fail((*fault.key, "after" if fault.follows else "at"), what)
    given = item["expect"] if isinstance(item, dict) else None
    expect = read_expectations(given, (*at, "expect"), context.named, reading)
    overrides = []
    for key, text in zip(values["set"] or {}, overrides_of(values["set"] or {}), strict=True):
        overrides.append((text, str(reading.place((*at, "set", key)))))
    if len(reading.errors) > before:
        return None
    return ScenarioSpec(
        name,
        tuple(fault for fault in faults if fault is not None),
        expect,
        tuple(overrides),
        duration,
        reading.place,
        at,
    )


def _with_list(data: dict[str, Any]) -> dict[str, Any]:
    """One sentence may stand for a list of them."""
    return data | {"expect": [data["expect"]]} if isinstance(data.get("expect"), str) else data


def _fault(item: YamlValue, at: KeyPath, context: ScenarioContext, reading: Reading) -> ScenarioFault | None:
    before = len(reading.errors)
    where = context.drivers, context.drives, context.simulated
    values = read_fault(ScenarioFaultKeys, item, at, *where, reading)
    if not isinstance(item, dict):
        return None
    when = None if item.get("when") is None else _condition(item["when"], (*at, "when"), reading)
    if "after" in item:
        if at[-1] == 0:
            reading.fail((*at, "after"), "there is no fault before it; use 'at'")
        for other in ("at", "when"):
            if other in item:
                reading.fail((*at, other), f"give 'after' or '{other}', one of them")
    if values is None or len(reading.errors) > before:
        return None
    if values["after"] is not None:
        values["at"] = values["after"]
    return ScenarioFault(injection_of(values), when, values["after"] is not None, at)


def _condition(data: YamlValue, at: KeyPath, reading: Reading) -> Condition | None:
    if not isinstance(data, dict):
        return reading.fail(at, f"expected a mapping, got {show(data)}")
    quoted = {key: str(value) if isinstance(value, int | float) else value for key, value in data.items()}
    values: dict[str, Any] = read_fields(ConditionKeys, quoted, at, reading)
    if not {"signal", "above", "below"} <= values.keys():
        return None
    if (values["above"] is None) == (values["below"] is None):
        return reading.fail(at, "give 'above' or 'below', one of them")
    rises = values["above"] is not None
    return Condition(values["signal"], 1.0 if rises else -1.0, values["above" if rises else "below"], at)
