"""The rigs with emulated drives that hardware rows measure: files of `rigs/bench`, and the overrides of their keys."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from benchmarks.robots import rig_path

TWO_CAN_BUSES = "rigs/bench/two_can_buses.yaml"
ONE_CAN_BUS = "rigs/bench/one_can_bus.yaml"
ONE_SERIAL_LINK = "rigs/bench/one_serial_link.yaml"

DRIVES = 6  # of each of these rigs


def can_rig(name: str, interface: str, buses: int) -> tuple[Path, list[str]]:
    """A rig and the overrides that put its drivers `bus1`, … on channels that no other process uses now."""
    keys = [
        f"drivers.bus{k + 1}.bus.{key}={value}"
        for k, channel in enumerate(free_channels(interface, buses))
        for key, value in (("interface", interface), ("channel", channel))
    ]
    return rig_path(name), keys


def serial_rig(port: Path) -> tuple[Path, list[str]]:
    """The rig on a serial link and the override of its port."""
    return rig_path(ONE_SERIAL_LINK), [f"drivers.link1.port.port={port}"]


def free_channels(interface: str, count: int) -> list[str]:
    """Channels of python-can named after this process."""
    high, low = os.getpid() >> 8 & 0xFF, os.getpid() & 0xFF
    if interface == "udp_multicast":
        return [f"239.{200 + k}.{high}.{low}" for k in range(count)]
    return [f"bench {os.getpid()} {k}" for k in range(count)]


def set_options(keys: Iterable[str]) -> list[str]:
    """Overrides as options of the command line."""
    return [text for key in keys for text in ("--set", key)]
