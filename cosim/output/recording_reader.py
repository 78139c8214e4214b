"""Reads recordings: MCAP files that `cosim.output.recorder` wrote."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cosim.errors import InputError
from cosim.output.recorder import SCHEMA_PREFIX

if TYPE_CHECKING:
    from mcap.records import McapRecord


def read_recording(path: str | Path) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The samples of a recording: t_ns (k,) int64 and, by the name of the signal, values (k,) in its unit.

    Values stored as null come back as NaN. Of a file cut off by a crash, the complete chunks are read.
    Raises InputError when the file cannot be read, is no MCAP file, is damaged or holds no samples.
    """
    from mcap.records import Channel, Message, Schema
    from orjson import loads

    fields: dict[int, tuple[str, ...]] = {}  # schema -> signals
    signals: dict[int, tuple[str, ...]] = {}  # topic -> signals
    times: dict[int, list[int]] = {}
    rows: dict[int, list[list[float | None]]] = {}
    for record in _records(path):
        if isinstance(record, Message) and record.channel_id in signals:
            times[record.channel_id].append(record.log_time)
            rows[record.channel_id].append(list(loads(record.data).values()))
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
    return t_ns, samples


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
