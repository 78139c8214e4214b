"""Reads recordings: MCAP files that `cosim.output.recorder` wrote, chunk by chunk where their samples are used; and
what they lack: files that are missing, parts that are damaged, and the times of which they have no ticks."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict, TypeVar

import numpy as np

from cosim.core.errors import InputError
from cosim.core.paths import open_file, unreadable
from cosim.core.recordings.cdr import CdrReader
from cosim.core.recordings.cdr_samples import ENCODING, MARK, places_of, signals_of
from cosim.core.recordings.footer import CHUNK_HEAD, ENTRY, HEADER, SIZE
from cosim.core.recordings.index import DAMAGED, ChunkPlace, RecordingIndex, recordings_of
from cosim.core.recordings.sample_encoding import (
    JOINTS,
    MESSAGE,
    MESSAGE_HEAD,
    SCHEMA_PREFIX,
    fields_of,
    number_of,
    value_places,
)
from cosim.core.recordings.stored_array import StoredArray
from cosim.core.recordings.topics import CHANGES_TOPIC, LOG_LEVELS, LOG_TOPIC, ROS_LOG_LEVELS, ROS_LOG_TOPIC
from cosim.core.trust.plain_data import WrongShape, from_json
from cosim.core.types import Level

if TYPE_CHECKING:
    from mcap.records import Channel, Schema

NO_SAMPLES = "the recording holds no samples; record the run again"
CUT_OFF = "its program was killed, or is still writing it"
NO_TICK = f"the recording is cut off before its first tick: {CUT_OFF}; record the run again"
NO_RIG = "the recording does not describe its rig; record the run again"
FOREIGN = "a recording of another program; give one written by 'cosim run RIG --record FILE.mcap'"
# MESSAGE_HEAD for many messages at once
HEAD = np.dtype(
    [("opcode", "u1"), ("length", "<u8"), ("channel", "<u2"), ("sequence", "<u4"), ("log", "<u8"), ("publish", "<u8")]
)
T = TypeVar("T")
_LEVELS: dict[int, Level] = {number: level for level, number in LOG_LEVELS.items()}

_OF_ROS = {number: LOG_LEVELS[level] for level, number in ROS_LOG_LEVELS.items()}

NEIGHBOURS = 3  # ticks at each side of a gap that show the time between ticks
GAP_RATIO = 1.5  # times of it: a gap


class Recording(NamedTuple):
    """t_ns (k,) int64 and, by the name of the signal, values (k,) in its unit; metadata of the run; log: (time [ns],
    text, level) of its events."""

    t_ns: np.ndarray
    signals: dict[str, np.ndarray]
    metadata: dict[str, str]
    log: list[tuple[int, str, Level]]


def read_recording(path: str | Path) -> Recording:
    """All samples and events of a recording, in memory.

    Values stored as null come back as NaN. Of a file cut off by a crash, the complete chunks are read, of a damaged one
    the intact ones. Raises InputError when the file cannot be read, is no MCAP file, or holds no samples that can be
    read.
    """
    samples = RecordedSamples(recordings_of(path))
    values = samples.values(0, samples.count, np.arange(len(samples.names)))
    t_ns = samples.times(0, samples.count)
    return Recording(t_ns, dict(zip(samples.names, values.T, strict=True)), samples.metadata, samples.log())


class _LogMessage(TypedDict):
    message: str
    level: int


class _ChangeMessage(TypedDict):
    tick: int
    name: str
    value: tuple[float, ...]


def _ros_event(message: CdrReader) -> tuple[str, int]:
    """(text, level) of rcl_interfaces/Log."""
    message.stamp()
    level, _ = message.whole(1), message.text()
    return message.text(), _OF_ROS.get(level, LOG_LEVELS["info"])


def _ros_change(message: CdrReader) -> tuple[int, str, tuple[float, ...]]:
    return message.whole(8), message.text(), tuple(message.values(message.whole()))


class SampleTopic(NamedTuple):
    """How the samples of a channel lie in its messages. signals: in the order of the fields; places: of their values in
    the record of a message, (n,), and dtype: their type; None where the messages are JSON."""

    channel: int
    signals: tuple[str, ...]
    places: np.ndarray | None
    dtype: np.dtype

    def values(self, chunk: Chunk, rows: slice, fields: np.ndarray) -> np.ndarray:
        """(k, fields) of these messages of the channel in a chunk."""
        begins = chunk.entries[self.channel]["place"][rows].astype(np.intp)
        if self.places is None:
            return self._from_json(chunk.data, begins)[:, fields]
        size = self.dtype.itemsize
        where = (self.places[fields][:, None] + np.arange(size)).ravel()
        return chunk.data[begins[:, None] + where].view(self.dtype).astype(float, copy=False)

    def _from_json(self, data: np.ndarray, begins: np.ndarray) -> np.ndarray:
        """null becomes NaN."""
        from orjson import loads

        rows = [list(loads(_body(data, begin)).values()) for begin in begins.tolist()]
        return np.array(rows, dtype=float).reshape(-1, len(self.signals))


class DamagedChunk(InputError):
    """A chunk without sense, or with another checksum than it had."""


class Chunk(NamedTuple):
    """The unpacked records of one chunk of a recording, with the places of its messages. data: the records, uint8;
    entries: channel -> (log time, place) of its messages."""

    data: np.ndarray
    entries: dict[int, np.ndarray]


class RecordedSamples:
    """The samples of a recording in one or several files; only the chunk that was read last is in memory.

    gaps: what is missing, in order of time: files, and chunks that are damaged; reindexed: whether an index is damaged,
    and was made anew.
    """

    def __init__(self, indexes: Sequence[RecordingIndex]) -> None:
        """Reads every chunk once, to find those that are damaged. Raises InputError where there are no samples."""
        self.indexes = tuple(indexes)
        self.topics = _topics_of(indexes[0])
        if not self.topics:
            what = FOREIGN if indexes[0].foreign else NO_SAMPLES if indexes[0].complete else NO_TICK
            raise InputError(what, str(indexes[0].path))
        self.names = tuple(name for topic in self.topics for name in topic.signals)
        self._fields = [(k, field) for k, topic in enumerate(self.topics) for field in range(len(topic.signals))]
        self.reindexed = any(index.rebuilt for index in indexes)
        self._last: tuple[ChunkPlace | None, Chunk | None] = None, None
        self._chunks: list[ChunkPlace] = []  # with ticks
        self._intact: list[list[ChunkPlace]] = [[] for _ in indexes]
        counts: list[int] = []
        losses: list[tuple[int, list[str]]] = []  # row before which something is missing, reasons
        lost: list[str] = []
        for k, index in enumerate(indexes):
            lost += index.missing
            for place in index.chunks:
                lost += [damaged(index, indexes)] if place.start in index.lost else []
                if (intact := self._checked(place)) is None:
                    lost.append(damaged(index, indexes))
                    continue
                self._intact[k].append(intact)
                if count := self._count(intact):
                    losses += [(sum(counts), lost)] if lost else []
                    self._chunks.append(intact)
                    counts.append(count)
                    lost = []
            lost += _lost_at_end(index, indexes)
        self._first = np.cumsum([0, *counts])  # row of each chunk, and of the end
        self.count = int(self._first[-1])
        losses += [(self.count, lost)] if lost else []
        if losses and not self.count:
            raise InputError(
                f"{' and '.join(dict.fromkeys(losses[0][1]))}: it has no tick that can be read; record the run again",
                str(indexes[0].path),
            )
        self.gaps: tuple[MissingTicks, ...] = tuple(gap_at(row, why, self.count, self.times) for row, why in losses)

    @property
    def metadata(self) -> dict[str, str]:
        return self.indexes[0].metadata

    @property
    def t(self) -> StoredArray:
        """(count,) times in the run [s]."""
        return StoredArray(partial(_seconds, self), self.count)

    def table(self, columns: np.ndarray) -> StoredArray:
        """(count, columns) of the signals with these numbers."""
        return StoredArray(partial(_columns, self, columns), self.count, len(columns))

    @property
    def end(self) -> str:
        """The time of the last tick, in words."""
        return f"t = {self.times(self.count - 1, self.count)[0] * 1e-9:.6g} s"

    @property
    def losses(self) -> list[str]:
        """What is missing, in sentences; empty of a recording that has all of its run."""
        found = [str(gap) for gap in self.gaps]
        last, end = self.indexes[-1], f"after {self.end}" if self.count else "before its first tick"
        if not last.complete:
            found.append(f"the recording is cut off {end}: {CUT_OFF}")
        if last.ended:
            found.append(f"the recording ends {end}, before its run: {last.ended}")
        return found

    def times(self, begin: int, end: int) -> np.ndarray:
        """(end − begin,) times in the run [ns]."""
        channel, found = self.topics[0].channel, np.empty(end - begin, np.int64)
        for place, rows, out in self._parts(begin, end):
            found[out] = self._entries(place, channel)["log"][rows]
        return found - self.start_ns

    @cached_property
    def start_ns(self) -> int:
        """When the run began, since 1970."""
        if not self._chunks:
            return 0
        place, channel = self._chunks[0], self.topics[0].channel
        chunk = self._chunk(place)
        begin = int(chunk.entries[channel]["place"][0])
        _, _, _, _, log, publish = MESSAGE_HEAD.unpack_from(chunk.data.data, begin)
        return log - publish

    def values(self, begin: int, end: int, columns: np.ndarray) -> np.ndarray:
        """(end − begin, columns) of the signals with these numbers."""
        found = np.empty((end - begin, len(columns)))
        wanted: dict[int, tuple[list[int], list[int]]] = {}  # topic -> places in `columns`, fields
        for at, column in enumerate(columns):
            topic, field = self._fields[column]
            places, fields = wanted.setdefault(topic, ([], []))
            places.append(at)
            fields.append(field)
        for place, rows, out in self._parts(begin, end):
            chunk = self._chunk(place)
            for topic, (places, fields) in wanted.items():
                try:
                    found[out, places] = self.topics[topic].values(chunk, rows, np.array(fields))
                except (ValueError, IndexError, KeyError) as cause:
                    raise InputError(DAMAGED, str(place.path)) from cause
        return found

    def log(self) -> list[tuple[int, str, Level]]:
        """(time [ns], text, level) of the events."""
        found = [(t_ns, event["message"], event["level"]) for t_ns, event in self.described(LOG_TOPIC, _LogMessage)]
        found += [(t_ns, *event) for t_ns, event in self._decoded(ROS_LOG_TOPIC, _ros_event)]
        return [(t_ns, text, _LEVELS.get(level, "info")) for t_ns, text, level in found]

    def changes(self) -> Iterator[tuple[int, str, tuple[float, ...]]]:
        """(tick, name, value) of the changes of the rig, in the order in which they were made."""
        encodings = {channel.message_encoding for channel in self.indexes[0].summary.channels.values()}
        if ENCODING in encodings:
            yield from (change for _, change in self._decoded(CHANGES_TOPIC, _ros_change))
        else:
            for _, item in self.described(CHANGES_TOPIC, _ChangeMessage):
                yield item["tick"], item["name"], item["value"]

    def _decoded(self, topic: str, read: Callable[[CdrReader], T]) -> Iterator[tuple[int, T]]:
        """(time in the run [ns], content) of the messages of a topic in CDR. Raises InputError for other content."""
        for t_ns, data in self.messages(topic):
            try:
                yield t_ns, read(CdrReader(data))
            except ValueError as wrong:
                raise InputError(f"{DAMAGED} ({topic}: {wrong})", str(self.indexes[0].path)) from None

    def described(self, topic: str, shape: type[T]) -> Iterator[tuple[int, T]]:
        """(time in the run [ns], content) of the messages of a topic in JSON. Raises InputError for other content."""
        for t_ns, data in self.messages(topic):
            try:
                yield t_ns, from_json(data, shape)
            except WrongShape as wrong:
                raise InputError(f"{DAMAGED} ({topic}: {wrong})", str(self.indexes[0].path)) from None

    def messages(self, topic: str) -> Iterator[tuple[int, bytes]]:
        """(time in the run [ns], content) of the messages of a topic; only chunks that have some are read."""
        return ((publish, content) for _, _, publish, content in self.numbered_messages(topic))

    def numbered_messages(self, topic: str) -> Iterator[tuple[int, int, int, bytes]]:
        """(sequence number, log time, publish time [ns], content) likewise."""
        for index, places in zip(self.indexes, self._intact, strict=True):
            channels = [channel.id for channel in index.summary.channels.values() if channel.topic == topic]
            for place in places:
                if place.indexes and not any(channel in place.indexes for channel in channels):
                    continue
                chunk = self._chunk(place)
                for channel in channels:
                    for begin in chunk.entries.get(channel, np.empty(0, ENTRY))["place"].tolist():
                        yield *MESSAGE_HEAD.unpack_from(chunk.data.data, begin)[3:], _body(chunk.data, begin)

    def _checked(self, place: ChunkPlace) -> ChunkPlace | None:
        """The chunk, without message indexes that do not fit it; None for one that is damaged."""
        try:
            chunk = self._chunk(place)
            if _fits(chunk):
                return place
            self.reindexed = True
            return replace(place, indexes={})
        except DamagedChunk:
            return None

    def _count(self, place: ChunkPlace) -> int:
        """Ticks in a chunk; an interrupt may have left the last one on some topics only."""
        if place.indexes:
            return min(place.indexes.get(topic.channel, (0, 0))[1] for topic in self.topics)
        entries = self._chunk(place).entries
        return min(len(entries.get(topic.channel, ())) for topic in self.topics)

    def _parts(self, begin: int, end: int) -> Iterator[tuple[ChunkPlace, slice, slice]]:
        """(chunk, rows in it, rows in the result) of rows begin to end."""
        at = begin
        while at < end:
            number = int(np.searchsorted(self._first, at, side="right")) - 1
            first, last = int(self._first[number]), min(int(self._first[number + 1]), end)
            yield self._chunks[number], slice(at - first, last - first), slice(at - begin, last - begin)
            at = last

    def _entries(self, place: ChunkPlace, channel: int) -> np.ndarray:
        """The message index of a channel; the chunk itself is not read."""
        if not place.indexes:
            return self._chunk(place).entries[channel]
        at, count = place.indexes[channel]
        try:
            with open_file(place.path) as file:
                file.seek(at)
                return np.frombuffer(file.read(count * ENTRY.itemsize), ENTRY, count)
        except (OSError, ValueError) as cause:
            raise InputError(DAMAGED, str(place.path)) from cause

    def _chunk(self, place: ChunkPlace) -> Chunk:
        last, chunk = self._last
        if chunk is None or last is not place:
            chunk = _read_chunk(place)
            self._last = place, chunk
        return chunk


def _lost_at_end(index: RecordingIndex, indexes: Sequence[RecordingIndex]) -> list[str]:
    """Why ticks may be missing behind the last chunk of a file; that the last file is cut off has words of its own."""
    cut = not index.complete and index is not indexes[-1]
    reasons = [damaged(index, indexes)] if index.end_lost else []
    reasons += [f"the file {index.path.name} is cut off"] if cut else []
    return [*reasons, *index.missing_after]


def _seconds(samples: RecordedSamples, begin: int, end: int, _: np.ndarray) -> np.ndarray:
    return samples.times(begin, end)[:, None] * 1e-9


def _columns(samples: RecordedSamples, of: np.ndarray, begin: int, end: int, columns: np.ndarray) -> np.ndarray:
    return samples.values(begin, end, of[columns])


def _topics_of(index: RecordingIndex) -> list[SampleTopic]:
    found = []
    for channel in sorted(index.summary.channels.values(), key=lambda channel: channel.id):
        schema = index.summary.schemas.get(channel.schema_id)
        if schema is not None and schema.name.startswith((SCHEMA_PREFIX, MARK)) and channel.topic != CHANGES_TOPIC:
            try:
                found.append(_topic_of(channel, schema))
            except (ValueError, KeyError, TypeError, IndexError, StopIteration) as cause:
                raise InputError(DAMAGED, str(index.path)) from cause
    return found


def _topic_of(channel: Channel, schema: Schema) -> SampleTopic:
    from orjson import loads

    group = channel.topic.removeprefix(JOINTS).removeprefix("/")
    if channel.message_encoding == "json":
        fields, places, dtype = tuple(loads(schema.data)["properties"]), None, np.dtype(float)
    elif channel.message_encoding == ENCODING:
        fields, dtype = signals_of(schema.data), np.dtype("<f8")
        places = places_of(len(fields))
    else:
        fields, dtype = fields_of(schema.data), number_of(schema.data)
        places = value_places(len(fields), dtype)
    return SampleTopic(channel.id, tuple(f"{group}/{field}" for field in fields), places, dtype)


def _read_chunk(place: ChunkPlace) -> Chunk:
    """Raises InputError for one that is damaged."""
    from zstandard import ZstdError

    try:
        with open_file(place.path) as file:
            file.seek(place.start)
            record = file.read(place.length)
            data = np.frombuffer(_unpacked(memoryview(record)[HEADER.size :]), np.uint8)
            if not place.indexes:
                return Chunk(data, _entries_of(data))
            entries = {}
            for channel, (at, count) in place.indexes.items():
                file.seek(at)
                entries[channel] = np.frombuffer(file.read(count * ENTRY.itemsize), ENTRY, count)
            return Chunk(data, entries)
    except OSError as cause:
        raise InputError(f"cannot read the recording: {unreadable(cause)}", str(place.path)) from cause
    except (ZstdError, struct.error, ValueError, KeyError) as cause:
        raise DamagedChunk(DAMAGED, str(place.path)) from cause


def _fits(chunk: Chunk) -> bool:
    """Whether the message indexes of a chunk name messages of their channel and time."""
    for channel, entries in chunk.entries.items():
        begins = entries["place"].astype(np.intp)
        if len(begins) and not 0 <= begins.min() <= begins.max() <= len(chunk.data) - MESSAGE_HEAD.size:
            return False
        heads = chunk.data[begins[:, None] + np.arange(MESSAGE_HEAD.size)].view(HEAD)[:, 0]
        right = (heads["opcode"] == MESSAGE) & (heads["channel"] == channel) & (heads["log"] == entries["log"])
        if not right.all():
            return False
    return True


def _unpacked(content: memoryview) -> bytes:
    """The records of the content of a chunk. Raises ValueError for a wrong checksum."""
    _, _, size, checksum, word = CHUNK_HEAD.unpack_from(content)
    compression = bytes(content[CHUNK_HEAD.size : CHUNK_HEAD.size + word]).decode()
    packed = content[CHUNK_HEAD.size + word + SIZE.size :]
    data = _UNPACKERS[compression](packed, size)
    if checksum and zlib.crc32(data) != checksum:
        raise ValueError("checksum")
    return data


def _unzstd(packed: memoryview, size: int) -> bytes:
    from zstandard import ZstdDecompressor

    return ZstdDecompressor().decompress(packed, max_output_size=size)


_UNPACKERS: dict[str, Callable[[memoryview, int], bytes]] = {"zstd": _unzstd, "": lambda packed, _: bytes(packed)}


def _entries_of(data: np.ndarray) -> dict[int, np.ndarray]:
    """The message indexes of a chunk that lost them."""
    found: dict[int, list[tuple[int, int]]] = {}
    at = 0
    while at < len(data):
        opcode, length = HEADER.unpack_from(data.data, at)
        if opcode == MESSAGE:
            _, _, channel, _, log, _ = MESSAGE_HEAD.unpack_from(data.data, at)
            found.setdefault(channel, []).append((log, at))
        at += HEADER.size + length
    return {channel: np.array(entries, ENTRY) for channel, entries in found.items()}


def _body(data: np.ndarray, begin: int) -> bytes:
    """The content of the message whose record begins there."""
    _, length = HEADER.unpack_from(data.data, begin)
    return data[begin + MESSAGE_HEAD.size : begin + HEADER.size + length].tobytes()


class MissingTicks(NamedTuple):
    """A gap of a recording: a time of which ticks or events are missing.

    why: it is there; begin, end: times of the last tick before it and of the first one behind it [s], None at the ends
    of the recording; ticks: whether some are missing.
    """

    why: str
    begin: float | None
    end: float | None
    ticks: bool = True

    def __str__(self) -> str:
        if not self.ticks:
            return f"{self.why} at t = {self.begin:.6g} s: no tick is missing, but events may be"
        if self.begin is None:
            return f"{self.why}: no ticks before t = {self.end:.6g} s"
        if self.end is None:
            return f"{self.why}: no ticks after t = {self.begin:.6g} s"
        return f"{self.why}: no ticks between t = {self.begin:.6g} s and t = {self.end:.6g} s"


def damaged(index: RecordingIndex, indexes: Sequence[RecordingIndex]) -> str:
    """That something in a file is."""
    return f"the file {index.path.name} is damaged" if len(indexes) > 1 else "the recording is damaged"


def gap_at(row: int, reasons: Sequence[str], count: int, times: Callable[[int, int], np.ndarray]) -> MissingTicks:
    """The gap before a row. reasons: for it; count: of all rows; times(begin, end): of rows [ns]."""
    why = " and ".join(dict.fromkeys(reasons))
    first, last = max(row - NEIGHBOURS, 0), min(row + NEIGHBOURS, count)
    t_ns = times(first, last)
    begin = None if row == 0 else float(t_ns[row - first - 1]) * 1e-9
    end = None if row == count else float(t_ns[row - first]) * 1e-9
    if begin is None or end is None:
        return MissingTicks(why, begin, end)
    steps = np.diff(t_ns)
    own, others = steps[row - first - 1], np.delete(steps, row - first - 1)
    return MissingTicks(why, begin, end, not len(others) or bool(own > GAP_RATIO * others.max()))
