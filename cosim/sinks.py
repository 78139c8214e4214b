"""Where finished ticks of a run go while it runs: the recording, the telemetry."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cosim.record import Recorder
from cosim.telemetry import Publisher

if TYPE_CHECKING:
    from cosim.rig.spec import RigSpec


class Recording:
    """An MCAP file with every tick, and the rig file that made it."""

    def __init__(
        self, stack: ExitStack, path: str | Path, channels: tuple[tuple[str, str], ...], spec: RigSpec
    ) -> None:
        self._recorder = stack.enter_context(Recorder(path, channels, {"rig": spec.name}))
        self._recorder.attach(spec.path.name, spec.path.read_bytes(), "application/yaml")

    def __call__(self, t_ns: np.ndarray, values: np.ndarray) -> None:
        self._recorder.append(t_ns, values)

    def event(self, t_ns: int, what: str) -> None:
        self._recorder.event(t_ns, what, "info")

    def fault(self, t_ns: int, what: str) -> None:
        self._recorder.event(t_ns, what, "error")


class Publishing:
    """Samples over ZeroMQ at the rig's rate."""

    def __init__(self, stack: ExitStack, channels: tuple[tuple[str, str], ...], spec: RigSpec) -> None:
        assert spec.telemetry.publish is not None
        self._publisher = stack.enter_context(
            Publisher(spec.telemetry.publish, channels, spec.telemetry.rate, spec.name)
        )

    def __call__(self, t_ns: np.ndarray, values: np.ndarray) -> None:
        self._publisher.publish(t_ns, values)

    def event(self, t_ns: int, what: str) -> None:
        """Samples carry what events change."""

    def fault(self, t_ns: int, what: str) -> None:
        """Samples end, which is what a subscriber sees."""
