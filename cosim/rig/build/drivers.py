"""The drivers of a rig, real and simulated: loaded for its control loop, and the load on their buses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from typing import Any, Protocol, TypedDict

import numpy as np

from cosim.errors import InputError, SourceLocation
from cosim.hardware.driver_group import DriverGroup
from cosim.hardware.estop import Estop, open_estop
from cosim.hardware.manager import HardwareManager
from cosim.rig.build.driver_context import real_joints
from cosim.rig.reading.plugins import DRIVER
from cosim.rig.sections.drivers import DriverSpec
from cosim.rig.sections.guard import WATCHDOG_STEPS, GuardSpec
from cosim.tick.virtual_plant import VirtualPlant
from cosim.types import DriverContext, Limits

WATCHDOG = 0.1  # s without a tick before real motors are switched off, unless the rig gives another time


class Safety(TypedDict, total=False):
    """What the loop watches besides the guard: its own ticks [s], and the emergency stop, which it opens."""

    watchdog: float | None
    estop: Callable[[ExitStack], Estop]


def driver_groups(
    drivers: Sequence[DriverSpec],
    contexts: Mapping[str, DriverContext],
    joints: Sequence[str],
    limits: Limits,
    plant: VirtualPlant,
) -> list[DriverGroup]:
    """One group for the simulated motors and one for each driver; the index of load motors is their place in
    `load_motors`. joints, limits (nv,): of the whole rig."""
    real = real_joints(drivers)
    own = np.array([k for k, name in enumerate(joints) if name not in real], dtype=int)
    groups = []
    if len(own):
        simulated = import_module(DRIVER.package).simulated(tuple(joints[k] for k in own), own, limits.at(own), plant)
        groups.append(DriverGroup(simulated, own))
    loads = 0
    for spec in drivers:
        index = np.array([joints.index(name) for name in spec.joints], dtype=int)
        driver = spec.plugin.module.load(spec.plugin.params, contexts[spec.name])
        if spec.loads:
            index = np.arange(loads, loads := loads + len(spec.loads))
        groups.append(DriverGroup(driver, index, spec.mode, real=True, load=bool(spec.loads)))
    return groups


def safety_of(guard: GuardSpec, hardware: bool, step: float, place: Callable[[tuple], SourceLocation]) -> Safety:
    """The watchdog and the emergency stop. step [s]: of the ticks."""
    watchdog = guard.watchdog
    if watchdog is None and hardware:
        watchdog = max(WATCHDOG, WATCHDOG_STEPS * step)
    if guard.estop is None:
        return {"watchdog": watchdog}
    return {
        "watchdog": watchdog,
        "estop": partial(open_estop, guard.estop, lambda *keys: place(("guard", "estop", *keys))),
    }


class BusTraffic(Protocol):
    """What one cycle of a driver sends and receives."""

    def load(self, params: Any, period: float) -> float:
        """The fraction of the bus that a cycle every `period` [s] fills, at worst."""
        ...


def bus_loads(drivers: Sequence[DriverSpec], contexts: Mapping[str, DriverContext]) -> dict[str, float]:
    """Driver -> the fraction of its bus that commands and replies fill, at worst.

    Raises InputError for a bus that cannot carry them.
    """
    loads = {}
    for spec in drivers:
        context = contexts[spec.name]
        traffic: BusTraffic = spec.plugin.module.traffic(spec.plugin.params, context)
        loads[spec.name] = load = traffic.load(bus_params(spec), context.period)
        if load > 1.0:
            n, period = len(spec.joints), context.period
            what = f"{n} drive{'s' * (n > 1)} every {period * 1e3:g} ms need {load:.3g} times what the line can carry"
            raise InputError(f"{what}; use a longer schedule.step, a higher bit rate, or two lines", context.place())
    return loads


def bus_params(spec: DriverSpec) -> Any:
    """The parameters of a driver's connection: of a CAN bus, or of a serial port."""
    params: Any = spec.plugin.params
    bus = getattr(params, "bus", None)
    return params.port if bus is None else bus


def bus_report(
    drivers: Sequence[DriverSpec], estimated: Mapping[str, float], manager: HardwareManager, seconds: float
) -> tuple[dict[str, Any], ...]:
    """Traffic of every connection in so many seconds, and the feedforward efforts that its drives got.

    estimated: driver -> bus load, as `bus_loads` has it.
    """
    counted = zip(manager.groups, manager.unsent, strict=True)
    loaded: list[Any] = [(group.driver, unsent) for group, unsent in counted if group.real]
    report = []
    for spec, (driver, unsent) in zip(drivers, loaded, strict=True):
        params, meter = bus_params(spec), driver.link.meter
        bitrate = getattr(params, "bitrate", None) or params.baudrate
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
