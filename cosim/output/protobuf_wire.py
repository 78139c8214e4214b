"""Fields of Protobuf messages as bytes: https://protobuf.dev/programming-guides/encoding."""

from __future__ import annotations


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
