"""Fault codes of the firmware (`mc_fault_code` of its datatypes.h): name and fix."""

from __future__ import annotations

_BY_FIX = {
    "check the supply, and where braking motors feed it": {1: "overvoltage", 7: "overvoltage of the gate driver"},
    "check the supply": {2: "undervoltage", 8: "undervoltage of the gate driver", 9: "undervoltage of the processor"},
    "check the motor's phases for a short": {3: "gate driver", 4: "absolute overcurrent", 18: "unbalanced currents"},
    "let it cool down": {5: "overtemperature of the MOSFETs", 6: "overtemperature of the motor"},
    "check the encoder, its magnet and its cable": {
        11: "encoder (SPI)",
        12: "encoder amplitude too small",
        13: "encoder amplitude too large",
        20: "encoder: resolver lost track",
        21: "encoder: resolver degraded",
        22: "encoder: resolver lost its signal",
        25: "encoder without magnet",
        26: "encoder magnet too strong",
        28: "encoder fault",
        30: "encoder slip",
    },
    "detect the motor again with VESC Tool": {
        15: "offset of current sensor 1",
        16: "offset of current sensor 2",
        17: "offset of current sensor 3",
        27: "phase filter",
    },
    "write its configuration again with VESC Tool": {14: "flash", 23: "flash, app", 24: "flash, motor"},
    "check the limits of the speed in VESC Tool": {31: "overspeed", 32: "underspeed", 33: "absolute overspeed"},
    "see its terminal in VESC Tool": {10: "watchdog of the processor", 19: "brake", 29: "low voltage output"},
}
FAULTS = {code: (name, fix) for fix, names in _BY_FIX.items() for code, name in names.items()}
