"""The section `emulator` of a rig: emulated drives and their injected faults."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from cosim.errors import did_you_mean
from cosim.hardware.emulation.fault_injection import FaultInjection
from cosim.multibody.mechanism import Joint
from cosim.rig.reading import schema
from cosim.rig.reading.schema import Reading, read_fields, show
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.drivers import DriverSpec, no_drive_reason
from cosim.rig.sections.events import INTERFACES, WhenKeys
from cosim.rig.sections.joints import kinds_of
from cosim.types import param, params

OnBus = Literal["drop", "delay", "late_answers", "duplicate", "corrupt", "bus_off", "stale_heartbeat", "power_loss"]
AtJoint = Literal["encoder_jump", "encoder_noise", "encoder_freeze", "encoder_nan", "motor_fault"]
FAULT_KINDS = (*get_args(OnBus), *get_args(AtJoint))
FaultCause = Literal["overtemperature", "overcurrent", "undervoltage", "encoder"]

# keys that only some kinds of faults have
_ONLY: dict[str, tuple[str, ...]] = {
    "fraction": ("drop", "duplicate", "corrupt"),
    "delay": ("delay", "late_answers"),
    "size": ("encoder_jump", "encoder_noise"),
    "cause": ("motor_fault",),
}


@params
class MotorParams:
    """The drive of a joint, as its manufacturer states it."""

    max_effort: float | None = param(unit="joint effort", above=0, default=None, doc="1.5 times the guard's limit")
    max_velocity: float | None = param(unit="joint velocity", above=0, default=None, doc="twice the guard's limit")
    max_temperature: float = param(unit="degC", default=80.0, doc="at which it switches off")
    temperature_rise: float = param(unit="K", min=0, default=40.0, doc="steady state at max_effort")
    thermal_time_constant: float = param(unit="s", above=0, default=120.0, doc="of the temperature")


@params
class _EmulatorFile:
    voltage: float = param(unit="V", above=0, default=24.0, doc="of the supply")
    ambient: float = param(unit="degC", min=-273.15, default=25.0)
    joints: dict | None = param(default=None)
    faults: list | None = param(default=None)


@params
class _WhenKeys:
    """A condition on a temperature; `INTERFACES` has those on other signals."""

    signal: str = param(doc="`<joint>/position`, `velocity`, `effort` or `temperature`")
    above: float | None = param(unit="degC", default=None)
    below: float | None = param(unit="degC", default=None)


# signals of a drive, with the keys of a condition on each
_SIGNALS = {what: INTERFACES[what] for what in ("position", "velocity", "effort")} | {"temperature": _WhenKeys}


@params
class _FaultKeys:
    kind: Literal[OnBus, AtJoint] = param()
    driver: str | None = param(default=None, doc="whose bus; optional if there is one driver")
    joint: str | None = param(default=None, doc="at which motor")
    at: float = param(unit="s", min=0, default=0.0, doc="from the start, or from when the condition first held")
    when: dict | None = param(default=None)
    duration: float | None = param(unit="s", above=0, default=None, doc="to the end unless given")
    fraction: float = param(min=0, max=1, default=1.0, doc="of the frames")
    delay: float = param(unit="s", above=0, default=0.01, doc="of each frame")
    size: float = param(unit="joint position", default=0.1, doc="of the jump, or standard deviation of the noise")
    cause: FaultCause = param(default="overtemperature")


@dataclass(frozen=True)
class EmulatorSpec:
    voltage: float
    ambient: float
    motors: Mapping[str, MotorParams]
    faults: tuple[FaultInjection, ...]


def read_emulator(
    data: YamlValue,
    drivers: tuple[DriverSpec, ...],
    joints: Mapping[str, Joint] | None,
    multi_dof: Container[str],
    prescribed: Container[str],
    reading: Reading,
) -> EmulatorSpec:
    """The emulated drives of the joints of `drivers`; errors are recorded in `reading`. In a rig without drivers, the
    section is of those that its joints may have. multi_dof, prescribed: joints that can have none."""
    at = ("emulator",)
    values: dict[str, Any] = read_fields(_EmulatorFile, data, at, reading)
    settings = values.get("joints") or {}
    named = [name for name in settings if name != "all"]
    wrong = {name: no_drive_reason(name, joints, multi_dof, prescribed, "") for name in named}
    possible = [name for name in named if not wrong[name]]
    kinds = kinds_of([name for spec in drivers for name in spec.joints] if drivers else possible, joints)
    for name in named:
        if name not in kinds:
            what = f"joint '{name}' has no drive{did_you_mean(name, kinds)}" if drivers else wrong[name]
            reading.fail((*at, "joints", name), what)
    defaults = reading.mapping(settings.get("all"), (*at, "joints", "all"))
    motors = {}
    for name, kind in kinds.items():
        path = (*at, "joints", name)
        given = reading.mapping(settings.get(name), path)
        about = reading.of({name: kind}).inherited_at(path, (*at, "joints", "all"), defaults.keys() - given.keys())
        motors[name] = schema.read(MotorParams, {**defaults, **given}, path, about) or MotorParams()
    faults = [
        _fault(item, (*at, "faults", k), drivers, kinds, reading) for k, item in enumerate(values.get("faults") or [])
    ]
    return EmulatorSpec(
        voltage=values.get("voltage", 0.0),
        ambient=values.get("ambient", 0.0),
        motors=motors,
        faults=tuple(fault for fault in faults if fault is not None),
    )


def _fault(
    item: YamlValue, at: tuple, drivers: tuple[DriverSpec, ...], kinds: Mapping[str, str | None], reading: Reading
) -> FaultInjection | None:
    if not isinstance(item, dict):
        return reading.fail(at, f"expected a mapping, got {show(item)}")
    joint = item.get("joint")
    known = {joint: kinds.get(joint)} if isinstance(joint, str) else None
    values: dict[str, Any] = read_fields(_FaultKeys, item, at, reading.of(known))
    if not {field.name for field in fields(_FaultKeys)} <= values.keys() or not drivers:
        return None
    kind, before = values["kind"], len(reading.errors)
    for key, those in _ONLY.items():
        if key in item and kind not in those:
            reading.fail((*at, key), f"'{kind}' has no '{key}'; take it out")
    if kind in get_args(AtJoint):
        if values["joint"] not in kinds:
            named = f"joint '{joint}' has no drive{did_you_mean(str(joint), kinds)}" if joint else "give its 'joint'"
            reading.fail((*at, "joint") if joint else at, named)
        if values["driver"] is not None:
            reading.fail((*at, "driver"), f"'{kind}' is at a joint; take 'driver' out")
    else:
        names = [spec.name for spec in drivers]
        if values["joint"] is not None:
            reading.fail((*at, "joint"), f"'{kind}' affects a whole bus; give its 'driver' instead")
        if values["driver"] is None and len(names) > 1:
            reading.fail(at, f"give the 'driver' whose bus has the fault, one of {', '.join(names)}")
        elif values["driver"] not in (None, *names):
            reading.fail(
                (*at, "driver"), f"there is no driver '{values['driver']}'{did_you_mean(values['driver'], names)}"
            )
        values["driver"] = values["driver"] or names[0]
    when = _when(values["when"], (*at, "when"), kinds, reading)
    if when is not None:
        if (when.above is None) == (when.below is None):
            reading.fail((*at, "when"), "give 'above' or 'below', one of them")
        signals = [f"{name}/{what}" for name in kinds for what in _SIGNALS]
        if when.signal not in signals:
            reading.fail((*at, "when", "signal"), f"no signal '{when.signal}'{did_you_mean(when.signal, signals)}")
    if len(reading.errors) > before:
        return None
    return FaultInjection(
        kind=kind,
        driver=values["driver"] or "",
        joint=values["joint"] or "",
        at=values["at"],
        signal=when.signal if when else "",
        factor=-1.0 if when is not None and when.above is None else 1.0,
        bound=next((bound for bound in (when.above, when.below) if bound is not None), 0.0) if when else 0.0,
        duration=float("inf") if values["duration"] is None else values["duration"],
        fraction=values["fraction"],
        delay=values["delay"],
        size=values["size"],
        cause=values["cause"],
    )


def _when(data: YamlValue, at: tuple, kinds: Mapping[str, str | None], reading: Reading) -> WhenKeys | _WhenKeys | None:
    """The condition of a fault, in the unit of its signal."""
    if data is None:
        return None
    joint, _, what = str(data.get("signal")).rpartition("/")
    known = {joint: kinds[joint]} if joint in kinds else None
    keys: Any = _SIGNALS.get(what, WhenKeys) if known else WhenKeys
    return schema.read(keys, data, at, reading.of(known))
