"""Rigs with emulated drives in simulated time, built once for many tests: each runs a copy with faults of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from cosim.apps.scenario.stand import Stand
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


class SharedStand:
    """A rig of which copies run."""

    def __init__(self, data: dict[str, Any]) -> None:
        """data: the sections of a rig; its emulated drives have the faults of a run alone."""
        with TemporaryDirectory() as folder:
            self._stand = Stand(read_rig(write_rig(Path(folder) / "rig.yaml", data)), [])
        self._stand.signals(np.zeros((1, self._stand.engine.program.row)))  # compiled before there are copies

    def run(
        self, faults: Sequence[dict[str, Any]], duration: float, seen: Callable[[Stand], Any] = lambda stand: None
    ) -> RunWithFaults:
        """From the start to the end or to a stop, after which the motors switch off and stay off."""
        spec = self._stand.rig.spec
        reading = Reading(spec.source.place, [])
        joints = {joint.name: joint for joint in spec.mechanism.description.joints}
        emulator = read_emulator({"faults": list(faults)}, spec.drivers, joints, (), (), reading)
        assert reading.errors == []
        return forked(lambda: self._run(tuple(map(InjectedFault, emulator.faults)), duration, seen))

    def _run(self, faults: tuple[InjectedFault, ...], duration: float, seen: Callable[[Stand], Any]) -> RunWithFaults:
        stand, engine = self._stand, self._stand.engine
        assert isinstance(engine, SteppedEngine)
        messages: list[tuple[int, str]] = []
        engine.server.faults = faults
        engine.server.report = lambda what: messages.append((engine.time.now(), what))
        stand.begin()
        rows, fault = stand.run(round(duration / stand.step) + 1)
        begun = messages[-1][0] if messages else 0
        reaction, off = (engine.time.now() - begun) * 1e-9, 0.0
        if fault:
            off = stand.time_until_off(PATIENCE)
            assert off is not None
            for _ in range(STAYS_OFF):
                engine.time.step(engine.server.due_ns)
                assert not any(abs(motor.requested) > OFF for motor in engine.server.motors.motors)
        values = stand.signals(rows)
        signals = {name: values[:, k] for name, k in stand.names.items()}
        signals["t"] = stand.step * np.arange(len(rows))
        return RunWithFaults(fault, signals, [what for _, what in messages], reaction, off, seen(stand))
