"""Error codes of CiA 301 and CiA 402 (603Fh, EMCY): their names, the fixes and the reactions of the device."""

from __future__ import annotations

from typing import NamedTuple


class DriveFault(NamedTuple):
    """What an error code of a drive means, and how the drive reacts."""

    name: str
    fix: str
    register: int  # bits of 1001h besides the generic one
    abrupt: bool = False  # no ramp is possible: the motor coasts immediately


GENERIC, CURRENT, VOLTAGE, TEMPERATURE, COMMUNICATION, PROFILE = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20

OVERCURRENT, OVERVOLTAGE, UNDERVOLTAGE, OVERTEMPERATURE = 0x2310, 0x3210, 0x3220, 0x4310
SENSOR, CONNECTION, HEARTBEAT, PDO_LENGTH, FOLLOWING = 0x7305, 0x8100, 0x8130, 0x8210, 0x8611

FAULTS = {
    OVERCURRENT: DriveFault(
        "over current", "check the motor and its cable for a short circuit, lower the gains", CURRENT, True
    ),
    OVERVOLTAGE: DriveFault("over voltage", "fit a brake chopper or brake more softly", VOLTAGE, True),
    UNDERVOLTAGE: DriveFault("under voltage", "check the supply of the power stage", VOLTAGE, True),
    OVERTEMPERATURE: DriveFault("over temperature of the drive", "let it cool down", TEMPERATURE),
    SENSOR: DriveFault("position sensor", "check the encoder and its cable", PROFILE, True),
    CONNECTION: DriveFault(
        "communication", "check for another master that took the drive out of operation", COMMUNICATION
    ),
    HEARTBEAT: DriveFault("heartbeat lost", "commands stopped; check what blocked the program", COMMUNICATION),
    PDO_LENGTH: DriveFault("PDO too short", "check that no other master maps the drive's PDOs", COMMUNICATION),
    FOLLOWING: DriveFault("following error", "command slower motions or widen the window 6065h", PROFILE),
}
# fault cause of a motor (cosim.plugins.drivers.common.motor.FAULT_CAUSES) -> error code
OF_FAULT_CAUSE = {
    "overtemperature": OVERTEMPERATURE,
    "overcurrent": OVERCURRENT,
    "undervoltage": UNDERVOLTAGE,
    "encoder": SENSOR,
}
# the class of a manufacturer-specific code, by its upper bits (CiA 301, table of error code classes)
_CLASSES = (
    (0xF000, 0x2000, "current"),
    (0xF000, 0x3000, "voltage"),
    (0xF000, 0x4000, "temperature"),
    (0xFF00, 0x5000, "hardware of the drive"),
    (0xF000, 0x6000, "software of the drive"),
    (0xF000, 0x7000, "sensor or additional module"),
    (0xF000, 0x8000, "monitoring"),
    (0xFF00, 0x9000, "external error"),
    (0xFF00, 0xFF00, "manufacturer-specific"),
)

# states in which a drive does not run although it reports no error: negative codes of this driver
SWITCHED_OFF, STOPPING, OTHER_MODE, RESTARTED, UNNAMED = -1, -2, -3, -4, -5
DRIVER_CODES = {
    SWITCHED_OFF: ("switched off by itself", "check its enable input and its safe-torque-off input"),
    STOPPING: ("quick stop active", "check its quick-stop input, and for another master on the bus"),
    OTHER_MODE: ("runs in another mode than commanded", "check for another master on the bus"),
    RESTARTED: ("left the operational state", "check for a reset, a power dip or another master on the bus"),
    UNNAMED: ("fault without an error code", "read 1003h and 603Fh with the manufacturer's tool"),
}


def describe(code: int) -> str:
    """The name of a fault and the fix, in one line."""
    if code < 0:
        name, fix = DRIVER_CODES.get(code, ("unknown state", "switch the drive off and on"))
        return f"{name}; {fix}"
    if code in FAULTS:
        return f"{FAULTS[code].name} (drive error 0x{code:04X}); {FAULTS[code].fix}"
    kind = next((name for mask, value, name in _CLASSES if code & mask == value), "generic error")
    return f"{kind} (drive error 0x{code:04X}); see the drive's manual"
