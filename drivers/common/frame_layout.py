"""Where the numbers of a cycle are in the frames of a line, and which frames a cycle has.

A frame has fields at fixed places; the numbers of the fields are in an array per joint. The compiled driver stores and
reads them by these tables, `packer` and `unpacker` do the same in Python.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Any, Literal, NamedTuple, TypeAlias

from cosim.plugins.drivers.transport.connection import LinkFrame


class FieldForm(NamedTuple):
    """How a number is stored: in so many bits of so many bytes, `shift` above the lowest one. real: a 32-bit float."""

    size: int
    bits: int
    shift: int = 0
    signed: bool = False
    real: bool = False
    big: bool = False  # the first byte is the highest one

    @property
    def letter(self) -> str:
        """Of `struct`."""
        if self.real:
            return "f"
        letter = {1: "b", 2: "h", 4: "i"}[self.size]
        return letter if self.signed else letter.upper()


class Kind(IntEnum):
    """How a field holds its number: little-endian, or big-endian in those whose names say so, as in parts of bytes."""

    FLOAT32, INT8, INT16, INT32, UINT8, UINT16, UINT32 = range(7)
    INT16_BIG, INT32_BIG, UINT16_BIG = range(7, 10)
    UPPER4, UPPER12, LOWER12 = range(10, 13)  # the bits of a byte, or of two, that are highest or lowest

    @property
    def form(self) -> FieldForm:
        return FORMS[self]


FORMS = (
    FieldForm(4, 32, real=True),
    *(FieldForm(size, 8 * size, signed=True) for size in (1, 2, 4)),
    *(FieldForm(size, 8 * size) for size in (1, 2, 4)),
    *(FieldForm(size, 8 * size, signed=True, big=True) for size in (2, 4)),
    FieldForm(2, 16, big=True),
    FieldForm(1, 4, 4),
    FieldForm(2, 12, 4, big=True),
    FieldForm(2, 12, big=True),
)
_SIGNS = {"little": "<", "big": ">"}


class FrameField(NamedTuple):
    """A number in a frame. number: its place in the array of its joint, which is `joint` places after the joint of the
    frame."""

    at: int  # bytes from the beginning of the data
    kind: Kind
    number: int
    joint: int = 0


class SentFrame(NamedTuple):
    """A frame to the drive of a joint: a template whose fields are set in every cycle. It is sent in the cycles whose
    number is `phase` modulo `period`. repeated: as it was sent last, it requests a measurement too."""

    frame: LinkFrame
    joint: int = 0  # index
    fields: tuple[FrameField, ...] = ()
    period: int = 1
    phase: int = 0
    repeated: bool = False


class Role(IntEnum):
    """MEASUREMENT: awaited in every cycle, its arrival is the time of the measurement; ANSWER: awaited after commands;
    NOTICE: not awaited."""

    MEASUREMENT, ANSWER, NOTICE = range(3)


class ReceivedFrame(NamedTuple):
    """A frame from the drive of a joint."""

    frame: LinkFrame  # its data, of this length or longer
    joint: int
    fields: tuple[FrameField, ...] = ()
    role: Role = Role.MEASUREMENT
    fixed: tuple[slice, ...] = ()  # bytes that equal `frame`, or else it is damaged
    exact: bool = False  # it is as long as `frame`
    longest_silence_ns: int = 0  # since the last one; 0: any
    longest_gap_ns: int = 0  # between two of them, or else the driver in Python has to judge it; 0: any

    # bits of its first byte that are those of `frame`: others with its identifier are frames of other drives
    own: int = 0

    def mask(self) -> bytes:
        """The bits that equal those of `frame`, or else it is damaged."""
        bits = bytearray(len(self.frame.data))
        for part in self.fixed:
            bits[part] = b"\xff" * len(bits[part])
        return bytes(bits)


Numbers: TypeAlias = Sequence[list[float]]  # of each joint


def packer(sent: SentFrame, numbers: Numbers) -> Callable[[], bytes]:
    """Makes the data of a frame of what the lists of its joints hold then; raises struct.error or OverflowError for a
    number that does not fit."""
    fields, template = sorted(sent.fields), sent.frame.data
    rows = [(numbers[sent.joint + field.joint], field.number) for field in fields]
    order, size, forms = _order(fields), len(template), [field.kind.form for field in fields]
    if not fields:
        return lambda: template
    if _has_parts(forms):
        shifts, masks = [_shift(field, size) for field in fields], [(1 << form.bits) - 1 for form in forms]
        rest = int.from_bytes(template, order)
        for mask, shift in zip(masks, shifts, strict=True):
            rest &= ~(mask << shift)
        parts = [(*row, mask, shift) for row, mask, shift in zip(rows, masks, shifts, strict=True)]

        def pack_bits() -> bytes:
            word = rest
            for row, number, mask, shift in parts:
                word |= (int(row[number]) & mask) << shift
            return word.to_bytes(size, order)

        return pack_bits
    letters, values, at = _SIGNS[order], [], 0  # of the format: what is no field is a constant
    runs: list[list[Any]] = []  # place, row, first number, count of fields, whether they are real
    for field, form, (row, number) in zip(fields, forms, rows, strict=True):
        if field.at > at:
            letters, values = f"{letters}{field.at - at}s", [*values, template[at : field.at]]
        same = runs and runs[-1][0] + runs[-1][3] == len(values) and runs[-1][1] is row and runs[-1][4] == form.real
        if same and runs[-1][2] + runs[-1][3] == number:
            runs[-1][3] += 1
        else:
            runs.append([len(values), row, number, 1, form.real])
        letters, values, at = letters + form.letter, [*values, 0], field.at + form.size
    values.append(template[at:])
    pack = struct.Struct(f"{letters}{size - at}s").pack
    moved = [(slice(to, to + n), row, slice(first, first + n), real) for to, row, first, n, real in runs]

    def pack_whole() -> bytes:
        for to, row, those, real in moved:
            values[to] = row[those] if real else map(int, row[those])
        return pack(*values)

    return pack_whole


def unpacker(received: ReceivedFrame, row: list[float]) -> Callable[[bytes], bool]:
    """Sets the numbers of a joint from the data of a frame; False, and nothing is set, if it is damaged."""
    template, exact = received.frame.data, received.exact
    size, unpack, numbers = len(template), _reader(received.fields, len(template)), _numbers(received.fields)
    check = _reader_of_bytes(received.fixed, size)
    fixed = check(template)
    those = slice(numbers[0], numbers[0] + len(numbers)) if numbers else slice(0, 0)
    adjacent = numbers == list(range(those.start, those.stop))

    def take(data: bytes) -> bool:
        if len(data) < size or (exact and len(data) > size) or (fixed and check(data) != fixed):
            return False
        if adjacent:
            row[those] = unpack(data)
            return True
        for number, value in zip(numbers, unpack(data), strict=True):
            row[number] = value
        return True

    return take


def _numbers(fields: Iterable[FrameField]) -> list[int]:
    return [field.number for field in sorted(fields)]


def _reader_of_bytes(parts: Iterable[slice], size: int) -> Callable[[bytes], Sequence[bytes]]:
    """These parts of the data of a frame."""
    letters, at = "", 0
    for begin, end, _ in sorted(part.indices(size) for part in parts):
        letters, at = f"{letters}{begin - at}x{end - begin}s", end
    return struct.Struct(letters).unpack_from


def _reader(fields: Iterable[FrameField], size: int) -> Callable[[bytes], Sequence[float]]:
    """The numbers of the fields, in their order in a frame."""
    fields = sorted(fields)
    order, forms = _order(fields), [field.kind.form for field in fields]
    if _has_parts(forms):
        parts = [(_shift(field, size), (1 << form.bits) - 1) for field, form in zip(fields, forms, strict=True)]

        def read_bits(data: bytes) -> list[float]:
            word = int.from_bytes(data[:size], order)
            return [word >> shift & mask for shift, mask in parts]

        return read_bits
    letters, at = _SIGNS[order], 0
    for field, form in zip(fields, forms, strict=True):
        letters, at = f"{letters}{field.at - at}x{form.letter}", field.at + form.size
    return struct.Struct(letters).unpack_from


def _order(fields: Iterable[FrameField]) -> Literal["little", "big"]:
    """Of the bytes of these fields. Raises ValueError where they have both: no protocol here has."""
    orders = {field.kind.form.big for field in fields if field.kind.form.size > 1}
    if len(orders) > 1:
        raise ValueError("the fields of a frame have one order of bytes")
    return "little" if False in orders else "big"


def _has_parts(forms: Sequence[FieldForm]) -> bool:
    """Whether there are parts of bytes: then all numbers are whole and without sign."""
    parts = any(form.bits < 8 * form.size for form in forms)
    if parts and any(form.real or form.signed for form in forms):
        raise ValueError("beside parts of bytes a frame has whole numbers without sign")
    return parts


def _shift(field: FrameField, size: int) -> int:
    """Of a field in the number that all bytes of a frame are."""
    form = field.kind.form
    return form.shift + 8 * (size - field.at - form.size)


def count_numbers(frames: Iterable[SentFrame | ReceivedFrame]) -> int:
    """Numbers per joint that the fields of these frames need."""
    return 1 + max((field.number for frame in frames for field in frame.fields), default=-1)
