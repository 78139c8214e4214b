"""What an object file has and needs, read from its bytes."""

from __future__ import annotations

import struct

LIBM = {"acos", "asin", "atan", "atan2", "cos", "cosh", "exp", "fmod", "log", "pow", "sin", "sinh", "tan", "tanh"}
WRITABLE, SYMBOLS, UNDEFINED, GLOBAL = 1, 2, 0, 1


def elf(content):
    """(section -> flags of those with content, undefined, defined global symbols) of an ELF file of 64 bits."""
    (table,) = struct.unpack_from("<Q", content, 0x28)
    size, count, names = struct.unpack_from("<HHH", content, 0x3A)
    rows = [struct.unpack_from("<IIQQQQII", content, table + k * size) for k in range(count)]

    def text(strings, at):
        begin = rows[strings][4] + at
        return content[begin : content.index(b"\0", begin)].decode()

    found = {text(names, row[0]): row[2] for row in rows if row[5]}
    undefined, defined = set(), set()
    for row in rows:
        if row[1] == SYMBOLS:
            for at in range(row[4], row[4] + row[5], 24):
                name, info, _, section = struct.unpack_from("<IBBH", content, at)
                if info >> 4 == GLOBAL:
                    (undefined if section == UNDEFINED else defined).add(text(row[6], name))
    return found, undefined, defined


def assert_freestanding(content):
    """It needs the mathematics of the C library only, and has no variables."""
    sections, undefined, _ = elf(content)
    assert undefined <= LIBM
    assert not [name for name, flags in sections.items() if flags & WRITABLE]
