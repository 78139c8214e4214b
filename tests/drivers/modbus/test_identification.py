"""The identification of a device: the package `pymodbus` of other authors sends and decodes the same frames."""

import pytest
from pymodbus.framer import FramerRTU
from pymodbus.pdu import DecodePDU
from pymodbus.pdu.mei_message import ReadDeviceInformationRequest

from cosim.drivers.modbus import codec, identification

TEXTS = ("Maker", "Servo 5", "V1.2")


def test_the_request_is_that_of_pymodbus():
    request = ReadDeviceInformationRequest(read_code=1, object_id=0, dev_id=5)
    assert FramerRTU(DecodePDU(True)).buildFrame(request) == identification.request(5)


def test_pymodbus_decodes_the_answer():
    frame = identification.answer(5, TEXTS)
    _, decoded = FramerRTU(DecodePDU(False)).handleFrame(frame, 5, 0)
    assert decoded.dev_id == 5
    assert list(decoded.information.values()) == [text.encode() for text in TEXTS]


def test_an_answer_is_found_among_other_bytes_and_a_damaged_one_is_none():
    frame = identification.answer(5, TEXTS)
    assert identification.texts(5, identification.request(5) + frame) == list(TEXTS)
    assert identification.texts(6, frame) == []
    for k in range(4, len(frame)):
        assert identification.texts(5, frame[:k]) == []
        assert identification.texts(5, frame[:k] + bytes([frame[k] ^ 1]) + frame[k + 1 :]) in ([], list(TEXTS))


@pytest.mark.parametrize(
    ("code", "first", "found"),
    [
        (1, 0, {0: b"Maker", 1: b"Servo 5", 2: b"V1.2"}),
        (2, 0, {0: b"Maker", 1: b"Servo 5", 2: b"V1.2"}),
        (4, 1, {1: b"Servo 5"}),
    ],
)
def test_pymodbus_decodes_what_it_asks_for(code, first, found):
    request = ReadDeviceInformationRequest(read_code=code, object_id=first, dev_id=5)
    frame = identification.reply(FramerRTU(DecodePDU(True)).buildFrame(request), TEXTS)
    _, decoded = FramerRTU(DecodePDU(False)).handleFrame(frame, 5, 0)
    assert decoded.information == found


@pytest.mark.parametrize(("asked", "exception"), [("0e0403", 2), ("0e0500", 3), ("0d0100", 1), ("0e", 1)])
def test_other_requests_are_refused(asked, exception):
    request = codec.checked(bytes.fromhex("052b" + asked))
    assert identification.reply(request, TEXTS) == codec.refusal_of(5, 43, exception)
