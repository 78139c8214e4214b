"""The configuration of a VESC: its motor's and its app's, as the firmware stores them.

What the bytes mean changes with the firmware. They are kept as they are, in numbers of four bytes by their place, and
written to a drive of the same firmware only; the firmware refuses others by their signature, the first four bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from cosim.core.errors import RunError
from cosim.plugins.drivers.vesc import codec
from cosim.plugins.drivers.vesc.driver import VescDriver

SET_MCCONF, SET_APPCONF = 13, 16
PARTS = {"motor": (codec.GET_MCCONF, SET_MCCONF), "app": (codec.GET_APPCONF, SET_APPCONF)}
OWN = {"app": (4, 5)}  # bytes that say which drive it is, and not how it is set: its id
FIRMWARE = "firmware"
WIDTH = 4  # bytes of a number
ANSWER_TIME = 1.0  # s: a configuration is stored first


def read(driver: VescDriver, k: int) -> dict[str, int]:
    """Name -> number of the drive of joint k. Raises RunError for one that does not answer."""
    version = _exchange(driver, k, bytes([codec.FW_VERSION]))
    values = {FIRMWARE: 100 * version[1] + version[2]}
    for part, (get, _) in PARTS.items():
        blob = _exchange(driver, k, bytes([get]))[1:]
        values |= {_name(part, *span): int.from_bytes(blob[slice(*span)], "big") for span in _spans(part, len(blob))}
    return values


def write(driver: VescDriver, k: int, changes: Mapping[str, float]) -> None:
    """Store numbers of a drive that is off. Raises RunError for another firmware, and for a drive that refuses them."""
    if any(name == FIRMWARE or name.endswith(_name("", 0, WIDTH)) for name in changes):
        own = read(driver, k)[FIRMWARE]
        saved = int(changes.get(FIRMWARE, own))
        build = f"firmware {_version(saved)}, the drive has {_version(own)}"
        what = f"the settings are of {build if saved != own else 'another build of its firmware'}"
        raise RunError(f"joint '{driver.joints[k]}': {what}; install that one, or set the drive up and save it again")
    for part, (get, set_) in PARTS.items():
        blob = bytearray(_exchange(driver, k, bytes([get]))[1:])
        spans = {_name(part, *span): span for span in _spans(part, len(blob))}
        own = {name: value for name, value in changes.items() if name in spans}
        for name, value in own.items():
            begin, end = spans[name]
            blob[begin:end] = int(value).to_bytes(end - begin, "big")
        if own:
            _exchange(driver, k, bytes([set_]) + blob)


def _spans(part: str, size: int) -> list[tuple[int, int]]:
    """The numbers of a configuration, without what is the drive's own."""
    begin, end = OWN.get(part, (size, size))
    ranges = (range(0, begin, WIDTH), begin), (range(end, size, WIDTH), size)
    return [(at, min(at + WIDTH, last)) for starts, last in ranges for at in starts]


def _name(part: str, begin: int, end: int) -> str:
    return f"{part} bytes {begin}-{end - 1}"


def _version(number: int) -> str:
    return f"{number // 100}.{number % 100:02d}"


def _exchange(driver: VescDriver, k: int, content: bytes) -> bytes:
    """The answer of a drive with the same command. Raises RunError."""
    link, wire = driver.link, driver._wire
    until = link.now() + round(ANSWER_TIME * 1e9)
    for item in wire.request(driver._wiring[k], content):
        link.send(item, until)
    while (item := link.receive(until)) is not None:
        for id, answer in wire.contents(item):
            if answer[0] == content[0] and id in (None, driver._wiring[k].id):
                return answer
    what = f"node {driver._wiring[k].id} does not answer command {content[0]}"
    raise RunError(f"joint '{driver.joints[k]}': {what}; check its cable, and whether its firmware is open to changes")
