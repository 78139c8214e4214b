"""Where everything in a recording is: from its index, or, of one that was cut off or whose index is damaged, from its
complete records."""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from cosim.core.errors import InputError
from cosim.core.paths import open_file, unreadable
from cosim.core.recordings.footer import BROKEN, ENDED, ENTRY, FOOTER_LENGTH, HEADER, INDEX_HEAD, parts_of

if TYPE_CHECKING:
    from mcap.data_stream import ReadDataStream
    from mcap.records import AttachmentIndex, ChunkIndex, MetadataIndex
    from mcap.summary import Summary

METADATA = "run"
CONTINUED = "continued"  # metadata of a file after which the run goes on in another: its name
PART = "part"  # key of the metadata of the run: number of the file within the run
MAGIC_BYTES = 8
DATA_END = 15  # opcode
CRC = struct.Struct("<I")
NOT_MCAP = "not an MCAP file; give one written by 'cosim run RIG --record FILE.mcap'"
DAMAGED = "the recording is damaged; record the run again"


@dataclass(frozen=True)
class ChunkPlace:
    """A chunk: its place in the file, and for each channel (place of the entries of its message index, their number);
    empty where these are damaged, or the file was cut off before them."""

    path: Path
    start: int
    length: int
    indexes: dict[int, tuple[int, int]]


@dataclass(frozen=True)
class RecordingIndex:
    """The chunks and metadata of one file of a recording, and what is damaged or missing.

    complete: whether the file has its end; summary: its own, or made from its records; metadata: of the run.

    ended: why the file ends before its run; continued: name of the file in which the run goes on; rebuilt: whether its
    own index is damaged; end_lost: whether records may be missing at its end then; lost: starts of chunks before which
    bytes are no record; missing, missing_after: what is known of files that should be before this one, and behind it.
    """

    path: Path
    complete: bool
    summary: Summary
    chunks: tuple[ChunkPlace, ...]
    metadata: dict[str, str]
    ended: str = ""
    continued: str = ""
    rebuilt: bool = False
    end_lost: bool = False
    lost: frozenset[int] = frozenset()
    missing: tuple[str, ...] = ()
    missing_after: tuple[str, ...] = ()

    @property
    def part(self) -> int | None:
        """Number among the files of the run; None of a recording without it."""
        number = self.metadata.get(PART, "")
        return int(number) if number.isdecimal() else None

    @property
    def foreign(self) -> bool:
        """Whether another program wrote it: it lacks the metadata, with which each file begins."""
        described = any(index.name == METADATA for index in self.summary.metadata_indexes)
        return not described and (self.complete or bool(self.chunks))

    def files(self) -> dict[str, bytes]:
        """Name -> content of the attached files. Raises InputError for one that is damaged."""
        from mcap.data_stream import ReadDataStream
        from mcap.records import Attachment

        found: dict[str, bytes] = {}
        with open_file(self.path) as file:
            for index in self.summary.attachment_indexes:
                file.seek(index.offset + HEADER.size)
                record = file.read(index.length - HEADER.size)
                if zlib.crc32(record[: -CRC.size]) != CRC.unpack(record[-CRC.size :])[0]:
                    raise InputError(
                        f"its copy of the file '{index.name}' is damaged; record the run again", str(self.path)
                    )
                if index.name in found:
                    raise InputError(f"has two files '{index.name}'; record the run again", str(self.path))
                found[index.name] = Attachment.read(ReadDataStream(BytesIO(record))).data
        return found


def read_index(path: str | Path) -> RecordingIndex:
    """Where the index of the file is damaged, it is made anew from the records.

    Raises InputError for a file that cannot be read, is no MCAP file or has no intact record.
    """
    from mcap.exceptions import McapError
    from mcap.records import Metadata
    from mcap.writer import MCAP0_MAGIC

    broken, path = (*BROKEN, McapError), Path(path)
    rebuilt, reached, lost = False, True, frozenset()
    try:
        with open_file(path) as file:
            if file.read(len(MCAP0_MAGIC)) != MCAP0_MAGIC:
                raise InputError(NOT_MCAP, str(path))
            size = file.seek(0, os.SEEK_END)
            file.seek(-len(MCAP0_MAGIC), os.SEEK_END)
            complete = size > 2 * len(MCAP0_MAGIC) and file.read() == MCAP0_MAGIC
            try:
                summary = _summary(file) if complete else None
            except broken:
                summary, rebuilt = None, True
            if summary is None:
                summary, lost, reached = _recovered(file, size)
            found = {index.name: Metadata.read(_content(file, index)).metadata for index in summary.metadata_indexes}
    except OSError as cause:
        raise InputError(f"cannot read the recording: {unreadable(cause)}", str(path)) from cause
    except broken as cause:
        raise InputError(DAMAGED, str(path)) from cause
    chunks = sorted(summary.chunk_indexes, key=lambda chunk: chunk.chunk_start_offset)
    places = [_place(path, chunk) for chunk in chunks]
    if places and not complete:  # the message indexes of the last chunk may be missing
        places[-1] = replace(places[-1], indexes={})
    ended, continued = found.get(ENDED, {}).get("why", ""), found.get(CONTINUED, {}).get("file", "")
    run = found.get(METADATA, {})
    end_lost = rebuilt and not reached
    return RecordingIndex(path, complete, summary, tuple(places), run, ended, continued, rebuilt, end_lost, lost)


def recordings_of(path: str | Path) -> list[RecordingIndex]:
    """The indexes of a recording and of the files that continue it, `F.1.mcap` after `F.mcap`; of a pattern such as
    `F*.mcap`, of all files that match it, in their order. Files that are missing are known to their neighbours.

    Raises InputError as `read_index`, and for files of different runs.
    """
    path = Path(path)
    if "*" in path.name and not path.exists():
        found = sorted(path.parent.glob(path.name), key=_order)
        if not found:
            raise InputError("there is no such file; check the pattern", str(path))
        indexes = [read_index(each) for each in found]
        for other in indexes[1:]:
            if not _same_run(indexes[0], other):
                what = f"is of another run than {indexes[0].path}; give a pattern of the files of one run"
                raise InputError(what, str(other.path))
        return _with_missing(indexes, [None] * len(indexes))
    indexes, numbers = [read_index(path)], [0]
    for number, further in _parts_beside(path):
        try:
            index = read_index(further)
        except InputError:  # it is missing, if it is of this run at all
            continue
        if _same_run(indexes[0], index):  # not of an earlier run with the same name
            indexes.append(index)
            numbers.append(number)
    if not indexes[0].part:
        return _with_missing(indexes, numbers)
    return [replace(indexes[0], continued="")]  # chosen, and no other


def _with_missing(indexes: Sequence[RecordingIndex], named: Sequence[int | None]) -> list[RecordingIndex]:
    """The indexes with what is missing before each, and behind the last. named: number of each after its name, for
    files without a number in them."""
    found, expected = [], 0
    for index, name in zip(indexes, named, strict=True):
        number = next((k for k in (index.part, name) if k is not None), expected)
        missing = [_file_of(index.path, number, k) for k in range(expected, number)]
        found.append(replace(index, missing=tuple(map(_missing, missing))))
        expected = number + 1
    if following := found[-1].continued:
        found[-1] = replace(found[-1], missing_after=(_missing(found[-1].path.with_name(following)),))
    return found


def _missing(path: Path) -> str:
    return f"the file {path.name} {'cannot be read' if path.exists() else 'is missing'}"


def _file_of(path: Path, number: int, other: int) -> Path:
    """The file of a run with another number, by the path of that with this number."""
    stem = path.stem.removesuffix(f".{number}") if number else path.stem
    return part_path(path.with_name(stem + path.suffix), other)


def _parts_beside(path: Path) -> list[tuple[int, Path]]:
    """(k, `F.k.mcap`) of the files beside `F.mcap`, in their order."""
    form = re.compile(re.escape(path.stem) + r"\.([1-9]\d*)" + re.escape(path.suffix))
    try:
        names = [name for name in os.listdir(path.parent) if form.fullmatch(name)]
    except OSError:
        return []
    return sorted((int(Path(name).stem.rpartition(".")[2]), path.with_name(name)) for name in names)


def part_path(path: str | Path, number: int) -> Path:
    """`F.mcap` for 0, `F.2.mcap` for 2."""
    path = Path(path)
    return path.with_name(f"{path.stem}.{number}{path.suffix}") if number else path


def _order(path: Path) -> tuple[str, int]:
    found = re.fullmatch(r"(.*?)(?:\.(\d+))?\.mcap", path.name)
    return (found[1], int(found[2] or 0)) if found else (path.name, 0)


def _same_run(a: RecordingIndex, b: RecordingIndex) -> bool:
    return all(a.metadata.get(key) == b.metadata.get(key) for key in ("rig", "started", "outline"))


def _summary(file: BinaryIO) -> Summary:
    from mcap.reader import SeekingReader

    _check_summary(file)
    file.seek(0)
    summary = SeekingReader(file).get_summary()
    if summary is None:
        raise ValueError("no summary")
    return summary


def _check_summary(file: BinaryIO) -> None:
    """Raises ValueError where the summary does not have the checksum that the footer states."""
    end = file.seek(-MAGIC_BYTES - FOOTER_LENGTH, os.SEEK_END)
    start, _, checksum = struct.unpack("<QQI", file.read(FOOTER_LENGTH))
    covered = end + FOOTER_LENGTH - struct.calcsize("<I") - start  # up to the checksum itself
    if covered < 0:
        raise ValueError("place of the summary")
    file.seek(start)
    if checksum and zlib.crc32(file.read(covered)) != checksum:
        raise ValueError("checksum")


def _recovered(file: BinaryIO, size: int) -> tuple[Summary, frozenset[int], bool]:
    """(the summary of a file that has none, the starts of the chunks before which bytes are no record, whether the end
    of the data was reached)."""
    from mcap.records import AttachmentIndex, Channel, ChunkIndex, MetadataIndex, Schema
    from mcap.summary import Summary

    summary, lost = Summary(), set()
    parts = parts_of(file, size)
    for part in parts:
        if part.lost:
            lost.add(part.end)
        for item in part.definitions:
            if isinstance(item, Schema):
                summary.schemas[item.id] = item
            elif isinstance(item, Channel):
                summary.channels[item.id] = item
        if isinstance(part.index, ChunkIndex):
            summary.chunk_indexes.append(part.index)
        elif isinstance(part.index, AttachmentIndex):
            summary.attachment_indexes.append(part.index)
        elif isinstance(part.index, MetadataIndex):
            summary.metadata_indexes.append(part.index)
    file.seek(parts[-1].end if parts else 0)
    return summary, frozenset(lost), file.read(1) == bytes([DATA_END])


def _place(path: Path, chunk: ChunkIndex) -> ChunkPlace:
    offsets = sorted((offset, channel) for channel, offset in chunk.message_index_offsets.items())
    last = chunk.chunk_start_offset + chunk.chunk_length + chunk.message_index_length
    ends = [*(offset for offset, _ in offsets), last][1:]
    head = HEADER.size + INDEX_HEAD.size
    indexes = {
        channel: (offset + head, (end - offset - head) // ENTRY.itemsize)
        for (offset, channel), end in zip(offsets, ends, strict=True)
        if end > offset
    }
    return ChunkPlace(path, chunk.chunk_start_offset, chunk.chunk_length, indexes)


def _content(file: BinaryIO, index: AttachmentIndex | MetadataIndex) -> ReadDataStream:
    """The content of the record that an index names."""
    from mcap.data_stream import ReadDataStream

    file.seek(index.offset + HEADER.size)
    return ReadDataStream(BytesIO(file.read(index.length - HEADER.size)))
