"""The configuration of a moteus drive as a whole, on its diagnostic console: saved, and written permanently."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from cosim.core.errors import RunError
from cosim.plugins.drivers.moteus.diagnostic import Request, Write, command, enumerated
from cosim.plugins.drivers.moteus.driver import MoteusDriver

OWN = ("id.", "can.prefix", "uuid.")  # which drive it is, and not how it is set


def read(driver: MoteusDriver, k: int) -> dict[str, float]:
    """Name -> value of drive k. Raises RunError for one that does not report them."""
    values = enumerated(*_console(driver, k))
    if values is None:
        what = f"node {driver.nodes[k]} did not report its configuration"
        raise RunError(f"joint '{driver.joints[k]}': {what}; check its cable, its termination and its bit rate")
    return {name: value for name, value in values.items() if not name.startswith(OWN)}


def write(driver: MoteusDriver, k: int, changes: Mapping[str, float]) -> None:
    """Set values of drive k, which is off, and keep them without power. Raises RunError for one that it refuses."""
    console = _console(driver, k)
    lines = [f"conf set {name} {value!r}" for name, value in changes.items()]
    for line in (*lines, "conf write"):
        if not command(*console, line):
            raise RunError(f"joint '{driver.joints[k]}': node {driver.nodes[k]} refuses '{line}'; check the value")


def _console(driver: MoteusDriver, k: int) -> tuple[Write, Request]:
    return partial(driver._drives.write, k), partial(driver._drives.request, k, tries=2)
