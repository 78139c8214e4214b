"""Error codes of CiA 301 and CiA 402 (603Fh, EMCY): what they are called, how to mend them, how the device reacts."""

from __future__ import annotations

from typing import NamedTuple


class DriveFault(NamedTuple):
    name: str
    mend: str
    register: int  # bits of 1001h beside the generic one
    abrupt: bool = False  # no ramp is possible: the motor is let go at once


CURRENT, VOLTAGE, TEMPERATURE, COMMUNICATION, PROFILE = 0x02, 0x04, 0x08, 0x10, 0x20

OVERCURRENT, OVERVOLTAGE, UNDERVOLTAGE, OVERTEMPERATURE = 0x2310, 0x3210, 0x3220, 0x4310
SENSOR, CONNECTION, HEARTBEAT, PDO_LENGTH, FOLLOWING = 0x7305, 0x8100, 0x8130, 0x8210, 0x8611

FAULTS = {
    OVERCURRENT: DriveFault(
        "over current", "look for a short in the motor and its cable, lower the gains", CURRENT, True
    ),
    OVERVOLTAGE: DriveFault("over voltage", "fit a brake chopper or brake more softly", VOLTAGE, True),
    UNDERVOLTAGE: DriveFault("under voltage", "check the supply of the power stage", VOLTAGE, True),
    OVERTEMPERATURE: DriveFault("over temperature of the drive", "let it cool down", TEMPERATURE),
    SENSOR: DriveFault("position sensor", "check the encoder and its cable", PROFILE, True),
    CONNECTION: DriveFault(
        "communication", "look for another master that took the drive out of operation", COMMUNICATION
    ),
    HEARTBEAT: DriveFault("heartbeat lost", "commands stopped coming; look at what held the program up", COMMUNICATION),
    PDO_LENGTH: DriveFault("PDO too short", "check that nobody else maps the drive's PDOs", COMMUNICATION),
    FOLLOWING: DriveFault("following error", "command slower motions or widen the window 6065h", PROFILE),
}
# fault cause of a motor (cosim.drivers.common.motor.FAULT_CAUSES) -> error code
OF_FAULT_CAUSE = {
    "overtemperature": OVERTEMPERATURE,
    "overcurrent": OVERCURRENT,
    "undervoltage": UNDERVOLTAGE,
    "encoder": SENSOR,
}
# what the upper bits of a code tell where the code itself is the maker's own (CiA 301, table of error code classes)
_CLASSES = (
    (0xF000, 0x2000, "current"),
    (0xF000, 0x3000, "voltage"),
    (0xF000, 0x4000, "temperature"),
    (0xFF00, 0x5000, "hardware of the drive"),
    (0xF000, 0x6000, "software of the drive"),
    (0xF000, 0x7000, "sensor or additional module"),
    (0xF000, 0x8000, "monitoring"),
    (0xFF00, 0x9000, "external error"),
    (0xFF00, 0xFF00, "maker's own"),
)

# states that are no error of the drive but no running either; codes of this program, told apart by their sign
FELL_OUT, STOPPING, OTHER_MODE, RESTARTED, UNNAMED = -1, -2, -3, -4, -5
OWN = {
    FELL_OUT: ("switched off by itself", "look for an enable input or a safe-torque-off line that opened"),
    STOPPING: ("quick stop active", "look for a quick-stop input or another master on the bus"),
    OTHER_MODE: ("runs in another mode than it was told", "look for another master on the bus"),
    RESTARTED: ("left the operational state", "look for a reset, a power dip or another master on the bus"),
    UNNAMED: ("fault without an error code", "read 1003h and 603Fh with the maker's tool"),
}


def describe(code: int) -> str:
    """One line: what a fault code means and what to do."""
    if code < 0:
        name, mend = OWN.get(code, ("unknown state", "switch the drive off and on"))
        return f"{name}; {mend}"
    if code in FAULTS:
        return f"{FAULTS[code].name} (drive error 0x{code:04X}); {FAULTS[code].mend}"
    kind = next((name for mask, value, name in _CLASSES if code & mask == value), "generic error")
    return f"{kind} (drive error 0x{code:04X}); see the drive's manual"
