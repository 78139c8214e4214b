"""The index and the footer of a recording that was cut off, as by a full disk: other readers of MCAP need them.

Format: https://mcap.dev/spec.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

if TYPE_CHECKING:
    from mcap.records import ChunkIndex

HEADER = struct.Struct("<BQ")  # opcode, length of the content
CHUNK_HEAD = struct.Struct("<QQQII")  # first and last log time, size, checksum; length of the name of the compression
SIZE = struct.Struct("<Q")
INDEX_HEAD = struct.Struct("<HI")  # channel, bytes of its entries
ENTRY = np.dtype([("log", "<u8"), ("place", "<u8")])  # of a message in the index of its chunk
FOOTER_LENGTH = 8 + 8 + 4
_CHUNK_START = CHUNK_HEAD.size + 32 + SIZE.size  # with the longest name


@dataclass
class Part:
    """A chunk with its message indexes, or another record of the data section: its place, and its summary."""

    start: int
    end: int
    index: Any = None  # ChunkIndex, AttachmentIndex or MetadataIndex
    definitions: list = field(default_factory=list)  # schemas and channels
    messages: Counter[int] = field(default_factory=Counter)  # by channel


def complete_recording(path: str | Path, end: int) -> None:
    """End the recording after its last complete part within the first `end` bytes, with index and footer. Chunks are
    removed from the end until these fit on the disk. Raises OSError where nothing fits."""
    with open(path, "r+b", buffering=0) as file:
        parts = parts_of(file, end)
        while True:
            size = parts[-1].end
            file.truncate(size)
            file.seek(size)
            summary = summary_of_parts(parts, size)
            try:
                written = file.write(summary)
            except OSError:
                written = 0
            if written == len(summary):
                return
            file.truncate(size)
            if not parts[-1].messages:
                raise OSError("no space for the footer")
            parts.pop()


def parts_of(file: BinaryIO, end: int) -> list[Part]:
    """The complete records of the data section within the first `end` bytes; what is in a chunk is not read."""
    from mcap.data_stream import ReadDataStream
    from mcap.opcode import Opcode
    from mcap.records import Attachment, AttachmentIndex, Channel, Metadata, MetadataIndex, Schema
    from mcap.writer import MCAP0_MAGIC

    parts, at = [], len(MCAP0_MAGIC)
    while at + HEADER.size <= end:
        file.seek(at)
        opcode, length = HEADER.unpack(file.read(HEADER.size))
        stop = at + HEADER.size + length
        if stop > end or opcode in (Opcode.DATA_END, Opcode.FOOTER):
            break
        part = Part(at, stop)
        if opcode == Opcode.CHUNK:
            part.index = _chunk_index(file.read(min(length, _CHUNK_START)), at, stop)
        elif opcode == Opcode.MESSAGE_INDEX:
            channel, size = INDEX_HEAD.unpack(file.read(INDEX_HEAD.size))
            part = parts.pop()  # belongs to the chunk
            part.index.message_index_offsets[channel] = at
            part.index.message_index_length += stop - at
            part.end = stop
            part.messages[channel] += size // ENTRY.itemsize
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
        parts.append(part)
        at = stop
    return parts


def _chunk_index(start: bytes, at: int, stop: int) -> ChunkIndex:
    """Of a chunk whose content begins with `start`, without the messages. at, stop: place of its record."""
    from mcap.records import ChunkIndex

    first, last, size, _, word = CHUNK_HEAD.unpack_from(start)
    name = start[CHUNK_HEAD.size : CHUNK_HEAD.size + word].decode()
    (compressed,) = SIZE.unpack_from(start, CHUNK_HEAD.size + word)
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


def summary_of_parts(parts: list[Part], start: int) -> bytes:
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
