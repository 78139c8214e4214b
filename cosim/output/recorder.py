"""Recordings: the signals of a run as an MCAP file, for this package, Foxglove and PlotJuggler.

One topic per joint, `/joints/<joint>`, has a message of its interfaces per tick, so a viewer plots
`/joints/elbow_joint.position`; `/energy` holds the energies of the rig, `/timing` the timing of its
ticks, `/log` the events, and `/changes` what was changed while it ran. The topics of `cosim.output.view3d` have the
mechanism in 3D for Foxglove; nothing here reads them. The topics of `cosim.output.traffic_messages` have the bus
traffic. Format: https://mcap.dev/spec; samples in Protobuf or JSON (`cosim.core.recordings.sample_encoding`), events in
JSON.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from cosim.core.errors import InputError, RunError
from cosim.core.recordings.footer import (
    CHUNK_HEAD,
    ENTRY,
    HEADER,
    INDEX_HEAD,
    SIZE,
    RecordedPart,
    complete_recording,
    summary_of_parts,
)
from cosim.core.recordings.index import CONTINUED, METADATA, PART, part_path
from cosim.core.recordings.sample_encoding import Channels, Encoding, Numbers, message_record, topics_of
from cosim.core.types import Level
from cosim.output.output_files import write_error
from cosim.output.recording_formats import recording_format
from cosim.output.traffic_messages import SEQUENCES, BusChannel, EntryFields, encode, is_item
from cosim.output.view3d.motion import Motion, ViewMessage
from cosim.output.view3d.view import View

if TYPE_CHECKING:
    from mcap.records import McapRecord

CHUNK_NS = 500_000_000  # what a killed run loses is this, and what was on its way to the recorder: less than 1 s
BLOCK = 512  # ticks that are encoded together, in the cache
ZSTD_LEVEL = -7  # level 1 makes noise 8 % smaller, and a recording a third slower
WORTH = 4  # times what each file repeats, that a file of a recording takes at least
MOVED = "its file was removed or moved during the run; leave it in its place and run again"

CHUNK_BYTES = 1 << 20  # of messages, before compression
_ZSTD = b"zstd"


def check_split_size(split_size: float, view: View | None, attachments: Sequence[tuple[str, bytes]]) -> None:
    """Raises InputError where files of this size [B] would hold little but what each of them repeats: the shapes of the
    mechanism and the files of the rig."""
    from zstandard import ZstdCompressor

    shapes = b"" if view is None else b"".join(message.data for message in Motion(view).standing(0, 0))
    repeated = len(ZstdCompressor(level=ZSTD_LEVEL).compress(shapes)) + sum(len(content) for _, content in attachments)
    if split_size >= WORTH * repeated:
        return
    least = math.ceil(WORTH * repeated / 1e5) / 10
    what = f"the shapes of the mechanism and the files of the rig take {repeated / 1e6:.2g} MB in each file"
    fix = "" if view is None else ", or leave the shapes out with recording.frame_rate: null"
    raise InputError(f"{what}; use at least {least:g} MB{fix}", "recording.split_size")


class Recorder:
    """Writes one run to an MCAP file; use it in a `with` statement, or call `close`.

    path: the file, replaced if it exists. channels: (signal, unit) of each column. metadata: stored as the MCAP
    metadata record `run`. start_ns: when the run began, since 1970. numbers: of the samples in Protobuf. split_size
    [B], split_time [s]: after the chunk that reaches one of them the run goes on in a file `F.1.mcap`, `F.2.mcap`, …
    Each can be read alone, with metadata and attachments. view: of the mechanism in 3D, None for none. buses: whose
    traffic is recorded.

    The log time of a message is `start_ns` plus its time in the run, its publish time the time in the run.

    Leaving the `with` block finishes the file, also after an exception. A killed process loses at most the last 1 MiB
    of messages or half a second of the run, whichever is less: all earlier data is in complete chunks on disk, which
    `read_recording` and `mcap recover` read. After a full disk the file holds the complete chunks, with index and
    footer.

    Raises InputError if the file cannot be created, RunError if writing fails or the file is removed or moved.
    """

    def __init__(
        self,
        path: str | Path,
        channels: Channels,
        metadata: Mapping[str, str],
        encoding: Encoding = "protobuf",
        start_ns: int = 0,
        numbers: Numbers = "float64",
        split_size: float | None = None,
        split_time: float | None = None,
        view: View | None = None,
        buses: Sequence[BusChannel] = (),
    ) -> None:
        from zstandard import ZstdCompressor

        self._path, self._start_ns, self._metadata = path, start_ns, dict(metadata)
        self._first_path, self._number = path, 0
        self._split_bytes = math.inf if split_size is None else split_size
        self._split_ns = math.inf if split_time is None else split_time * 1e9
        self._attached: list[tuple[str, bytes, str]] = []
        self._format = recording_format(encoding, topics_of(channels), numbers, view, buses)
        self._samples, self._motion, self._buses = self._format.samples, self._format.motion, tuple(buses)
        self._channels = {topic.name: number for number, topic in enumerate(self._format.topics, 1)}
        # the checksum of zstd is many times faster than the CRC of MCAP
        self._compress = ZstdCompressor(level=ZSTD_LEVEL, write_checksum=True).compress
        self._chunk = RecordingChunk()
        try:
            self._file = open(path, "wb")  # noqa: SIM115 (closed by `close`)
        except OSError as cause:
            raise write_error(path, "recording", cause) from cause
        self._parts: list[RecordedPart] = []
        self._complete = 0  # bytes of the file that are complete parts
        self._before = path, 0  # the file before it, and its complete bytes
        with self._writing():
            self._begin(0)

    def _begin(self, t_ns: int) -> None:
        """Write the start of a file: everything that it needs to be read alone."""
        from mcap.records import Header
        from mcap.writer import MCAP0_MAGIC

        self._parts, self._complete = [], 0
        self._flushed_ns = self._begun_ns = t_ns
        self._file.write(MCAP0_MAGIC)
        self._add_record(Header(profile=self._format.profile, library="cosim"))
        self._add_metadata(METADATA, {**self._metadata, PART: str(self._number)})
        for attached in self._attached:
            self._add_attachment(*attached)
        self._define()
        self._flush(t_ns)
        if self._motion is not None:
            self._add_view(self._motion.standing(t_ns + self._start_ns, t_ns))

    def _split(self, t_ns: int) -> None:
        """Complete the file, and go on in the next one."""
        following, self._before = part_path(self._first_path, self._number + 1), (self._path, self._complete)
        self._add_metadata(CONTINUED, {"file": following.name})
        self._file.write(summary_of_parts(self._parts, self._file.tell()))
        self._file.flush()
        self._check_place()
        self._file.close()
        self._number, self._path = self._number + 1, following
        self._file = open(self._path, "wb")  # noqa: SIM115 (closed by `close`)
        self._begin(t_ns)

    def append(self, t_ns: np.ndarray, rows: np.ndarray) -> None:
        """Add samples: t_ns (k,) integer ns, not negative; rows (k, len(channels)) in the channels' units."""
        with self._writing():
            for begin in range(0, len(t_ns), BLOCK):
                block = slice(begin, begin + BLOCK)
                self._append(t_ns[block], rows[block])

    def _append(self, t_ns: np.ndarray, rows: np.ndarray) -> None:
        log_ns = t_ns + self._start_ns
        data, begins, ends = self._samples.encode(log_ns, t_ns, rows)
        begin = place = 0
        while begin < len(t_ns):
            # a chunk ends after the tick that fills it, or that is CHUNK_NS after the last one
            full = np.searchsorted(ends, place + CHUNK_BYTES - self._chunk.size)
            late = np.searchsorted(t_ns, self._flushed_ns + CHUNK_NS)
            end = max(min(int(full), int(late)) + 1, begin + 1)
            ticks = slice(begin, min(end, len(t_ns)))
            last = int(ends[ticks][-1])
            self._chunk.add_ticks(data[place:last], log_ns[ticks], begins[ticks] - place)
            if self._motion is not None:
                self._add_view(self._motion.moving(log_ns[ticks], t_ns[ticks], rows[ticks]))
            if end <= len(t_ns):
                self._flush(int(t_ns[end - 1]))
                if self._complete >= self._split_bytes or self._flushed_ns - self._begun_ns >= self._split_ns:
                    self._split(self._flushed_ns)
            begin, place = end, last

    def event(self, t_ns: int, text: str, level: Level = "info") -> None:
        """Add a line to the topic `/log`; level is `info`, `warning` or `error`. An error is on disk on return."""
        with self._writing():
            for topic, data in self._format.event(int(t_ns) + self._start_ns, text, level):
                self._add_message(topic, int(t_ns), data)
            if level == "error":
                self._flush(int(t_ns))

    def change(self, t_ns: int, tick: int, name: str, value: Sequence[float]) -> None:
        """Add a change of the rig before a tick to the topic `/changes`; on disk on return, because without it the run
        cannot be repeated."""
        with self._writing():
            for topic, data in self._format.change(tick, name, value):
                self._add_message(topic, int(t_ns), data)
            self._flush(int(t_ns))

    def traffic(self, zero_ns: int, entries: Iterable[EntryFields]) -> None:
        """Add entries of the bus traffic. zero_ns: when the run was at 0, on their clock."""
        with self._writing():
            for driver, number, clock_ns, what, content, _ in entries:
                of_items, of_events = self._buses[driver].topics
                t_ns, channel = clock_ns - zero_ns, self._channels[of_items if is_item(what) else of_events]
                log_ns, data = max(t_ns + self._start_ns, 0), encode(clock_ns, what, content)
                record = message_record(channel, log_ns, max(t_ns, 0), data, number % SEQUENCES)
                self._chunk.add_message(channel, log_ns, record)
            if self._chunk.size >= CHUNK_BYTES:
                self._flush(self._flushed_ns)

    def _add_view(self, messages: Iterable[ViewMessage]) -> None:
        for topic, t_ns, data in messages:
            self._add_message(topic, t_ns, data)

    def _add_message(self, topic: str, t_ns: int, data: bytes) -> None:
        log_ns, channel = t_ns + self._start_ns, self._channels[topic]
        self._chunk.add_message(channel, log_ns, message_record(channel, log_ns, t_ns, data))

    def attach(self, name: str, data: bytes, media_type: str) -> None:
        """Store a file, such as the rig file, as an attachment."""
        with self._writing():
            self._flush(self._flushed_ns)
            self._attached.append((name, data, media_type))
            self._add_attachment(name, data, media_type)
            self._file.flush()

    def _add_attachment(self, name: str, data: bytes, media_type: str) -> None:
        from mcap.records import Attachment, AttachmentIndex

        times = {"create_time": self._start_ns, "log_time": self._start_ns}
        part = self._add_record(Attachment(**times, name=name, media_type=media_type, data=data))
        place = part.start, part.end - part.start
        part.index = AttachmentIndex(
            offset=place[0], length=place[1], **times, data_size=len(data), name=name, media_type=media_type
        )

    def close(self) -> None:
        """Write the last chunk and the index, and close the file; idempotent."""
        if self._file.closed:
            return
        with self._writing():
            self._flush(self._flushed_ns)
            self._file.write(summary_of_parts(self._parts, self._complete))
            self._file.flush()
            self._check_place()
            self._file.close()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _define(self) -> None:
        """Write the schemas and channels of all topics."""
        from mcap.records import Channel, Schema

        for topic, number in zip(self._format.topics, self._channels.values(), strict=True):
            definitions = (
                Schema(id=number, name=topic.schema, encoding=topic.language, data=topic.text),
                Channel(
                    id=number,
                    topic=topic.name,
                    message_encoding=topic.encoding,
                    schema_id=number,
                    metadata=dict(topic.metadata),
                ),
            )
            for item in definitions:
                self._add_record(item).definitions.append(item)

    def _add_metadata(self, name: str, metadata: Mapping[str, str]) -> None:
        from mcap.records import Metadata, MetadataIndex

        part = self._add_record(Metadata(name=name, metadata=dict(metadata)))
        part.index = MetadataIndex(part.start, part.end - part.start, name)

    def _add_record(self, record: McapRecord) -> RecordedPart:
        from mcap.data_stream import RecordBuilder

        builder = RecordBuilder()
        record.write(builder)
        start = self._file.tell()
        self._file.write(builder.end())
        self._parts.append(RecordedPart(start, self._file.tell()))
        return self._parts[-1]

    def _flush(self, t_ns: int) -> None:
        """Write the chunk, if there is anything in it."""
        if self._chunk.size:
            self._parts.append(self._chunk.write(self._file, self._compress))
            self._chunk.clear()
        self._file.flush()
        self._check_place()
        self._complete = self._file.tell()
        self._flushed_ns = t_ns

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Convert a failed write to a CosimError and close the file; complete chunks stay on disk, with index and
        footer."""
        if self._file.closed:
            raise RunError("the recording is closed; nothing can be added to it", str(self._path))
        try:
            yield
        except OSError as cause:
            in_place = self._in_place()
            with suppress(OSError):
                self._file.close()
            error = write_error(self._path, "recording", cause)
            if not self._complete and not self._number:
                raise error from cause
            path, complete = self._path, self._complete
            if in_place and not complete:  # of a new file there is no room for the start
                with suppress(OSError):
                    os.unlink(path)
                path, complete = self._before
            if in_place:
                with suppress(OSError):
                    complete_recording(path, complete, cause.strerror or "it could not be written")
            raise RunError(error.what, error.place) from cause

    def _check_place(self) -> None:
        """Raises RunError, with the file closed, when it is not at its path any more: its data would be lost."""
        if not self._in_place():
            with suppress(OSError):
                self._file.close()
            raise RunError(f"cannot write the recording: {MOVED}", str(self._path))

    def _in_place(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), os.stat(self._path))
        except (OSError, ValueError):  # of a closed file
            return False


class RecordingChunk:
    """Messages that are compressed together, and their index."""

    def __init__(self) -> None:
        self._data = np.empty(CHUNK_BYTES, np.uint8)
        self.clear()

    def clear(self) -> None:
        self.size = 0
        self._ticks: list[tuple[np.ndarray, np.ndarray]] = []  # log times (k,), places (k, topics)
        self._messages: dict[int, list[tuple[int, int]]] = {}  # channel -> (log time, place)

    def add_ticks(self, data: np.ndarray, log_ns: np.ndarray, begins: np.ndarray) -> None:
        """begins (k, topics): places in the data."""
        begins = begins + self.size
        self._put(data)
        self._ticks.append((log_ns, begins))

    def add_message(self, channel: int, log_ns: int, record: bytes) -> None:
        begin = self.size
        self._put(np.frombuffer(record, np.uint8))
        self._messages.setdefault(channel, []).append((log_ns, begin))

    def _put(self, data: np.ndarray) -> None:
        end = self.size + len(data)
        if end > len(self._data):
            self._data = np.concatenate([self._data[: self.size], np.empty(2 * end - self.size, np.uint8)])
        self._data[self.size : end] = data
        self.size = end

    def write(self, file: BinaryIO, compress: Callable[[memoryview], bytes]) -> RecordedPart:
        """Write the chunk and its message indexes."""
        from mcap.opcode import Opcode
        from mcap.records import ChunkIndex

        data = compress(self._data[: self.size].data)
        entries = self._entries()
        first = min((int(each["log"].min()) for each in entries.values()), default=0)
        last = max((int(each["log"].max()) for each in entries.values()), default=0)
        part = RecordedPart(file.tell(), 0)
        head = CHUNK_HEAD.pack(first, last, self.size, 0, len(_ZSTD)) + _ZSTD + SIZE.pack(len(data))
        file.write(HEADER.pack(Opcode.CHUNK, len(head) + len(data)) + head)
        file.write(data)
        end = file.tell()
        offsets: dict[int, int] = {}
        for channel, each in entries.items():
            offsets[channel], part.messages[channel] = file.tell(), len(each)
            content = INDEX_HEAD.pack(channel, each.nbytes) + each.tobytes()
            file.write(HEADER.pack(Opcode.MESSAGE_INDEX, len(content)) + content)
        part.end = file.tell()
        part.index = ChunkIndex(
            chunk_length=end - part.start,
            chunk_start_offset=part.start,
            compression=_ZSTD.decode(),
            compressed_size=len(data),
            message_end_time=last,
            message_index_length=part.end - end,
            message_index_offsets=offsets,
            message_start_time=first,
            uncompressed_size=self.size,
        )
        return part

    def _entries(self) -> dict[int, np.ndarray]:
        """Channel -> (log time, place) of its messages."""
        found = {channel: np.array(each, ENTRY) for channel, each in self._messages.items()}
        if self._ticks:
            log, places = (np.concatenate(parts) for parts in zip(*self._ticks, strict=True))
            entries = np.empty(places.shape[::-1], ENTRY)
            entries["log"], entries["place"] = log, places.T
            found |= dict(enumerate(entries, 1))
        return found
