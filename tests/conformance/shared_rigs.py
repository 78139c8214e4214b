"""Rigs with emulated drives in simulated time, built once for many tests: each runs a copy with faults of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from cosim.apps.scenario.armed_rig import ArmedRig
from cosim.apps.scenario.stepped_engine import OFF, SteppedEngine
from cosim.execution.hardware.emulation.fault_injection import InjectedFault
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.emulator import read_emulator
from cosim.rig.sections.rig_spec import read_rig
from tests.kit.forked import forked

from .families import write_rig
from .rules import PATIENCE

STAYS_OFF = 30  # steps of the emulated drives


@dataclass
class RunWithFaults:
    """A run of a rig whose emulated drives have faults. messages: on these; seen: what was looked at after the run.

    reaction, off: in simulated time alone, time [s] from the last message to the stop, and from there until the motors
    were off.
    """

    fault: str
    signals: dict[str, np.ndarray]
    messages: list[str]
    reaction: float = 0.0
    off: float = 0.0
    seen: Any = None

    def __getitem__(self, name: str) -> np.ndarray:
        return self.signals[name]

    @property
    def t(self) -> np.ndarray:
        return self.signals["t"]


class SharedRig:
    """A rig of which copies run."""

    def __init__(self, data: dict[str, Any]) -> None:
        """data: the sections of a rig; its emulated drives have the faults of a run alone."""
        with TemporaryDirectory() as folder:
            self._armed = ArmedRig(read_rig(write_rig(Path(folder) / "rig.yaml", data)), [])
        self._armed.signals(np.zeros((1, self._armed.engine.program.row)))  # compiled before there are copies

    def run(
        self, faults: Sequence[dict[str, Any]], duration: float, seen: Callable[[ArmedRig], Any] = lambda armed: None
    ) -> RunWithFaults:
        """From the start to the end or to a stop, after which the motors switch off and stay off."""
        spec = self._armed.rig.spec
        reading = Reading(spec.source.place, [])
        joints = {joint.name: joint for joint in spec.mechanism.description.joints}
        emulator = read_emulator({"faults": list(faults)}, spec.drivers, joints, (), (), reading)
        assert reading.errors == []
        return forked(lambda: self._run(tuple(map(InjectedFault, emulator.faults)), duration, seen))

    def _run(
        self, faults: tuple[InjectedFault, ...], duration: float, seen: Callable[[ArmedRig], Any]
    ) -> RunWithFaults:
        armed, engine = self._armed, self._armed.engine
        assert isinstance(engine, SteppedEngine)
        messages: list[tuple[int, str]] = []
        engine.server.faults = faults
        engine.server.report = lambda what: messages.append((engine.time.now(), what))
        armed.begin()
        rows, fault = armed.run(round(duration / armed.step) + 1)
        begun = messages[-1][0] if messages else 0
        reaction, off = (engine.time.now() - begun) * 1e-9, 0.0
        if fault:
            off = armed.time_until_off(PATIENCE)
            assert off is not None
            for _ in range(STAYS_OFF):
                engine.time.step(engine.server.due_ns)
                assert not any(abs(motor.requested) > OFF for motor in engine.server.motors.motors)
        values = armed.signals(rows)
        signals = {name: values[:, k] for name, k in armed.names.items()}
        signals["t"] = armed.step * np.arange(len(rows))
        return RunWithFaults(fault, signals, [what for _, what in messages], reaction, off, seen(armed))
