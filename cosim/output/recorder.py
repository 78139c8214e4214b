"""Recordings: the signals of a run as an MCAP file, for this package, Foxglove and PlotJuggler.

One topic per joint, `/joints/<joint>`, has a message of its interfaces per tick, so a viewer plots
`/joints/elbow_joint.position`; `/energy` holds the energies of the rig, `/timing` the timing of its
ticks, and `/log` the events.
Format: https://mcap.dev/spec; samples in Protobuf or JSON (`cosim.output.sample_encoding`), events in JSON.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cosim.errors import RunError
from cosim.output.output_files import write_error
from cosim.output.recording_chunk import CHUNK_BYTES, RecordingChunk
from cosim.output.recording_footer import Part, complete_recording, summary_of_parts
from cosim.output.sample_encoding import (
    SAMPLES,
    Channels,
    Encoding,
    message_record,
    topics_of,
)
from cosim.types import Level

if TYPE_CHECKING:
    from mcap.records import McapRecord

CHUNK_NS = 1_000_000_000
BLOCK = 512  # ticks that are encoded together, in the cache
ZSTD_LEVEL = -7  # numbers of 64 bits hardly get smaller with more work
MOVED = "its file was removed or moved during the run; leave it in its place and run again"
METADATA, LOG_TOPIC = "run", "/log"
LOG_LEVELS: dict[Level, int] = {"info": 2, "warning": 3, "error": 4}
LOG_SCHEMA = {
    "title": "foxglove.Log",
    "description": "An event of the run",
    "type": "object",
    "properties": {
        "timestamp": {
            "type": "object",
            "title": "time",
            "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer"}},
            "description": "Time of the event, since 1970",
        },
        "level": {"type": "integer", "description": "Level: 2 info, 3 warning, 4 error"},
        "message": {"type": "string", "description": "What happened"},
        "name": {"type": "string", "description": "Program that logged it"},
        "file": {"type": "string", "description": "Not used, empty"},
        "line": {"type": "integer", "description": "Not used, 0"},
    },
    "required": ["timestamp", "level", "message", "name", "file", "line"],
}


class Recorder:
    """Writes one run to an MCAP file; use it in a `with` statement, or call `close`.

    path: the file, replaced if it exists. channels: (signal, unit) of each column. metadata: stored as the MCAP
    metadata record `run`. start_ns: when the run began, since 1970.

    The log time of a message is `start_ns` plus its time in the run, its publish time the time in the run.

    Leaving the `with` block finishes the file, also after an exception. A killed process loses at most the last 1 MiB
    of messages or the last second of the run, whichever is less: all earlier data is in complete chunks on disk, which
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
    ) -> None:
        from mcap.records import Header, Metadata, MetadataIndex
        from mcap.writer import MCAP0_MAGIC
        from zstandard import ZstdCompressor

        self._path, self._start_ns = path, start_ns
        self._topics = topics_of(channels)
        self._samples = SAMPLES[encoding](self._topics)
        # the checksum of zstd is many times faster than the CRC of MCAP
        self._compress = ZstdCompressor(level=ZSTD_LEVEL, write_checksum=True).compress
        self._parts: list[Part] = []
        self._chunk = RecordingChunk()
        self._flushed_ns = 0
        self._complete = 0  # bytes of the file that are complete parts
        try:
            self._file = open(path, "wb")  # noqa: SIM115 (closed by `close`)
        except OSError as cause:
            raise write_error(path, "recording", cause) from cause
        with self._writing():
            self._file.write(MCAP0_MAGIC)
            self._add_record(Header(profile="", library="cosim"))
            part = self._add_record(Metadata(name=METADATA, metadata=dict(metadata)))
            part.index = MetadataIndex(part.start, part.end - part.start, METADATA)
            self._define()
            self._flush(0)

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
            # a chunk ends after the tick that fills it, or that is a second after the last one
            full = np.searchsorted(ends, place + CHUNK_BYTES - self._chunk.size)
            late = np.searchsorted(t_ns, self._flushed_ns + CHUNK_NS)
            end = max(min(int(full), int(late)) + 1, begin + 1)
            ticks = slice(begin, min(end, len(t_ns)))
            last = int(ends[ticks][-1])
            self._chunk.add_ticks(data[place:last], log_ns[ticks], begins[ticks] - place)
            if end <= len(t_ns):
                self._flush(int(t_ns[end - 1]))
            begin, place = end, last

    def event(self, t_ns: int, text: str, level: Level = "info") -> None:
        """Add a line to the topic `/log`; level is `info`, `warning` or `error`. An error is on disk on return."""
        from orjson import dumps

        log_ns = int(t_ns) + self._start_ns
        sec, nsec = divmod(log_ns, 1_000_000_000)
        message = {
            "timestamp": {"sec": sec, "nsec": nsec},
            "level": LOG_LEVELS[level],
            "message": text,
            "name": "cosim",
            "file": "",
            "line": 0,
        }
        with self._writing():
            channel = len(self._topics) + 1
            self._chunk.add_message(channel, log_ns, message_record(channel, log_ns, int(t_ns), dumps(message)))
            if level == "error":
                self._flush(int(t_ns))

    def attach(self, name: str, data: bytes, media_type: str) -> None:
        """Store a file, such as the rig file, as an attachment."""
        from mcap.records import Attachment, AttachmentIndex

        with self._writing():
            self._flush(self._flushed_ns)
            times = {"create_time": self._start_ns, "log_time": self._start_ns}
            part = self._add_record(Attachment(**times, name=name, media_type=media_type, data=data))
            place = part.start, part.end - part.start
            part.index = AttachmentIndex(
                offset=place[0], length=place[1], **times, data_size=len(data), name=name, media_type=media_type
            )
            self._file.flush()

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
        from orjson import dumps

        samples, definitions = self._samples, []
        for number, (topic, (name, data)) in enumerate(zip(self._topics, samples.schemas(), strict=True), 1):
            definitions.append(Schema(id=number, name=name, encoding=samples.schema_encoding, data=data))
            units = {name: unit for name, unit, _ in topic.fields}
            definitions.append(
                Channel(
                    id=number, topic=topic.name, message_encoding=samples.encoding, schema_id=number, metadata=units
                )
            )
        number = len(self._topics) + 1
        definitions.append(Schema(id=number, name="foxglove.Log", encoding="jsonschema", data=dumps(LOG_SCHEMA)))
        definitions.append(Channel(id=number, topic=LOG_TOPIC, message_encoding="json", schema_id=number, metadata={}))
        for item in definitions:
            self._add_record(item).definitions.append(item)

    def _add_record(self, record: McapRecord) -> Part:
        from mcap.data_stream import RecordBuilder

        builder = RecordBuilder()
        record.write(builder)
        start = self._file.tell()
        self._file.write(builder.end())
        self._parts.append(Part(start, self._file.tell()))
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
            if not self._complete:
                raise error from cause
            if in_place:
                with suppress(OSError):
                    complete_recording(self._path, self._complete)
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
        except OSError:
            return False
