"""Maps of the registers of two Modbus drives that differ in as much as they may."""

from typing import Any

FAULTS = {
    "1": "overtemperature; let it cool down",
    "2": "overcurrent; check the motor's phases for a short",
    "3": "undervoltage; check the supply",
    "4": "encoder; check the encoder's cable",
    "5": "watchdog; find out why messages stopped",
}

# numbers with a scale, adjacent registers: one request per cycle
WHOLE_NUMBERS: dict[str, Any] = {
    "status": {"register": 0x2000, "on": 0x0004, "fault": 0x0008},
    "fault": {"register": 0x2001},
    "position": {"register": 0x2002, "type": "int32", "scale": 1e-4},
    "velocity": {"register": 0x2004, "type": "int32", "scale": 1e-4},
    "effort": {"register": 0x2006, "scale": 1e-4},
    "temperature": {"register": 0x2007, "scale": 0.1},
    "control": {"register": 0x3000, "on": [6, 7, 15], "off": [0], "clear": [128, 0]},
    "mode": {"register": 0x3001, "effort": 4, "velocity": 3, "position": 1},
    "timeout": {"register": 0x3002, "type": "uint16", "scale": 1e-3},
    "effort_limit": {"register": 0x3003, "type": "uint16", "scale": 1e-4},
    "effort_target": {"register": 0x3010, "scale": 1e-4},
    "velocity_target": {"register": 0x3011, "type": "int32", "scale": 1e-4},
    "position_target": {"register": 0x3013, "type": "int32", "scale": 1e-4},
    "model": {"register": 0x1000, "value": 402},
    "max_effort": {"register": 0x1001, "type": "uint16", "scale": 1e-3},
    "max_velocity": {"register": 0x1002, "type": "uint16", "scale": 0.01},
    "settings": {
        "current limit": {"register": 0x4000, "type": "uint16", "scale": 0.01},
        "ramp": {"register": 0x4001, "type": "int32"},
    },
    "store": {"register": 0x4FFF, "value": 1},
    "faults": FAULTS,
}

# floats with the low word first, functions 4 and 16: two requests per cycle
FLOATS: dict[str, Any] = {
    "read": 4,
    "write": 16,
    "position": {"register": 10, "type": "float32", "word_order": "little"},
    "velocity": {"register": 12, "type": "float32", "word_order": "little"},
    "effort": {"register": 14, "type": "float32", "word_order": "little"},
    "temperature": {"register": 16, "type": "float32", "word_order": "little"},
    "status": {"register": 8, "on": 3},
    "fault": {"register": 9, "type": "uint16"},
    "control": {"register": 100, "on": [1], "off": [0], "clear": [2]},
    "mode": {"register": 101, "effort": 0, "velocity": 1, "position": 2},
    "timeout": {"register": 102, "type": "uint32", "word_order": "little", "scale": 1e-3},
    "effort_limit": {"register": 104, "type": "float32", "word_order": "little"},
    "effort_target": {"register": 110, "type": "float32", "word_order": "little"},
    "velocity_target": {"register": 112, "type": "float32", "word_order": "little"},
    "position_target": {"register": 114, "type": "float32", "word_order": "little"},
    "max_effort": {"register": 200, "type": "float32", "word_order": "little"},
    "max_velocity": {"register": 202, "type": "float32", "word_order": "little"},
    "settings": {
        "current limit": {"register": 300, "type": "float32", "word_order": "little"},
        "ramp": {"register": 302, "type": "int16"},
    },
    "faults": FAULTS,
}
