"""The index and the footer of a recording that was cut off, as by a full disk: other readers of MCAP need them.

Of a damaged file, the records before and behind the damage are found. Format: https://mcap.dev/spec.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

if TYPE_CHECKING:
    from mcap.records import ChunkIndex

HEADER = struct.Struct("<BQ")  # opcode, length of the content
CHUNK = 6  # opcode
CHUNK_HEAD = struct.Struct("<QQQII")  # first and last log time, size, checksum; length of the name of the compression
SIZE = struct.Struct("<Q")
INDEX_HEAD = struct.Struct("<HI")  # channel, bytes of its entries
ENTRY = np.dtype([("log", "<u8"), ("place", "<u8")])  # of a message in the index of its chunk
FOOTER_LENGTH = 8 + 8 + 4
_CHUNK_START = CHUNK_HEAD.size + 32 + SIZE.size  # with the longest name
ENDED = "ended"  # metadata of a file that ends before its run: why
# of a chunk of the recorder: no checksum of MCAP, and the name of its compression
_SIGNATURE = struct.pack("<II", 0, 4) + b"zstd"
_BEFORE_SIGNATURE = HEADER.size + 3 * 8
_SEARCHED = 1 << 20  # bytes at once
BROKEN = (struct.error, ValueError, KeyError, EOFError, IndexError)  # of invalid records


@dataclass
class RecordedPart:
    """A chunk with its message indexes, or another record of the data section: its place, and its summary; lost: bytes
    that are no record."""

    start: int
    end: int
    index: Any = None  # ChunkIndex, AttachmentIndex or MetadataIndex
    definitions: list = field(default_factory=list)  # schemas and channels
    messages: Counter[int] = field(default_factory=Counter)  # by channel
    lost: bool = False


def complete_recording(path: str | Path, end: int, why: str = "") -> None:
    """End the recording after its last complete part within the first `end` bytes, with index and footer, and with the
    reason why it ends there. Chunks are removed from the end until these fit on the disk. Raises OSError where nothing
    fits."""
    with open(path, "r+b", buffering=0) as file:
        parts = parts_of(file, end)
        while True:
            size = parts[-1].end
            file.truncate(size)
            file.seek(size)
            reason = _reason_of(why, size) if why else None
            ending = b"" if reason is None else reason[0]
            ending += summary_of_parts([*parts, *([] if reason is None else [reason[1]])], size + len(ending))
            try:
                written = file.write(ending)
            except OSError:
                written = 0
            if written == len(ending):
                return
            file.truncate(size)
            if not parts[-1].messages:
                raise OSError("no space for the footer")
            parts.pop()


def _reason_of(why: str, start: int) -> tuple[bytes, RecordedPart]:
    """The record with the reason why a file ends before its run."""
    from mcap.data_stream import RecordBuilder
    from mcap.records import Metadata, MetadataIndex

    builder = RecordBuilder()
    Metadata(name=ENDED, metadata={"why": why}).write(builder)
    record = builder.end()
    part = RecordedPart(start, start + len(record))
    part.index = MetadataIndex(start, len(record), ENDED)
    return record, part


def parts_of(file: BinaryIO, end: int) -> list[RecordedPart]:
    """The complete records of the data section within the first `end` bytes; what is in a chunk is not read. Where
    bytes are no record, the next chunk behind them is the next part."""
    from mcap.exceptions import McapError
    from mcap.opcode import Opcode
    from mcap.writer import MCAP0_MAGIC

    parts, at = [], len(MCAP0_MAGIC)
    while at + HEADER.size <= end:
        file.seek(at)
        opcode, length = HEADER.unpack(file.read(HEADER.size))
        if opcode in (Opcode.DATA_END, Opcode.FOOTER):
            break
        stop = at + HEADER.size + length
        try:
            if stop > end:
                raise ValueError("cut off")
            _add_part(parts, file, opcode, at, stop)
        except (*BROKEN, McapError):
            stop = _next_chunk(file, at + 1, end)
            if stop is None:
                break
            if parts and parts[-1].messages:  # of this chunk some message indexes may be lost
                parts[-1].index.message_index_offsets.clear()
            parts.append(RecordedPart(at, stop, lost=True))
        at = stop
    return parts


def _add_part(parts: list[RecordedPart], file: BinaryIO, opcode: int, at: int, stop: int) -> None:
    """Add the record at this place. Raises an error of BROKEN or McapError for an invalid one."""
    from mcap.data_stream import ReadDataStream
    from mcap.opcode import Opcode
    from mcap.records import Attachment, AttachmentIndex, Channel, Metadata, MetadataIndex, Schema

    part, length = RecordedPart(at, stop), stop - at - HEADER.size
    if opcode == Opcode.CHUNK:
        part.index = _chunk_index(file.read(min(length, _CHUNK_START)), at, stop)
    elif opcode == Opcode.MESSAGE_INDEX:
        channel, size = INDEX_HEAD.unpack(file.read(INDEX_HEAD.size))
        chunk = parts[-1]  # to which it belongs
        if INDEX_HEAD.size + size != length or chunk.lost:
            raise ValueError("length")
        chunk.index.message_index_offsets[channel] = at
        chunk.index.message_index_length += stop - at
        chunk.end = stop
        chunk.messages[channel] += size // ENTRY.itemsize
        return
    elif opcode in (Opcode.SCHEMA, Opcode.CHANNEL, Opcode.ATTACHMENT, Opcode.METADATA):
        content = ReadDataStream(BytesIO(file.read(length)))
        if opcode == Opcode.ATTACHMENT:
            item = Attachment.read(content)
            part.index = AttachmentIndex(
                at, stop - at, item.log_time, item.create_time, len(item.data), item.name, item.media_type
            )
        elif opcode == Opcode.METADATA:
            part.index = MetadataIndex(at, stop - at, Metadata.read(content).name)
        else:
            part.definitions.append((Schema if opcode == Opcode.SCHEMA else Channel).read(content))
    elif opcode not in set(Opcode):
        raise ValueError("no record")
    parts.append(part)


def _next_chunk(file: BinaryIO, at: int, end: int) -> int | None:
    """The place of the first whole chunk from here on, as the recorder writes them."""
    while at < end:
        file.seek(at)
        data = file.read(min(_SEARCHED + _BEFORE_SIGNATURE + len(_SIGNATURE) + SIZE.size, end - at))
        found = data.find(_SIGNATURE, _BEFORE_SIGNATURE)
        while found >= 0:
            place = found - _BEFORE_SIGNATURE
            opcode, length = HEADER.unpack_from(data, place)
            stop = at + place + HEADER.size + length
            with suppress(*BROKEN):
                if opcode == CHUNK and stop <= end:
                    _chunk_index(data[place + HEADER.size : place + HEADER.size + _CHUNK_START], at + place, stop)
                    return at + place
            found = data.find(_SIGNATURE, found + 1)
        at += _SEARCHED
    return None


def _chunk_index(start: bytes, at: int, stop: int) -> ChunkIndex:
    """Of a chunk whose content begins with `start`, without the messages. at, stop: place of its record. Raises an
    error of BROKEN for an invalid one."""
    from mcap.records import ChunkIndex

    first, last, size, _, word = CHUNK_HEAD.unpack_from(start)
    name = start[CHUNK_HEAD.size : CHUNK_HEAD.size + word].decode()
    (compressed,) = SIZE.unpack_from(start, CHUNK_HEAD.size + word)
    if HEADER.size + CHUNK_HEAD.size + word + SIZE.size + compressed != stop - at:
        raise ValueError("length of the chunk")
    return ChunkIndex(
        chunk_length=stop - at,
        chunk_start_offset=at,
        compression=name,
        compressed_size=compressed,
        message_end_time=last,
        message_index_length=0,
        message_index_offsets={},
        message_start_time=first,
        uncompressed_size=size,
    )


def summary_of_parts(parts: list[RecordedPart], start: int) -> bytes:
    """The end of the data section, the summary, the footer. start: the place of the first."""
    from mcap.data_stream import RecordBuilder
    from mcap.opcode import Opcode
    from mcap.records import AttachmentIndex, Channel, ChunkIndex, DataEnd, Footer, MetadataIndex, Schema, Statistics
    from mcap.writer import MCAP0_MAGIC

    builder = RecordBuilder()
    DataEnd(0).write(builder)
    data_end = builder.end()
    definitions = [item for part in parts for item in part.definitions]
    indexes = [part.index for part in parts if part.index is not None]
    chunks = [index for index in indexes if isinstance(index, ChunkIndex)]
    messages = sum((part.messages for part in parts), Counter())
    statistics = Statistics(
        attachment_count=sum(isinstance(index, AttachmentIndex) for index in indexes),
        channel_count=sum(isinstance(item, Channel) for item in definitions),
        channel_message_counts=dict(messages),
        chunk_count=len(chunks),
        message_count=messages.total(),
        message_end_time=max((chunk.message_end_time for chunk in chunks), default=0),
        message_start_time=min((chunk.message_start_time for chunk in chunks), default=0),
        metadata_count=sum(isinstance(index, MetadataIndex) for index in indexes),
        schema_count=sum(isinstance(item, Schema) for item in definitions),
    )
    kinds = Schema, Channel, Statistics, ChunkIndex, AttachmentIndex, MetadataIndex  # each must be together
    for item in sorted((*definitions, statistics, *indexes), key=lambda item: kinds.index(type(item))):
        item.write(builder)
    summary = builder.end()
    footer = HEADER.pack(Opcode.FOOTER, FOOTER_LENGTH) + struct.pack("<QQ", start + len(data_end), 0)
    Footer(start + len(data_end), 0, zlib.crc32(footer, zlib.crc32(summary))).write(builder)
    return b"".join((data_end, summary, builder.end(), MCAP0_MAGIC))
