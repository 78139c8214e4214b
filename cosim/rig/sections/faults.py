"""A fault of the section `emulator` or of a scenario: its kind, its place, its time and what else its kind has."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any, Literal, get_args

from cosim.core.errors import did_you_mean
from cosim.core.types import param, params
from cosim.execution.hardware.emulation.fault_injection import KINDS, ONLY, AtJoint, FaultCause, FaultInjection, OnBus
from cosim.rig.reading.schema import KeyPath, Reading, read_fields, show
from cosim.rig.reading.yaml_source import YamlValue


@params
class FaultKeys:
    kind: Literal[OnBus, AtJoint] = param()
    driver: str | None = param(default=None, doc="whose bus; optional if there is one driver")
    joint: str | None = param(default=None, doc="at which motor")
    at: float = param(unit="s", min=0, default=0.0, doc="from the start, or from when the condition first held")
    when: dict | None = param(default=None)
    duration: float | None = param(unit="s", above=0, default=None, doc="to the end unless given")
    fraction: float = param(min=0, max=1, default=1.0, doc="of the frames")
    delay: float = param(unit="s", above=0, default=0.01, doc="of each frame")
    size: float = param(unit="joint position", default=0.1, doc="of the jump, or standard deviation of the noise")
    rate: float = param(unit="joint velocity", default=0.1, doc="of the drift or of the slip")
    supply: float = param(min=0, max=1, default=0.5, doc="voltage that is left, relative to the nominal one")
    temperature: float = param(unit="degC", min=-273.15, default=150.0, doc="of the winding, at least")
    cause: FaultCause = param(default="overtemperature")
    scale: float = param(default=0.1, doc="of what a drive reports, relative to the true value")


# fields of FaultInjection that have the value of a key of the same name
_VALUES = ("at", "fraction", "delay", "size", "rate", "supply", "temperature", "cause", "scale")


def read_fault(
    keys: type[FaultKeys],
    item: YamlValue,
    at: KeyPath,
    drivers: Collection[str],
    drives: Mapping[str, str | None],
    simulated: Mapping[str, str | None],
    reading: Reading,
) -> dict[str, Any] | None:
    """The values of the keys, with the driver of a fault on a bus; None after an error that is recorded in `reading`.

    drivers: names; drives, simulated: joint -> its kind, of those with an emulated drive, and of those that may have
    faults without one.
    """
    if not isinstance(item, dict):
        return reading.fail(at, f"expected a mapping, got {show(item)}")
    kind = item.get("kind")
    if isinstance(kind, str) and kind not in KINDS:
        return reading.fail((*at, "kind"), f"no kind of fault '{kind}'{did_you_mean(kind, KINDS)}")
    joint = item.get("joint")
    known = {**simulated, **drives}
    about = {joint: known.get(joint)} if isinstance(joint, str) else None
    values: dict[str, Any] = read_fields(keys, item, at, reading.of(about))
    if not {field.name for field in fields(keys)} <= values.keys():
        return None
    before = len(reading.errors)
    for key, those in ONLY.items():
        if key in item and kind not in those:
            reading.fail((*at, key), f"'{kind}' has no '{key}'; take it out")
    if kind in get_args(AtJoint):
        _check_joint(values, at, known, simulated, reading)
    elif joint in simulated and KINDS[str(kind)].simulated:
        if values["driver"] is not None:
            reading.fail((*at, "driver"), f"joint '{joint}' has no drive on a bus; take 'driver' out")
    else:
        _check_bus(values, at, drivers, simulated, reading)
    return None if len(reading.errors) > before else values


def _check_joint(
    values: dict[str, Any], at: KeyPath, known: Mapping[str, Any], simulated: Mapping[str, Any], reading: Reading
) -> None:
    kind, joint = values["kind"], values["joint"]
    if joint is None:
        reading.fail(at, "give its 'joint'")
    elif joint not in known:
        lack = f"unknown joint '{joint}'" if simulated else f"joint '{joint}' has no drive"
        reading.fail((*at, "joint"), f"{lack}{did_you_mean(joint, known)}")
    elif joint in simulated and not KINDS[kind].simulated:
        reading.fail((*at, "joint"), f"'{kind}' is a fault of a drive, and joint '{joint}' has none; use {_others()}")
    if values["driver"] is not None:
        reading.fail((*at, "driver"), f"'{kind}' is at a joint; take 'driver' out")
    if values["scale"] == 0.0:
        reading.fail((*at, "scale"), "must not be 0: a drive that reports nothing is frozen; use encoder_freeze")


def _check_bus(
    values: dict[str, Any], at: KeyPath, names: Collection[str], simulated: Mapping[str, Any], reading: Reading
) -> None:
    kind, joint, driver = values["kind"], values["joint"], values["driver"]
    if joint in simulated:
        return reading.fail(
            (*at, "joint"), f"'{kind}' is a fault of a bus, and joint '{joint}' has none; use {_others()}"
        )
    if joint is not None:
        reading.fail((*at, "joint"), f"'{kind}' affects a whole bus; give its 'driver' instead")
    if not names:
        fix = "give its 'joint'" if KINDS[kind].simulated else f"use {_others()}"
        reading.fail(at, f"'{kind}' is a fault of a bus, and the rig has no drivers; {fix}")
    elif driver is None and len(names) > 1:
        reading.fail(at, f"give the 'driver' whose bus has the fault, one of {', '.join(names)}")
    elif driver not in (None, *names):
        reading.fail((*at, "driver"), f"there is no driver '{driver}'{did_you_mean(driver, names)}")
    values["driver"] = driver or next(iter(names), "")


def _others() -> str:
    return f"one of {', '.join(name for name, row in KINDS.items() if row.simulated)}"


def injection_of(
    values: Mapping[str, Any], signal: str = "", factor: float = 1.0, bound: float = 0.0
) -> FaultInjection:
    """The fault of these values, on a condition of a signal."""
    return FaultInjection(
        kind=values["kind"],
        driver=values["driver"] or "",
        joint=values["joint"] or "",
        signal=signal,
        factor=factor,
        bound=bound,
        duration=float("inf") if values["duration"] is None else values["duration"],
        **{name: values[name] for name in _VALUES},
    )
