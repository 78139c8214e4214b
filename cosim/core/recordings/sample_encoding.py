"""The samples of a recording as messages of MCAP: a topic per joint or group of the rig, in Protobuf or in JSON.

Protobuf messages of a topic all have the same length: a field is its tag and the 8 or 4 bytes of its value. So numpy
lays out the messages of many ticks together, records of MCAP included. The schema of a topic is a FileDescriptorSet,
see `descriptor.proto` of Protobuf; encoding: https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from cosim.core.recordings.protobuf_wire import MessageField, descriptor_set, parts_of, varint

Channels = Sequence[tuple[str, str]]  # (signal, unit); a signal is `<joint or group of the rig>/<what>`
Encoding = Literal["protobuf", "json", "ros2"]
Numbers = Literal["float64", "float32"]

SCHEMA_PREFIX = "cosim."  # marks the topics that hold samples; the rest of the schema's name is the group
TIMING = "timing"
RIG_GROUPS = ("energy", TIMING)  # groups of signals of the rig rather than a joint
JOINTS = "/joints/"
MESSAGE = 5  # opcode of MCAP
_OPTIONAL = 1  # label of a field
MESSAGE_HEAD = struct.Struct("<BQHIQQ")  # opcode, length; channel, sequence, log time, publish time
_SHORT_TAGS = 15  # fields whose tags have one byte; others have two


class NumberFormat(NamedTuple):
    """How Protobuf encodes numbers of one type. wire: type of a field on the wire; kind: type in a descriptor."""

    dtype: np.dtype
    wire: int
    kind: int


NUMBERS: dict[Numbers, NumberFormat] = {
    "float64": NumberFormat(np.dtype("<f8"), 1, 1),
    "float32": NumberFormat(np.dtype("<f4"), 5, 2),
}


@dataclass(frozen=True)
class Topic:
    """The signals of a joint or of a group of the rig. fields: (name, unit, column)."""

    group: str
    fields: tuple[tuple[str, str, int], ...]

    @property
    def name(self) -> str:
        return f"/{self.group}" if self.group in RIG_GROUPS else f"{JOINTS}{self.group}"

    @property
    def units(self) -> dict[str, str]:
        """By field."""
        return {name: unit for name, unit, _ in self.fields}


class RecordedTopic(NamedTuple):
    """A topic of a recording: the schema of its messages by name, language and text, how they are encoded, and the
    metadata of its channel."""

    name: str
    schema: str
    language: str
    text: bytes
    encoding: str
    metadata: Mapping[str, str] = MappingProxyType({})


def topics_of(channels: Channels) -> tuple[Topic, ...]:
    """In the order of their first signals."""
    groups: dict[str, list[tuple[str, str, int]]] = {}
    for column, (signal, unit) in enumerate(channels):
        group, _, field = signal.rpartition("/")
        groups.setdefault(group, []).append((field, unit, column))
    return tuple(Topic(group, tuple(fields)) for group, fields in groups.items())


class EncodedTicks(NamedTuple):
    """Messages of k ticks. data: bytes of their records, until the next ticks are encoded; begins: (k, topics) place of
    each record; ends: (k,) place where the records of the tick end."""

    data: np.ndarray
    begins: np.ndarray
    ends: np.ndarray


# --- Protobuf -----------------------------------------------------------------------------------------------------


class ProtobufSamples:
    """Every topic is a message of fields of type `double` or `float`; numbers that are not finite are stored as they
    are."""

    def __init__(self, topics: Sequence[Topic], numbers: Numbers = "float64") -> None:
        """The channels of the topics have the numbers 1, 2, …"""
        self._topics, self._numbers = topics, NUMBERS[numbers]
        dtype, wire, _ = self._numbers
        self._layout = np.dtype([(str(k), _record(len(topic.fields), dtype)) for k, topic in enumerate(topics)])
        self._order = np.array([column for topic in topics for _, _, column in topic.fields], dtype=np.intp)
        self._constant, self._ticks = np.zeros(1, self._layout), np.empty(0, self._layout)
        self._values = np.empty((0, len(self._order)))
        for k, topic in enumerate(topics):
            message, n = self._constant[str(k)], len(topic.fields)
            message["opcode"], message["channel"] = MESSAGE, k + 1
            message["length"] = self._layout[str(k)].itemsize - 1 - 8
            message["few"]["tag"] = _tags(range(1, min(n, _SHORT_TAGS) + 1), wire)
            if n > _SHORT_TAGS:
                message["more"]["tag"] = _tags(range(_SHORT_TAGS + 1, n + 1), wire).view("<u2")
        self._begins = np.array([self._layout.fields[str(k)][1] for k in range(len(topics))])  # type: ignore[index]

    def topics(self) -> list[RecordedTopic]:
        """Their schemas are each a FileDescriptorSet. Messages and fields have the names of the signals where Protobuf
        allows them; the JSON name of a field is the signal's in any case."""
        found, messages = [], _identifiers([topic.group for topic in self._topics])
        for message, topic in zip(messages, self._topics, strict=True):
            text = _descriptor(message, [name for name, _, _ in topic.fields], self._numbers.kind)
            found.append(RecordedTopic(topic.name, SCHEMA_PREFIX + message, "protobuf", text, "protobuf", topic.units))
        return found

    def encode(self, log_ns: np.ndarray, t_ns: np.ndarray, rows: np.ndarray) -> EncodedTicks:
        k = len(rows)
        if len(self._ticks) < k:
            self._ticks, self._values = np.empty(k, self._layout), np.empty((k, len(self._order)))
        ticks = self._ticks[:k]
        ticks.view(np.uint8).reshape(k, -1)[:] = self._constant.view(np.uint8)  # structures would be copied by field
        values, begin = np.take(rows, self._order, axis=1, out=self._values[:k], mode="clip"), 0  # other modes copy
        for number, topic in enumerate(self._topics):
            message, n = ticks[str(number)], len(topic.fields)
            message["log"], message["publish"] = log_ns, t_ns
            message["few"]["value"] = values[:, begin : begin + min(n, _SHORT_TAGS)]
            if n > _SHORT_TAGS:
                message["more"]["value"] = values[:, begin + _SHORT_TAGS : begin + n]
            begin += n
        ends = self._layout.itemsize * np.arange(1, k + 1)
        return EncodedTicks(ticks.view(np.uint8), (ends - self._layout.itemsize)[:, None] + self._begins, ends)


def value_places(fields: int, dtype: np.dtype) -> np.ndarray:
    """(fields,) places of the values in the record of a message of `ProtobufSamples`."""
    parts, size = _record(fields, dtype).fields or {}, dtype.itemsize
    few = parts["few"][1] + 1 + (1 + size) * np.arange(min(fields, _SHORT_TAGS))
    if fields <= _SHORT_TAGS:
        return few
    return np.concatenate([few, parts["more"][1] + 2 + (2 + size) * np.arange(fields - _SHORT_TAGS)])


def _record(fields: int, dtype: np.dtype) -> np.dtype:
    """The record of a message with so many fields."""
    parts: list[tuple[Any, ...]] = [("opcode", "u1"), ("length", "<u8"), ("channel", "<u2"), ("sequence", "<u4")]
    parts += [("log", "<u8"), ("publish", "<u8")]
    parts.append(("few", [("tag", "u1"), ("value", dtype)], (min(fields, _SHORT_TAGS),)))
    if fields > _SHORT_TAGS:
        parts.append(("more", [("tag", "<u2"), ("value", dtype)], (fields - _SHORT_TAGS,)))
    return np.dtype(parts)


def _tags(numbers: range, wire: int) -> np.ndarray:
    return np.frombuffer(b"".join(varint(number << 3 | wire) for number in numbers), np.uint8)


def _descriptor(message: str, fields: Sequence[str], kind: int) -> bytes:
    named = zip(_identifiers(fields), fields, strict=True)
    return descriptor_set(
        SCHEMA_PREFIX.removesuffix("."), message, [MessageField(name, kind, field, _OPTIONAL) for name, field in named]
    )


def fields_of(schema: bytes) -> tuple[str, ...]:
    """The JSON names of the fields of a FileDescriptorSet of `ProtobufSamples`, in the order of their numbers."""
    return tuple(field[10].decode() for field in _fields_of(schema))


def number_of(schema: bytes) -> np.dtype:
    """The type of the values of these fields."""
    kind = _fields_of(schema)[0][5]
    return next(number.dtype for number in NUMBERS.values() if number.kind == kind)


def _fields_of(schema: bytes) -> list[dict[int, Any]]:
    ((_, file),) = (found for found in parts_of(schema) if found[0] == 1)
    ((_, message),) = (found for found in parts_of(file) if found[0] == 4)
    fields = [dict(parts_of(content)) for field, content in parts_of(message) if field == 2]
    return sorted(fields, key=lambda field: field[3])


def _identifiers(names: Sequence[str]) -> list[str]:
    """Names that Protobuf accepts, each once; those that it accepts already stay."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
        plain = unique = plain if re.match(r"[A-Za-z]", plain) else f"n{plain}"
        number = 2
        while unique != name and (unique in found or unique in names):
            unique, number = f"{plain}_{number}", number + 1
        found.append(unique)
    return found


# --- JSON ---------------------------------------------------------------------------------------------------------


class JsonSamples:
    """Every topic is an object; numbers that are not finite are null."""

    def __init__(self, topics: Sequence[Topic], numbers: Numbers = "float64") -> None:
        """numbers: of no use, the numbers of JSON are text."""
        self._topics = topics

    @cached_property
    def _names(self) -> list[tuple[list[str], list[int]]]:
        return [([name for name, _, _ in t.fields], [column for _, _, column in t.fields]) for t in self._topics]

    def topics(self) -> list[RecordedTopic]:
        """Their schemas are JSON schemas."""
        from orjson import dumps

        found = []
        for topic in self._topics:
            # null stands for "not finite" but is not declared: Foxglove refuses schemas with union types
            fields = {
                name: {"type": "number", "description": f"[{unit}], null if not finite"}
                for name, unit, _ in topic.fields
            }
            name = SCHEMA_PREFIX + topic.group
            text = dumps({"title": name, "type": "object", "properties": fields})
            found.append(RecordedTopic(topic.name, name, "jsonschema", text, "json", topic.units))
        return found

    def encode(self, log_ns: np.ndarray, t_ns: np.ndarray, rows: np.ndarray) -> EncodedTicks:
        from orjson import dumps

        records, lengths = [], []
        columns = [rows[:, places].tolist() for _, places in self._names]
        for i, (log, t) in enumerate(zip(log_ns.tolist(), t_ns.tolist(), strict=True)):
            for channel, ((names, _), values) in enumerate(zip(self._names, columns, strict=True), 1):
                data = dumps(dict(zip(names, values[i], strict=True)))
                records.append(message_record(channel, log, t, data))
                lengths.append(len(records[-1]))
        ends = np.cumsum(lengths, dtype=np.int64).reshape(len(rows), len(self._topics))
        begins = np.hstack([np.zeros(1, np.int64), ends.ravel()[:-1]]).reshape(ends.shape) if len(rows) else ends
        return EncodedTicks(np.frombuffer(b"".join(records), np.uint8), begins, ends[:, -1])


def message_record(channel: int, log_ns: int, publish_ns: int, data: bytes, sequence: int = 0) -> bytes:
    head = MESSAGE_HEAD.pack(MESSAGE, MESSAGE_HEAD.size - 9 + len(data), channel, sequence, log_ns, publish_ns)
    return head + data
