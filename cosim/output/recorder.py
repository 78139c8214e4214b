"""Recordings: the signals of a run as an MCAP file, for this package and Foxglove.

One topic per joint, `/joints/<joint>`, holds an object of its interfaces, so a viewer plots
`/joints/elbow_joint.position`; `/energy` holds the energies of the rig, `/timing` the timing of its
ticks, and `/log` the events.
Format: https://mcap.dev/spec, messages as JSON, described by JSON schemas.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from cosim.errors import RunError
from cosim.output.output_files import write_error
from cosim.output.recording_footer import complete_recording
from cosim.types import Level

Channels = Sequence[tuple[str, str]]  # (signal, unit); a signal is `<joint or group of the rig>/<what>`

CHUNK_BYTES = 256 * 1024  # of messages, before compression
CHUNK_NS = 1_000_000_000
SCHEMA_PREFIX = "cosim."  # marks the topics that hold samples; the rest of the schema's name is the group
RIG_GROUPS = ("energy", "timing")  # groups of signals of the rig rather than a joint
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
            "description": "Time of the event since the start of the run",
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
    metadata record `run`.

    Leaving the `with` block finishes the file, also after an exception. A killed process loses at most the last 256 KiB
    of messages or the last second of the run, whichever is less: all earlier data is in complete chunks on disk, which
    `read_recording` and `mcap recover` read. After a full disk the file holds the complete chunks, with index and
    footer.

    Raises InputError if the file cannot be created, RunError if writing fails or the file is removed or moved.
    """

    def __init__(self, path: str | Path, channels: Channels, metadata: dict[str, str]) -> None:
        from mcap.writer import CompressionType, Writer

        self._path = path
        self._groups = _columns_by_group(channels)
        self._order = [column for columns in self._groups.values() for column in columns.values()]
        self._pending_bytes = 0
        self._flushed_ns = 0
        self._complete = 0  # bytes of the file that are complete parts
        try:
            self._file = open(path, "wb")  # noqa: SIM115 (closed by `close`)
        except OSError as cause:
            raise write_error(path, "recording", cause) from cause
        with self._writing():
            # chunks end in `_flush`, between two ticks, never inside the writer
            self._writer = Writer(self._file, chunk_size=1 << 62, compression=CompressionType.ZSTD)
            self._writer.start(library="cosim")
            self._writer.add_metadata(METADATA, metadata)
            self._topics = self._register(channels)
            self._log = self._register_topic(LOG_TOPIC, "foxglove.Log", LOG_SCHEMA)
            self._flush(0)

    def append(self, t_ns: np.ndarray, rows: np.ndarray) -> None:
        """Add samples: t_ns (k,) integer ns, not negative; rows (k, len(channels)) in the channels' units.

        Values that are not finite are stored as null.
        """
        from orjson import dumps

        add = self._writer.add_message
        with self._writing():
            for t, row in zip(t_ns.tolist(), rows[:, self._order].tolist(), strict=True):
                for topic, names, begin, end in self._topics:
                    data = dumps(dict(zip(names, row[begin:end], strict=True)))
                    add(topic, t, data, t)
                    self._pending_bytes += len(data)
                if self._pending_bytes >= CHUNK_BYTES or t - self._flushed_ns >= CHUNK_NS:
                    self._flush(t)

    def event(self, t_ns: int, text: str, level: Level = "info") -> None:
        """Add a line to the topic `/log`; level is `info`, `warning` or `error`. An error is on disk on return."""
        from orjson import dumps

        sec, nsec = divmod(int(t_ns), 1_000_000_000)
        message = {
            "timestamp": {"sec": sec, "nsec": nsec},
            "level": LOG_LEVELS[level],
            "message": text,
            "name": "cosim",
            "file": "",
            "line": 0,
        }
        with self._writing():
            self._writer.add_message(self._log, int(t_ns), dumps(message), int(t_ns))
            if level == "error":
                self._flush(int(t_ns))

    def attach(self, name: str, data: bytes, media_type: str) -> None:
        """Store a file, such as the rig file, as an attachment."""
        with self._writing():
            self._writer.add_attachment(0, 0, name, media_type, data)
            self._flush(self._flushed_ns)

    def close(self) -> None:
        """Write the last chunk and the index, and close the file; idempotent."""
        if self._file.closed:
            return
        with self._writing():
            self._writer.finish()
            self._file.flush()
            self._check_place()
            self._file.close()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _register(self, channels: Channels) -> list[tuple[int, list[str], int, int]]:
        """(topic id, fields, first and past-the-last column in `_order`) of every group."""
        topics, begin = [], 0
        for group, columns in self._groups.items():
            # null stands for "not finite" but is not declared: Foxglove refuses schemas with union types
            fields = {
                field: {"type": "number", "description": f"[{channels[column][1]}], null if not finite"}
                for field, column in columns.items()
            }
            schema = {"title": SCHEMA_PREFIX + group, "type": "object", "properties": fields}
            topic = f"/{group}" if group in RIG_GROUPS else f"/joints/{group}"
            topic_id = self._register_topic(topic, SCHEMA_PREFIX + group, schema)
            end = begin + len(columns)
            topics.append((topic_id, list(columns), begin, end))
            begin = end
        return topics

    def _register_topic(self, topic: str, name: str, schema: dict[str, object]) -> int:
        from orjson import dumps

        schema_id = self._writer.register_schema(name, "jsonschema", dumps(schema))
        return self._writer.register_channel(topic, "json", schema_id)

    def _flush(self, t_ns: int) -> None:
        self._writer.flush()
        self._check_place()
        self._complete = self._file.tell()
        self._pending_bytes = 0
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


def _columns_by_group(channels: Channels) -> dict[str, dict[str, int]]:
    """group -> field -> column, e.g. {"elbow_joint": {"position": 0}, "energy": {"work": 1}}."""
    groups: dict[str, dict[str, int]] = {}
    for column, (signal, _) in enumerate(channels):
        group, _, field = signal.rpartition("/")
        groups.setdefault(group, {})[field] = column
    return groups


# --- reading --------------------------------------------------------------------------------------
