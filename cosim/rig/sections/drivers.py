"""The section `drivers` of a rig: the drivers of real drives, their joints and the connections that they share."""

from __future__ import annotations

import math
import os
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, Protocol, cast

from cosim.core.errors import did_you_mean
from cosim.core.plugin_loading import DRIVER
from cosim.core.types import param, params
from cosim.mechanics.multibody.mechanism import Joint
from cosim.rig.reading import schema
from cosim.rig.reading.driver_family import DriverFamily, JointWiring
from cosim.rig.reading.names import Name
from cosim.rig.reading.plugins import Plugin, name_of, read_type
from cosim.rig.reading.schema import KeyPath, Reading, read_fields, show
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.joints import JointSpec, bound_reason
from cosim.simulation.loop.pacing import Pacing

Mode = Literal["effort", "velocity", "position"]
RATES = ("bitrate", "data_bitrate", "baudrate")


@params
class _DriverFile:
    name: Name | None = param(default=None)
    mode: Mode = param(default="effort", doc="what the drives follow")
    observer: float = param(unit="Hz", above=0, default=50.0, doc="bandwidth of the estimated accelerations")
    joints: dict | None = param(default=None, doc="by name, with the address of the drive and how it is wired")
    loads: dict | None = param(default=None, doc="joints whose load a further motor applies")


_KEYS = tuple(field.name for field in fields(_DriverFile))


@params
class LoadParams:
    """How a load motor applies the load of a joint. inertia: of all parts that turn with the shaft, without the motor
    under test."""

    effort: float = param(unit="joint effort", above=0, doc="largest effort of the load motor")
    inertia: float = param(unit="joint inertia", min=0, default=0.0, doc="of shaft and load motor, at the joint")
    viscous: float = param(unit="joint damping", min=0, default=0.0, doc="friction of the bench, at the joint")
    delay: float | None = param(
        unit="s", min=0, default=None, doc="from a measurement to the effort exerted for it; default: two steps"
    )


_LOAD_KEYS = tuple(field.name for field in fields(LoadParams))


@dataclass(frozen=True)
class DriverSpec:
    """A driver of one family. wiring: joint -> the family's JointParams; loads: joint -> how its load is applied, for
    the drives of load motors."""

    name: str
    plugin: Plugin
    mode: Mode
    observer: float  # Hz
    wiring: Mapping[str, JointWiring]
    loads: Mapping[str, LoadParams]
    key: tuple  # of its section

    @property
    def family(self) -> DriverFamily:
        return cast(DriverFamily, self.plugin.module)

    @property
    def joints(self) -> tuple[str, ...]:
        return tuple(self.wiring)

    def at(self, *keys: str | int) -> tuple:
        """The path of a key of its section; `joints` stands for `loads` where it has loads."""
        if keys[:1] == ("joints",) and self.loads:
            keys = ("loads", *keys[1:])
        return (*self.key, *keys)


def read_drivers(
    items: YamlValue,
    joints: Mapping[str, Joint] | None,
    multi_dof: Container[str],
    prescribed: set[str],
    reading: Reading,
) -> tuple[DriverSpec, ...]:
    """The drivers of the rig; errors are recorded in `reading`. prescribed: joints that follow a trajectory."""
    if not isinstance(items, list):
        reading.fail(("drivers",), f"expected a list of drivers, got {show(items)}")
        return ()
    assigned: dict[tuple[bool, str], str] = {}  # (whether as a load, joint) -> driver
    places: dict[str, KeyPath] = {}  # of the load motors, by joint
    specs: list[DriverSpec] = []
    for i, data in enumerate(items):
        at = ("drivers", i)
        if not isinstance(data, dict):
            reading.fail(at, f"expected a mapping, got {show(data)}")
            continue
        head: dict[str, Any] = read_fields(_DriverFile, {k: data[k] for k in _KEYS if k in data}, at, reading)
        name = head.get("name") or name_of(str(data.get("type", f"number {i}")))
        if any(name == other.name for other in specs):
            reading.fail((*at, "name") if "name" in data else at, f"driver '{name}' exists already; give another name")
        module = read_type(DRIVER, data, at, reading)
        params = module and schema.read(module.Params, data, at, reading, besides=("type", *_KEYS))
        load = bool(head.get("loads"))
        key, listed = ("loads", head["loads"]) if load else ("joints", head.get("joints") or {})
        if load and head.get("joints"):
            reading.fail((*at, "loads"), "a driver has 'joints' or 'loads'; make two drivers of it")
            continue
        entries = dict(listed)
        defaults = reading.mapping(entries.pop("all", None), (*at, key, "all"))
        if not entries and {"joints", "loads"} <= head.keys():
            section = "joints" if head.get("loads") is None else "loads"
            reading.fail(at, f"names no joint; list them under '{section}', each with the address of its drive")
        wiring, loads = {}, {}
        for joint, own in entries.items():
            path = (*at, key, joint)
            if what := no_drive_reason(joint, joints, multi_dof, prescribed, assigned.get((load, joint), "")):
                reading.fail(path, what)
                continue
            assigned[load, joint] = name
            if load:
                places[joint] = path
            if not isinstance(own, dict | None):
                reading.fail(path, f"expected a mapping, got {show(own)}")
                continue
            if module is None:
                continue
            kind, given = {joint: joints[joint].kind if joints else None}, own or {}
            merged = {**defaults, **given}
            about = reading.of(kind).inherited_at(path, (*at, key, "all"), merged.keys() - given.keys())
            if load:
                part = {k: v for k, v in merged.items() if k in _LOAD_KEYS}
                loads[joint] = schema.read(LoadParams, part, path, about)
            wiring[joint] = schema.read(module.JointParams, merged, path, about, _LOAD_KEYS if load else ())
        if module is not None and params is not None and None not in (*wiring.values(), *loads.values()):
            plugin = Plugin(data["type"], module, params)
            spec = DriverSpec(name, plugin, head.get("mode", "effort"), head.get("observer", 0.0), wiring, loads, at)
            _check_mode(spec, "mode" in data, reading)
            specs.append(spec)
    _check_addresses(specs, reading)
    check_shared_connections(specs, reading)
    for joint in (joint for joint in places if (False, joint) not in assigned):
        reading.fail(places[joint], f"joint '{joint}' has a load motor and no motor under test; give it a driver too")
    return tuple(specs)


def no_drive_reason(
    name: str,
    joints: Mapping[str, Joint] | None,
    multi_dof: Container[str],
    prescribed: Container[str],
    driver: str,
) -> str:
    """Why the joint cannot have a real drive, empty if it can."""
    if name in multi_dof:
        return f"joint '{name}' has several dofs; name one of them"
    if joints is not None and name not in joints:
        movable = [other for other, joint in joints.items() if not bound_reason(joint)]
        return f"unknown joint '{name}'{did_you_mean(name, movable)}"
    if joints is not None and (bound := bound_reason(joints[name])):
        return f"joint '{name}' {bound}; it has no drive of its own"
    if name in prescribed:
        return f"joint '{name}' is prescribed, and a real one moves as it is measured; take out 'prescribed'"
    return f"joint '{name}' is behind driver '{driver}' already" if driver else ""


def _check_mode(spec: DriverSpec, given: bool, reading: Reading) -> None:
    modes = sorted(spec.family.MODES)
    if spec.loads and spec.mode != "effort":
        reading.fail(spec.at("mode"), "load motors follow an effort; take 'mode' out")
    elif spec.mode not in modes:
        what = f"{spec.plugin.name} drives have the modes {', '.join(modes)}; choose one"
        reading.fail(spec.at("mode") if given else spec.key, what)


def _check_addresses(drivers: list[DriverSpec], reading: Reading) -> None:
    """Record joints with the same node, and drivers of one family on the same connection."""
    nodes: dict[tuple[str, int], str] = {}
    connections: dict[tuple[str, str], str] = {}
    for spec in drivers:
        connection, family = spec.family.connection_name(spec.plugin.params), spec.family.__name__
        if other := connections.get((connection, family)):
            what = f"driver '{other}' is on {connection} already; give its joints and these to one driver"
            reading.fail(spec.key, what)
        connections.setdefault((connection, family), spec.name)
        for joint, wired in spec.wiring.items():
            if other := nodes.get((connection, wired.address)):
                what = f"node {wired.address} on {connection} belongs to joint '{other}' already"
                reading.fail(spec.at("joints", joint, wired.key), f"{what}; give each drive its own")
            nodes.setdefault((connection, wired.address), joint)


def check_real_time(schedule: YamlValue, pacing: Pacing | None, reading: Reading) -> None:
    """Real motors run in real time; schedule: the section, pacing: its settings."""
    at, given = ("schedule", "realtime"), schedule.get("realtime") if isinstance(schedule, dict) else None
    if isinstance(given, str | bool) and given in ("no", False):
        reading.fail(at, f"real motors run in real time; take 'realtime: {str(given).lower()}' out")
    elif pacing is not None and pacing.rate != 1.0:
        reading.fail((*at, "rate"), "real motors run in real time; take 'rate' out")


def check_bounds(drivers: tuple[DriverSpec, ...], joints: Mapping[str, JointSpec], reading: Reading) -> None:
    """Record real joints without limits of effort and velocity, and latched ones. Stops apply to emulated joints."""
    for spec in drivers:
        for name in spec.joints:
            joint = joints.get(name)
            if joint is None or spec.loads:  # its joint has another driver too
                continue
            for key in ("velocity", "effort"):
                if not math.isfinite(joint.limits[key]):
                    what = f"joint '{name}' is behind driver '{spec.name}' and has no limit of {key}; give it one"
                    reading.fail(("joints", name, "limits"), what)
            if joint.latched:
                what = f"joint '{name}' is behind driver '{spec.name}'; a real joint is not latched, take it out"
                reading.fail(("joints", name, "latched"), what)


class ConnectedDriver(Protocol):
    """The part of a driver of the rig that is read here."""

    @property
    def name(self) -> str: ...

    @property
    def plugin(self) -> Plugin: ...

    @property
    def family(self) -> DriverFamily: ...

    def at(self, *keys: str | int) -> KeyPath: ...


class Ends(NamedTuple):
    """A driver and its connection. wire: the file of a serial port, also of an adapter for a bus, or the bus."""

    spec: ConnectedDriver
    key: str  # of its section
    wire: str
    rates: dict[str, float]


def check_shared_connections(drivers: Iterable[ConnectedDriver], reading: Reading) -> None:
    """Record connections that drivers of several families give with unlike bit rates, and serial ports that they share.
    A bit rate for data that one of them does not give is not compared."""
    seen: list[Ends] = []
    for ends in (each for spec in drivers for each in _ends(spec)):
        others = [other for other in seen if other.wire == ends.wire and other.spec.family is not ends.spec.family]
        for other in others[:1]:
            unlike = [rate for rate in RATES if rate in ends.rates.keys() & other.rates.keys()]
            unlike = [rate for rate in unlike if ends.rates[rate] != other.rates[rate]]
            for rate in unlike:
                at = reading.place(other.spec.at(other.key, rate))
                what = f"{ends.rates[rate]:.0f} bit/s on {ends.wire}, which has {other.rates[rate]:.0f} bit/s at {at}"
                reading.fail(ends.spec.at(ends.key, rate), f"{what}; give both the rate of the drives")
            if not unlike and "port" in (ends.key, other.key):
                what = f"the port {ends.wire} belongs to driver '{other.spec.name}' already"
                reading.fail(ends.spec.at(ends.key), f"{what}; drives of two families need a port each")
        seen.append(ends)


def _ends(spec: ConnectedDriver) -> Iterator[Ends]:
    for key in ("bus", "port"):
        section = getattr(spec.plugin.params, key, None)
        if section is None:
            continue
        rates = {rate: value for rate in RATES if (value := getattr(section, rate, None)) is not None}
        serial = section.port if key == "port" else section.channel.partition("@")[0]
        wire = os.path.realpath(serial) if serial.startswith("/") else spec.family.connection_name(spec.plugin.params)
        yield Ends(spec, key, wire, rates)
