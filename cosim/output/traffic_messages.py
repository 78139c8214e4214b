"""The traffic of real drivers as messages of a recording, two topics for each driver.

`/bus/<driver>` has the items of its connection, for any viewer: schema `bus.Item`. `/bus/<driver>/driver` has what a
driver needs beside them to do the same again: schema `bus.DriverEvent`. The sequence numbers of the messages count both
together, so a number that is missing is a message that was lost. Entries:
`cosim.execution.hardware.traffic.traffic_log`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cosim.core.recordings.protobuf_wire import MessageField, descriptor_set, part, parts_of, varint, whole
from cosim.execution.hardware.traffic.traffic_log import ITEMS, Fields, Passing, TrafficEntry

TOPIC = "/bus/"
EVENTS = "/driver"  # behind the topic of the items
PACKAGE = "bus"
FRAMES = "CAN frames"
SEQUENCES = 1 << 32  # of MCAP, then from 0 again
_FIXED64, _BOOL, _STRING, _BYTES, _UINT32, _SFIXED64, _DOUBLE = 6, 8, 9, 12, 13, 16, 1  # kinds of descriptor.proto
_REPEATED = 3
ITEM = (
    ("clock_ns", _FIXED64, 1),
    ("direction", _STRING, 1),
    ("data", _BYTES, 1),
    ("id", _UINT32, 1),
    ("extended", _BOOL, 1),
    ("fd", _BOOL, 1),
    ("bit_rate_switch", _BOOL, 1),
    ("remote", _BOOL, 1),
    ("arrival_ns", _FIXED64, 1),
)
EVENT = (
    ("clock_ns", _FIXED64, 1),
    ("what", _STRING, 1),
    ("text", _STRING, 1),
    ("whole_numbers", _SFIXED64, _REPEATED),
    ("numbers", _DOUBLE, _REPEATED),
)
EntryFields = tuple[int, int, int, str, Any, int]  # fields of a TrafficEntry, also after msgpack
_FLAGS = 5  # field of the first one
_ARRIVAL = 9
_TIME = struct.Struct("<Q")


class BusChannel(NamedTuple):
    """The connection of a driver in a recording. can: its items are CAN frames."""

    driver: str
    family: str
    connection: str
    joints: tuple[str, ...]
    can: bool

    @property
    def topics(self) -> tuple[str, str]:
        """Of the items, and of the events of the driver."""
        return TOPIC + self.driver, TOPIC + self.driver + EVENTS

    @property
    def metadata(self) -> dict[str, str]:
        """Of both channels."""
        about = {"driver": self.driver, "type": self.family, "connection": self.connection}
        return about | {"joints": ", ".join(self.joints), "items": FRAMES if self.can else "bytes"}

    @classmethod
    def of(cls, metadata: Mapping[str, str]) -> BusChannel:
        """From the metadata of a channel."""
        joints = tuple(name for name in metadata.get("joints", "").split(", ") if name)
        driver, family, connection = (metadata.get(key, "") for key in ("driver", "type", "connection"))
        return cls(driver, family, connection, joints, metadata.get("items") == FRAMES)


def schemas() -> tuple[tuple[str, bytes], tuple[str, bytes]]:
    """(name, FileDescriptorSet) of both topics."""
    return _schema("Item", ITEM), _schema("DriverEvent", EVENT)


def _schema(message: str, fields: Sequence[tuple[str, int, int]]) -> tuple[str, bytes]:
    described = [MessageField(name, kind, name, label) for name, kind, label in fields]
    return f"{PACKAGE}.{message}", descriptor_set(PACKAGE, message, described)


def is_item(what: str) -> bool:
    """Whether an entry is on the topic of the items."""
    return what in ITEMS


def encode(t_ns: int, what: str, content: Any) -> bytes:
    """An entry. content: bytes, a CAN frame as a tuple, or Fields as a tuple."""
    head = b"\x09" + _TIME.pack(t_ns) + part(2, what)
    if not is_item(what):
        text, numbers, values = content
        packed = struct.pack(f"<{len(numbers)}q", *numbers)
        return head + part(3, text) + part(4, packed) + part(5, values)
    if isinstance(content, bytes):
        return head + part(3, content)
    identifier, data, *flags, arrival_ns = content
    marks = b"".join(whole(_FLAGS + k, 1) for k, flag in enumerate(flags) if flag)
    return head + part(3, data) + whole(4, identifier) + marks + varint(_ARRIVAL << 3 | 1) + _TIME.pack(arrival_ns)


def decode(data: bytes, driver: int, number: int, run_ns: int, frame: Any) -> TrafficEntry:
    """An entry from its message. frame: makes a CAN frame of its fields, None where items are bytes.

    Raises ValueError, IndexError or KeyError for what is no such message."""
    fields = dict(parts_of(data))
    t_ns, what = _TIME.unpack(fields[1])[0], Passing(fields[2].decode())
    if not is_item(what):
        packed = fields.get(4, b"")
        numbers = struct.unpack(f"<{len(packed) // 8}q", packed)
        content = Fields(fields.get(3, b"").decode(), numbers, fields.get(5, b""))
        return TrafficEntry(driver, number, t_ns, what, content, run_ns)
    content = fields.get(3, b"")
    if frame is not None:
        flags = (bool(fields.get(_FLAGS + k, 0)) for k in range(_ARRIVAL - _FLAGS))
        content = frame(fields.get(4, 0), content, *flags, _TIME.unpack(fields[_ARRIVAL])[0])
    return TrafficEntry(driver, number, t_ns, what, content, run_ns)
