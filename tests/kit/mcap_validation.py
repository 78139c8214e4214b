"""An independent check of recordings, written from the specification of MCAP alone: https://mcap.dev/spec."""

from __future__ import annotations

import io
import struct
import zlib
from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import zstandard

MAGIC = b"\x89MCAP0\r\n"
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX, CHUNK_INDEX = range(1, 9)
ATTACHMENT, ATTACHMENT_INDEX, STATISTICS, METADATA, METADATA_INDEX, SUMMARY_OFFSET, DATA_END = range(9, 16)
IN_DATA = {HEADER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX, ATTACHMENT, METADATA, DATA_END}
IN_SUMMARY = {SCHEMA, CHANNEL, CHUNK_INDEX, ATTACHMENT_INDEX, STATISTICS, METADATA_INDEX}
FOOTER_BYTES = 9 + 20


class Invalid(AssertionError):
    """What the specification forbids."""


def check(valid: bool, what: str) -> None:
    if not valid:
        raise Invalid(what)


class Fields:
    """The fields of a record, in turn."""

    def __init__(self, data: bytes) -> None:
        self._file, self._size = io.BytesIO(data), len(data)

    def raw(self, size: int) -> bytes:
        data = self._file.read(size)
        check(len(data) == size, "a field ends after its record")
        return data

    def take(self, layout: str) -> tuple[int, ...]:
        return struct.unpack("<" + layout, self.raw(struct.calcsize("<" + layout)))

    def text(self) -> str:
        return self.raw(*self.take("I")).decode()

    def entries(self, layout: str) -> list[tuple[int, ...]]:
        inner = Fields(self.raw(*self.take("I")))
        found = []
        while inner.left:
            found.append(inner.take(layout))
        return found

    @property
    def left(self) -> int:
        return self._size - self._file.tell()


@dataclass
class Contents:
    """What the data section has: schemas and channels by their numbers, messages by channel, places and sizes."""

    schemas: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    channels: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    messages: Counter[int] = field(default_factory=Counter)
    times: list[int] = field(default_factory=list)  # first and last of each chunk
    chunks: dict[int, tuple[Any, ...]] = field(default_factory=dict)  # by place
    attachments: dict[int, int] = field(default_factory=dict)  # place -> length
    metadata: dict[int, int] = field(default_factory=dict)

    def define(self, opcode: int, body: bytes) -> None:
        """A schema or channel; the same number never means another one."""
        fields = Fields(body)
        (number,) = fields.take("H")
        if opcode == SCHEMA:
            check(number != 0, "schema 0 is reserved")
            definition = (fields.text(), fields.text(), fields.raw(*fields.take("I")))
            check(self.schemas.setdefault(number, definition) == definition, f"schema {number} changes")
        else:
            (schema,) = fields.take("H")
            check(schema == 0 or schema in self.schemas, f"channel {number} has an unknown schema {schema}")
            definition = (schema, fields.text(), fields.text())
            check(self.channels.setdefault(number, definition) == definition, f"channel {number} changes")


def records(data: bytes, start: int, end: int):
    """(opcode, place, body, length with its head) of all that lie between."""
    place = start
    while place < end:
        check(place + 9 <= end, f"the head of a record at {place} is cut off")
        opcode, size = struct.unpack_from("<BQ", data, place)
        check(place + 9 + size <= end, f"the record at {place} is cut off")
        yield opcode, place, data[place + 9 : place + 9 + size], 9 + size
        place += 9 + size


def validate(path: Path) -> int:
    """The number of messages of a valid recording; raises Invalid."""
    data = path.read_bytes()
    check(data.startswith(MAGIC) and data.endswith(MAGIC), "no magic at an end of the file")
    foot = len(data) - len(MAGIC) - FOOTER_BYTES
    ((opcode, _, body, _),) = records(data, foot, len(data) - len(MAGIC))
    check(opcode == FOOTER, "the last record is no footer")
    summary, offsets, crc = Fields(body).take("QQI")
    offsets = offsets or foot  # 0: there are none
    check(0 < summary <= offsets <= foot, "the footer points outside the file")
    check(crc in (0, zlib.crc32(data[summary : foot + 9 + 16])), "the summary has another checksum")
    found = _data_section(data, summary)
    _summary_section(data, found, summary, offsets, foot)
    return sum(found.messages.values())


def _data_section(data: bytes, end: int) -> Contents:
    found, indexes, ended = Contents(), {}, False
    chunk = 0
    for opcode, place, body, length in records(data, len(MAGIC), end):
        check(opcode in IN_DATA or opcode >= 0x80, f"record {opcode} in the data section")
        check((opcode == HEADER) == (place == len(MAGIC)), "the header is the first record, and only that")
        check(not ended, "a record after the end of the data")
        if opcode in (SCHEMA, CHANNEL):
            found.define(opcode, body)
        elif opcode == CHUNK:
            chunk, indexes = place, _chunk(found, body)
            found.chunks[place] = (length, *Fields(body).take("QQ"), {})
        elif opcode == MESSAGE_INDEX:
            fields = Fields(body)
            (channel,) = fields.take("H")
            check(sorted(fields.entries("QQ")) == indexes.pop(channel, []), f"the index of channel {channel} is wrong")
            found.chunks[chunk][3][channel] = place
        elif opcode == ATTACHMENT:
            check(struct.unpack("<I", body[-4:])[0] in (0, zlib.crc32(body[:-4])), "checksum of an attachment")
            found.attachments[place] = length
        elif opcode == METADATA:
            found.metadata[place] = length
        elif opcode == DATA_END:
            ended = True
            check(Fields(body).take("I")[0] in (0, zlib.crc32(data[:place])), "checksum of the data section")
        check(opcode in (CHUNK, MESSAGE_INDEX) or not indexes, "a chunk has messages without an index")
    check(ended, "the data section has no end")
    return found


def _chunk(found: Contents, body: bytes) -> dict[int, list[tuple[int, ...]]]:
    """Times and places of its messages by channel, sorted."""
    fields = Fields(body)
    first, last, size, crc = fields.take("QQQI")
    compression = fields.text()
    check(compression in ("", "zstd"), f"compression {compression!r}")
    packed = fields.raw(*fields.take("Q"))
    check(not fields.left, "a chunk has more than its records")
    inside = zstandard.ZstdDecompressor().decompressobj().decompress(packed) if compression else packed
    check(len(inside) == size, "a chunk has another size")
    check(crc in (0, zlib.crc32(inside)), "a chunk has another checksum")
    entries = []
    for opcode, place, message, _ in records(inside, 0, size):
        check(opcode in (SCHEMA, CHANNEL, MESSAGE), f"record {opcode} in a chunk")
        if opcode != MESSAGE:
            found.define(opcode, message)
            continue
        channel, _, log, _ = Fields(message).take("HIQQ")
        check(channel in found.channels, f"a message of an unknown channel {channel}")
        check(first <= log <= last, "a message lies outside the times of its chunk")
        entries.append((channel, log, place))
        found.messages[channel] += 1
    logs = [log for _, log, _ in entries]
    check(not logs or (min(logs), max(logs)) == (first, last), "the times of a chunk are not those of its messages")
    found.times += [first, last] if logs else []
    return {channel: [entry[1:] for entry in group] for channel, group in groupby(sorted(entries), lambda e: e[0])}


def _summary_section(data: bytes, found: Contents, start: int, offsets: int, end: int) -> None:
    groups: dict[int, list[int]] = {}
    chunks, attachments, metadata, again, statistics = {}, {}, {}, Contents(), 0
    for opcode, place, body, length in records(data, start, offsets):
        check(opcode in IN_SUMMARY, f"record {opcode} in the summary")
        first, size = groups.setdefault(opcode, [place, 0])
        check(first + size == place, "the records of a kind are not together")
        groups[opcode][1] += length
        fields = Fields(body)
        if opcode in (SCHEMA, CHANNEL):
            again.define(opcode, body)
        elif opcode == CHUNK_INDEX:
            low, high, at, whole = fields.take("QQQQ")
            chunks[at] = (whole, low, high, {channel: place for channel, place in fields.entries("HQ")})
        elif opcode in (ATTACHMENT_INDEX, METADATA_INDEX):
            (attachments if opcode == ATTACHMENT_INDEX else metadata).update([_pair(fields, "QQ")])
        elif opcode == STATISTICS:
            statistics += 1
            _statistics(found, fields)
    check(statistics == 1, "there must be one record of statistics")
    check(chunks == found.chunks, "the index of chunks is wrong")
    check(attachments == found.attachments, "the index of attachments is wrong")
    check(metadata == found.metadata, "the index of metadata is wrong")
    check((again.schemas, again.channels) == (found.schemas, found.channels), "the summary has other definitions")
    for opcode, _, body, _ in records(data, offsets, end):
        kind, *group = Fields(body).take("BQQ")
        check(opcode == SUMMARY_OFFSET and groups.pop(kind, None) == group, f"the offset of records {kind} is wrong")


def _pair(fields: Fields, layout: str) -> tuple[int, int]:
    first, second = fields.take(layout)
    return first, second


def _statistics(found: Contents, fields: Fields) -> None:
    counted = fields.take("QHIIIIQQ")
    expected = (
        *(sum(found.messages.values()), len(found.schemas), len(found.channels), len(found.attachments)),
        *(len(found.metadata), len(found.chunks), min(found.times, default=0), max(found.times, default=0)),
    )
    check(counted == expected, f"statistics: {counted}, counted {expected}")
    messages = {channel: count for channel, count in fields.entries("HQ") if count}
    check(messages == dict(found.messages), "statistics of the channels are wrong")
