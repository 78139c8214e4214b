"""The frames of one drive by the cycle of its family."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cosim.core.types import COMMAND
from cosim.plugins.drivers.common.cycle import Reception, Transmission
from cosim.plugins.drivers.common.frame_layout import packer, unpacker
from cosim.plugins.drivers.common.interpreted_cycle import InterpretedCycle


def data_of(transmission: Transmission, *numbers: float) -> list[bytes]:
    """The data of the frames that it is sent with these numbers."""
    return [packer(sent, [list(numbers)])() for sent in transmission.frames]


def numbers_in(reception: Reception, data: bytes, which: int = 0) -> list[float] | None:
    """What its frame with this number holds; None if it is damaged."""
    numbers = list(reception.numbers)
    return numbers if unpacker(reception.frames[which], numbers)(data) else None


def commanded(
    reception: Reception, transmission: Transmission, settings: Sequence[float], **command: float
) -> list[bytes]:
    """The data of the frames for a command in SI units at the drive."""
    cycle = InterpretedCycle(reception, [list(settings)])
    cycle.send_as(transmission)
    cycle.wire([1.0], [0.0], [math.inf])
    cycle.fill([tuple(command.get(name, 0.0) for name in COMMAND)])
    return [make().data for sent, make in cycle.due() if sent.fields]


def state_in(reception: Reception, settings: Sequence[float], *data: bytes) -> list[float] | None:
    """The state after its frames with these data, see `cycle`; None if they are no measurement."""
    cycle = InterpretedCycle(reception, [list(settings)])
    for received, content in zip(reception.frames, data, strict=False):
        cycle.take(received.frame._replace(data=content, t_ns=1))
    cycle.measure()
    return cycle.states[0] if cycle.times[0] else None
