"""Validation of MCAP files straight from their specification, https://mcap.dev/spec: this module knows neither the
writer of this package nor the `mcap` package."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

MAGIC = b"\x89MCAP0\r\n"
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX, CHUNK_INDEX = range(1, 9)
ATTACHMENT, ATTACHMENT_INDEX, STATISTICS, METADATA, METADATA_INDEX, SUMMARY_OFFSET, DATA_END = range(9, 16)
DATA_RECORDS = {HEADER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX, ATTACHMENT, METADATA, DATA_END}
CHUNK_RECORDS = {SCHEMA, CHANNEL, MESSAGE}
SUMMARY_RECORDS = {SCHEMA, CHANNEL, CHUNK_INDEX, ATTACHMENT_INDEX, STATISTICS, METADATA_INDEX}
HEAD = 9  # bytes: opcode, length


class InvalidFile(AssertionError):
    """Where a file breaks the specification."""


class Record(NamedTuple):
    """start, end: in the file, or in the chunk."""

    opcode: int
    start: int
    end: int
    content: bytes


class ChunkFacts(NamedTuple):
    """What the index of a chunk must repeat; offsets: channel -> place of its message index."""

    start: int
    length: int
    first: int
    last: int
    compression: str
    size: int
    uncompressed: int
    offsets: dict[int, int]
    index_length: int


class Report(NamedTuple):
    """What a file holds. messages: per channel; chunks: their number; topics: by channel; span: first and last log
    time, zeros without messages; names: of metadata and attachments; ended: whether it has its end."""

    messages: Counter[int]
    chunks: int
    topics: dict[int, str]
    span: tuple[int, int]
    names: tuple[str, ...]
    ended: bool


class Fields:
    """Reads the fields of a record one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        found = self.data[self.at : self.at + size]
        check(len(found) == size, f"a record ends within a field at {self.at}")
        self.at += size
        return found

    def numbers(self, layout: str) -> tuple[int, ...]:
        return struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout)))

    def number(self, kind: str) -> int:
        return self.numbers(kind)[0]

    def text(self) -> str:
        return self.take(self.number("I")).decode("utf-8")

    def bytes(self, size: str = "I") -> bytes:
        return self.take(self.number(size))

    def map(self, *kinds: str) -> dict[Any, Any]:
        """kinds: of keys and values; `s` is a text. Keys are unique."""
        inner, found = Fields(self.bytes()), []
        while inner.at < len(inner.data):
            found.append(tuple(inner.text() if kind == "s" else inner.number(kind) for kind in kinds))
        check(len(dict(found)) == len(found), "a map has a key twice")
        return dict(found)

    def rest(self) -> bytes:
        return self.take(len(self.data) - self.at)

    def end(self) -> None:
        check(self.at == len(self.data), f"a record has {len(self.data) - self.at} bytes too many")


def check(right: bool, what: str) -> None:
    if not right:
        raise InvalidFile(what)


def records(data: bytes, start: int, end: int) -> Iterator[Record]:
    """The records from start to end, which they fill."""
    while start < end:
        check(start + HEAD <= end, f"the record at {start} ends within its header")
        opcode, length = struct.unpack_from("<BQ", data, start)
        check(opcode != 0, f"opcode 0 at {start}")
        stop = start + HEAD + length
        check(stop <= end, f"the record at {start} ends at {stop}, after {end}")
        yield Record(opcode, start, stop, data[start + HEAD : stop])
        start = stop


def validate(path: Path, cut: bool = False) -> Report:
    """Check everything; cut: the file may lack its end. Raises InvalidFile."""
    return Validation(path.read_bytes(), cut).report


class Validation:
    """The data section is read from the start; then the summary must say the same."""

    def __init__(self, data: bytes, cut: bool) -> None:
        self.data = data
        self.schemas: dict[int, tuple[str, str, bytes]] = {}
        self.channels: dict[int, tuple[Any, ...]] = {}
        self.chunks: list[ChunkFacts] = []
        self.times: list[int] = []  # first and last of each chunk
        self.messages: Counter[int] = Counter()
        self.attachments: list[tuple[Any, ...]] = []
        self.metadata: list[tuple[int, int, str]] = []
        self._unindexed: dict[int, list[tuple[int, int]]] | None = None  # of the last chunk
        check(data[: len(MAGIC)] == MAGIC, "it does not begin with the magic bytes")
        self.ended = data[-len(MAGIC) :] == MAGIC and len(data) > 2 * len(MAGIC)
        check(self.ended or cut, "it does not end with the magic bytes")
        summary = self._data_section(self._complete_records() if not self.ended else len(data) - len(MAGIC))
        if self.ended:
            check(summary is not None, "there is no end of the data section")
            self._summary_section(summary or 0)

    @property
    def report(self) -> Report:
        topics = {number: channel[1] for number, channel in self.channels.items()}
        span = (min(self.times), max(self.times)) if self.times else (0, 0)
        names = (*(name for *_, name in self.metadata), *(item[5] for item in self.attachments))
        return Report(self.messages, len(self.chunks), topics, span, names, self.ended)

    def _complete_records(self) -> int:
        """The end of the last complete record."""
        at = len(MAGIC)
        while at + HEAD <= len(self.data):
            stop = at + HEAD + struct.unpack_from("<Q", self.data, at + 1)[0]
            if stop > len(self.data):
                break
            at = stop
        return at

    def _data_section(self, end: int) -> int | None:
        """Check the records up to the end of the data section; where the next one begins."""
        readers = {
            HEADER: self._header,
            SCHEMA: self._schema,
            CHANNEL: self._channel,
            CHUNK: self._chunk,
            MESSAGE_INDEX: self._message_index,
            ATTACHMENT: self._attachment,
            METADATA: self._metadata,
        }
        for number, record in enumerate(records(self.data, len(MAGIC), end)):
            check((record.opcode == HEADER) == (number == 0), "the header is not the first record, or there are two")
            if record.opcode == DATA_END:
                self._all_indexed()
                self._data_end(record)
                return record.end
            check(record.opcode in DATA_RECORDS, f"a record {record.opcode} in the data section")
            check(record.opcode in readers, "a message outside of a chunk")  # allowed, but these files have none
            if record.opcode != MESSAGE_INDEX:
                self._all_indexed()
            readers[record.opcode](record)
        return None

    def _header(self, record: Record) -> None:
        fields = Fields(record.content)
        for _ in ("profile", "library"):
            fields.text()
        fields.end()

    def _schema(self, record: Record) -> None:
        fields = Fields(record.content)
        number, schema = fields.number("H"), (fields.text(), fields.text(), fields.bytes())
        fields.end()
        check(number > 0, "a schema has the number 0")
        check(self.schemas.setdefault(number, schema) == schema, f"there are two schemas {number}")

    def _channel(self, record: Record) -> None:
        fields = Fields(record.content)
        number, schema = fields.numbers("HH")
        channel = schema, fields.text(), fields.text(), tuple(fields.map("s", "s").items())
        fields.end()
        check(schema == 0 or schema in self.schemas, f"channel {number} has no schema {schema}")
        check(self.channels.setdefault(number, channel) == channel, f"there are two channels {number}")

    def _chunk(self, record: Record) -> None:
        fields = Fields(record.content)
        first, last, uncompressed, checksum = fields.numbers("QQQI")
        compression, packed = fields.text(), fields.bytes("Q")
        fields.end()
        content = unpacked(compression, packed)
        check(len(content) == uncompressed, f"a chunk has {len(content)} bytes and says {uncompressed}")
        check(checksum in (0, zlib.crc32(content)), "the checksum of a chunk is wrong")
        times = self._chunk_content(content)
        check((first, last) == ((min(times), max(times)) if times else (0, 0)), "the times of a chunk are wrong")
        self.times += [first, last] if times else []
        facts = ChunkFacts(
            record.start, record.end - record.start, first, last, compression, len(packed), uncompressed, {}, 0
        )
        self.chunks.append(facts)

    def _chunk_content(self, content: bytes) -> list[int]:
        """The log times of the messages of a chunk."""
        found: dict[int, list[tuple[int, int]]] = {}
        times = []
        for record in records(content, 0, len(content)):
            check(record.opcode in CHUNK_RECORDS, f"a record {record.opcode} in a chunk")
            if record.opcode != MESSAGE:
                (self._schema if record.opcode == SCHEMA else self._channel)(record)
                continue
            channel, _, log, _ = Fields(record.content).numbers("HIQQ")
            check(channel in self.channels, f"a message of channel {channel}, which does not exist")
            found.setdefault(channel, []).append((log, record.start))
            times.append(log)
            self.messages[channel] += 1
        self._unindexed = found
        return times

    def _message_index(self, record: Record) -> None:
        check(self._unindexed is not None, "a message index that follows no chunk")
        assert self._unindexed is not None
        fields = Fields(record.content)
        channel, entries = fields.number("H"), fields.bytes()
        fields.end()
        check(len(entries) % 16 == 0, "a message index has half an entry")
        found = list(struct.iter_unpack("<QQ", entries))
        expected = self._unindexed.pop(channel, None)
        check(expected is not None, f"two message indexes of channel {channel}, or one without a message")
        check(sorted(found) == sorted(expected or []), f"the message index of channel {channel} is wrong")
        chunk = self.chunks[-1]
        chunk.offsets[channel] = record.start
        self.chunks[-1] = chunk._replace(index_length=chunk.index_length + record.end - record.start)

    def _all_indexed(self) -> None:
        check(not self._unindexed, "messages of a chunk are in no message index")
        self._unindexed = None

    def _attachment(self, record: Record) -> None:
        fields = Fields(record.content)
        log, created = fields.numbers("QQ")
        name, media_type, size = fields.text(), fields.text(), len(fields.bytes("Q"))
        covered = fields.at
        checksum = fields.number("I")
        fields.end()
        check(checksum in (0, zlib.crc32(record.content[:covered])), f"the checksum of '{name}' is wrong")
        self.attachments.append((record.start, record.end - record.start, log, created, size, name, media_type))

    def _metadata(self, record: Record) -> None:
        fields = Fields(record.content)
        name, _ = fields.text(), fields.map("s", "s")
        fields.end()
        self.metadata.append((record.start, record.end - record.start, name))

    def _data_end(self, record: Record) -> None:
        fields = Fields(record.content)
        checksum = fields.number("I")
        fields.end()
        check(checksum in (0, zlib.crc32(self.data[: record.start])), "the checksum of the data section is wrong")

    def _summary_section(self, start: int) -> None:
        """The records from there to the end are the summary and the footer, and repeat what was found."""
        *summary, footer = records(self.data, start, len(self.data) - len(MAGIC))
        check(footer.opcode == FOOTER, "the last record is no footer")
        fields = Fields(footer.content)
        place, offsets, checksum = fields.numbers("QQI")
        fields.end()
        check(place == (start if summary else 0), "the footer names another place of the summary")
        check(checksum in (0, zlib.crc32(self.data[start : footer.end - 4])), "the checksum of the summary is wrong")
        self._summary_offsets(summary, offsets)
        items = [record for record in summary if record.opcode != SUMMARY_OFFSET]
        for record in items:
            check(record.opcode in SUMMARY_RECORDS, f"a record {record.opcode} in the summary")
        schemas, channels = dict(self.schemas), dict(self.channels)  # of the data section
        for record in items:
            if record.opcode in (SCHEMA, CHANNEL):
                (self._schema if record.opcode == SCHEMA else self._channel)(record)
        check((schemas, channels) == (self.schemas, self.channels), "a schema or channel is in the summary alone")
        kinds = Counter(record.opcode for record in items)
        check((kinds[SCHEMA], kinds[CHANNEL]) == (len(schemas), len(channels)), "the summary lacks schemas or channels")
        self._indexes(items)
        found = [self._statistics_of(record) for record in items if record.opcode == STATISTICS]
        check(found == [self._expected_statistics()], f"the statistics are {found}, not {self._expected_statistics()}")

    def _summary_offsets(self, summary: list[Record], place: int) -> None:
        """Where there are some, they follow the summary and name the groups of its records, each without a gap."""
        offsets = [record for record in summary if record.opcode == SUMMARY_OFFSET]
        check(place == (offsets[0].start if offsets else 0), "the footer names another place of the summary offsets")
        groups: dict[int, tuple[int, int]] = {}
        for record in summary[: len(summary) - len(offsets)]:
            start, end = groups.get(record.opcode, (record.start, record.start))
            check(end == record.start, f"records {record.opcode} of the summary are not together")
            groups[record.opcode] = start, record.end
        named = {}
        for record in offsets:
            fields = Fields(record.content)
            opcode, start, length = fields.numbers("BQQ")
            fields.end()
            named[opcode] = start, start + length
        check(not offsets or named == groups, "the summary offsets name other places")

    def _indexes(self, items: list[Record]) -> None:
        def of(opcode: int, read: Any) -> list[Any]:
            return sorted(read(Fields(record.content)) for record in items if record.opcode == opcode)

        check(of(CHUNK_INDEX, _chunk_index) == sorted(map(_plain, self.chunks)), "the chunk indexes are wrong")
        check(of(ATTACHMENT_INDEX, _attachment_index) == sorted(self.attachments), "the attachment indexes are wrong")
        check(of(METADATA_INDEX, _metadata_index) == sorted(self.metadata), "the metadata indexes are wrong")

    def _statistics_of(self, record: Record) -> tuple[Any, ...]:
        fields = Fields(record.content)
        found = *fields.numbers("QHIIIIQQ"), fields.map("H", "Q")
        fields.end()
        return found

    def _expected_statistics(self) -> tuple[Any, ...]:
        counts = len(self.schemas), len(self.channels), len(self.attachments), len(self.metadata), len(self.chunks)
        return self.messages.total(), *counts, *self.report.span, dict(self.messages)


def unpacked(compression: str, packed: bytes) -> bytes:
    check(compression in ("", "zstd"), f"the compression '{compression}' is not in the specification, or not used here")
    if not compression:
        return packed
    from zstandard import ZstdDecompressor

    return ZstdDecompressor().decompressobj().decompress(packed)


def _plain(chunk: ChunkFacts) -> tuple[Any, ...]:
    return *chunk._replace(offsets={})[:7], tuple(sorted(chunk.offsets.items())), chunk.index_length


def _chunk_index(fields: Fields) -> tuple[Any, ...]:
    first, last, start, length = fields.numbers("QQQQ")
    offsets, index_length, compression = fields.map("H", "Q"), fields.number("Q"), fields.text()
    size, uncompressed = fields.numbers("QQ")
    fields.end()
    return start, length, first, last, compression, size, uncompressed, tuple(sorted(offsets.items())), index_length


def _attachment_index(fields: Fields) -> tuple[Any, ...]:
    numbers, names = fields.numbers("QQQQQ"), (fields.text(), fields.text())
    fields.end()
    return *numbers, *names


def _metadata_index(fields: Fields) -> tuple[Any, ...]:
    numbers, name = fields.numbers("QQ"), fields.text()
    fields.end()
    return *numbers, name
