"""The section `emulator` of a rig: emulated drives and their injected faults."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from cosim.core.errors import did_you_mean
from cosim.core.types import param, params
from cosim.execution.hardware.emulation.fault_injection import FaultInjection
from cosim.mechanics.multibody.mechanism import Joint
from cosim.rig.reading import schema
from cosim.rig.reading.driver_family import DriverFamily
from cosim.rig.reading.schema import Reading, read_fields
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.drivers import DriverSpec, no_drive_reason
from cosim.rig.sections.events import INTERFACES, WhenKeys
from cosim.rig.sections.faults import FaultKeys, injection_of, read_fault
from cosim.rig.sections.joints import kinds_of


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
    undervoltage: float | None = param(unit="V", min=0, default=None, doc="half of the voltage unless given")
    ambient: float = param(unit="degC", min=-273.15, default=25.0)
    joints: dict | None = param(default=None)
    faults: list | None = param(default=None)


@params
class _WhenKeys:
    """A condition on a temperature; `INTERFACES` has those on other signals."""

    signal: str = param(doc="`<joint>/position`, `velocity`, `effort` or `temperature`")
    above: float | None = param(unit="degC", default=None)
    below: float | None = param(unit="degC", default=None)


_DRIVE = "drive"  # key of the settings of a family

# signals of a drive, with the keys of a condition on each
_SIGNALS = {what: INTERFACES[what] for what in ("position", "velocity", "effort")} | {"temperature": _WhenKeys}


@params
class _FaultKeys(FaultKeys):
    """A fault of the section."""


@dataclass(frozen=True)
class EmulatorSpec:
    """The checked section `emulator`: the supply, the motors and drives behind the bus, and their faults."""

    voltage: float
    undervoltage: float
    ambient: float
    motors: Mapping[str, MotorParams]
    drives: Mapping[str, Any]  # joint -> instance of the EmulatedParams of its family; None: it has none
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
    families = {name: spec.family for spec in drivers for name in spec.joints}
    motors, drives = {}, {}
    for name, kind in kinds.items():
        path = (*at, "joints", name)
        given = reading.mapping(settings.get(name), path)
        about = reading.of({name: kind}).inherited_at(path, (*at, "joints", "all"), defaults.keys() - given.keys())
        motors[name] = schema.read(MotorParams, {**defaults, **given}, path, about, (_DRIVE,)) or MotorParams()
        drives[name] = _drive(families.get(name), defaults, given, at, name, reading)
    faults = [
        _fault(item, (*at, "faults", k), drivers, kinds, reading) for k, item in enumerate(values.get("faults") or [])
    ]
    undervoltage = values.get("undervoltage")
    return EmulatorSpec(
        voltage=values.get("voltage", 0.0),
        undervoltage=0.5 * values.get("voltage", 0.0) if undervoltage is None else undervoltage,
        ambient=values.get("ambient", 0.0),
        motors=motors,
        drives=drives,
        faults=tuple(fault for fault in faults if fault is not None),
    )


def _drive(
    family: DriverFamily | None,
    defaults: Mapping[str, YamlValue],
    own: Mapping[str, YamlValue],
    at: tuple,
    name: str,
    reading: Reading,
) -> Any:
    """The settings that the family of a joint's drive has for its emulated drives; None if it has none."""
    everywhere, here = (*at, "joints", "all", _DRIVE), (*at, "joints", name, _DRIVE)
    general, given = reading.mapping(defaults.get(_DRIVE), everywhere), reading.mapping(own.get(_DRIVE), here)
    settings = getattr(family, "EmulatedParams", None)
    if settings is None:
        if given and family is not None:
            reading.fail(
                here, f"emulated drives of '{family.__name__.rpartition('.')[2]}' have no settings; take it out"
            )
        return None
    about = reading.inherited_at(here, everywhere, general.keys() - given.keys())
    return schema.read(settings, {**general, **given}, here, about) or settings()


def _fault(
    item: YamlValue, at: tuple, drivers: tuple[DriverSpec, ...], kinds: Mapping[str, str | None], reading: Reading
) -> FaultInjection | None:
    if not drivers:  # the keys are still checked
        read_fields(_FaultKeys, item, at, reading)
        return None
    before = len(reading.errors)
    values = read_fault(_FaultKeys, item, at, [spec.name for spec in drivers], kinds, {}, reading)
    given = item.get("when") if isinstance(item, dict) else None
    when = _when(given, (*at, "when"), kinds, reading) if isinstance(given, dict) else None
    if when is not None:
        if (when.above is None) == (when.below is None):
            reading.fail((*at, "when"), "give 'above' or 'below', one of them")
        signals = [f"{name}/{what}" for name in kinds for what in _SIGNALS]
        if when.signal not in signals:
            reading.fail((*at, "when", "signal"), f"no signal '{when.signal}'{did_you_mean(when.signal, signals)}")
    if values is None or len(reading.errors) > before:
        return None
    if when is None:
        return injection_of(values)
    bound = next((bound for bound in (when.above, when.below) if bound is not None), 0.0)
    return injection_of(values, when.signal, -1.0 if when.above is None else 1.0, bound)


def _when(data: YamlValue, at: tuple, kinds: Mapping[str, str | None], reading: Reading) -> WhenKeys | _WhenKeys | None:
    """The condition of a fault, in the unit of its signal."""
    if data is None:
        return None
    joint, _, what = str(data.get("signal")).rpartition("/")
    known = {joint: kinds[joint]} if joint in kinds else None
    keys: Any = _SIGNALS.get(what, WhenKeys) if known else WhenKeys
    return schema.read(keys, data, at, reading.of(known))
