"""The registers of a Damiao drive that are settings, by their names in the manufacturer's table, and how it keeps them.

Its receive and feedback ids, its bit rate, and what every run sets itself (time-out, control mode) are not among them.
"""

from __future__ import annotations

from cosim.plugins.drivers.mit import codec
from cosim.plugins.drivers.transport import CanFrame

STORE, ALL = 0xAA, 1  # keep the registers without power; a drive that is off only
STORE_TIME = 0.2  # s; it is not acknowledged
SETTINGS = {
    "UV_Value": 0,
    "KT_Value": 1,
    "OT_Value": 2,
    "OC_Value": 3,
    "ACC": 4,
    "DEC": 5,
    "MAX_SPD": 6,
    "PMAX": 21,
    "VMAX": 22,
    "TMAX": 23,
    "I_BW": 24,
    "KP_ASR": 25,
    "KI_ASR": 26,
    "KP_APR": 27,
    "KI_APR": 28,
    "OV_Value": 29,
    "GREF": 30,
    "Deta": 31,
    "V_BW": 32,
    "IQ_c1": 33,
    "VL_c1": 34,
}


def store(id: int) -> CanFrame:
    """What lets a drive keep its registers."""
    return CanFrame(codec.REGISTERS, bytes((id & 0xFF, id >> 8, STORE, ALL, 0, 0, 0, 0)))


def stored_by(frame: CanFrame) -> int | None:
    """The id of the drive that keeps its registers after this frame; None for another frame."""
    if len(frame.data) != 8 or frame.extended or frame.remote or frame.data[2] != STORE:
        return None
    return int.from_bytes(frame.data[:2], "little")
