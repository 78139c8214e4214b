"""The packets of every cycle: goals to all drives in one packet, their state in one answer.

The registers of the state are mapped to consecutive indirect addresses. One read so includes faults, a tripped watchdog
and the restart of a drive, in fewer bytes than the range from the present current to the present temperature has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosim.core.types import Array
from cosim.plugins.drivers.dynamixel import codec
from cosim.plugins.drivers.dynamixel import tables as t
from cosim.plugins.drivers.transport import Traffic

# registers of the state, in the order of the packet
MAPPED = (
    ("torque", "u1", t.TORQUE_ENABLE),
    ("level", "u1", t.RETURN_LEVEL),  # never 0 in a drive that answers, if the mapping is set
    ("hardware", "u1", t.HARDWARE_ERROR),
    ("watchdog", "u1", t.BUS_WATCHDOG),
    ("current", "<i2", t.PRESENT_CURRENT),
    ("velocity", "<i4", t.PRESENT_VELOCITY),
    ("position", "<i4", t.PRESENT_POSITION),
    ("temperature", "i1", t.PRESENT_TEMPERATURE),
)
MAP_ADDRESS, ADDRESS, _ = t.INDIRECT[0]
STATE = np.dtype([("error", "u1"), ("id", "u1"), *((name, kind) for name, kind, _ in MAPPED), ("crc", "<u2")])
SIZE = STATE.itemsize - 4  # bytes of one drive without error byte, id and CRC
MAP = b"".join((register.address + k).to_bytes(2, "little") for _, _, register in MAPPED for k in range(register.size))

GOALS = {"effort": t.GOAL_CURRENT, "velocity": t.GOAL_VELOCITY, "position": t.GOAL_POSITION}


class Goals:
    """The packet with one goal for each of n drives."""

    def __init__(self, ids: Sequence[int], mode: str) -> None:
        register = GOALS[mode]
        self._address, self._size = register.address, register.size
        self._rows = np.zeros(len(ids), dtype=[("id", "u1"), ("goal", f"<i{register.size}")])
        self._rows["id"] = list(ids)

    def packet(self, goals: Array) -> bytes:
        """goals: (n,) whole numbers in the range of the register."""
        self._rows["goal"] = goals
        return codec.sync_write(self._address, self._size, self._rows.tobytes())


def request(ids: Sequence[int], fast: bool) -> bytes:
    return codec.sync_read(ADDRESS, SIZE, ids, fast)


def answer_size(n: int, fast: bool) -> int:
    """Bytes of the answers of n drives; single answers are longer with byte stuffing."""
    return len(codec.chained([], 0)) + n * STATE.itemsize if fast else n * len(codec.status(0, 0, bytes(SIZE)))


def traffic(ids: Sequence[int], mode: str, fast: bool) -> Traffic:
    """The packets of one cycle."""
    data = bytes(SIZE)
    if fast:
        back = [codec.chained([codec.RegisterBlock(0, id, data) for id in ids], len(ids) * STATE.itemsize)]
    else:
        back = [codec.status(id, 0, data) for id in ids]
    return Traffic([Goals(ids, mode).packet(np.zeros(len(ids))), request(ids, fast)], back)
