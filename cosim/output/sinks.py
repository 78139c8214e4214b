"""Where finished ticks of a run go while it runs: the recording, the telemetry.

A run as fast as possible feeds them itself (`open_sinks`). A run on time hands everything to a process of its own
(`RemoteSink`, whose other end is `cosim.output.recorder_process`), so that packing and compressing never hold the
interpreter up.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from cosim.output.recorder import Recorder
from cosim.output.telemetry import Publisher
from cosim.types import Level, Sink


@dataclass(frozen=True)
class SinkConfig:
    """What leaves a run while it goes, in plain data.

    channels: (signal, unit) of every column. attachment: (name, content) of the rig's file, kept in the recording.
    record: the MCAP file, None for none. endpoint: where to publish samples, None for nowhere; rate: of these [Hz].
    """

    name: str
    channels: tuple[tuple[str, str], ...]
    attachment: tuple[str, bytes]
    record: str | None = None
    endpoint: str | None = None
    rate: float = 50.0


class RecordingSink:
    """An MCAP file with every tick, and the rig file that made it."""

    def __init__(self, stack: ExitStack, path: str, output: SinkConfig) -> None:
        self._recorder = stack.enter_context(Recorder(path, output.channels, {"rig": output.name}))
        self._recorder.attach(*output.attachment, "application/yaml")

    def __call__(self, t_ns: np.ndarray, values: np.ndarray) -> None:
        self._recorder.append(t_ns, values)

    def event(self, t_ns: int, what: str, level: Level = "info") -> None:
        self._recorder.event(t_ns, what, level)

    def fault(self, t_ns: int, what: str) -> None:
        self._recorder.event(t_ns, what, "error")


class TelemetrySink:
    """Samples over ZeroMQ at the rig's rate."""

    def __init__(self, stack: ExitStack, endpoint: str, output: SinkConfig) -> None:
        self._publisher = stack.enter_context(Publisher(endpoint, output.channels, output.rate, output.name))

    def __call__(self, t_ns: np.ndarray, values: np.ndarray) -> None:
        self._publisher.publish(t_ns, values)

    def event(self, t_ns: int, what: str, level: Level = "info") -> None:
        """Samples carry what events change."""

    def fault(self, t_ns: int, what: str) -> None:
        """Samples end, which is what a subscriber sees."""


def open_sinks(stack: ExitStack, output: SinkConfig) -> list[Sink]:
    """The sinks that `output` asks for, closed by `stack`; raises InputError when one cannot be opened."""
    sinks: list[Sink] = []
    if output.endpoint is not None:  # before anything is written over
        sinks.append(TelemetrySink(stack, output.endpoint, output))
    if output.record is not None:
        sinks.append(RecordingSink(stack, output.record, output))
    return sinks


# --- what goes between the two processes ----------------------------------------------------------


# --- the end of the run ---------------------------------------------------------------------------
