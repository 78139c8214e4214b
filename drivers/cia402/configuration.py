"""The configuration of a CiA 402 drive: its limits, ramps, options and gains in the object dictionary.

What the driver sets itself in every run (mode, process data, heartbeat, torque limit) is not part of it. A drive keeps
what was written if it has the object 1010h.
"""

from __future__ import annotations

from collections.abc import Mapping

from cosim.core.errors import RunError
from cosim.plugins.drivers.cia402.driver import Cia402Driver

STORE, SAVE = 0x101001, int.from_bytes(b"save", "little")
STORE_NS = 3_000_000_000  # for writing into a memory without power
# name -> key, kind; the names of CiA 402-2. The factor group comes first: the numbers after it are in its units
OBJECTS: dict[str, tuple[int, str]] = {
    "607E polarity": (0x607E00, "B"),
    "608F.1 encoder increments": (0x608F01, "I"),
    "608F.2 motor revolutions": (0x608F02, "I"),
    "6091.1 motor shaft revolutions": (0x609101, "I"),
    "6091.2 driving shaft revolutions": (0x609102, "I"),
    "6092.1 feed": (0x609201, "I"),
    "6092.2 driving shaft revolutions": (0x609202, "I"),
    "6096.1 velocity factor, numerator": (0x609601, "I"),
    "6096.2 velocity factor, divisor": (0x609602, "I"),
    "6097.1 acceleration factor, numerator": (0x609701, "I"),
    "6097.2 acceleration factor, divisor": (0x609702, "I"),
    "60A8 SI unit position": (0x60A800, "I"),
    "60A9 SI unit velocity": (0x60A900, "I"),
    "605A quick stop option": (0x605A00, "h"),
    "605D halt option": (0x605D00, "h"),
    "605E fault reaction option": (0x605E00, "h"),
    "6065 following error window": (0x606500, "I"),
    "6066 following error time out": (0x606600, "H"),
    "6067 position window": (0x606700, "I"),
    "606D velocity window": (0x606D00, "H"),
    "607C home offset": (0x607C00, "i"),
    "607D.1 min position limit": (0x607D01, "i"),
    "607D.2 max position limit": (0x607D02, "i"),
    "6080 max motor speed": (0x608000, "I"),
    "6081 profile velocity": (0x608100, "I"),
    "6083 profile acceleration": (0x608300, "I"),
    "6084 profile deceleration": (0x608400, "I"),
    "6085 quick stop deceleration": (0x608500, "I"),
    "6098 homing method": (0x609800, "b"),
    "6099.1 speed during search for switch": (0x609901, "I"),
    "6099.2 speed during search for zero": (0x609902, "I"),
    "609A homing acceleration": (0x609A00, "I"),
    "60F9.1 velocity gain": (0x60F901, "I"),
    "60F9.2 velocity integral time": (0x60F902, "H"),
    "60FB.1 position gain": (0x60FB01, "H"),
}


def read(driver: Cia402Driver, k: int) -> dict[str, int]:
    """Name -> value of the objects that the drive of joint k has. Raises RunError for one that does not answer."""
    client, node = driver._client, driver._nodes[k]
    values = {name: client.read_optional(node, key, kind) for name, (key, kind) in OBJECTS.items()}
    return {name: value for name, value in values.items() if value is not None}


def write(driver: Cia402Driver, k: int, changes: Mapping[str, float]) -> None:
    """Write objects of a drive that is off, and let it keep them. Raises RunError for one that it refuses."""
    client, node = driver._client, driver._nodes[k]
    for name in (name for name in changes if name not in OBJECTS):
        raise RunError(f"joint '{driver.joints[k]}': there is no object '{name}' to set; take it out")
    for name, value in ((name, changes[name]) for name in OBJECTS if name in changes):
        driver._call(k, lambda k, name=name, value=value: client.write(node, *OBJECTS[name], int(value)))
    if client.read_optional(node, STORE, "I") is not None:
        driver._call(k, lambda k: client.write(node, STORE, "I", SAVE, STORE_NS))
