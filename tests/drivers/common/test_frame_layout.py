"""Numbers in frames: what Python packs and unpacks is what machine code does, for every kind of field."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.plugins.drivers.common.exchange import get, put
from cosim.plugins.drivers.common.frame_layout import (
    FORMS,
    FrameField,
    Kind,
    ReceivedFrame,
    SentFrame,
    packer,
    unpacker,
)
from cosim.plugins.drivers.transport import CanFrame

BEFORE, AFTER = b"\xa5\x5a", b"\xc3\x3c\x99"  # what is no field


def held(kind: Kind) -> st.SearchStrategy[float]:
    """Numbers that a field can hold."""
    form = kind.form
    if form.real:
        return st.floats(width=32, allow_nan=True)
    low, high = (-(1 << form.bits - 1), (1 << form.bits - 1) - 1) if form.signed else (0, (1 << form.bits) - 1)
    return st.integers(low, high).map(float)


def test_every_kind_has_a_form():
    assert len(FORMS) == len(Kind)
    for kind in Kind:
        name, form = kind.name, kind.form
        assert form.big == (form.size > 1 and ("BIG" in name or name in ("UPPER12", "LOWER12")))
        assert str(form.bits) in name and form.signed == name.startswith("INT") and form.real == (kind is Kind.FLOAT32)
        assert form.shift == (8 * form.size - form.bits if "UPPER" in name else 0)


@pytest.mark.parametrize("kind", Kind)
@given(data=st.data())
def test_a_field_of_every_kind(kind, data):
    number, size = data.draw(held(kind)), kind.form.size
    field = FrameField(len(BEFORE), kind, 0)
    template = BEFORE + data.draw(st.binary(min_size=size, max_size=size)) + AFTER
    packed = packer(SentFrame(CanFrame(1, template), 0, (field,)), [[number]])()
    array = np.frombuffer(template, np.uint8).copy()
    put(array, field.at, int(kind), number)
    assert packed == array.tobytes()
    found = [0.0]
    assert unpacker(ReceivedFrame(CanFrame(1, bytes(len(template))), 0, (field,)), found)(packed)
    back = get(array, field.at, int(kind))
    assert struct.pack("<d", back) == struct.pack("<d", float(found[0])) or (math.isnan(back) and math.isnan(found[0]))
    assert back == number or math.isnan(number)


@given(st.lists(st.integers(0, 4095), min_size=4, max_size=4), st.integers(0, 65535), st.binary(min_size=8, max_size=8))
def test_numbers_that_share_bytes(parts, wide, template):
    """As in commands of the Mini Cheetah."""
    kinds = (Kind.UINT16_BIG, Kind.UPPER12, Kind.LOWER12, Kind.UPPER12, Kind.LOWER12)
    fields = tuple(FrameField(at, kind, k) for k, (at, kind) in enumerate(zip((0, 2, 3, 5, 6), kinds, strict=True)))
    numbers = [float(wide), *map(float, parts)]
    packed = packer(SentFrame(CanFrame(1, template), 0, fields), [numbers])()
    array = np.frombuffer(template, np.uint8).copy()
    for field in fields:
        put(array, field.at, int(field.kind), numbers[field.number])
    assert packed == array.tobytes() == (wide << 48 | sum(n << 36 - 12 * k for k, n in enumerate(parts))).to_bytes(8)
    found = [0.0] * 5
    assert unpacker(ReceivedFrame(CanFrame(1, template), 0, fields), found)(packed) and found == numbers


def test_fields_of_several_joints_and_gaps_between_them():
    fields = (FrameField(1, Kind.INT16, 0), FrameField(4, Kind.INT16, 0, joint=1), FrameField(6, Kind.FLOAT32, 1))
    sent = SentFrame(CanFrame(1, b"\x01..\x02......"), 0, fields)
    numbers = [[-2.0, 0.5], [3.0, 9.0]]
    make = packer(sent, numbers)
    assert make() == struct.pack("<bhbhf", 1, -2, 2, 3, 0.5)
    numbers[1][0] = 4.0
    assert make() == struct.pack("<bhbhf", 1, -2, 2, 4, 0.5)
    numbers[1][0] = 40000.0
    with pytest.raises(struct.error):
        make()


def test_what_a_received_frame_must_be():
    fields = (FrameField(2, Kind.UINT8, 1), FrameField(3, Kind.UINT8, 0))  # in another order than their numbers
    received = ReceivedFrame(CanFrame(1, b"\x07\x08\x00\x00"), 0, fields, fixed=(slice(0, 2),))
    found = [0.0, 0.0]
    take, exact = unpacker(received, found), unpacker(received._replace(exact=True), found)
    assert not take(b"\x07\x09\x01\x02") and not take(b"\x07\x08\x01") and found == [0.0, 0.0]
    assert take(b"\x07\x08\x01\x02more") and found == [2, 1]
    assert not exact(b"\x07\x08\x03\x04more") and exact(b"\x07\x08\x03\x04") and found == [4, 3]


@pytest.mark.parametrize(
    "kinds", [(Kind.INT16, Kind.INT16_BIG), (Kind.UPPER12, Kind.FLOAT32), (Kind.UPPER4, Kind.INT8)]
)
def test_what_no_protocol_here_has_is_refused(kinds):
    fields = tuple(FrameField(4 * k, kind, k) for k, kind in enumerate(kinds))
    with pytest.raises(ValueError, match="a frame"):
        packer(SentFrame(CanFrame(1, bytes(8)), 0, fields), [[0.0, 0.0]])
