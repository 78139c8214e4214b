"""Packets of the Dynamixel Protocol 2.0 against the manufacturer's manual; the decoder against anything."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.plugins.drivers.dynamixel import codec
from cosim.plugins.drivers.dynamixel.codec import Decoder, Packet, RegisterBlock
from cosim.plugins.drivers.dynamixel.packet_link import PacketLink
from cosim.plugins.drivers.dynamixel.sync_reader import INCOMPLETE_NS, SILENT_NS
from cosim.plugins.drivers.transport import now
from cosim.plugins.drivers.transport.compiled_link import FRAME
from tests.kit.serial_line import SerialLine, receive, settle

HEX = bytes.fromhex
OK = b"\0"

# Robotis e-Manual, "DYNAMIXEL Protocol 2.0", the examples under "Instruction Details".
# Fast Bulk Read (0x9A): the manual repeats the CRC of its Fast Sync Read example; DA 2D belongs to the packet itself,
# as the manufacturer's SDK counts it.
GOLDEN = {
    "ping": (codec.packet(1, codec.PING), "FFFFFD00 01 0300 01 194E"),
    "ping all": (codec.packet(codec.BROADCAST, codec.PING), "FFFFFD00 FE 0300 01 3142"),
    "read": (codec.read(1, 132, 4), "FFFFFD00 01 0700 02 84000400 1D15"),
    "write": (codec.write(1, 116, HEX("00020000")), "FFFFFD00 01 0900 03 740000020000 CA89"),
    "reg write": (codec.reg_write(1, 104, HEX("C8000000")), "FFFFFD00 01 0900 04 6800C8000000 AE8E"),
    "action": (codec.packet(1, codec.ACTION), "FFFFFD00 01 0300 05 02CE"),
    "factory reset": (codec.packet(1, codec.FACTORY_RESET, b"\1"), "FFFFFD00 01 0400 06 01 A1E6"),
    "reboot": (codec.packet(1, codec.REBOOT), "FFFFFD00 01 0300 08 2F4E"),
    "clear": (codec.packet(1, codec.CLEAR, codec.MULTI_TURN), "FFFFFD00 01 0800 10 0144584C22 B1DC"),
    "sync read": (codec.sync_read(132, 4, [1, 2]), "FFFFFD00 FE 0900 82 84000400 0102 CEFA"),
    "fast sync read": (codec.sync_read(132, 4, [3, 7, 4], True), "FFFFFD00 FE 0A00 8A 84000400 030704 20F2"),
    "sync write": (
        codec.sync_write(116, 4, HEX("01 96000000 02 AA000000")),
        "FFFFFD00 FE 1100 83 74000400 0196000000 02AA000000 8287",
    ),
    "bulk read": (codec.bulk_read([(1, 144, 2), (2, 146, 1)]), "FFFFFD00 FE 0D00 92 0190000200 0292000100 1A05"),
    "fast bulk read": (
        codec.bulk_read([(3, 132, 4), (7, 124, 2), (4, 146, 1)], True),
        "FFFFFD00 FE 1200 9A 0384000400 077C000200 0492000100 DA2D",
    ),
    "bulk write": (
        codec.bulk_write([(1, 32, HEX("A000")), (2, 31, HEX("50"))]),
        "FFFFFD00 FE 1000 93 0120000200A000 021F00010050 B768",
    ),
    "answer to ping": (codec.status(2, 0, HEX("060426")), "FFFFFD00 02 0700 55 00 060426 6F6D"),
    "answer to read": (codec.status(1, 0, HEX("A6000000")), "FFFFFD00 01 0800 55 00 A6000000 8CC0"),
    "answer to write": (codec.status(1, 0), "FFFFFD00 01 0400 55 00 A10C"),
    "chained answer": (
        codec.chained(
            [
                RegisterBlock(0, 3, HEX("A6000000")),
                RegisterBlock(0, 7, HEX("1F080000")),
                RegisterBlock(0, 4, HEX("FF030000")),
            ],
            24,
        ),
        "FFFFFD00 FE 1900 55 0003A60000008408 00071F08000016CA 0004FF030000D19E",
    ),
    "chained bulk answer": (
        codec.chained(
            [RegisterBlock(0, 3, HEX("A6000000")), RegisterBlock(0, 7, HEX("A501")), RegisterBlock(0, 4, HEX("1F"))], 19
        ),
        "FFFFFD00 FE 1400 55 0003A600000067A4 0007A5012474 00041FD9C1",
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_packets_of_the_manual(name: str) -> None:
    built, published = GOLDEN[name]
    assert built.hex() == HEX(published).hex()
    [packet] = Decoder().feed(built)
    assert (packet.id, packet.instruction) == (built[4], built[7])
    assert packet.params == (built[8:] if "chained" in name else built[8:-2])


def test_stuffing_makes_the_length_and_the_crc() -> None:
    # e-Manual, "Packet Process": FF FF FD within a packet gets a further FD
    packet = codec.write(1, 116, HEX("FFFFFD00"))
    assert packet[:-2] == HEX("FFFFFD00 01 0A00 03 7400 FFFFFDFD00")
    assert Decoder().feed(packet) == [Packet(1, codec.WRITE, HEX("7400 FFFFFD00"))]


PARAMS = st.one_of(st.binary(max_size=60), st.lists(st.sampled_from([0xFF, 0xFD, 0]), max_size=40).map(bytes))


@given(st.integers(0, 252), st.integers(1, 255), PARAMS, st.lists(st.integers(1, 7), max_size=9))
def test_what_is_packed_is_unpacked_however_it_is_cut(
    id: int, instruction: int, params: bytes, cuts: list[int]
) -> None:
    data, decoder, found = codec.packet(id, instruction, params) * 2, Decoder(), []
    assert data.count(codec.HEADER) == 2
    for cut in cuts:
        found += decoder.feed(data[:cut])
        data = data[cut:]
    found += decoder.feed(data)
    assert found == [Packet(id, instruction, params)] * 2
    assert (decoder.lost, decoder.rest) == (0, b"")


def test_the_decoder_resynchronises() -> None:
    good = codec.status(1, 0, b"abcd")
    for damage in (b"noise\xff", good[:9], good[:3], HEX("FFFFFD00 01 FF1F 55"), HEX("FFFFFD00 FD 0400 55")):
        decoder = Decoder()
        packets = decoder.feed(damage + good)
        assert packets == [Packet(1, codec.STATUS, OK + b"abcd")], damage
        assert decoder.lost == 1
    spoiled = bytearray(good)
    spoiled[9] ^= 0x40
    assert Decoder().feed(bytes(spoiled) + good) == [
        Packet(1, codec.DAMAGED, b""),
        Packet(1, codec.STATUS, OK + b"abcd"),
    ]
    # what is no beginning of a packet is not kept
    decoder = Decoder()
    assert decoder.feed(b"x" * 5000 + b"\xff\xff") == []
    assert decoder.rest == b"\xff\xff"


def test_of_a_chain_that_breaks_off_the_whole_blocks_are_good() -> None:
    whole = GOLDEN["chained answer"][0]
    first, second = RegisterBlock(0, 3, HEX("A6000000")), RegisterBlock(0, 7, HEX("1F080000"))
    assert codec.complete_blocks(whole[:24], 4) == [first, second]
    assert codec.complete_blocks(whole[:23], 4) == [first]
    assert codec.complete_blocks(whole[:8] + b"\1" + whole[9:24], 4) == []
    assert codec.complete_blocks(codec.status(1, 0, b"abcd"), 4) == []


def test_lists_in_parameters() -> None:
    rows = [(1, 32, b"ab"), (2, 31, b"c")]
    assert codec.bulk_rows(codec.bulk_write(rows)[8:-2]) == rows
    assert codec.spans(codec.bulk_read([(1, 144, 2)])[8:-2]) == [(1, 144, 2)]
    assert codec.sync_span(codec.sync_read(132, 4, [5])[8:-2]) == (132, 4, b"\5")
    assert codec.bulk_rows(b"\1\0\0\3\0ab") is None
    assert codec.bulk_rows(b"") is None
    assert codec.spans(b"\1\0\0\3") is None
    assert codec.sync_span(b"\1\0\0") is None


# --- chained and late answers in machine code; that packets equal the codec's in Python is conformance ---

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
    assert settle(link, now() + 60 * 10**9) == 1
    assert time.monotonic() - begun < 30.0  # it does not wait for its deadline
