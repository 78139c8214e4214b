"""Reading and writing the objects of the emulated drive, with the abort codes of CiA 301 and the effects of a write."""

from __future__ import annotations

from collections.abc import Callable

from cosim.plugins.drivers.cia402 import codec, profile, sdo
from cosim.plugins.drivers.cia402.device import mapping, motion, objects, state_machine
from cosim.plugins.drivers.cia402.device.node import Node
from cosim.plugins.drivers.cia402.device.objects import OBJECTS


def _i32(value: float) -> int:
    """A value as a 32-bit counter, which wraps."""
    return (round(value) + 2**31) % 2**32 - 2**31


def _i16(value: float) -> int:
    return round(min(max(value, -32768.0), 32767.0))


# objects with live values
_LIVE_VALUES: dict[int, Callable[[Node], int]] = {
    0x320101: lambda n: _i16(10.0 * n.motor.temperature),
    0x604100: state_machine.statusword,
    0x606100: lambda n: n.mode,
    0x606200: lambda n: _i32(n.demand),
    0x606400: lambda n: _i32(n.actual()),
    0x606B00: lambda n: _i32(n.rate / n.rate_unit),
    0x606C00: lambda n: _i32(n.speed() / n.rate_unit),
    0x607400: lambda n: _i16(1e6 * n.requested / n.rated),
    0x607700: lambda n: _i16(1e6 * n.motor.effort / n.rated),
    0x607800: lambda n: _i16(1e6 * n.motor.current * n.motor.torque_constant / n.rated),
    0x607900: lambda n: max(0, _i32(1e3 * n.motor.voltage)),
    0x60F400: lambda n: _i32(n.demand - n.actual()),
}


def read(node: Node, key: int) -> int | str:
    """The value of an object that exists."""
    live = _LIVE_VALUES.get(key)
    return live(node) if live is not None else node.values[key]


def find(key: int) -> objects.ObjectEntry:
    """Raises sdo.Aborted: no such object, or no such sub-index of it."""
    entry = OBJECTS.get(key)
    if entry is None:
        raise sdo.Aborted(sdo.NO_SUBINDEX if key >> 8 in objects.INDICES else sdo.NO_OBJECT)
    return entry


def download(node: Node, key: int, data: bytes) -> None:
    """Write bytes to an object. Raises sdo.Aborted."""
    entry = find(key)
    if entry.access in ("ro", "const"):
        raise sdo.Aborted(sdo.READ_ONLY)
    packer = objects.PACKERS[entry.kind]
    if len(data) != packer.size:
        raise sdo.Aborted(sdo.TOO_LONG if len(data) > packer.size else sdo.TOO_SHORT)
    write(node, key, packer.unpack(data)[0])


def write(node: Node, key: int, value: int) -> None:
    """Write a number of the object's width to an object that may be written. Raises sdo.Aborted."""
    if not objects.fits(OBJECTS[key], value):
        raise sdo.Aborted(sdo.BAD_VALUE)
    if mapping.configures(key):
        mapping.configure(node, key, value)
        return
    allow = _CONDITIONS.get(key)
    if allow is not None:
        allow(node, value)
    node.values[key] = value
    then = _EFFECTS.get(key)
    if then is not None:
        then(node, value)


# --- conditions of a write, beyond the range in the table ------------------------------------------


def _consumer(key: int) -> Callable[[Node, int], None]:
    other = 0x101603 - key + 0x101600  # the second of the two consumers

    def allow(node: Node, value: int) -> None:
        producer, existing = value >> 16, node.value(other)
        if value & 0xFFFF and producer and existing & 0xFFFF and existing >> 16 == producer:
            raise sdo.Aborted(sdo.INCOMPATIBLE)

    return allow


_CONDITIONS = {key: _consumer(key) for key in (0x101601, 0x101602)}


# --- effects of a write ----------------------------------------------------------------------


def _clear_history(node: Node, value: int) -> None:
    for k in range(objects.ERRORS_KEPT):
        node.values[0x100301 + k] = 0


def _start_monitoring(sub: int) -> Callable[[Node, int], None]:
    def then(node: Node, value: int) -> None:
        node.heard[sub] = None  # monitored from the next heartbeat on

    return then


def _start_heartbeat(node: Node, value: int) -> None:
    node.beat_due = node.t_ns if value and node.nmt != codec.BOOTING else None


def _control(node: Node, value: int) -> None:
    before = node.control
    state_machine.control(node, value)
    motion.start_procedures(node, before)


def _set_target(node: Node, value: int) -> None:
    if node.mode == profile.CSP and node.state == profile.ENABLED:
        motion.set_target(node, value)


_EFFECTS: dict[int, Callable[[Node, int], None]] = {
    0x100300: _clear_history,
    0x101601: _start_monitoring(0),
    0x101602: _start_monitoring(1),
    0x101700: _start_heartbeat,
    0x604000: _control,
    0x606000: motion.change_mode,
    0x607A00: _set_target,
}
