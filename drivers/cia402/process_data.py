"""The process data that the driver exchanges, in terms of the objects of CiA 402: what it maps, and what it needs.

Mapped objects are index · 65536 + sub-index · 256 + bits, as in 1600h and 1A00h.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import NamedTuple

CONTROL, MODE, TORQUE, VELOCITY, POSITION = 0x60400010, 0x60600008, 0x60710010, 0x60FF0020, 0x607A0020
VELOCITY_OFFSET, TORQUE_OFFSET = 0x60B10020, 0x60B20010
STATUS, DISPLAY, PLACE, SPEED, EFFORT = 0x60410010, 0x60610008, 0x60640020, 0x606C0020, 0x60770010
TARGETS = {"effort": TORQUE, "velocity": VELOCITY, "position": POSITION}

# per mode, the objects of RPDO1 and RPDO2
RPDO_OBJECTS = {
    "effort": ((CONTROL, TORQUE), ()),
    "velocity": ((CONTROL, VELOCITY, TORQUE_OFFSET), ()),
    "position": ((CONTROL, POSITION, TORQUE_OFFSET), (VELOCITY_OFFSET,)),
}
TPDO_OBJECTS = ((STATUS, DISPLAY, PLACE), (SPEED, EFFORT))
NAMES = {
    CONTROL: "controlword, 6040h",
    TORQUE: "target torque, 6071h",
    VELOCITY: "target velocity, 60FFh",
    POSITION: "target position, 607Ah",
    VELOCITY_OFFSET: "velocity offset, 60B1h",
    TORQUE_OFFSET: "torque offset, 60B2h",
    STATUS: "statusword, 6041h",
    DISPLAY: "mode display, 6061h",
    PLACE: "position, 6064h",
    SPEED: "velocity, 606Ch",
    EFFORT: "torque, 6077h",
}


def indispensable(mode: str) -> tuple[int, ...]:
    """What the process data of a drive that cannot be mapped must have."""
    return CONTROL, TARGETS[mode], STATUS, PLACE, EFFORT


def needed(mode: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(received, transmitted) by the drive in a mode, all that the driver maps."""
    return tuple(sum(RPDO_OBJECTS[mode], ())), tuple(sum(TPDO_OBJECTS, ()))


def named(objects: Iterable[int]) -> str:
    return ", ".join(f"{NAMES[each]}" for each in objects)


class ProcessMap(NamedTuple):
    """The process data of a drive that has its own: number of each PDO, from 0, and what is mapped to it, in order.

    constants: of mapped objects that are neither commanded nor known here, the value that is sent.
    """

    receive: tuple[tuple[int, tuple[int, ...]], ...]
    transmit: tuple[tuple[int, tuple[int, ...]], ...]
    constants: dict[int, int]

    @property
    def received(self) -> frozenset[int]:
        return frozenset(each for _, objects in self.receive for each in objects)

    @property
    def transmitted(self) -> frozenset[int]:
        return frozenset(each for _, objects in self.transmit for each in objects)

    def lacks(self, mode: str) -> tuple[int, ...]:
        """What a mode cannot do without. It can do without offsets and the display of the mode, and without velocities,
        which the positions give."""
        own = self.received | self.transmitted
        return tuple(each for each in indispensable(mode) if each not in own)


def size(objects: Iterable[int]) -> int:
    """Bytes of a PDO."""
    return sum(each & 0xFF for each in objects) // 8


def mapped(mode: str, temperature: int | None) -> ProcessMap:
    """What the driver maps in a mode where it can. temperature: the mapped object with it."""
    first, second = TPDO_OBJECTS
    transmit = first, second if temperature is None else (*second, temperature)
    receive = [(number, objects) for number, objects in enumerate(RPDO_OBJECTS[mode]) if objects]
    return ProcessMap(tuple(receive), tuple(enumerate(transmit)), {})


def chosen(own: ProcessMap, mode: str, temperature: int | None) -> ProcessMap:
    """The PDOs of a drive that a mode needs: the first one with each object that is not in one before."""

    def first(pdos: Iterable[tuple[int, tuple[int, ...]]], wanted: Iterable[int | None]) -> dict[int, tuple[int, ...]]:
        found: dict[int, tuple[int, ...]] = {}
        for each in wanted:
            if not any(each in objects for objects in found.values()):
                found |= next(({number: objects} for number, objects in pdos if each in objects), {})
        return found

    receive = first(own.receive, (*commanded(mode), CONTROL))
    transmit = first(own.transmit, (PLACE, STATUS, SPEED, EFFORT, DISPLAY, temperature))
    return ProcessMap(tuple(sorted(receive.items())), tuple(sorted(transmit.items())), own.constants)


def commanded(mode: str) -> dict[int, int]:
    """Mapped object -> its place among the numbers of a command in a mode: target, torque offset, velocity offset."""
    offsets = {"effort": (), "velocity": (TORQUE_OFFSET,), "position": (TORQUE_OFFSET, VELOCITY_OFFSET)}[mode]
    return {each: place for place, each in enumerate((TARGETS[mode], *offsets))}


_UNSIGNED, _SIGNED = {8: "B", 16: "H", 32: "I"}, {8: "b", 16: "h", 32: "i"}
_SIGNED_OBJECTS = frozenset((MODE, TORQUE, VELOCITY, POSITION, VELOCITY_OFFSET, TORQUE_OFFSET))


def letter(mapped: int) -> str:
    """The letter of `struct` for a mapped object; bytes for one of another size."""
    bits = mapped & 0xFF
    letters = _SIGNED if mapped in _SIGNED_OBJECTS else _UNSIGNED
    return letters.get(bits, f"{bits // 8}s")


class CommandCoder:
    """The data of the PDOs of a command to a drive; mode: the one that they are for."""

    def __init__(self, own: ProcessMap, mode: str, code: int) -> None:
        """code: of the mode, sent where 6060h is mapped."""
        self.mode, self._places = mode, commanded(mode)
        self._pdos = [(number, objects, Struct("<" + "".join(map(letter, objects)))) for number, objects in own.receive]
        self._constants = own.constants | {MODE: code}

    def data(self, control: int, numbers: Sequence[int]) -> list[tuple[int, bytes]]:
        """(number of the PDO, its data). numbers: as in `commanded`."""
        return [
            (number, packer.pack(*(self._value(each, control, numbers) for each in objects)))
            for number, objects, packer in self._pdos
        ]

    def _value(self, mapped: int, control: int, numbers: Sequence[int]) -> int | bytes:
        if mapped == CONTROL:
            return control
        place = self._places.get(mapped)
        value = self._constants.get(mapped, 0) if place is None else numbers[place]
        return value if mapped & 0xFF in _UNSIGNED else value.to_bytes((mapped & 0xFF) // 8, "little")
