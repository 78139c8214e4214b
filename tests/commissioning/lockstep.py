"""A rig whose drivers talk to its emulated drives in memory, on a clock of their own: nothing waits in real time."""

from __future__ import annotations

import copy
import json
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cosim.drivers.transport import CanFrame, ConnectionLost, TrafficMeter
from cosim.rig.emulate import emulation_of
from cosim.rig.rig import Rig
from cosim.rig.sections.rig_spec import read_rig

READING = 1_000  # ns that every look at the clock takes, so that polling makes progress


class World:
    """The clock, and the physics that advances with it; satisfies the part of `Clock` that a session needs."""

    def __init__(self, server: Any) -> None:
        self.server, self.time, self.frozen = server, 10_000_000_000, False
        self.due = self.time
        self.each_step: list[Callable[[], object]] = []
        server.clock = lambda: self.time

    def now(self) -> int:
        self.time += READING
        return self.time

    def wait(self, due_ns: int) -> int:
        self.advance_to(due_ns)
        return self.time

    def advance_to(self, t_ns: int) -> None:
        while self.due <= t_ns:
            self.time = max(self.time, self.due)
            for action in self.each_step:
                action()
            self.server.advance(self.due)
            self.due += self.server.step_ns
        self.time = max(self.time, t_ns)


class HostEnd:
    """The program's end of a connection to emulated drives."""

    def __init__(self, world: World, connection: Any) -> None:
        self.world, self.connection = world, connection
        self.name, self.meter, self.lost = connection.link.name, TrafficMeter(), False
        self.queue: deque[Any] = deque()
        self.is_open = False
        self.sent: list[Any] = []

    def now(self) -> int:
        return self.world.now()

    def open(self) -> None:
        self.is_open = True
        self.queue.clear()

    def close(self) -> None:
        self.is_open = False

    def reopen(self) -> bool:
        return self.is_open

    def accept(self, ids: Any) -> None:
        """All frames are received."""

    def reserve(self, items: Any) -> None:
        """Nobody else is on this connection."""

    def send(self, item: Any, deadline_ns: int) -> None:
        if not self.is_open:
            raise ConnectionLost("the connection is not open", self.name)
        self.sent.append(item)
        self.connection.take(item, self.world.time)

    def receive(self, deadline_ns: int) -> Any:
        if not self.is_open:
            raise ConnectionLost("the connection is not open", self.name)
        while not self.queue and self.world.time < deadline_ns:
            self.world.advance_to(min(deadline_ns, self.world.due))
        if not self.queue:
            return None
        item = self.queue.popleft()
        return item._replace(t_ns=self.world.time) if isinstance(item, CanFrame) else item


class DeviceEnd:
    """The drives' end."""

    def __init__(self, name: str, host: Callable[[], HostEnd]) -> None:
        self.name, self.host = name, host

    def open(self) -> None: ...
    def close(self) -> None: ...

    def send(self, item: Any, deadline_ns: int) -> None:
        self.host().queue.append(item)


class Lockstep:
    """rig: as the program reads it; world, motors: of the emulated drives, which have the rig `device`."""

    def __init__(self, folder: Path, patch: Any, rig: dict, device: dict | None = None) -> None:
        here, there = folder / "rig.yaml", folder / "device.yaml"
        here.write_text(json.dumps(rig))
        there.write_text(json.dumps(rig if device is None else device))
        self.path, self.rig = here, Rig(read_rig(here), interpret=True)
        self.server = emulation_of(read_rig(there))
        self.world = World(self.server)
        self.hosts: list[HostEnd] = []
        for spec, connection in zip(self.rig.spec.drivers, self.server.connections, strict=True):
            host = HostEnd(self.world, connection)
            self.hosts.append(host)
            connection.link = DeviceEnd(host.name, lambda host=host: host)
            module = spec.plugin.module
            patch.setattr(module, "host", lambda params, context, host=host: host)
            for name, part in list(sys.modules.items()):
                if name.startswith(module.__name__) and hasattr(part, "now"):
                    patch.setattr(part, "now", self.world.now)
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
