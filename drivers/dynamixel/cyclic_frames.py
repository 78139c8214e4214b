"""The packets of every cycle: goals to all drives in one packet, their state in one answer.

The registers of the state are mapped to consecutive indirect addresses. One read so includes faults, a tripped watchdog
and the restart of a drive, in fewer bytes than the range from the present current to the present temperature has.
"""

from __future__ import annotations

from collections.abc import Sequence

from cosim.plugins.drivers.common.frame_layout import Kind
from cosim.plugins.drivers.dynamixel import codec
from cosim.plugins.drivers.dynamixel import tables as t
from cosim.plugins.drivers.transport import Traffic

# registers of the state, in the order of the packet; if they are mapped, the level of a drive that answers is not 0
MAPPED = (
    (Kind.UINT8, t.TORQUE_ENABLE),
    (Kind.UINT8, t.RETURN_LEVEL),
    (Kind.UINT8, t.HARDWARE_ERROR),
    (Kind.UINT8, t.BUS_WATCHDOG),
    (Kind.INT16, t.PRESENT_CURRENT),
    (Kind.INT32, t.PRESENT_VELOCITY),
    (Kind.INT32, t.PRESENT_POSITION),
    (Kind.INT8, t.PRESENT_TEMPERATURE),
)
MAP_ADDRESS, ADDRESS, _ = t.INDIRECT[0]
STATE_BYTES = sum(register.size for _, register in MAPPED)  # of one drive
BLOCK = STATE_BYTES + 4  # with error byte, id and CRC, in a chained answer
MAP = b"".join((register.address + k).to_bytes(2, "little") for _, register in MAPPED for k in range(register.size))

GOALS = {
    "effort": (Kind.INT16, t.GOAL_CURRENT),
    "velocity": (Kind.INT32, t.GOAL_VELOCITY),
    "position": (Kind.INT32, t.GOAL_POSITION),
}


def goals(ids: Sequence[int], mode: str) -> bytes:
    """The packet with a goal of 0 for each drive."""
    _, register = GOALS[mode]
    return codec.sync_write(register.address, register.size, b"".join(bytes((id, *bytes(register.size))) for id in ids))


def request(ids: Sequence[int], fast: bool) -> bytes:
    return codec.sync_read(ADDRESS, STATE_BYTES, ids, fast)


def answer_size(n: int, fast: bool) -> int:
    """Bytes of the answers of n drives; single answers are longer with byte stuffing."""
    return len(codec.chained([], 0)) + n * BLOCK if fast else n * len(codec.status(0, 0, bytes(STATE_BYTES)))


def traffic(ids: Sequence[int], mode: str, fast: bool) -> Traffic:
    """The packets of one cycle."""
    data = bytes(STATE_BYTES)
    if fast:
        back = [codec.chained([codec.RegisterBlock(0, id, data) for id in ids], len(ids) * BLOCK)]
    else:
        back = [codec.status(id, 0, data) for id in ids]
    return Traffic([goals(ids, mode), request(ids, fast)], back)
