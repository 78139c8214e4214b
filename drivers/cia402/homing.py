"""Homing of a drive (CiA 402-2, mode 6), commanded by SDO, one drive at a time."""

from __future__ import annotations

from collections.abc import Callable

from cosim.plugins.drivers.cia402 import codec, faults, profile, setup
from cosim.plugins.drivers.cia402.client import Client
from cosim.plugins.drivers.cia402.params import Homing

METHOD, SEARCH, SLOW = 0x609800, 0x609901, 0x609902
SWITCH_NS = 1_000_000_000  # for switching on


def home(client: Client, node: int, homing: Homing, step: codec.Step, feed: Callable[[], None]) -> None:
    """Home a drive that is off, and switch it off again. feed(): called often, to feed the watchdog.

    Raises setup.UnsuitableDrive if it does not switch on, does not find home or exceeds the time-out.
    """
    client.write(node, METHOD, "b", homing.method)
    for key, speed in ((SEARCH, homing.search), (SLOW, homing.slow)):
        if speed is not None:
            client.write(node, key, "I", max(1, round(speed / step.velocity)))
    client.write(node, setup.MODE, "b", profile.HOMING)
    try:
        _switch_on(client, node, feed)
        client.write(node, setup.CONTROLWORD, "H", profile.ENABLE | profile.START)
        _wait(client, node, homing, feed)
    finally:
        client.write(node, setup.CONTROLWORD, "H", profile.DISABLE_VOLTAGE)


def _switch_on(client: Client, node: int, feed: Callable[[], None]) -> None:
    end = client.now() + SWITCH_NS
    while True:
        feed()
        state = profile.state_of(_status(client, node))
        if state == profile.ENABLED:
            return
        if client.now() > end:
            raise setup.UnsuitableDrive(f"node {node} did not switch on for homing within 1 s; check its enable input")
        client.write(node, setup.CONTROLWORD, "H", profile.next_control(state))


def _wait(client: Client, node: int, homing: Homing, feed: Callable[[], None]) -> None:
    end = client.now() + int(1e9 * homing.timeout)
    while True:
        feed()
        word = _status(client, node)
        if profile.state_of(word) != profile.ENABLED or word & profile.HOMING_ERROR:
            raise setup.UnsuitableDrive(f"node {node} did not find home by method {homing.method}; check its switches")
        if word & profile.HOMING_BITS == profile.HOMED:
            return
        if client.now() > end:
            what = f"node {node} did not find home within {homing.timeout:.6g} s"
            raise setup.UnsuitableDrive(f"{what}; check its switches or raise 'homing.timeout'")


def _status(client: Client, node: int) -> int:
    """The statusword. Raises setup.UnsuitableDrive for a drive in fault."""
    word = client.read(node, setup.STATUSWORD, "H")
    if word & profile.FAULTY:
        code = client.read_optional(node, setup.ERROR_CODE, "H") or faults.UNNAMED
        raise setup.UnsuitableDrive(f"while homing: {faults.describe(code)}")
    return word
