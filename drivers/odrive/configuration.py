"""The configuration of an ODrive: its parameters `…config.…`, saved, and written permanently."""

from __future__ import annotations

from collections.abc import Mapping

from cosim.plugins.drivers.common.driver import STOP_NS
from cosim.plugins.drivers.odrive import can_codec as can
from cosim.plugins.drivers.odrive import codes
from cosim.plugins.drivers.odrive.ascii_driver import AsciiDriver
from cosim.plugins.drivers.odrive.can_driver import CanDriver
from cosim.plugins.drivers.odrive.driver import ODrive
from cosim.plugins.drivers.odrive.properties import PARAMETERS

OWN = "config.can.node_id"  # which drive it is, and not how it is set
NAMES = tuple(name for name, (_, writable) in PARAMETERS.items() if writable and "config." in name and name != OWN)


def read(driver: ODrive, k: int) -> dict[str, float]:
    """Name -> value of the axis of joint k. Raises the error of an axis that does not report one."""
    return {name: driver._get(k, name) for name in NAMES if _known(driver, k, name)}


def write(driver: ODrive, k: int, changes: Mapping[str, float]) -> None:
    """Set parameters of an axis that is off, and keep them without power: the drive restarts. Raises the error of an
    axis that does not accept one."""
    for name, value in changes.items():
        driver._set_checked(k, name, value)
        if name in driver._own[k]:  # else the old value would come back when the driver is closed
            driver._own[k][name] = value
    deadline_ns = driver._now() + STOP_NS
    if isinstance(driver, CanDriver):
        driver.link.send(can.encode(driver._addresses[k], can.REBOOT, codes.REBOOT_SAVE), deadline_ns)
    elif isinstance(driver, AsciiDriver):
        driver.link.send(driver._line("ss"), deadline_ns)


def _known(driver: ODrive, k: int, name: str) -> bool:
    """Whether the number of the parameter is known; on a serial port it needs none."""
    return not isinstance(driver, CanDriver) or name in driver._tables[k].table
