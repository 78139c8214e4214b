"""Read Device Identification, function 43 with MEI type 14 (MODBUS Application Protocol Specification V1.1b3, 6.21):
the basic objects, vendor, product and revision as text. Devices need not have it."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.plugins.drivers.modbus import codec

FUNCTION, MEI = 43, 14
BASIC, INDIVIDUAL = 1, 4  # codes: the basic objects, one of them; 2 and 3 for more of them
BASIC_AND_EACH = 0x81  # conformity: the basic objects, also one by one
HEAD_SIZE = 8  # bytes of an answer before its objects: node, function, MEI, code, conformity, more, next, number


def request(node: int) -> bytes:
    """The frame that requests the basic objects from the first one on."""
    return codec.checked(bytes((node, FUNCTION, MEI, BASIC, 0)))


def answer(node: int, texts: Sequence[str], code: int = BASIC, first: int = 0) -> bytes:
    """The frame with these objects, the first of which has this number, to a request with this code."""
    objects = b"".join(bytes((k, len(text))) + text.encode("ascii") for k, text in enumerate(texts, first))
    return codec.checked(bytes((node, FUNCTION, MEI, code, BASIC_AND_EACH, 0, 0, len(texts))) + objects)


def reply(frame: bytes, texts: Sequence[str]) -> bytes:
    """The answer of a device with these basic objects to a request of function 43."""
    node, mei, code, first = (*frame[:1], *frame[2:5]) if len(frame) == 7 else (frame[0], 0, 0, 0)
    if mei != MEI:
        return codec.refusal_of(node, FUNCTION, codec.ILLEGAL_FUNCTION)
    if not BASIC <= code <= INDIVIDUAL:
        return codec.refusal_of(node, FUNCTION, codec.ILLEGAL_VALUE)
    if code == INDIVIDUAL and first >= len(texts):
        return codec.refusal_of(node, FUNCTION, codec.ILLEGAL_ADDRESS)
    if code == INDIVIDUAL:
        return answer(node, texts[first : first + 1], code, first)
    return answer(node, texts, code)  # a device with basic objects only gives these


def texts(node: int, data: bytes) -> list[str]:
    """The objects in the first complete answer of a node in received bytes; none without one."""
    head, begin = bytes((node, FUNCTION, MEI, BASIC)), -1
    while (begin := data.find(head, begin + 1)) >= 0:  # the first one may be an echo of the request
        if found := _objects(data[begin:]):
            return ["".join(c for c in text if c.isprintable()).strip() for text in found]
    return []


def _objects(data: bytes) -> list[str]:
    """The objects of the answer that begins here; none if it is incomplete or damaged."""
    found, at = [], HEAD_SIZE
    for _ in range(data[HEAD_SIZE - 1] if len(data) >= HEAD_SIZE else 0):
        size = data[at + 1] if len(data) > at + 1 else codec.MAX_FRAME
        found.append(data[at + 2 : at + 2 + size].decode("ascii", "replace"))
        at += 2 + size
    return found if len(data) >= at + 2 and not codec.crc(data[: at + 2]) else []
