"""The drivers of a rig, real and simulated, as its loop needs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.hardware.manager import HardwareManager, DriverGroup
from cosim.control.load_emulation import LoadMotor
from cosim.errors import InputError, SourceLocation
from cosim.hardware.estop import open_estop
from cosim.rig.sections.drivers import DriverSpec
from cosim.rig.sections.guard import WATCHDOG_STEPS
from cosim.types import DriverContext, Limits
from cosim.tick.virtual_plant import VirtualPlant

if TYPE_CHECKING:
    from cosim.rig.rig import Rig

WATCHDOG = 0.1  # s without a tick, with real motors, unless the rig says so


def real_joints(drivers: Sequence[DriverSpec]) -> tuple[str, ...]:
    """Joints that move as they are measured to; a load motor sits on the shaft of one of them."""
    return tuple(name for spec in drivers if not spec.loads for name in spec.joints)


def self_willed(rig: Rig) -> np.ndarray | None:
    """(nv,) truth values: joints whose drives follow a velocity or a position by their own gains; None: no joint."""
    names = {name for spec in rig.spec.drivers if spec.mode != "effort" for name in spec.joints}
    return np.isin(rig.joints, list(names)) if names else None


def bandwidths_of(drivers: Sequence[DriverSpec]) -> np.ndarray:
    """(m,) of the observers of the real joints [Hz]."""
    return np.array([spec.observer for spec in drivers if not spec.loads for _ in spec.joints])


def groups_of(rig: Rig, world: VirtualPlant) -> list[DriverGroup]:
    """One group for the simulated motors, one for each line of real ones; load motors by their places in `loads_of`."""
    names, real = rig.joints, real_joints(rig.spec.drivers)
    own = np.array([k for k, name in enumerate(names) if name not in real], dtype=int)
    groups = []
    if len(own):
        simulated = import_module("cosim.drivers.sim").load(
            tuple(names[k] for k in own), own, rig.limits.at(own), world
        )
        groups.append(DriverGroup(simulated, own))
    loads = 0
    for spec in rig.spec.drivers:
        index = np.array([names.index(name) for name in spec.joints], dtype=int)
        driver = spec.plugin.module.load(spec.plugin.params, context_of(rig, spec))
        if spec.loads:
            index = np.arange(loads, loads := loads + len(spec.loads))
        groups.append(DriverGroup(driver, index, spec.mode, real=True, load=bool(spec.loads)))
    return groups


def loads_of(rig: Rig) -> tuple[LoadMotor, ...]:
    """All load motors, in the order of the drivers."""
    rotors = rig.plant.rotors
    return tuple(
        LoadMotor(rig.joints.index(name), rotors.get(name, 0.0), load.inertia, load.viscous, load.effort)
        for spec in rig.spec.drivers
        for name, load in spec.loads.items()
    )


def safety_of(rig: Rig) -> dict[str, Any]:
    """What the loop watches besides: the emergency stop, and itself."""
    guard, place = rig.spec.guard, rig.spec.source.place
    watchdog = guard.watchdog
    if watchdog is None and rig.hardware:
        watchdog = max(WATCHDOG, WATCHDOG_STEPS * rig.simulation.step)
    if guard.estop is None:
        return {"watchdog": watchdog}
    return {
        "watchdog": watchdog,
        "estop": partial(open_estop, guard.estop, lambda *keys: place(("guard", "estop", *keys))),
    }


def context_of(rig: Rig, spec: DriverSpec) -> DriverContext:
    """What a family is told of its joints."""
    index = np.array([rig.joints.index(name) for name in spec.joints], dtype=int)
    limits = rig.limits.at(index)
    if spec.loads:
        effort = np.array([load.effort for load in spec.loads.values()])
        limits = Limits(limits.lower, limits.upper, limits.velocity, effort)
    return DriverContext(
        joints=spec.joints,
        wiring=tuple(spec.wiring.values()),
        limits=limits,
        period=rig.spec.schedule.step_ns * 1e-9,
        mode=spec.mode,
        place=place_of(rig, spec),
    )


def place_of(rig: Rig, spec: DriverSpec) -> Callable[..., SourceLocation]:
    """Where a key of the driver's section stands."""
    return lambda *keys: rig.spec.source.place(spec.at(*keys))


def bus_loads(rig: Rig) -> dict[str, float]:
    """By driver, the share of its line that commands and answers fill, at worst.

    Raises InputError for a line that cannot carry them.
    """
    estimate, period, found = import_module("cosim.drivers.transport").estimate, rig.spec.schedule.step_ns * 1e-9, {}
    for spec in rig.spec.drivers:
        traffic = spec.plugin.module.traffic(spec.plugin.params, context_of(rig, spec))
        found[spec.name] = share = estimate(traffic, wire_of(spec), period)
        if share > 1.0:
            n = len(spec.joints)
            what = f"{n} drive{'s' * (n > 1)} every {period * 1e3:g} ms need {share:.3g} times what the line can carry"
            mend = "use a longer schedule.step, a higher bit rate, or two lines"
            raise InputError(f"{what}; {mend}", place_of(rig, spec)())
    return found


def wire_of(spec: DriverSpec) -> Any:
    """The parameters of its line: of a CAN bus, or of a serial port."""
    params: Any = spec.plugin.params
    bus = getattr(params, "bus", None)
    return params.port if bus is None else bus


def bus_report(rig: Rig, drives: HardwareManager, seconds: float) -> tuple[dict[str, Any], ...]:
    """What became of every line in so many seconds, and of the efforts in the slots of its drives."""
    counted = zip(drives.groups, drives.unsent, strict=True)
    drivers: list[Any] = [(group.driver, unsent) for group, unsent in counted if group.real]
    estimated, found = bus_loads(rig), []
    for spec, (driver, unsent) in zip(rig.spec.drivers, drivers, strict=True):
        wire, meter = wire_of(spec), driver.link.meter
        bitrate = getattr(wire, "bitrate", None) or wire.baudrate
        found.append(
            {
                "driver": spec.name,
                "line": driver.link.name,
                "share": meter.load(seconds, bitrate),
                "share_estimated": estimated[spec.name],
                "sent": meter.items_out,
                "received": meter.items_in,
                "errors": meter.errors + driver.lost,
                "unsent": unsent,
                "slots": driver.report(),
            }
        )
    return tuple(found)
