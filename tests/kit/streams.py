"""A schema as runs publish it."""

from __future__ import annotations

from typing import Any


def schema(**fields: Any) -> dict[str, Any]:
    """Of a run without joints and signals, but for these fields."""
    about = {
        "version": 1,
        "rig": "arm",
        "path": "arm.yaml",
        "pid": 1234,
        "cpu": None,
        "state": "running",
        "realtime": False,
        "rate": 50.0,
        "step": 1e-3,
        "control": None,
        "joints": {},
        "parameters": {},
        "drawing": "",
        "moves": [],
        "bus_loads": {},
        "signals": {},
    }
    return about | fields
