"""Drives in other units than counts of their encoder: settings of the emulated drive, and what the rig has to say."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple


class Variant(NamedTuple):
    """drive: settings of the emulated drive; known: whether its unit of velocity is; wired: keys of the joint."""

    drive: dict[str, Any]
    known: bool = True
    wired: Mapping[str, Any] = MappingProxyType({})


VARIANTS = {
    "feed constant": Variant({"encoder_resolution": 131072, "feed_constant": 10000}, known=False),
    "feed constant and factor": Variant(
        {"encoder_resolution": 131072, "feed_constant": 10000, "report": "factor", "velocity_unit": "mrpm"}
    ),
    "gear in the drive": Variant({"gear_ratio": 50.0, "feed_constant": 360000, "velocity_unit": "0.01 rpm"}),
    "rpm that it does not report": Variant({"velocity_unit": "rpm", "report": "none"}, known=False),
    "rpm that the rig declares": Variant(
        {"velocity_unit": "0.1 rpm", "report": "none"}, wired={"velocity_unit": "0.1 rpm"}
    ),
    "rated torque in µN·m": Variant({"torque_unit": "uN*m"}, wired={"rated_torque": 2.0 / 3.0}),
    "maxon EPOS4": Variant(
        {"torque_unit": "uN*m", "velocity_unit": "rpm"}, wired={"vendor": 0xFB, "product": 0x69500000}
    ),
    "reversed": Variant({"reversed": True}),
    "process data of its own": Variant({"fixed_maps": True, "velocity_unit": "mrpm"}),
}
