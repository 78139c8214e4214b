"""What rows of hardware share: an arm of six real joints, who answers at the other end, ticks without a clock."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cosim.bench.paced_link import LINE_SPEED

JOINTS = tuple(f"joint{k}" for k in range(1, 7))
GEAR = 9.0  # turns of a rotor per turn of its joint
STALE = 0.1  # s: a machine that stands still for less does not end a run
DEADLINE_NS = 1_000_000_000  # of what ticks without a clock wait for


# --- the rig ----------------------------------------------------------------------------------------


def rig(drivers: Sequence[dict[str, Any]], step: float, **guard: Any) -> dict[str, Any]:
    """A small arm that swings under computed torque, every joint behind one of `drivers`; guard: keys of its guard."""
    bodies = [
        {
            "name": f"link{k}",
            "joint": joint,
            "axis": [0, k % 2, 1 - k % 2],
            "origin": {"xyz": [0, 0, 0.05 * bool(k)]},
            "mass": 0.05,
            "com": [0, 0, 0.025],
            "inertia": [2e-5, 2e-5, 1e-5],
            **({"parent": f"link{k - 1}"} if k else {}),
        }
        for k, joint in enumerate(JOINTS)
    ]
    motor = {"type": "dc_motor", "resistance": 0.1, "inductance": 2e-4, "torque_constant": 0.1, "ratio": GEAR}
    motor |= {"rotor_inertia": 4e-5, "viscous": 0.05, "bandwidth": 200}
    limits = {"lower": -2, "upper": 2, "velocity": 3, "effort": 2}
    sine = {"type": "sine", "amplitude": 0.2, "frequency": 0.5, "ramp": 0.5}
    return {
        "mechanism": {"bodies": bodies},
        "joints": {"all": {"actuator": motor, "limits": limits}},
        "controllers": [{"name": "arm", "type": "computed_torque", "kp": 6, "kd": 0.3, "trajectory": sine}],
        "guard": {"stale": STALE} | guard,
        "drivers": list(drivers),
        "schedule": {
            "step": step,
            "integrator": "rk4",
            "substeps": 2,
            "realtime": {"overrun": "skip", "grace": 0.2},
            "blend": 0.1,
        },
    }


def moteus(interface: str, channel: str, first: int, n: int, watchdog: float = 0.1) -> dict[str, Any]:
    """n drives on a CAN bus, those of the joints from the `first`."""
    bus = {"interface": interface, "channel": channel, "fd": True, "bitrate": 1e6, "data_bitrate": 5e6}
    joints = {JOINTS[k]: {"id": k + 1, "ratio": GEAR} for k in range(first, first + n)}
    return {"name": f"line{first}", "type": "moteus", "bus": bus, "watchdog": watchdog, "joints": joints}


def dynamixel(port: Path) -> dict[str, Any]:
    """All drives on a serial line."""
    line = {"port": str(port), "baudrate": LINE_SPEED}
    joints = {joint: {"id": k + 1} for k, joint in enumerate(JOINTS)}
    return {"name": "line", "type": "dynamixel", "port": line, "watchdog": 1.0, "joints": joints}


def write(folder: Path, data: dict[str, Any]) -> Path:
    """The rig as a file."""
    path = folder / "rig.yaml"
    path.write_text(json.dumps(data))  # which is YAML too
    return path


def channels(interface: str) -> tuple[str, str]:
    """Two lines that no other process uses at the moment."""
    a, b = os.getpid() >> 8 & 0xFF, os.getpid() & 0xFF
    multicast = interface == "udp_multicast"
    one, other = (f"239.{200 + k}.{a}.{b}" if multicast else f"bench {os.getpid()} {k}" for k in range(2))
    return one, other


# --- the other end ------------------------------------------------------------------------------------


# --- ticks without a clock ------------------------------------------------------------------------------
