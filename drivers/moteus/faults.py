"""Faults of moteus drives: the manufacturer's codes, their names and the fixes.

Source: register 0x00f in mjbots' register reference. Codes from 96 on only report a limit of the output.
"""

from __future__ import annotations

from cosim.plugins.drivers.moteus.registers import Mode

FAULTS: dict[int, tuple[str, str]] = {  # code: (name, fix)
    32: ("calibration fault", "check the encoder's magnet and calibrate the drive again"),
    33: ("motor driver fault", "check the supply and the motor's phases for a short"),
    34: ("over voltage", "use a supply that can take back energy, or check servo.max_voltage"),
    35: ("encoder fault", "check the encoder's magnet and cable"),
    36: ("motor not configured", "calibrate the drive with moteus_tool --calibrate"),
    37: ("pwm cycle overrun", "update the drive's firmware"),
    38: ("over temperature", "let it cool down"),
    39: ("outside limit", "move it within servopos.position_min and position_max, or widen them"),
    40: ("under voltage", "check the supply"),
    41: ("configuration changed", "change the drive's configuration only while it is stopped"),
    42: ("theta invalid", "configure an encoder for the commutation"),
    43: ("position invalid", "configure an encoder for the output"),
    44: ("driver enable fault", "check the supply; the gate driver did not switch on"),
    45: ("stop position deprecated", "command the position itself"),
    46: ("timing violation", "update the drive's firmware"),
    47: ("bemf feedforward without acceleration limit", "set servo.bemf_feedforward to 0"),
    48: ("invalid limits", "set servopos.position_min and position_max within ±32768 turns"),
    49: ("position control error", "find out what blocks the motor, or widen servo.fault_position_error"),
    50: ("velocity control error", "find out what blocks the motor, or widen servo.fault_velocity_error"),
}
MOTOR_DRIVER, OVER_VOLTAGE, ENCODER, OVER_TEMPERATURE, OUTSIDE_LIMIT, UNDER_VOLTAGE = 33, 34, 35, 38, 39, 40
CONFIG_CHANGED, STOP_POSITION_DEPRECATED, INVALID_LIMITS = 41, 45, 48
LIMITED_BY_VELOCITY, LIMITED_BY_CURRENT, LIMITED_BY_TORQUE, LIMITED_BY_BOUNDS = 96, 99, 102, 103

# codes of the driver: a drive left its running mode without a fault
TIMED_OUT, STOPPED, OTHER_MODE, UNNAMED = -1, -2, -3, -4
_OWN = {
    TIMED_OUT: "the drive's watchdog tripped; command it more often or give a longer 'watchdog', then stop and enable",
    STOPPED: "the drive stopped by itself; check its supply, and for another master, then stop and enable",
    OTHER_MODE: "the drive left position mode; check for another master, then stop and enable",
    UNNAMED: "the drive reports a fault and no code for it; stop it and enable it again",
}


def left_position_mode(mode: int) -> int:
    """The code of a drive that was switched on and is in this mode without a fault; 0: it runs."""
    if mode == Mode.POSITION:
        return 0
    if mode == Mode.TIMEOUT:
        return TIMED_OUT
    starting = (Mode.STOPPED, Mode.ENABLING, Mode.CALIBRATING, Mode.CALIBRATED)
    return STOPPED if mode in starting else OTHER_MODE


def describe(code: int) -> str:
    """The manufacturer's name of a fault and the fix, in one line."""
    if code in _OWN:
        return _OWN[code]
    name, fix = FAULTS.get(code, ("unknown fault", "look it up in the manufacturer's reference"))
    return f"{name} (drive error {code}); {fix}"
