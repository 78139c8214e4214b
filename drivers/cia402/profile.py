"""The numbers of CiA 402-2: states of the power drive system and their patterns in the statusword, commands of the
controlword, modes of operation. Their effects are in `device.state_machine` (the device) and `driver` (the host).
"""

from __future__ import annotations

# states of the power drive system (PDS FSA)
NOT_READY, DISABLED, READY, SWITCHED_ON, ENABLED, QUICK_STOP, REACTING, FAULT = range(8)
STATES = (
    "not ready to switch on",
    "switch on disabled",
    "ready to switch on",
    "switched on",
    "operation enabled",
    "quick stop active",
    "fault reaction active",
    "fault",
)
POWERED = frozenset((ENABLED, QUICK_STOP, REACTING))  # in which the motor may give torque
# per state: (mask, value) of the statusword; the value is what the device sends
STATUS = (
    (0x4F, 0x00),
    (0x4F, 0x40),
    (0x6F, 0x21),
    (0x6F, 0x23),
    (0x6F, 0x27),
    (0x6F, 0x07),
    (0x4F, 0x0F),
    (0x4F, 0x08),
)
# the state of every pattern of the low seven bits; None for other patterns
_STATE_OF = tuple(
    next((s for s, (mask, value) in enumerate(STATUS) if pattern & mask == value), None) for pattern in range(128)
)

# further bits of the statusword
VOLTAGE, WARNING, REMOTE, REACHED, LIMITED, SPECIFIC, DEVIATION = 0x10, 0x80, 0x200, 0x400, 0x800, 0x1000, 0x2000
FAULTY = 0x08  # set in `FAULT` and `REACTING`
HOMING_BITS, HOMED, HOMING_ERROR = REACHED | SPECIFIC | DEVIATION, REACHED | SPECIFIC, DEVIATION

# the controlword
DISABLE_VOLTAGE, QUICK_STOP_COMMAND, SHUTDOWN, SWITCH_ON, ENABLE, RESET = 0x00, 0x02, 0x06, 0x07, 0x0F, 0x80
START, RELATIVE, HALT = 0x10, 0x40, 0x100

# modes of operation and their bit in 6502h
PROFILE_POSITION, PROFILE_VELOCITY, HOMING, CSP, CSV, CST = 1, 3, 6, 8, 9, 10
MODES = {"effort": CST, "velocity": CSV, "position": CSP}
MODE_NAMES = {
    0: "no mode",
    PROFILE_POSITION: "profile position",
    PROFILE_VELOCITY: "profile velocity",
    HOMING: "homing",
    CSP: "cyclic synchronous position",
    CSV: "cyclic synchronous velocity",
    CST: "cyclic synchronous torque",
}


def supported(mode: int) -> int:
    """The bit of a mode (1…32) in the supported drive modes, 6502h."""
    return 1 << (mode - 1)


def state_of(statusword: int) -> int | None:
    """The state in a statusword; None if CiA 402 has no such state."""
    return _STATE_OF[statusword & 0x7F]


# the next command towards operation enabled; a fault and a quick stop have other exits
_NEXT = {DISABLED: SHUTDOWN, READY: SWITCH_ON, SWITCHED_ON: ENABLE, ENABLED: ENABLE}


def next_control(state: int | None) -> int:
    """The controlword for the next step towards operation enabled; disable voltage if there is none."""
    return _NEXT.get(state, DISABLE_VOLTAGE) if state is not None else DISABLE_VOLTAGE
