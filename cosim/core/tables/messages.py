"""Tables in MCAP: recordings of this program, and topics of other ones with messages in JSON, Protobuf or CDR (ROS 2).

A message is a row, see `cosim.core.tables.message_rows`. Several programs may write to one topic, with other joints
each: the rows of a table are those that have its columns. Times are those in the messages where all have one, else
those of the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np

from cosim.core.errors import InputError, did_you_mean, listed
from cosim.core.paths import open_file
from cosim.core.recordings.index import recordings_of
from cosim.core.recordings.reader import FOREIGN, RecordedSamples
from cosim.core.tables.arrays import NO_LINES
from cosim.core.tables.message_rows import MessageRow, decoder, rows_of
from cosim.core.tables.table import FileTable, TableRows

if TYPE_CHECKING:
    from mcap.records import Channel, McapRecord, Message, Schema

MOST_MESSAGES = 5_000_000  # of a topic
LARGEST_CHUNK = 1 << 30  # bytes, unpacked
UNSTAMPED = "some messages have no time; all times are those of the log"
OF_JOINTS = ("JointState", "JointTrajectory", "DynamicJointState")  # types of messages


class _Topics(NamedTuple):
    """channels, schemas: by their ids; numbers: of the messages of the channels."""

    channels: dict[int, Channel]
    schemas: dict[int, Schema]
    numbers: Counter[int]

    def named(self, topic: str) -> list[int]:
        return [number for number, channel in self.channels.items() if channel.topic == topic and self.numbers[number]]

    def of_joints(self, number: int) -> bool:
        schema = self.schemas.get(self.channels[number].schema_id)
        return schema is not None and schema.name.replace(".", "/").rpartition("/")[2] in OF_JOINTS


def read_messages(path: Path, topic: str | None = None) -> FileTable:
    """topic: None for the only one that has joints, or the only one with numbers. Raises InputError."""
    try:
        samples = RecordedSamples(recordings_of(path))
    except InputError as error:
        if FOREIGN not in error.what:
            raise
    else:
        return _of_samples(path, samples)
    return _foreign(path, topic)


def _of_samples(path: Path, samples: RecordedSamples) -> FileTable:
    def read(chosen: Sequence[int]) -> TableRows:
        columns = np.array([k - 1 for k in chosen if k], dtype=np.intp)
        values = np.empty((samples.count, len(chosen)))
        values[:, [n for n, k in enumerate(chosen) if k]] = samples.values(0, samples.count, columns)
        for n, k in enumerate(chosen):
            if not k:
                values[:, n] = samples.t[:]
        return TableRows(values, NO_LINES)

    return FileTable(path, ("t", *samples.names), read, notes=tuple(samples.losses))


# --- other programs --------------------------------------------------------------------------------


def _foreign(path: Path, wanted: str | None) -> FileTable:
    topics = _topics(path)
    topic = _chosen(path, topics, wanted)
    numbers = topics.named(topic)
    decoders = {n: decoder(path, topics.channels[n], topics.schemas.get(topics.channels[n].schema_id)) for n in numbers}
    found = list[tuple[int, MessageRow]]()
    trajectories, cut = 0, list[str]()
    for k, message in enumerate(_messages(path, numbers, cut), 1):
        if k > MOST_MESSAGES:
            raise InputError(f"topic '{topic}' has more than {MOST_MESSAGES:,} messages; cut the file", str(path))
        rows = rows_of(path, topic, k, decoders[message.channel_id], message.data)
        trajectories += any(row.stamp is None for row in rows)
        found += [(message.log_time, row) for row in rows if row.numbers]
    if not found:
        raise InputError(f"topic '{topic}' has no numbers; name another topic", str(path))
    if trajectories > 1:
        raise InputError(f"topic '{topic}' has {trajectories} trajectories; keep one", str(path))
    return _table(path, found, tuple(cut))


def _table(path: Path, found: Sequence[tuple[int, MessageRow]], cut: tuple[str, ...]) -> FileTable:
    """Of rows with their times in the log [ns]; cut: what is said of the file."""
    names = ("t", *dict.fromkeys(name for _, row in found for name in row.numbers if name != "t"))
    stamped = all(row.stamp for _, row in found)
    unstamped = () if stamped or not any(row.stamp for _, row in found) else (UNSTAMPED,)
    notes = (*cut, *unstamped)
    times = [row.stamp if stamped and row.stamp else log for log, row in found]

    def read(chosen: Sequence[int]) -> TableRows:
        columns = [names[k] for k in chosen]
        own = ((t * 1e-9, row.numbers) for t, (_, row) in zip(times, found, strict=True))
        values = [[of.get(name, t if name == "t" else np.nan) for name in columns] for t, of in own]
        return TableRows(np.array(values).reshape(len(found), len(columns)), NO_LINES)

    def strings(column: int) -> list[str] | None:
        """Times with all their digits."""
        if names[column] != "t" or any("t" in row.numbers for _, row in found):
            return None
        return [f"{t // 1_000_000_000}.{t % 1_000_000_000:09d}" for t in times]

    def having(columns: Sequence[int]) -> FileTable:
        """The rows that have these columns."""
        wanted = [names[k] for k in columns if names[k] != "t"]
        left = [(log, row) for log, row in found if all(name in row.numbers for name in wanted)]
        if not left:
            raise InputError(f"no message has {listed(wanted)} together; give columns of one message", str(path))
        table = _table(path, left, cut)
        out = len(found) - len(left)
        said = f"left out {out} of {len(found)} messages, which lack some of the columns"
        kept = replace(
            table, read=lambda chosen: table.read([table.names.index(names[k]) for k in chosen]), names=names
        )
        return replace(kept, notes=(*table.notes, said)) if out else kept

    return FileTable(path, names, read, {"t": "s"}, strings, notes, having=having)


def _chosen(path: Path, topics: _Topics, wanted: str | None) -> str:
    names = list(dict.fromkeys(channel.topic for n, channel in topics.channels.items() if topics.numbers[n]))
    if wanted is not None:
        if wanted not in names:
            raise InputError(f"has no topic '{wanted}' with messages{did_you_mean(wanted, names)}", str(path))
        return wanted
    if not names:
        raise InputError("has no messages", str(path))
    candidates = [name for name in names if any(topics.of_joints(n) for n in topics.named(name))] or names
    if len(candidates) > 1:
        which = listed(candidates[:10])
        raise InputError(f"has {len(candidates)} topics; name one by 'topic': {which}", str(path))
    return candidates[0]


def _topics(path: Path) -> _Topics:
    """By the summary of the file, or its records where it has none."""
    from mcap.reader import SeekingReader

    try:
        with open_file(path) as file:
            summary = SeekingReader(file, record_size_limit=_size(file)).get_summary()
        if summary is not None and summary.statistics is not None:
            numbers = Counter(summary.statistics.channel_message_counts)
            return _Topics(dict(summary.channels), dict(summary.schemas), numbers)
    except Exception:  # of the package, for whatever bytes there may be: a file that is cut off
        pass
    channels, schemas, found = dict[int, "Channel"](), dict[int, "Schema"](), Counter[int]()
    for record in _records(path, []):
        kind = type(record).__name__
        if kind == "Schema":
            schemas[record.id] = record  # pyright: ignore
        elif kind == "Channel":
            channels[record.id] = record  # pyright: ignore
        elif kind == "Message":
            found[record.channel_id] += 1  # pyright: ignore
    return _Topics(channels, schemas, found)


def _messages(path: Path, channels: Sequence[int], cut: list[str]) -> Iterator[Message]:
    """Of these channels, in the order of the file; cut: see `_records`."""
    for record in _records(path, cut):
        if type(record).__name__ == "Message" and record.channel_id in channels:  # pyright: ignore
            yield record  # pyright: ignore


def _records(path: Path, cut: list[str]) -> Iterator[McapRecord]:
    """The records of a file up to where it is cut off, which is reported in `cut`. Chunks are unpacked one by one."""
    from mcap.records import Chunk
    from mcap.stream_reader import StreamReader, breakup_chunk

    count = 0
    with open_file(path) as file:
        try:
            for record in StreamReader(file, record_size_limit=_size(file), emit_chunks=True).records:
                if isinstance(record, Chunk) and record.uncompressed_size > LARGEST_CHUNK:
                    raise ValueError(f"a chunk of {record.uncompressed_size:,} bytes")
                for each in breakup_chunk(record) if isinstance(record, Chunk) else (record,):
                    count += type(each).__name__ == "Message"
                    yield each
        except Exception as error:  # of the package, for whatever bytes there may be
            words = " ".join(str(error).split())
            cut.append(f"the file is cut off or damaged after its message {count}: {words}")


def _size(file: BinaryIO) -> int:
    """Of a file, from its start."""
    size = file.seek(0, 2)
    file.seek(0)
    return size
