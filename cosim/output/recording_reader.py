"""Reads recordings: MCAP files that `cosim.output.recorder` wrote."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cosim.errors import InputError
from cosim.output.recorder import LOG_LEVELS, LOG_TOPIC, METADATA, SCHEMA_PREFIX
from cosim.types import Level

if TYPE_CHECKING:
    from mcap.records import McapRecord

_LEVELS: dict[int, Level] = {number: level for level, number in LOG_LEVELS.items()}


class Recording(NamedTuple):
    """t_ns (k,) int64 and, by the name of the signal, values (k,) in its unit; metadata of the run; log: (time [ns],
    text, level) of its events."""

    t_ns: np.ndarray
    signals: dict[str, np.ndarray]
    metadata: dict[str, str]
    log: list[tuple[int, str, Level]]


def read_recording(path: str | Path) -> Recording:
    """The samples and events of a recording.

    Values stored as null come back as NaN. Of a file cut off by a crash, the complete chunks are read.
    Raises InputError when the file cannot be read, is no MCAP file, is damaged or holds no samples.
    """
    from mcap.records import Channel, Message, Metadata, Schema
    from orjson import loads

    fields: dict[int, tuple[str, ...]] = {}  # schema -> signals
    signals: dict[int, tuple[str, ...]] = {}  # topic -> signals
    times: dict[int, list[int]] = {}
    rows: dict[int, list[list[float | None]]] = {}
    metadata: dict[str, str] = {}
    log_channels: set[int] = set()
    log: list[tuple[int, str, Level]] = []
    for record in _records(path):
        if isinstance(record, Message) and record.channel_id in signals:
            times[record.channel_id].append(record.log_time)
            rows[record.channel_id].append(list(loads(record.data).values()))
        elif isinstance(record, Message) and record.channel_id in log_channels:
            event = loads(record.data)
            log.append((record.log_time, event["message"], _LEVELS.get(event["level"], "info")))
        elif isinstance(record, Channel) and record.topic == LOG_TOPIC:
            log_channels.add(record.id)
        elif isinstance(record, Metadata) and record.name == METADATA:
            metadata = record.metadata
        elif isinstance(record, Schema) and record.name.startswith(SCHEMA_PREFIX):
            group = record.name.removeprefix(SCHEMA_PREFIX)
            fields[record.id] = tuple(f"{group}/{field}" for field in loads(record.data)["properties"])
        elif isinstance(record, Channel) and record.schema_id in fields and record.id not in signals:
            signals[record.id] = fields[record.schema_id]
            times[record.id], rows[record.id] = [], []
    if not signals:
        raise InputError("the recording holds no samples; record the run again", str(path))

    k = min(map(len, times.values()))  # an interrupt may have left the last tick on some topics only
    samples: dict[str, np.ndarray] = {}
    for topic, names in signals.items():
        columns = np.array(rows[topic][:k], dtype=float).reshape(-1, len(names)).T  # null becomes NaN
        samples.update(zip(names, columns, strict=True))
    t_ns = np.array(next(iter(times.values()))[:k], dtype=np.int64)
    return Recording(t_ns, samples, metadata, log)


def _records(path: str | Path) -> Iterator[McapRecord]:
    """Every MCAP record of a file, chunks unpacked; ends early, in silence, where the file is cut off."""
    from mcap.exceptions import McapError
    from mcap.stream_reader import StreamReader
    from mcap.writer import MCAP0_MAGIC
    from zstandard import ZstdError

    try:
        file = open(path, "rb")  # noqa: SIM115 (closed by the `with` below)
    except OSError as cause:
        raise InputError(f"cannot read the recording: {cause.strerror}; check the path", str(path)) from cause
    with file:
        if file.read(len(MCAP0_MAGIC)) != MCAP0_MAGIC:
            what = "not an MCAP file; give one written by 'cosim run RIG --record FILE.mcap'"
            raise InputError(what, str(path))
        file.seek(0)
        try:
            yield from StreamReader(file, validate_crcs=True).records
        except (McapError, ZstdError, struct.error, ValueError) as cause:
            # a record that is cut off takes the reader to the end of the file, a damaged one leaves it before
            if file.read(1):
                raise InputError("the recording is damaged; record the run again", str(path)) from cause
