"""Chained and late answers in machine code; that packets are those of the codec in Python is conformance."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.drivers.dynamixel import codec
from cosim.drivers.dynamixel.codec import RegisterBlock
from cosim.drivers.dynamixel.packet_link import PacketLink
from cosim.drivers.dynamixel.sync_reader import INCOMPLETE_NS, SILENT_NS
from cosim.drivers.transport import now
from cosim.drivers.transport.compiled_link import FRAME
from tests.kit.serial_line import SerialLine, receive, settle

SIZE = 5  # bytes of data of a drive
BLOCK = SIZE + 4


@pytest.fixture(scope="module")
def line():
    with SerialLine() as made:
        yield made


def link_of(line, expected=0, wire_ns=0):
    return PacketLink(line.port, BLOCK, expected, wire_ns)


# bytes that make headers and marks likely
ids = st.integers(0, codec.MAX_ID)


blocks = st.lists(st.builds(RegisterBlock, st.just(0), ids, st.binary(min_size=SIZE, max_size=SIZE)), min_size=1)


@given(blocks, st.data())
def test_the_sound_beginning_of_a_chained_answer(line, blocks, drawn):
    chain = bytearray(codec.chained(blocks, len(blocks) * BLOCK))
    at, cut = drawn.draw(st.integers(8, len(chain))), drawn.draw(st.booleans())
    if cut:
        del chain[at:]
    elif at < len(chain):
        chain[at] ^= drawn.draw(st.integers(1, 255))
    link, found = link_of(line), []
    for k in range(0, len(chain), 7):
        line.says(bytes(chain[k : k + 7]))
        found += receive(link)
    whole = (at - 8) // BLOCK if at < len(chain) or cut else len(blocks)
    expected = [(FRAME, block.id, bytes((block.error,)) + block.data) for block in blocks[:whole]]
    assert found[:whole] == expected
    assert FRAME not in [what for what, _, _ in found[whole:]]
    if not cut:
        assert (len(found) > whole) == (whole < len(blocks))


@pytest.mark.parametrize("said", [b"", b"beginning"])
def test_late_answers_are_waited_for_and_discarded(line, said):
    link = link_of(line, expected=20)
    assert settle(link, now() + 10**9) == 1  # nothing was asked
    asked = now()
    line.says(said)
    receive(link)
    late = INCOMPLETE_NS if said else SILENT_NS
    assert settle(link, asked + late // 2) == 0  # an answer may still come
    line.says(codec.status(1, 0, b"late"))
    assert settle(link, asked + 10**9) == 1
    assert now() - asked >= late
    assert receive(link) == []
    line.says(b"x" * 20)  # all that was asked for
    receive(link)
    begun = time.monotonic()
    assert settle(link, now() + 10**9) == 1
    assert time.monotonic() - begun < 1.0
