"""Frames against the examples of the specification, and against the frames of the package pymodbus."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymodbus.framer import FramerRTU
from pymodbus.pdu import DecodePDU, ExceptionResponse, register_message

from cosim.plugins.drivers.modbus import codec
from cosim.plugins.drivers.modbus.codec import RtuRequest
from tests.conformance.families import FLOATS, WHOLE_NUMBERS, Case
from tests.drivers.loading import mistakes_of

NODE = 0x11
# MODBUS Application Protocol Specification V1.1b3: request, its bytes, the answer's, the words read
EXAMPLES = {
    "6.3": (RtuRequest(NODE, 3, 0x6B, 3), "03 00 6B 00 03", "03 06 02 2B 00 00 00 64", (0x022B, 0, 0x64)),
    "6.4": (RtuRequest(NODE, 4, 8, 1), "04 00 08 00 01", "04 02 00 0A", (10,)),
    "6.6": (RtuRequest(NODE, 6, at=1, words=(3,)), "06 00 01 00 03", "06 00 01 00 03", ()),
    "6.12": (RtuRequest(NODE, 16, at=1, words=(10, 0x102)), "10 00 01 00 02 04 00 0A 01 02", "10 00 01 00 02", ()),
    "6.17": (
        RtuRequest(NODE, 23, 3, 6, 14, (255, 255, 255)),
        "17 00 03 00 06 00 0E 00 03 06 00 FF 00 FF 00 FF",
        "17 0C 00 FE 0A CD 00 01 00 03 00 0D 00 FF",
        (0xFE, 0x0ACD, 1, 3, 13, 0xFF),
    ),
}
words = st.integers(0, 0xFFFF)
addresses = st.integers(0, 0xFF00)
nodes = st.integers(1, 247)
requests = st.one_of(
    st.builds(lambda *head: RtuRequest(*head), nodes, st.sampled_from([3, 4]), addresses, st.integers(1, 125)),
    st.builds(lambda node, at, word: RtuRequest(node, 6, at=at, words=(word,)), nodes, addresses, words),
    st.builds(
        lambda node, at, data: RtuRequest(node, 16, at=at, words=tuple(data)),
        nodes,
        addresses,
        st.lists(words, min_size=1, max_size=123),
    ),
    st.builds(
        lambda node, register, count, at, data: RtuRequest(node, 23, register, count, at, tuple(data)),
        nodes,
        addresses,
        st.integers(1, 125),
        addresses,
        st.lists(words, min_size=1, max_size=121),
    ),
)
of_requests, of_answers = FramerRTU(DecodePDU(True)), FramerRTU(DecodePDU(False))


def framed(text: str) -> bytes:
    """A frame of the node with these bytes of function and data."""
    return codec.checked(bytes((NODE,)) + bytes.fromhex(text))


@pytest.mark.parametrize("section", EXAMPLES)
def test_the_examples_of_the_specification(section):
    request, sent, answered, read = EXAMPLES[section]
    assert codec.encode(request) == framed(sent)
    assert codec.decode(framed(sent)) == request
    assert codec.answer(request, read) == framed(answered)
    assert codec.find_answer(request, framed(answered)) == framed(answered)
    assert codec.read_words(framed(answered)) == read or not request.quantity


def test_checksums_and_exceptions_of_the_specification():
    """MODBUS over Serial Line V1.02, 6.2.2: the frame 02 07 has the CRC 1241h, sent as 41 12; and the check value of
    CRC-16/MODBUS in the catalogue of parametrised CRC algorithms."""
    assert codec.checked(b"\x02\x07").hex() == "02074112"
    assert codec.crc(b"123456789") == 0x4B37
    # v1.1b3, 7: the function with its highest bit set, and the exception code
    request = EXAMPLES["6.3"][0]
    assert codec.refusal(request, 2) == framed("83 02")
    assert codec.find_answer(request, framed("83 02")) == framed("83 02")


def witness(request: RtuRequest) -> bytes:
    """The frame that pymodbus makes of a request."""
    node, function, register, count, at, data = request
    kinds = register_message
    pdu = {
        3: lambda: kinds.ReadHoldingRegistersRequest(address=register, count=count, dev_id=node),
        4: lambda: kinds.ReadInputRegistersRequest(address=register, count=count, dev_id=node),
        6: lambda: kinds.WriteSingleRegisterRequest(address=at, registers=list(data), dev_id=node),
        16: lambda: kinds.WriteMultipleRegistersRequest(address=at, registers=list(data), dev_id=node),
        23: lambda: kinds.ReadWriteMultipleRegistersRequest(
            read_address=register, read_count=count, write_address=at, write_registers=list(data), dev_id=node
        ),
    }[function]()
    return of_requests.buildFrame(pdu)


@given(requests)
def test_requests_are_those_of_pymodbus(request):
    frame = codec.encode(request)
    assert frame == witness(request)
    assert codec.decode(frame) == request
    assert codec.split(frame) == ([frame], b"")


@given(requests, st.randoms(use_true_random=False))
def test_answers_are_read_by_pymodbus(request, dice):
    data = [dice.getrandbits(16) for _ in range(request.quantity)]
    frame = codec.answer(request, data)
    assert codec.find_answer(request, frame) == frame
    _, pdu = of_answers.handleFrame(frame, request.node, 0)
    assert pdu.dev_id == request.node and pdu.function_code == request.function
    if request.quantity:
        assert list(codec.read_words(frame)) == pdu.registers == data
    _, pdu = of_answers.handleFrame(codec.refusal(request, 3), request.node, 0)
    assert isinstance(pdu, ExceptionResponse) and pdu.exception_code == 3


@given(requests, st.binary(max_size=20), st.binary(max_size=20))
def test_an_answer_is_found_between_other_bytes(request, before, after):
    frame = codec.answer(request, [7] * request.quantity)
    assert codec.find_answer(request, before + frame + after) is not None
    assert codec.find_answer(request, frame[:-1]) is None


@given(requests, requests, st.integers(0, 600))
def test_requests_in_chunks_cut_anywhere_are_complete(first, second, cut):
    stream = codec.encode(first) + codec.encode(second)
    frames, rest = codec.split(stream[:cut])
    more, end = codec.split(rest + stream[cut:])
    assert [codec.decode(frame) for frame in frames + more] == [first, second] and end == b""


@given(requests, st.integers(0), st.integers(0, 7))
def test_a_damaged_request_is_none(request, at, bit):
    frame = bytearray(codec.encode(request))
    frame[at % len(frame)] ^= 1 << bit
    assert codec.decode(bytes(frame)) is None


@pytest.mark.parametrize("low_first", [False, True])
@pytest.mark.parametrize("kind", codec.TYPES)
def test_values_in_registers(kind, low_first):
    _, low, high = codec.TYPES[kind]
    dice = np.random.default_rng(1)
    for value in (0.0, low, high, *dice.uniform(low, high, 100)):
        found = codec.from_words(codec.to_words(value, kind, low_first), kind, low_first)
        assert found == (pytest.approx(value, rel=1e-6) if kind == "float32" else round(value))
    assert codec.from_words(codec.to_words(1e39, kind, low_first), kind, low_first) == pytest.approx(high, rel=1e-6)
    assert codec.from_words(codec.to_words(-1e39, kind, low_first), kind, low_first) == pytest.approx(low, rel=1e-6)


def test_the_order_of_words():
    assert codec.to_words(0x12345678, "int32") == (0x1234, 0x5678)
    assert codec.to_words(0x12345678, "int32", low_first=True) == (0x5678, 0x1234)
    assert codec.to_words(1.0, "float32") == (0x3F80, 0)
    assert codec.to_words(-1, "int16") == (0xFFFF,)


# --- mistakes in the map of registers: one line each, at its place ---

CASE = Case("modbus", "pty", stepped=True)
CONTROL = {"register": 1, "clear": [2], "off": [0]}
# a map, and what is changed in it; None: it has no such key
MISTAKES = {
    "no position": (WHOLE_NUMBERS, {"position": None}),
    "unknown point": (WHOLE_NUMBERS, {"efort_target": {"register": 1}}),
    "no register": (WHOLE_NUMBERS, {"velocity": {"type": "int32"}}),
    "no type": (WHOLE_NUMBERS, {"velocity": {"register": 1, "type": "int64"}}),
    "another unit": (WHOLE_NUMBERS, {"effort": {"register": 1, "scale": "1 A"}}),
    "too large": (WHOLE_NUMBERS, {"effort": {"register": 70000}}),
    "no target": (WHOLE_NUMBERS, dict.fromkeys(("effort_target", "velocity_target", "position_target"))),
    "not this target": (WHOLE_NUMBERS, {"effort_target": None}),
    "functions": (WHOLE_NUMBERS, {"read": 4}),
    "two registers by one": (FLOATS, {"write": 6}),
    "words": (WHOLE_NUMBERS, {"control": {**CONTROL, "on": []}}),
    "on is off": (WHOLE_NUMBERS, {"control": {**CONTROL, "on": [1, 0]}}),
    "faults": (WHOLE_NUMBERS, {"faults": {"high": "overcurrent"}}),
}


def mistake(folder, b, **keys) -> str:
    (what,) = mistakes_of(folder, CASE, {"id": 1, "registers": WHOLE_NUMBERS}, {"id": 2, **b}, **keys)
    return what


@pytest.mark.parametrize("change", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_the_map_is_one_line_at_its_place(change, tmp_path, said):
    registers = {key: value for key, value in {**change[0], **change[1]}.items() if value is not None}
    what = mistake(tmp_path, {"registers": registers}, watchdog=0.2)
    assert what.startswith("drivers[0].joints.b.registers")
    said(what)


def test_mistakes_beside_the_map(tmp_path, said):
    said(mistake(tmp_path, {}))
    said(mistake(tmp_path, {"registers": WHOLE_NUMBERS}, watchdog=0.03))  # it would trip between two commands
    # each an exchange of 15 and 21 bytes, a response and a pause of 1.75 ms, 2 · 80.5 ms at 1 Mbit/s
    said(mistake(tmp_path, {"registers": WHOLE_NUMBERS}, watchdog=0.2, response_time=0.08))
