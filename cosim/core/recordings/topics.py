"""The topics of a recording besides its samples: messages in JSON with their schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cosim.core.types import Level

LOG_TOPIC, ROS_LOG_TOPIC = "/log", "/rosout"
CHANGES_TOPIC = "/changes"
LOG_LEVELS: dict[Level, int] = {"info": 2, "warning": 3, "error": 4}
ROS_LOG_LEVELS: dict[Level, int] = {"info": 20, "warning": 30, "error": 40}  # of rcl_interfaces/Log
JSON_TOPICS: Mapping[str, Mapping[str, Any]] = {
    LOG_TOPIC: {
        "title": "foxglove.Log",
        "description": "An event of the run",
        "type": "object",
        "properties": {
            "timestamp": {
                "type": "object",
                "title": "time",
                "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer"}},
                "description": "Time of the event, since 1970",
            },
            "level": {"type": "integer", "description": "Level: 2 info, 3 warning, 4 error"},
            "message": {"type": "string", "description": "What happened"},
            "name": {"type": "string", "description": "Program that logged it"},
            "file": {"type": "string", "description": "Not used, empty"},
            "line": {"type": "integer", "description": "Not used, 0"},
        },
        "required": ["timestamp", "level", "message", "name", "file", "line"],
    },
    CHANGES_TOPIC: {
        "title": "Change",
        "description": "A change of the rig while it ran",
        "type": "object",
        "properties": {
            "tick": {"type": "integer", "description": "Before which it was made"},
            "name": {"type": "string", "description": "Parameter, or controlled_stop for the order to stop"},
            "value": {"type": "array", "items": {"type": "number"}, "description": "In SI, to the bit"},
        },
        "required": ["tick", "name", "value"],
    },
}


def log_message(log_ns: int, text: str, level: int) -> dict[str, Any]:
    sec, nsec = divmod(log_ns, 1_000_000_000)
    stamp = {"sec": sec, "nsec": nsec}
    return {"timestamp": stamp, "level": level, "message": text, "name": "cosim", "file": "", "line": 0}
