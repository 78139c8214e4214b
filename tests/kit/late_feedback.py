"""A joint with a load motor whose motion is played, and whose feedback pauses: every signal that the guard checks.

Nothing reacts to a pause but what is computed from the feedback, so that a run with pauses and one without are alike
but for what was not measured. Drive and load motor exert exactly what the motion takes.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cosim.control.bumpless_start import BumplessStart
from cosim.core import ops
from cosim.core.types import COMMAND, Numeric
from cosim.execution.engine import Engine
from cosim.execution.hardware.driver_group import DriverGroup
from cosim.execution.native_engine import NativeEngine
from cosim.execution.python_engine import PythonEngine
from cosim.rig.rig import Rig
from cosim.simulation.tick.arming import armed
from cosim.simulation.tick.memory_call import MemoryCall
from cosim.simulation.tick.tick_model import _GUARD_PATHS, TickModel
from cosim.simulation.tick.virtual_plant import VirtualPlant
from tests.kit.hardware import HardwareStub
from tests.kit.rigs import rig_in

STEP = 1e-3  # s
STALE = 0.1005  # s
INERTIA, DAMPING = 0.02, 0.4  # kg·m², N·m·s/rad, of the arm
AMPLITUDE, RATE = 0.5, 5.0  # rad, rad/s
EFFORT = 0.65  # N·m, limit: what the drive exerts is close to it where the joint turns back, too
LAG = 0.02  # rad, of the joint behind its reference at most
JOINT, LOAD = "joint", "load"

RIG = f"""
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {{name: arm, joint: elbow, axis: [0, 1, 0], mass: 0.3, com: [0, 0, 0], inertia: [1, {INERTIA}, 1],
       damping: {DAMPING}}}
joints:
  elbow: {{limits: {{effort: {EFFORT}, velocity: 8}}}}
drivers:
  - type: moteus
    name: test
    bus: {{interface: virtual, channel: one, fd: true, bitrate: 8 Mbit/s, data_bitrate: 8 Mbit/s}}
    joints: {{elbow: {{id: 1}}}}
  - type: moteus
    name: load
    bus: {{interface: virtual, channel: two, fd: true, bitrate: 8 Mbit/s, data_bitrate: 8 Mbit/s}}
    loads: {{elbow: {{id: 1, effort: 50}}}}
controllers:
  - {{type: feedforward_pd, kp: 0, kd: 0,
     trajectory: {{type: sine, amplitude: {AMPLITUDE + LAG}, frequency: {RATE / (2.0 * math.pi)}}}}}
guard: {{stale: {STALE}, shadow: {{}}}}
schedule: {{step: {STEP}, duration: 3 s}}
"""


def motion(t: Numeric) -> tuple[Numeric, Numeric, Numeric]:
    """Position, velocity, and the effort that the motion takes."""
    q, v, a = AMPLITUDE * ops.sin(RATE * t), AMPLITUDE * RATE * ops.cos(RATE * t), -RATE * RATE * AMPLITUDE
    return q, v, INERTIA * a * ops.sin(RATE * t) + DAMPING * v


@dataclass(frozen=True)
class Pause:
    """Of the feedback of the joint, of its load motor or of both, from the tick `at` on for so many ticks."""

    at: int
    ticks: int
    of: tuple[str, ...] = (JOINT, LOAD)
    queued: int = 0  # samples that come after it and are as old as the last one before it; of drivers in Python

    def holds(self, what: str, tick: int) -> bool:
        return what in self.of and self.at <= tick < self.at + self.ticks


NEVER = Pause(0, 0)


@dataclass
class PlayedTicks(TickModel):
    """The ticks of the rig with this motion, so that its loop can be compiled: feedback is written in each tick."""

    def initial(self) -> dict[str, Any]:
        # first tick and end of the pause of the joint, and of the load motor
        return super().initial() | {"pauses": np.zeros((2, 2))}

    def _read_calls(self) -> list[MemoryCall]:
        first, *rest = super()._read_calls()
        kept = [("load_measured", "velocity"), ("load_measured", "effort")]
        feedback = [("measured", "position"), ("measured", "velocity"), "measured_effort", "temperature"]
        times = ["sample_interval", "sample_delay", "age", "load_interval"]
        inputs = ["t", "pauses", "load_effort", *kept]
        return [first, self._call("play", self.play, inputs, [*feedback, *times, *kept]), *rest]

    def play(self, t: Numeric, pauses: Numeric, load: Numeric, *kept: Numeric) -> tuple[Numeric, ...]:
        def sampled(at: Numeric, pause: Numeric) -> Numeric:
            """When the last sample was taken."""
            tick = at / STEP
            within = ops.logical_and(tick > pause[0] - 0.5, tick < pause[1] - 0.5)
            return ops.where(within, (pause[0] - 1.0) * STEP, at)

        when, before = sampled(t, pauses[0]), sampled(t - STEP, pauses[0])
        interval = ops.where(t > 0.0, when - before, 0.0) + np.zeros(1)
        age = t - when + np.zeros(1)
        of_load = sampled(t, pauses[1])
        since = ops.where(t > 0.0, of_load - sampled(t - STEP, pauses[1]), 0.0) + np.zeros(1)
        values = [value + np.zeros(1) for value in motion(when)]
        found = [
            ops.where(ops.logical_or(since > 0.0, t <= 0.0), *pair)
            for pair in zip((motion(of_load)[1] + np.zeros(1), load), kept, strict=True)
        ]
        return *values, 40.0 + np.zeros(1), interval, age, age, since, *found


class PlayedDrive(HardwareStub):
    """The same as a driver in Python."""

    modes, limits, joints = frozenset({"effort"}), None, ("elbow",)

    def __init__(self, plant: VirtualPlant, what: str) -> None:
        self.plant, self.what, self.pause, self.commanded = plant, what, NEVER, 0.0

    def open(self) -> None:
        return None

    def enable(self, mode: str) -> None:
        return None

    def read(self, out: Any, deadline_ns: int) -> None:
        tick = round(self.plant.t_ns * 1e-9 / STEP)
        if self.pause.holds(self.what, tick):
            return
        end = self.pause.at + self.pause.ticks
        measured = self.pause.at - 1 if end <= tick < end + self.pause.queued else tick
        out.position[:], out.velocity[:], out.effort[:] = motion(measured * STEP)
        if self.what == LOAD:
            out.effort[:] = self.commanded
        out.temperature[:], out.t_ns = 40.0, round(tick * STEP * 1e9)

    def write(self, cmd: Any, deadline_ns: int) -> None:
        self.commanded = float(cmd.effort[0])

    def stop(self) -> None:
        return None

    close = stop


class Played:
    """The rig with limits that never stop it, in one of the two engines, tick by tick."""

    def __init__(self, folder: Path, in_python: bool) -> None:
        self.in_python = in_python
        self.rig: Rig = rig_in(folder, RIG)
        model = self.rig.tick_model
        unlimited = {key: np.full(1, 1e9) for key in model.guard.bounds}
        unlimited |= {"lower": np.full(1, -1e9)} | {key: model.guard.bounds[key] for key in ("effort", "velocity")}
        actions = {key: np.full(1, "warn") for key in model.guard.actions}
        self.guard = dataclasses.replace(model.guard, bounds=unlimited, actions=actions)
        fields = {f.name: getattr(model, f.name) for f in dataclasses.fields(TickModel) if f.init}
        fields |= {"guard": self.guard}
        self.model = TickModel(**fields) if in_python else PlayedTicks(**fields)

    def _engine(self, pause: Pause) -> Engine:
        if self.in_python:
            plant = VirtualPlant(self.model)
            drives = [PlayedDrive(plant, what) for what in (JOINT, LOAD)]
            for drive in drives:
                drive.pause = pause
            groups = [DriverGroup(d, np.array([0]), real=True, load=d.what == LOAD) for d in drives]
            engine: Engine = PythonEngine(self.model, plant, groups)
            engine.open()
            engine.arm()
        else:
            engine = NativeEngine(self.model)
            pauses = [[pause.at, pause.at + pause.ticks] if what in pause.of else [0, 0] for what in (JOINT, LOAD)]
            engine.view("pauses")[:] = pauses
        q, v, _ = motion(0.0)
        start = armed(self.model, BumplessStart.none(self.model.nv), engine.view("plant"), np.array([q]), np.array([v]))
        for path in start:
            if path[0] in ("plant", "estimate"):
                engine.view(*path)[...] = start[path].reshape(engine.view(*path).shape)
        return engine

    def run(self, begin: int, ticks: int, pause: Pause = NEVER) -> dict[str, np.ndarray]:
        """By name (k,): what the guard checks in each of `ticks` from `begin` on, the command, and further parts of the
        memory; `fault` is why it stopped."""
        engine, found = self._engine(pause), []
        engine.run(begin)
        paths = [*_GUARD_PATHS, "judged_velocity", ("units", "disagreement")]
        places = [(path,) if isinstance(path, str) else path for path in paths]
        views = {name: engine.view(*place) for name, place in zip(self.model.guard_inputs, places, strict=True)}
        views |= {"request": engine.view("previous_request"), "interval": engine.view("sample_interval")}
        views |= {"load": engine.view("load_effort"), "delay": engine.view("sample_delay")}
        views |= {name: engine.view("estimate", name) for name in ("acceleration", "horizon")}
        views |= {"estimated": engine.view("estimate", "velocity"), "sampled": engine.view("estimate", "position")}
        views |= {f"command_{name}": engine.view("command", name) for name in COMMAND}
        motor = self.model.plant
        fault = ""
        while len(found) < ticks and not fault:
            rows, fault = engine.run(1)
            state = motor.layout.unpack(rows[-1][self.model.row.place("plant").where]) if len(rows) else None
            moved = [np.nan, np.nan] if state is None else [float(part[0]) for part in motor.real_motion(state)[:2]]
            found.append([*(float(view[0]) for view in views.values()), *moved])
        columns = dict(zip([*views, "position_of_tick", "velocity_of_tick"], np.array(found).T, strict=True))
        return columns | {"fault": np.array(fault)}
