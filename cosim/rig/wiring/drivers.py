"""The drivers of a rig, real and simulated: loaded for its control loop, and the load on their buses."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Protocol, TypedDict, cast, runtime_checkable

import numpy as np

from cosim.core.driver_contract import BusItem, Connection, DriverContext, HardwareDriver
from cosim.core.errors import InputError, InputErrors, SourceLocation, listed
from cosim.core.plugin_loading import DRIVER
from cosim.core.types import Limits
from cosim.execution.hardware.driver_group import DriverGroup
from cosim.execution.hardware.estop import Estop, open_estop
from cosim.execution.hardware.manager import BusReport, HardwareManager
from cosim.execution.hardware.traffic.recorded_driver import RecordedConnection, RecordedDriver
from cosim.execution.hardware.traffic.traffic_log import TrafficLog
from cosim.rig.reading.driver_family import CycleTraffic
from cosim.rig.sections.drivers import DriverSpec
from cosim.rig.sections.guard import GuardSpec, watchdog_time
from cosim.rig.wiring.detect_family import family_detector
from cosim.rig.wiring.driver_context import real_joints
from cosim.simulation.tick.virtual_plant import VirtualPlant

LESS_LOAD = "use a longer schedule.step, a higher bit rate, or two buses"


@runtime_checkable
class BusParams(Protocol):
    """The connection of a driver to a CAN bus."""

    bitrate: float


class PortParams(Protocol):
    """The connection of a driver to a serial port."""

    baudrate: float


class Safety(TypedDict, total=False):
    """Stops of the loop besides the guard: the watchdog [s], and the function that opens the emergency stop."""

    watchdog: float | None
    estop: Callable[[ExitStack], Estop]


def driver_groups(
    drivers: Sequence[DriverSpec],
    contexts: Mapping[str, DriverContext],
    joints: Sequence[str],
    limits: Limits,
    plant: VirtualPlant,
    traffic: TrafficLog | None = None,
    called: Container[str] = (),
) -> list[DriverGroup]:
    """One group for the simulated motors and one for each driver; the index of load motors is their place in
    `load_motors`. joints, limits (nv,): of the whole rig; traffic: log of the drivers' traffic; called: drivers that a
    compiled loop calls in Python.

    Raises InputError for a driver whose traffic cannot be recorded."""
    real = real_joints(drivers)
    own = np.array([k for k, name in enumerate(joints) if name not in real], dtype=int)
    groups = []
    if len(own):
        simulated = import_module(DRIVER.package).simulated(tuple(joints[k] for k in own), own, limits.at(own), plant)
        groups.append(DriverGroup(simulated, own))
    loads = 0
    for spec in drivers:
        index = np.array([joints.index(name) for name in spec.joints], dtype=int)
        context = contexts[spec.name]
        driver = _load(spec, context) if traffic is None else _load_recorded(spec, context, traffic)
        driver.link.reserve(own_items(spec, context))
        if spec.loads:
            index = np.arange(loads, loads := loads + len(spec.loads))
        kind = spec.mode, True, bool(spec.loads), family_detector(spec, context), context.ambiguous
        groups.append(DriverGroup(driver, index, *kind, spec.name in called))
    return groups


def _load(spec: DriverSpec, context: DriverContext) -> HardwareDriver:
    return spec.family.load(spec.plugin.params, context)


def _load_recorded(spec: DriverSpec, context: DriverContext, log: TrafficLog) -> HardwareDriver:
    traffic = log.of(spec.name)
    driver = _load(spec, replace(context, tap=lambda link: RecordedConnection(link, traffic)))
    if not traffic.connected:
        what = f"the traffic of drivers of type '{spec.plugin.name}' cannot be recorded: its connection is not tapped"
        raise InputError(f"{what}; leave recording.bus out", context.place())
    return cast(HardwareDriver, RecordedDriver(driver, traffic))


def driver_errors(drivers: Sequence[DriverSpec], contexts: Mapping[str, DriverContext]) -> Iterator[InputError]:
    """The mistakes of drivers that the rig alone shows: each driver is made, and none is opened."""
    for spec in drivers:
        try:
            _load(spec, contexts[spec.name])
        except InputError as error:
            yield error


@runtime_checkable
class CheckedConnection(Protocol):
    """A connection of which something can be known without opening it."""

    def check(self) -> InputError | None:
        """Raises InputError for what is wrong on every machine; the error of what is missing on this one now."""
        ...


def missing_connections(drivers: Sequence[DriverSpec], contexts: Mapping[str, DriverContext]) -> list[InputError]:
    """The errors with which connections could not be opened on this machine now. Raises InputErrors for those that no
    machine could open; nothing is opened."""
    wrong: list[InputError] = []
    missing: list[InputError] = []
    for spec in drivers:
        for link in _connections(spec, contexts[spec.name]):
            try:
                missing += [] if (error := link.check()) is None else [error]
            except InputError as error:
                wrong.append(error)
    if wrong:
        raise InputErrors(wrong)
    return missing


def _connections(spec: DriverSpec, context: DriverContext) -> Iterator[CheckedConnection]:
    """The connections that a driver makes, not open."""
    links: list[Connection] = []

    def tap(link: Connection) -> Connection:
        links.append(link)
        return link

    _load(spec, replace(context, tap=tap))
    return (link for link in links if isinstance(link, CheckedConnection))


def called_drivers(
    drivers: Sequence[DriverSpec], contexts: Mapping[str, DriverContext], recorded: bool
) -> dict[str, str]:
    """Driver -> why a compiled loop calls it in Python; cycles of the others are machine code. recorded: their traffic
    is."""
    if recorded:
        return {spec.name: "bus traffic is recorded in Python" for spec in drivers}
    reasons = {spec.name: _load(spec, contexts[spec.name]).why_not_compiled for spec in drivers}
    return {name: why for name, why in reasons.items() if why}


def safety_of(guard: GuardSpec, hardware: bool, step: float, place: Callable[[tuple], SourceLocation]) -> Safety:
    """The watchdog and the emergency stop. step [s]: of the ticks."""
    watchdog = watchdog_time(guard, hardware, step)
    if guard.estop is None:
        return {"watchdog": watchdog}
    return {
        "watchdog": watchdog,
        "estop": partial(open_estop, guard.estop, lambda *keys: place(("guard", "estop", *keys))),
    }


def bus_loads(drivers: Sequence[DriverSpec], contexts: Mapping[str, DriverContext]) -> dict[str, float]:
    """Driver -> the fraction of its bus that commands and replies use in the worst case.

    Raises InputError for a bus that cannot carry them, also for several families together.
    """
    loads: dict[str, float] = {}
    sharing: dict[str, list[str]] = {}
    for spec in drivers:
        context = contexts[spec.name]
        loads[spec.name] = load = cycle_traffic(spec, context).load(bus_params(spec), context.period)
        if load > 1.0:
            n, period = len(spec.joints), context.period
            what = f"{n} drive{'s' * (n > 1)} every {period * 1e3:g} ms need {load:.3g} times the capacity of the bus"
            raise InputError(f"{what}; {LESS_LOAD}", context.place())
        connection = spec.family.connection_name(spec.plugin.params)
        names = sharing.setdefault(connection, [])
        names.append(spec.name)
        if (total := sum(loads[name] for name in names)) > 1.0:
            quoted = listed([f"'{name}'" for name in names])
            what = f"drivers {quoted} on {connection} need {total:.3g} times the capacity of the bus together"
            raise InputError(f"{what}; {LESS_LOAD}", context.place())
    return loads


def own_items(spec: DriverSpec, context: DriverContext) -> list[BusItem]:
    """What a driver sends in a cycle, in any mode: no other program on its bus may send the same."""
    each = (replace(context, mode=mode) for mode in sorted(spec.family.MODES))
    return [item for other in each for item in cycle_traffic(spec, other).out]


def cycle_traffic(spec: DriverSpec, context: DriverContext) -> CycleTraffic:
    """The items that a driver sends and receives in one cycle."""
    return spec.family.traffic(spec.plugin.params, context)


def bus_params(spec: DriverSpec) -> BusParams | PortParams:
    """The parameters of a driver's connection."""
    connections = (getattr(spec.plugin.params, key, None) for key in ("bus", "port", "ethercat"))
    return next(params for params in connections if params is not None)


def bus_report(
    drivers: Sequence[DriverSpec], estimated: Mapping[str, float], manager: HardwareManager, seconds: float
) -> tuple[BusReport, ...]:
    """Traffic of every connection in `seconds`, and the feedforward efforts that its drives received.

    estimated: driver -> bus load, as from `bus_loads`.
    """
    counted = zip(manager.groups, manager.unsent, strict=True)
    real = [(group.hardware, unsent) for group, unsent in counted if group.hardware is not None]
    report: list[BusReport] = []
    for spec, (driver, unsent) in zip(drivers, real, strict=True):
        params, meter = bus_params(spec), driver.link.meter
        bitrate = params.bitrate if isinstance(params, BusParams) else params.baudrate
        report.append(
            {
                "driver": spec.name,
                "connection": driver.link.name,
                "bus_load": meter.load(seconds, bitrate),
                "bus_load_estimated": estimated[spec.name],
                "sent": meter.items_out,
                "received": meter.items_in,
                "errors": meter.errors + driver.lost,
                "unsent": unsent,
                "feedforward": driver.report(),
            }
        )
    return tuple(report)
