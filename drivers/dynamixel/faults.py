"""Faults of drives and their fixes.

Codes above 0 are the hardware error status (register 70); negative codes are states in which a drive does not follow
its commands although it reports no error.
"""

from __future__ import annotations

from cosim.plugins.drivers.dynamixel import tables as t

WATCHDOG, OFF, RESTARTED = -1, -2, -3

_OWN = {
    WATCHDOG: "no command in time, the drive stopped by itself (bus watchdog); check why commands stopped",
    OFF: "the drive switched its torque off by itself; check its supply",
    RESTARTED: "the drive was restarted and lost its settings; check its supply, then open the driver again",
}


def describe(code: int) -> str:
    """The names of a fault and the fix; empty for 0."""
    if code == 0:
        return ""
    if code in _OWN:
        return _OWN[code]
    found = [error for error in t.HARDWARE_ERRORS if code > 0 and code & error.bit]
    name = " and ".join(error.name for error in found) or "unknown error"
    fix = ", ".join(error.fix for error in found) or "see the manufacturer's manual"
    return f"{name} (drive error 0x{code & 0xFF:02X}); {fix}, then reboot the drive"


def code(torque: int, level: int, hardware: int, watchdog: int, on: bool) -> int:
    """The fault code for these registers; on: the drive was switched on."""
    if level == 0:
        return RESTARTED
    if hardware:
        return hardware
    if watchdog == t.TRIPPED:
        return WATCHDOG
    return OFF if on and not torque else 0
