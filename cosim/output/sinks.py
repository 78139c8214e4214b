"""Sinks receive the finished ticks of a run while it runs: the recording and the stream.

A run as fast as possible feeds them itself (`open_sinks`). A real-time run sends everything to a separate process for
each of them (`cosim.output.remote_sink`), so that encoding and compression never block its interpreter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np

from cosim.core.recordings.sample_encoding import Encoding, Numbers
from cosim.core.types import Level, Sink
from cosim.output.recorder import Recorder, check_split_size
from cosim.output.stream.stream_sink import StreamConfig, StreamSink
from cosim.output.traffic_messages import BusChannel, EntryFields
from cosim.output.view3d.view import View

MEDIA_TYPES = {
    ".yaml": "application/yaml",
    ".urdf": "application/xml",
    ".xacro": "application/xml",
    ".xml": "application/xml",
    ".py": "text/x-python",
    ".csv": "text/csv",
}


@dataclass(frozen=True)
class SinkConfig:
    """The sinks of a run, as plain data.

    channels: (signal, unit) of every column. attachments: (name, content) of the files of the rig, stored in the
    recording, as is the metadata. record: the MCAP file, None for none; encoding: of its samples; start_ns: when the
    run began, since 1970; numbers, split_size, split_time, view, buses: see `Recorder`. stream: None for none.
    """

    name: str
    channels: tuple[tuple[str, str], ...]
    attachments: tuple[tuple[str, bytes], ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    record: str | None = None
    encoding: Encoding = "protobuf"
    start_ns: int = 0
    numbers: Numbers = "float64"
    split_size: float | None = None
    split_time: float | None = None
    view: View | None = None
    buses: tuple[BusChannel, ...] = ()
    stream: StreamConfig | None = None


class RecordingSink:
    """An MCAP file with every tick and the files of the rig."""

    def __init__(self, stack: ExitStack, path: str, config: SinkConfig) -> None:
        if config.split_size is not None:
            check_split_size(config.split_size, config.view, config.attachments)
        self._recorder = stack.enter_context(
            Recorder(
                path,
                config.channels,
                config.metadata,
                config.encoding,
                config.start_ns,
                config.numbers,
                config.split_size,
                config.split_time,
                config.view,
                config.buses,
            )
        )
        for name, content in config.attachments:
            self._recorder.attach(name, content, MEDIA_TYPES.get(PurePath(name).suffix, "application/octet-stream"))

    def __call__(self, t_ns: np.ndarray, values: np.ndarray) -> None:
        self._recorder.append(t_ns, values)

    def event(self, t_ns: int, what: str, level: Level = "info") -> None:
        self._recorder.event(t_ns, what, level)

    def fault(self, t_ns: int, what: str) -> None:
        self._recorder.event(t_ns, what, "error")

    def change(self, t_ns: int, tick: int, name: str, value: Sequence[float]) -> None:
        self._recorder.change(t_ns, tick, name, value)

    def traffic(self, zero_ns: int, entries: Iterable[EntryFields]) -> None:
        """See `Recorder`."""
        self._recorder.traffic(zero_ns, entries)


def open_sinks(stack: ExitStack, config: SinkConfig) -> list[Sink]:
    """The sinks of `config`, closed by `stack`; raises InputError when one cannot be opened."""
    sinks: list[Sink] = []
    if config.stream is not None:  # first: a failure here must not overwrite an existing recording
        sinks.append(StreamSink(stack, config.stream))
    if config.record is not None:
        sinks.append(RecordingSink(stack, config.record, config))
    return sinks
