"""The configuration of a Damiao drive: its registers. Drives that answer as a Mini Cheetah report none."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import numpy as np

from cosim.core.errors import RunError
from cosim.plugins.drivers.common.driver import STOP_NS
from cosim.plugins.drivers.mit.driver import MitDriver
from cosim.plugins.drivers.mit.registers import SETTINGS, STORE_TIME, store


def read(driver: MitDriver, k: int) -> dict[str, float]:
    """Name -> value of the registers that the drive of joint k has; none of a Mini Cheetah."""
    values: dict[str, float] = {}
    for name, number in SETTINGS.items() if driver._damiao[k] else ():
        with suppress(RunError):  # older firmware has fewer
            values[name] = driver._register(k, number)
    return values


def write(driver: MitDriver, k: int, changes: Mapping[str, float]) -> None:
    """Write registers of a drive that is off, and let it keep them, with the time-out and the control mode that this
    program sets. Raises RunError for one that it refuses."""
    for name, value in changes.items():
        if name not in SETTINGS:
            raise RunError(f"joint '{driver.joints[k]}': there is no register '{name}' to set; take it out")
        driver._register(k, SETTINGS[name], float(np.float32(value)))
    driver.link.send(store(driver._wiring[k].id), driver._now() + STOP_NS)
    driver._wait(lambda: False, STORE_TIME, lambda: None)
