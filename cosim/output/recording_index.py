"""Where everything in a recording is: from its index, or, of one that was cut off, from its complete records."""

from __future__ import annotations

import os
import re
import struct
import zlib
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from cosim.errors import InputError
from cosim.output.recording_footer import ENTRY, FOOTER_LENGTH, HEADER, INDEX_HEAD, parts_of

if TYPE_CHECKING:
    from mcap.data_stream import ReadDataStream
    from mcap.records import AttachmentIndex, ChunkIndex, MetadataIndex
    from mcap.summary import Summary

METADATA = "run"
MAGIC_BYTES = 8
NOT_MCAP = "not an MCAP file; give one written by 'cosim run RIG --record FILE.mcap'"
DAMAGED = "the recording is damaged; record the run again"


@dataclass(frozen=True)
class ChunkPlace:
    """A chunk: its place in the file, and for each channel (place of the entries of its message index, their number);
    empty where the file was cut off before the message indexes."""

    path: Path
    start: int
    length: int
    indexes: dict[int, tuple[int, int]]


@dataclass(frozen=True)
class RecordingIndex:
    """complete: whether the file has its end; summary: its own, or made from its records; metadata: of the run."""

    path: Path
    complete: bool
    summary: Summary
    chunks: tuple[ChunkPlace, ...]
    metadata: dict[str, str]

    @property
    def foreign(self) -> bool:
        """Whether another program wrote it: it lacks the metadata, with which each file begins."""
        described = any(index.name == METADATA for index in self.summary.metadata_indexes)
        return not described and (self.complete or bool(self.chunks))

    def files(self) -> dict[str, bytes]:
        """Name -> content of the attached files."""
        from mcap.records import Attachment

        with open(self.path, "rb") as file:
            return {
                index.name: Attachment.read(_content(file, index)).data for index in self.summary.attachment_indexes
            }


def read_index(path: str | Path) -> RecordingIndex:
    """Raises InputError for a file that cannot be read, is no MCAP file or is damaged where its index is."""
    from mcap.exceptions import McapError
    from mcap.records import Metadata
    from mcap.writer import MCAP0_MAGIC

    try:
        with open(path, "rb") as file:
            if file.read(len(MCAP0_MAGIC)) != MCAP0_MAGIC:
                raise InputError(NOT_MCAP, str(path))
            size = file.seek(0, os.SEEK_END)
            file.seek(-len(MCAP0_MAGIC), os.SEEK_END)
            complete = size > 2 * len(MCAP0_MAGIC) and file.read() == MCAP0_MAGIC
            summary = _summary(file) if complete else _recovered(file, size)
            metadata: dict[str, str] = {}
            for index in summary.metadata_indexes:
                if index.name == METADATA:
                    metadata = Metadata.read(_content(file, index)).metadata
    except OSError as cause:
        raise InputError(f"cannot read the recording: {cause.strerror}; check the path", str(path)) from cause
    except (McapError, struct.error, ValueError, KeyError, EOFError, IndexError) as cause:
        raise InputError(DAMAGED, str(path)) from cause
    chunks = sorted(summary.chunk_indexes, key=lambda chunk: chunk.chunk_start_offset)
    places = [_place(Path(path), chunk) for chunk in chunks]
    if places and not complete:  # the message indexes of the last chunk may be missing
        places[-1] = replace(places[-1], indexes={})
    return RecordingIndex(Path(path), complete, summary, tuple(places), metadata)


def recordings_of(path: str | Path) -> list[RecordingIndex]:
    """The indexes of a recording and of the files that continue it, `F.1.mcap` after `F.mcap`; of a pattern such as
    `F*.mcap`, of all files that match it, in their order. Raises InputError as `read_index`, and for files of different
    runs."""
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
        return indexes
    indexes = [read_index(path)]
    while (further := part_path(path, len(indexes))).exists():
        index = read_index(further)
        if not _same_run(indexes[0], index):  # of an earlier run with the same name
            break
        indexes.append(index)
    return indexes


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


def _recovered(file: BinaryIO, size: int) -> Summary:
    """The summary of a file that has none."""
    from mcap.records import AttachmentIndex, Channel, ChunkIndex, MetadataIndex, Schema
    from mcap.summary import Summary

    summary = Summary()
    for part in parts_of(file, size):
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
    return summary


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
