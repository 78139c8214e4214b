"""A rig whose drivers talk to its emulated drives in memory, in simulated time: nothing waits in real time."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from cosim.execution.hardware.emulation.stepped_line import SimulatedTime, SteppedLine, join
from cosim.rig.emulate import emulation_of
from cosim.rig.rig import Rig
from cosim.rig.sections.rig_spec import read_rig


class World(SimulatedTime):
    """Satisfies the part of `Clock` that a session needs. each_step: called before each step of the physics."""

    def __init__(self) -> None:
        super().__init__()
        self.each_step: list[Callable[[], object]] = []

    def wait(self, due_ns: int) -> int:
        self.wait_until(due_ns)
        return self.t_ns

    def step(self, t_ns: int) -> None:
        if self.server.due_ns <= t_ns:
            self.t_ns = max(self.t_ns, self.server.due_ns)
            for action in self.each_step:
                action()
        super().step(t_ns)


class Lockstep:
    """rig: as the program reads it; world, motors: of the emulated drives, which have the rig `device`."""

    def __init__(self, folder: Path, rig: dict, device: dict | None = None) -> None:
        self.path, there = folder / "rig.yaml", folder / "device.yaml"
        self.path.write_text(json.dumps(rig))
        there.write_text(json.dumps(rig if device is None else device))
        self.rig, self.world, spec = Rig(read_rig(self.path), interpret=True), World(), read_rig(there)
        self.lines = {
            driver.name: SteppedLine(driver.family.connection_name(driver.plugin.params), self.world, can=True)
            for driver in spec.drivers
        }
        self.server = emulation_of(spec, clock=self.world.now, lines=self.lines)
        join(self.server, self.lines, self.world)
        for name, line in self.lines.items():
            self.rig.contexts[name] = replace(self.rig.contexts[name], ends=line.ends)
        self.server.open()
        self.motors = {
            name: motor
            for connection in self.server.connections
            for name, motor in zip(connection.joints, connection.motors, strict=True)
        }

    def position(self, joint: str) -> float:
        """The true one."""
        return float(self.server.motors.plant.sample[0][self.server.joints.index(joint)])

    def off(self) -> bool:
        return not any(motor.requested or motor.enabled for motor in self.motors.values())


def arm(**changes: Any) -> dict:
    """Two links with geared drives in a vertical plane: `shoulder` and `elbow`, horizontal at 0, with a little
    friction; changes: by path with dots."""
    bodies = [
        {"name": "upper", "joint": "shoulder", "axis": [0, 1, 0], "mass": 1.0, "com": [0.1, 0, 0]},
        {"name": "fore", "parent": "upper", "joint": "elbow", "axis": [0, 1, 0], "mass": 0.5, "com": [0.08, 0, 0]},
    ]
    bodies[0] |= {"inertia": [1e-3, 5e-3, 5e-3], "damping": 0.1, "friction": 0.1}
    bodies[1] |= {"inertia": [1e-3, 2e-3, 2e-3], "damping": 0.03, "friction": 0.05}
    bodies[1]["origin"] = {"xyz": [0.25, 0, 0]}
    limits = {"lower": "-170 deg", "upper": "170 deg", "velocity": 6, "effort": 4}
    data: dict[str, Any] = {
        "mechanism": {"bodies": bodies},
        "joints": {
            "all": {"limits": limits},
            "shoulder": {"initial": {"position": "90 deg"}},
            "elbow": {"initial": {"position": "0 deg"}},
        },
        "drivers": [
            {
                "type": "template",
                "bus": {"interface": "virtual", "channel": "lockstep"},
                "joints": {"shoulder": {"id": 1, "ratio": 9}, "elbow": {"id": 2, "ratio": 6}},
            }
        ],
        "emulator": {"joints": {"all": {"max_effort": 40}}},
        "schedule": {"step": "2 ms"},
    }
    return changed(data, changes)


def changed(data: dict, changes: dict[str, Any]) -> dict:
    """A copy with other values at paths with dots."""
    data = copy.deepcopy(data)
    for path, value in changes.items():
        *way, last = (int(key) if key.isdigit() else key for key in path.split("."))
        at: Any = data
        for key in way:
            at = at[key]
        at[last] = value
    return data
