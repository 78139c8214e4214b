"""Sinks receive the finished ticks of a run while it runs: the recording and the telemetry.

A run as fast as possible feeds them itself (`open_sinks`). A real-time run sends everything to a separate process
(`cosim.output.remote_sink`), so that encoding and compression never block its interpreter.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from cosim.output.recorder import Recorder
from cosim.output.sample_encoding import Encoding
from cosim.output.telemetry import Publisher
from cosim.types import Level, Sink


@dataclass(frozen=True)
class SinkConfig:
    """The sinks of a run, as plain data.

    channels: (signal, unit) of every column. attachments: (name, content) of YAML files, stored in the recording, as is
    the metadata. record: the MCAP file, None for none; encoding: of its samples; start_ns: when the run began, since
    1970. endpoint: ZeroMQ endpoint of the telemetry, None for none; rate: of its samples [Hz].
    """

    name: str
    channels: tuple[tuple[str, str], ...]
    attachments: tuple[tuple[str, bytes], ...]
    metadata: Mapping[str, str]
    record: str | None = None
    encoding: Encoding = "protobuf"
    start_ns: int = 0
    endpoint: str | None = None
    rate: float = 50.0


class RecordingSink:
    """An MCAP file with every tick and the files of the rig."""

    def __init__(self, stack: ExitStack, path: str, config: SinkConfig) -> None:
        self._recorder = stack.enter_context(
            Recorder(path, config.channels, config.metadata, config.encoding, config.start_ns)
        )
        for name, content in config.attachments:
            self._recorder.attach(name, content, "application/yaml")

    def __call__(self, t_ns: np.ndarray, values: np.ndarray) -> None:
        self._recorder.append(t_ns, values)

    def event(self, t_ns: int, what: str, level: Level = "info") -> None:
        self._recorder.event(t_ns, what, level)

    def fault(self, t_ns: int, what: str) -> None:
        self._recorder.event(t_ns, what, "error")


class TelemetrySink:
    """Samples over ZeroMQ at the rate of `config`."""

    def __init__(self, stack: ExitStack, endpoint: str, config: SinkConfig) -> None:
        self._publisher = stack.enter_context(Publisher(endpoint, config.channels, config.rate, config.name))

    def __call__(self, t_ns: np.ndarray, values: np.ndarray) -> None:
        self._publisher.publish(t_ns, values)

    def event(self, t_ns: int, what: str, level: Level = "info") -> None:
        """Ignored: telemetry has samples only."""

    def fault(self, t_ns: int, what: str) -> None:
        """Ignored: a subscriber notices that the samples end."""


def open_sinks(stack: ExitStack, config: SinkConfig) -> list[Sink]:
    """The sinks of `config`, closed by `stack`; raises InputError when one cannot be opened."""
    sinks: list[Sink] = []
    if config.endpoint is not None:  # first: a failure here must not overwrite an existing recording
        sinks.append(TelemetrySink(stack, config.endpoint, config))
    if config.record is not None:
        sinks.append(RecordingSink(stack, config.record, config))
    return sinks
