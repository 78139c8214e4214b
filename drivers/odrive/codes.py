"""The manufacturer's enumerations (firmware 0.6, ODrive API reference), and the fixes of errors."""

from __future__ import annotations

# states of an axis
UNDEFINED, IDLE, CLOSED_LOOP, HOMING = 0, 1, 8, 11
STATES = {
    0: "undefined",
    IDLE: "idle",
    2: "startup sequence",
    3: "full calibration",
    4: "motor calibration",
    6: "encoder index search",
    7: "encoder offset calibration",
    CLOSED_LOOP: "closed loop control",
    9: "lock-in spin",
    10: "encoder direction search",
    HOMING: "homing",
    12: "encoder hall polarity calibration",
    13: "encoder hall phase calibration",
    14: "anticogging calibration",
    15: "harmonic calibration",
    16: "harmonic calibration commutation",
}
# control modes, input modes
TORQUE_CONTROL, VELOCITY_CONTROL, POSITION_CONTROL = 1, 2, 3
INACTIVE, PASSTHROUGH, VEL_RAMP, POS_FILTER, TRAP_TRAJ, TORQUE_RAMP = 0, 1, 2, 3, 5, 6
# results of procedures
SUCCESS, BUSY, CANCELLED, DISARMED = 0, 1, 2, 3
HOMING_WITHOUT_ENDSTOP, INVALID_STATE = 12, 13
# actions of a reboot
REBOOT_ONLY, REBOOT_SAVE, REBOOT_ERASE = 0, 1, 2

# errors: bits of active_errors and disarm_reason
MISSING_ESTIMATE, BAD_CONFIG, MISSING_INPUT = 0x8, 0x10, 0x40
UNDER_VOLTAGE, OVER_CURRENT, MOTOR_OVER_TEMP, VELOCITY_VIOLATION = 0x200, 0x1000, 0x2000, 0x8000
WATCHDOG_EXPIRED, ESTOP_REQUESTED = 0x0100_0000, 0x0200_0000
ERRORS: dict[int, tuple[str, str]] = {  # bit -> (the manufacturer's name, the fix)
    0x1: ("initializing", "wait until the drive has started"),
    0x2: ("system level error", "restart the drive; if it persists, contact the manufacturer"),
    0x4: ("timing error", "restart the drive; if it persists, contact the manufacturer"),
    MISSING_ESTIMATE: ("missing estimate", "check the encoder, its cable and its calibration"),
    BAD_CONFIG: ("bad configuration", "check the drive's configuration with odrivetool"),
    0x20: ("gate driver fault", "check the motor's phases for a short circuit"),
    MISSING_INPUT: ("missing input", "check the drive's inputs"),
    0x100: ("DC bus over voltage", "check the supply and the brake resistor"),
    UNDER_VOLTAGE: ("DC bus under voltage", "check the supply and its cable"),
    0x400: ("DC bus over current", "command less, or raise the drive's limit of the supply current"),
    0x800: ("DC bus over regeneration current", "brake more gently, or fit a brake resistor"),
    OVER_CURRENT: ("current limit violation", "check the current controller's tuning and the motor's phases"),
    MOTOR_OVER_TEMP: ("motor over temperature", "let it cool down"),
    0x4000: ("inverter over temperature", "let it cool down"),
    VELOCITY_VIOLATION: ("velocity limit violation", "move decelerates, or raise the drive's vel_limit"),
    0x10000: ("position limit violation", "move the axis back into its range"),
    0x20000: ("requested current too high", "check the drive's current limits"),
    WATCHDOG_EXPIRED: ("watchdog timer expired", "commands stopped; check the bus and the program"),
    ESTOP_REQUESTED: ("emergency stop requested", "release the emergency stop"),
    0x0400_0000: ("spinout detected", "check the encoder and its calibration"),
    0x0800_0000: ("brake resistor disarmed", "clear the errors; check the brake resistor"),
    0x1000_0000: ("thermistor disconnected", "check the motor's thermistor and its cable"),
    0x4000_0000: ("calibration error", "calibrate the axis again"),
}
# the driver's own codes
LEFT_CLOSED_LOOP, SILENT = -1, -2
DRIVER_CODES = {
    LEFT_CLOSED_LOOP: "left closed loop control without an error; check for another master",
    SILENT: "no heartbeat for more than 0.5 s; check the drive's power and its cable",
}

# fault cause of an emulated motor -> error
FAULT_CAUSE = {
    "overtemperature": MOTOR_OVER_TEMP,
    "overcurrent": OVER_CURRENT,
    "undervoltage": UNDER_VOLTAGE,
    "encoder": MISSING_ESTIMATE,
}


def describe(code: int) -> str:
    """The names of a fault and the fixes; several errors in the order of their bits."""
    if code in DRIVER_CODES:
        return DRIVER_CODES[code]
    found = [ERRORS[bit] for bit in ERRORS if code & bit and code > 0]
    if not found:
        return f"unknown (drive error 0x{code:x}); look it up in the manufacturer's API reference"
    names, fixes = ", ".join(name for name, _ in found), ", ".join(dict.fromkeys(fix for _, fix in found))
    return f"{names} (drive error 0x{code:x}); {fixes}"
