"""What drives report when something is wrong, and what to do about it.

Codes above 0 are the hardware error status (register 70) as it is; those below 0 are states in which a drive does not
do what it is told, although it reports no error.
"""

from __future__ import annotations

from cosim.drivers.dynamixel import tables as t

WATCHDOG, OFF, RESTARTED = -1, -2, -3

_OWN = {
    WATCHDOG: "no command came in time, the drive stopped by itself (bus watchdog); find out why commands stopped",
    OFF: "the drive switched its torque off by itself; check its supply",
    RESTARTED: "the drive was restarted and lost its settings; check its supply, then open the driver again",
}


def describe(code: int) -> str:
    """The names of a fault and the mend; empty for 0."""
    if code == 0:
        return ""
    if code in _OWN:
        return _OWN[code]
    found = [error for error in t.HARDWARE_ERRORS if code > 0 and code & error.bit]
    name = " and ".join(error.name for error in found) or "unknown error"
    mend = ", ".join(error.mend for error in found) or "see the maker's manual"
    return f"{name} (drive error 0x{code & 0xFF:02X}); {mend}, then reboot the drive"


def code(torque: int, level: int, hardware: int, watchdog: int, on: bool) -> int:
    """Of a drive with these registers; on: it was switched on."""
    if level == 0:
        return RESTARTED
    if hardware:
        return hardware
    if watchdog == t.TRIPPED:
        return WATCHDOG
    return OFF if on and not torque else 0
