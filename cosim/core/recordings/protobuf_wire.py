"""Fields of Protobuf messages as bytes: https://protobuf.dev/programming-guides/encoding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

FIXED = 1  # type on the wire of 8 bytes


def varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def whole(field: int, number: int) -> bytes:
    """A field with a whole number or a boolean."""
    return varint(field << 3) + varint(number)


def part(field: int, content: bytes | str) -> bytes:
    """A field with a text, bytes or a message."""
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


class MessageField(NamedTuple):
    """Of a schema. kind, label: numbers of `descriptor.proto`; json_name: in viewers."""

    name: str
    kind: int
    json_name: str
    label: int = 1


def descriptor_set(package: str, message: str, fields: Sequence[MessageField]) -> bytes:
    """The FileDescriptorSet of a message whose fields have the numbers 1, 2, …"""
    parts = b"".join(
        part(2, part(1, name) + whole(3, k) + whole(4, label) + whole(5, kind) + part(10, json_name))
        for k, (name, kind, json_name, label) in enumerate(fields, 1)
    )
    file = part(1, f"{package}/{message}.proto") + part(2, package)
    return part(1, file + part(4, part(1, message) + parts) + part(12, "proto3"))


def parts_of(data: bytes) -> Iterator[tuple[int, Any]]:
    """(field, content) of a message: a whole number, or the bytes of a part or of 8 bytes. Raises IndexError or
    ValueError for what is no message."""
    at = 0

    def read_varint() -> int:
        nonlocal at
        number = shift = 0
        while True:
            byte, at = data[at], at + 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    while at < len(data):
        tag = read_varint()
        kind = tag & 7
        value = 8 if kind == FIXED else read_varint()
        if kind not in (FIXED, 2):
            yield tag >> 3, value
            continue
        if at + value > len(data):
            raise ValueError("cut off")
        at += value
        yield tag >> 3, data[at - value : at]
