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
from typing import Any, BinaryIO

HEADER = struct.Struct("<BQ")  # opcode, length of the content
FOOTER_LENGTH = 8 + 8 + 4


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
        parts = _parts(file, end)
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


def _parts(file: BinaryIO, end: int) -> list[Part]:
    from mcap.data_stream import ReadDataStream
    from mcap.opcode import Opcode
    from mcap.records import (
        Attachment,
        AttachmentIndex,
        Channel,
        Chunk,
        ChunkIndex,
        MessageIndex,
        Metadata,
        MetadataIndex,
        Schema,
    )
    from mcap.writer import MCAP0_MAGIC

    parts, at = [], len(MCAP0_MAGIC)
    while at + HEADER.size <= end:
        file.seek(at)
        opcode, length = HEADER.unpack(file.read(HEADER.size))
        stop = at + HEADER.size + length
        if stop > end:
            break
        content = ReadDataStream(BytesIO(file.read(length)))
        part = Part(at, stop)
        if opcode == Opcode.CHUNK:
            chunk = Chunk.read(content)
            part.index = ChunkIndex(
                chunk_length=stop - at,
                chunk_start_offset=at,
                compression=chunk.compression,
                compressed_size=len(chunk.data),
                message_end_time=chunk.message_end_time,
                message_index_length=0,
                message_index_offsets={},
                message_start_time=chunk.message_start_time,
                uncompressed_size=chunk.uncompressed_size,
            )
        elif opcode == Opcode.MESSAGE_INDEX:
            index = MessageIndex.read(content)
            part = parts.pop()  # belongs to the chunk
            assert isinstance(part.index, ChunkIndex)
            part.index.message_index_offsets[index.channel_id] = at
            part.index.message_index_length += stop - at
            part.end = stop
            part.messages[index.channel_id] += len(index.records)
        elif opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
            part.definitions.append((Schema if opcode == Opcode.SCHEMA else Channel).read(content))
        elif opcode == Opcode.ATTACHMENT:
            item = Attachment.read(content)
            part.index = AttachmentIndex(
                at, stop - at, item.log_time, item.create_time, len(item.data), item.name, item.media_type
            )
        elif opcode == Opcode.METADATA:
            part.index = MetadataIndex(at, stop - at, Metadata.read(content).name)
        parts.append(part)
        at = stop
    return parts


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
    for item in (*definitions, statistics, *indexes):
        item.write(builder)
    summary = builder.end()
    footer = HEADER.pack(Opcode.FOOTER, FOOTER_LENGTH) + struct.pack("<QQ", start + len(data_end), 0)
    Footer(start + len(data_end), 0, zlib.crc32(footer, zlib.crc32(summary))).write(builder)
    return b"".join((data_end, summary, builder.end(), MCAP0_MAGIC))
