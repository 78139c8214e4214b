"""Reads recordings: MCAP files that `cosim.output.recorder` wrote."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cosim.errors import InputError
from cosim.output.recorder import LOG_LEVELS, LOG_TOPIC, METADATA
from cosim.output.sample_encoding import JOINTS, SCHEMA_PREFIX, decoded_protobuf, fields_of
from cosim.types import Level

if TYPE_CHECKING:
    from mcap.records import Channel, McapRecord, Schema

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

    topics: dict[int, tuple[str, ...]] = {}  # channel -> signals
    encodings: dict[int, str] = {}
    schemas: dict[int, Schema] = {}
    times: dict[int, list[int]] = {}
    messages: dict[int, list[bytes]] = {}
    metadata: dict[str, str] = {}
    log_channels: set[int] = set()
    log: list[tuple[int, str, Level]] = []
    for record in _records(path):
        if isinstance(record, Message) and record.channel_id in topics:
            times[record.channel_id].append(record.publish_time)
            messages[record.channel_id].append(record.data)
        elif isinstance(record, Message) and record.channel_id in log_channels:
            event = loads(record.data)
            log.append((record.publish_time, event["message"], _LEVELS.get(event["level"], "info")))
        elif isinstance(record, Schema):
            schemas[record.id] = record
        elif isinstance(record, Metadata) and record.name == METADATA:
            metadata = record.metadata
        elif isinstance(record, Channel) and record.topic == LOG_TOPIC:
            log_channels.add(record.id)
        elif isinstance(record, Channel) and record.id not in topics:
            schema = schemas.get(record.schema_id)
            if schema is not None and schema.name.startswith(SCHEMA_PREFIX):
                topics[record.id], encodings[record.id] = _signals(record, schema), record.message_encoding
                times[record.id], messages[record.id] = [], []
    if not topics:
        raise InputError("the recording holds no samples; record the run again", str(path))

    k = min(map(len, times.values()))  # an interrupt may have left the last tick on some topics only
    samples: dict[str, np.ndarray] = {}
    for channel, names in topics.items():
        values = _DECODERS[encodings[channel]](messages[channel][:k], len(names))
        samples.update(zip(names, values.T, strict=True))
    t_ns = np.array(next(iter(times.values()))[:k], dtype=np.int64)
    return Recording(t_ns, samples, metadata, log)


def _signals(channel: Channel, schema: Schema) -> tuple[str, ...]:
    """The signals of a topic in the order of its fields."""
    from orjson import loads

    group = channel.topic.removeprefix(JOINTS).removeprefix("/")
    fields = loads(schema.data)["properties"] if channel.message_encoding == "json" else fields_of(schema.data)
    return tuple(f"{group}/{field}" for field in fields)


def _decoded_json(messages: Sequence[bytes], fields: int) -> np.ndarray:
    """(k, fields) of the data of k messages; null becomes NaN."""
    from orjson import loads

    rows = [list(loads(message).values()) for message in messages]
    return np.array(rows, dtype=float).reshape(-1, fields)


_DECODERS: dict[str, Callable[[Sequence[bytes], int], np.ndarray]] = {
    "json": _decoded_json,
    "protobuf": decoded_protobuf,
}


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
