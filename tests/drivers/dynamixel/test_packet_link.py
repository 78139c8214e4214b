"""The packets of a line in machine code are those of the codec in Python."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.drivers.dynamixel import codec
from cosim.drivers.dynamixel.codec import Decoder, RegisterBlock
from cosim.drivers.dynamixel.packet_link import BusPacket, PacketLink
from cosim.drivers.dynamixel.sync_reader import INCOMPLETE_NS, SILENT_NS
from cosim.drivers.transport import now
from cosim.drivers.transport.compiled_link import DAMAGED, FRAME, SENT
from tests.kit.serial_line import MOST, SerialLine, receive, send, settle

SIZE = 5  # bytes of data of a drive
BLOCK = SIZE + 4


@pytest.fixture(scope="module")
def line():
    with SerialLine() as made:
        yield made


def link_of(line, expected=0, wire_ns=0):
    return PacketLink(line.port, BLOCK, expected, wire_ns)


# bytes that make headers and marks likely
data = st.lists(st.sampled_from([0xFF, 0xFF, 0xFD, 0, 1, 0x55, 0xFE]), max_size=40).map(bytes)
ids = st.integers(0, codec.MAX_ID)


@given(st.lists(st.tuples(ids, st.integers(1, 0x9A), data), min_size=1, max_size=10))
def test_what_is_sent_is_equal_to_the_byte(line, packets):
    wires = [codec.packet(*packet) for packet in packets]
    line.said()
    assert send(link_of(line), [BusPacket.of(wire) for wire in wires]) == SENT
    assert line.said() == b"".join(wires)


statuses = st.builds(codec.status, ids, st.sampled_from([0, codec.ALERT, 3]), data)
others = st.one_of(st.builds(codec.packet, ids, st.integers(1, 0x54), data), data)


@st.composite
def damaged(draw):
    whole = bytearray(draw(statuses))
    at = draw(st.integers(0, len(whole) - 1))
    if draw(st.booleans()):
        whole[at] ^= draw(st.integers(1, 255))
        return bytes(whole)
    return bytes(whole[:at])


@given(st.lists(st.one_of(statuses, others, damaged()), max_size=10), st.integers(1, 300))
def test_answers_are_those_that_the_decoder_finds(line, pieces, size):
    stream = b"".join(pieces) + codec.status(1, 0, b"end") * 3  # after a damaged length, which takes others with it
    decoder, link, expected, found = Decoder(), link_of(line), [], []
    for at in range(0, len(stream), min(size, MOST)):
        chunk = stream[at : at + min(size, MOST)]
        for number, instruction, params in decoder.feed(chunk):
            if instruction == codec.STATUS and number != codec.BROADCAST and params:
                failed = params[0] & ~codec.ALERT
                expected.append((DAMAGED, 0, b"") if failed else (FRAME, number, params))
        line.says(chunk)
        found += receive(link)
    answers = [one for one in found if one[0] == FRAME]
    assert answers == [one for one in expected if one[0] == FRAME]
    failures = sum(what == DAMAGED for what, _, _ in expected)
    assert (sum(what == DAMAGED for what, _, _ in found) > failures) == (decoder.lost > 0)


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
