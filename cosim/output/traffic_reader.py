"""Reads the bus traffic of a recording, the entries of each driver in their order, and writes its CAN frames as a log
of other programs, by python-can: candump .log, Vector .asc, .blf."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cosim.core.errors import InputError
from cosim.core.recordings.index import DAMAGED, recordings_of
from cosim.core.recordings.reader import RecordedSamples
from cosim.execution.hardware.traffic.traffic_log import ITEMS, Passing, TrafficEntry
from cosim.output.output_files import check_output, identity, write_error
from cosim.output.traffic_messages import SEQUENCES, BusChannel, decode

NO_TRAFFIC = "holds no bus traffic; record it with 'cosim run RIG --record F.mcap --record-bus'"
_BROKEN = (ValueError, IndexError, KeyError, TypeError)  # of an invalid message

LOG_SUFFIXES = (".log", ".asc", ".blf")


class RecordedTraffic:
    """The bus traffic of a recording in one or several files; it stays in the files."""

    def __init__(self, path: str | Path) -> None:
        """Raises InputError as `recordings_of`, and for a recording without bus traffic."""
        self.path = str(path)
        self.samples = RecordedSamples(recordings_of(path))
        channels = sorted(self.samples.indexes[0].summary.channels.values(), key=lambda channel: channel.id)
        buses = [(BusChannel.of(channel.metadata), channel.topic) for channel in channels]
        self.buses = tuple(bus for bus, topic in buses if topic == bus.topics[0])
        if not self.buses:
            raise InputError(NO_TRAFFIC, self.path)

    def entries(self, bus: BusChannel, frame: Callable[..., Any] | None) -> Iterator[TrafficEntry]:
        """All entries of a driver, numbered without those that are missing. frame: see `traffic_messages.decode`.

        Raises InputError for a message that is damaged."""
        streams = [self.samples.numbered_messages(topic) for topic in bus.topics]
        heads = [next(stream, None) for stream in streams]
        number, place, start_ns = 0, self.buses.index(bus), self._start_ns(bus)
        while any(heads):
            distances = [SEQUENCES if head is None else (head[0] - number) % SEQUENCES for head in heads]
            k = distances.index(min(distances))
            head = heads[k]
            assert head is not None
            number += distances[k]
            try:
                entry = decode(head[3], place, number, head[1] - start_ns, frame)
            except _BROKEN as cause:
                raise InputError(DAMAGED, self.path) from cause
            yield entry
            number, heads[k] = number + 1, next(streams[k], None)

    def _start_ns(self, bus: BusChannel) -> int:
        """When the run began, since 1970; of a run without a tick, when it ended."""
        if self.samples.count:
            return self.samples.start_ns
        messages = (self.samples.numbered_messages(topic) for topic in bus.topics)
        return max((log_ns for each in messages for _, log_ns, _, _ in each), default=0)


def write_can_log(recording: Path, path: Path) -> tuple[int, list[str]]:
    """(frames that were written, drivers whose traffic is not of a CAN bus). The channels are the names of the drivers,
    numbers in formats that have no names.

    Raises InputError for a recording without frames and for a file that cannot be written.
    """
    from can import Logger

    check_output(path, "--to", LOG_SUFFIXES, {identity(recording): "the recording"})
    traffic = RecordedTraffic(recording)
    buses = [bus for bus in traffic.buses if bus.can]
    if not buses:
        raise InputError("holds no traffic of a CAN bus, but of serial ports only; no log has these", str(recording))
    streams = [traffic.entries(bus, lambda *fields: fields) for bus in buses]
    items = heapq.merge(*((e for e in stream if e.what in ITEMS) for stream in streams), key=lambda entry: entry.t_ns)
    start_ns, count = traffic.samples.start_ns, 0
    named = path.suffix == LOG_SUFFIXES[0]
    try:
        with Logger(str(path)) as log:
            for entry in items:
                channel = traffic.buses[entry.driver].driver if named else entry.driver
                log(_message(entry.content, (start_ns + entry.run_ns) * 1e-9, entry.what == Passing.RECEIVED, channel))
                count += 1
    except OSError as cause:
        raise write_error(path, "log", cause) from cause
    return count, [bus.driver for bus in traffic.buses if not bus.can]


def _message(frame: tuple[Any, ...], seconds: float, received: bool, channel: str | int) -> Any:
    from can import Message

    identifier, data, extended, fd, switched, remote, _ = frame
    return Message(
        timestamp=seconds,
        arbitration_id=identifier,
        is_extended_id=extended,
        is_remote_frame=remote,
        is_fd=fd,
        bitrate_switch=switched,
        data=None if remote else data,
        dlc=len(data),
        is_rx=received,
        channel=channel,
    )
