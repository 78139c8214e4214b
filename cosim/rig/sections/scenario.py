"""The section `scenario` of a rig: faults by the names of their scenarios, and the sentences of `expect`: how a run
with faults is to end, and bounds that signals must keep.

stopped [within 2 ticks] [by jump [of elbow]]       completed       degraded [within 20 ms] [of arm]
motors off [within 150 ms]                          elbow/position_error at most 2 deg [after 0.5 s]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from cosim.core.errors import SourceLocation, did_you_mean, shortened
from cosim.core.types import param, params
from cosim.core.units import format_seconds, parse_quantity
from cosim.execution.hardware.emulation.fault_injection import FaultInjection
from cosim.execution.stop_cause import WORDS
from cosim.rig.reading.names import check_line
from cosim.rig.reading.schema import KeyPath, Reading, read_fields, show
from cosim.rig.reading.yaml_source import Override, YamlValue, overrides_of
from cosim.rig.sections.faults import FaultKeys, injection_of, read_fault

STOPPED, COMPLETED, DEGRADED, OFF = "stopped", "completed", "degraded", "motors off"
ENDS = (STOPPED, COMPLETED, DEGRADED)  # of which a scenario has one
HAS = {STOPPED: ("within", "by", "of"), COMPLETED: (), DEGRADED: ("within", "of"), OFF: ("within",)}
RELATIONS = ("at most", "above", "below")
SAMPLES = (
    "'stopped within 2 ticks by jump of elbow', 'completed', 'degraded', 'motors off within 150 ms' or"
    " 'elbow/position_error at most 2 deg'"
)
_OUTCOME = re.compile(rf"({'|'.join(HAS)})(?: within ([^ ]+(?: [^ ]+)?))??(?: by (\w+))?(?: of (.+?))?")
_BOUND = re.compile(rf"([^ ].*?/[^ ]+) ({'|'.join(RELATIONS)}) (.+?)(?: after (.+))?")
_TICKS = re.compile(r"([1-9][0-9]*) ticks?")


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
    """A scenario as the rig states it; its signals are not looked up yet."""

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


@dataclass(frozen=True)
class ExpectedEnd:
    """A sentence of `expect` about how a run ends. within: time from the beginning of the last fault [s], or `ticks`;
    None: any; cause, name: "" for any."""

    text: str
    key: KeyPath
    what: str
    within: float | None = None
    ticks: int | None = None
    cause: str = ""
    name: str = ""


@dataclass(frozen=True)
class Bound:
    """A signal from `after` [s] behind the beginning of the last fault on: `at most` bounds its magnitude, `above` and
    `below` the signal itself. value: as it is written, in a unit of the signal."""

    text: str
    key: KeyPath
    signal: str
    relation: str
    value: str
    after: float = 0.0


def read_expectations(
    data: YamlValue, at: KeyPath, named: Collection[str], reading: Reading
) -> tuple[ExpectedEnd | Bound, ...]:
    """The sentences, one or a list of them; errors are recorded in `reading`. named: joints, drivers and controllers.

    Where none of them states or implies how the run ends, it is to be completed."""
    items = data if isinstance(data, list) else [data]
    if not items:
        reading.fail(at, f"expects nothing; write {SAMPLES}")
    found: list[ExpectedEnd | Bound] = []
    for k, item in enumerate(items):
        key: KeyPath = (*at, k) if isinstance(data, list) else at
        if not isinstance(item, str):
            reading.fail(key, f"expected a sentence, got {show(item)}; write {SAMPLES}")
        elif (sentence := _read_sentence(" ".join(item.split()), key, named, reading)) is not None:
            found.append(sentence)
    ends = [each for each in found if isinstance(each, ExpectedEnd) and each.what in ENDS]
    for other in ends[1:]:
        reading.fail(other.key, f"'{other.text}' beside '{ends[0].text}'; a run ends in one way")
    implied = any(isinstance(each, ExpectedEnd) for each in found)  # motors that are off
    if not implied and len(found) == len(items):
        found.insert(0, ExpectedEnd(COMPLETED, at, COMPLETED))
    return tuple(found)


def _read_sentence(text: str, key: KeyPath, named: Collection[str], reading: Reading) -> ExpectedEnd | Bound | None:
    try:
        if match := _BOUND.fullmatch(text):
            signal, relation, value, after = match.groups()
            return Bound(text, key, signal, relation, value, parse_quantity(after, "s") if after else 0.0)
        if match := _OUTCOME.fullmatch(text):
            return _expected_end(text, key, match, named)
        raise ValueError(f"cannot read '{shortened(text)}'; write {SAMPLES}")
    except ValueError as error:
        return reading.fail(key, str(error))


def _expected_end(text: str, key: KeyPath, match: re.Match[str], named: Collection[str]) -> ExpectedEnd:
    what, within, cause, name = match.groups()
    for word, given in zip(("within", "by", "of"), (within, cause, name), strict=True):
        if given and word not in HAS[what]:
            raise ValueError(f"'{what}' has no '{word}'; take it out")
    if cause and cause not in WORDS:
        raise ValueError(f"there is no cause '{cause}'{did_you_mean(cause, WORDS)}")
    if name and name not in named:
        raise ValueError(f"there is no '{name}'{did_you_mean(name, named)}")
    ticks = _TICKS.fullmatch(within or "")
    seconds = None if within is None or ticks else _time(within)
    return ExpectedEnd(text, key, what, seconds, int(ticks[1]) if ticks else None, cause or "", name or "")


def _time(text: str) -> float:
    """Raises ValueError for what is neither a time with a unit nor a number of ticks."""
    if re.fullmatch(r"[-+0-9.]+(?: ticks?)?", text):
        raise ValueError(f"'within {text}' is no time; write e.g. 'within 2 ticks' or 'within 20 ms'")
    seconds = parse_quantity(text, "s")
    if not seconds > 0.0:
        raise ValueError(f"'within {text}' must be above 0 s")
    return seconds
