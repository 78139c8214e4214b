"""The identification of a device: the package `pymodbus` of other authors sends and decodes the same frames."""

from __future__ import annotations

from pymodbus.framer import FramerRTU
from pymodbus.pdu import DecodePDU
from pymodbus.pdu.mei_message import ReadDeviceInformationRequest

from cosim.drivers.modbus import identification

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


def test_requests_are_taken_out_of_received_bytes():
    assert identification.split(b"ab" + identification.request(7) + b"c", (5, 7)) == ([7], b"abc")
