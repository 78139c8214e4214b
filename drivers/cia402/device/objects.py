"""The object dictionary of the emulated drive: CiA 301 communication objects and CiA 402 drive objects, one table.

Keys are index · 256 + sub-index. Kinds are the letters of `struct`; "" is a string.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

VENDOR, PRODUCT, REVISION, SERIAL = 0x0000FFFF, 0x00000402, 0x00010000, 1
SERVO_DRIVE = 0x00020192  # device type: profile 402 in the lower half, servo drive in the upper
INCREMENTS = 0x00B50000  # SI unit position
SUPPORTED_MODES = 0x3A5  # profile position and velocity, homing, cyclic synchronous position, velocity and torque
INVALID = 0x80000000  # bit 31 of a COB-ID: the PDO does not exist
NO_REMOTE = 0x40000000  # bit 30: not sent on request
ERRORS_KEPT = 8
PDOS = range(4)
MOST_MAPPED = 8  # objects that one PDO can hold


class ObjectEntry(NamedTuple):
    """An entry of the object dictionary of an emulated drive."""

    name: str
    kind: str
    access: str = "rw"  # rw, ro, const
    default: int | str = 0
    mapping: str = ""  # r: into receive PDOs, t: into transmit PDOs
    low: int | None = None
    high: int | None = None
    choices: tuple[int, ...] = ()
    per_node: bool = False  # the node's id is added to the default


PACKERS = {kind: Struct("<" + kind) for kind in "BbHhIi"}
HOMING_METHODS = tuple(k for k in range(-4, 38) if k not in (15, 16, 31, 32, 36))  # without the reserved ones
I32 = (-(2**31), 2**31 - 1)


def _communication() -> dict[int, ObjectEntry]:
    table = {
        0x100000: ObjectEntry("device type", "I", "ro", SERVO_DRIVE),
        0x100100: ObjectEntry("error register", "B", "ro", mapping="t"),
        0x100300: ObjectEntry("number of errors", "B", "rw", high=0),
        0x100500: ObjectEntry("COB-ID SYNC", "I", "rw", 0x80, low=1, high=0x7FF),
        0x100800: ObjectEntry("manufacturer device name", "", "const", "emulated CiA 402 drive"),
        0x100900: ObjectEntry("manufacturer hardware version", "", "const", "1.0"),
        0x100A00: ObjectEntry("manufacturer software version", "", "const", "1.0.0"),
        0x101400: ObjectEntry("COB-ID EMCY", "I", "ro", 0x80, per_node=True),
        0x101600: ObjectEntry("heartbeat consumers", "B", "const", 2),
        0x101601: ObjectEntry("consumer heartbeat time 1", "I", high=0x7FFFFF),
        0x101602: ObjectEntry("consumer heartbeat time 2", "I", high=0x7FFFFF),
        0x101700: ObjectEntry("producer heartbeat time", "H"),
        0x101800: ObjectEntry("identity entries", "B", "const", 4),
        0x101801: ObjectEntry("vendor", "I", "ro", VENDOR),
        0x101802: ObjectEntry("product code", "I", "ro", PRODUCT),
        0x101803: ObjectEntry("revision number", "I", "ro", REVISION),
        0x101804: ObjectEntry("serial number", "I", "ro", SERIAL),
        0x102900: ObjectEntry("error classes", "B", "const", 1),
        0x102901: ObjectEntry("reaction to communication errors", "B", high=2),
        0x120000: ObjectEntry("SDO server entries", "B", "const", 2),
        0x120001: ObjectEntry("COB-ID client to server", "I", "ro", 0x600, per_node=True),
        0x120002: ObjectEntry("COB-ID server to client", "I", "ro", 0x580, per_node=True),
    }
    table |= {0x100301 + k: ObjectEntry(f"error {k + 1}", "I", "ro") for k in range(ERRORS_KEPT)}
    for n in PDOS:
        receive, transmit = 0x140000 + (n << 8), 0x180000 + (n << 8)
        disabled = 0 if n < 2 else INVALID
        table |= {
            receive: ObjectEntry("RPDO entries", "B", "const", 2),
            receive + 1: ObjectEntry("RPDO COB-ID", "I", "rw", disabled | 0x200 + 0x100 * n, per_node=True),
            receive + 2: ObjectEntry("RPDO transmission type", "B", "rw", 255),
            transmit: ObjectEntry("TPDO entries", "B", "const", 5),
            transmit + 1: ObjectEntry(
                "TPDO COB-ID", "I", "rw", disabled | NO_REMOTE | 0x180 + 0x100 * n, per_node=True
            ),
            transmit + 2: ObjectEntry("TPDO transmission type", "B", "rw", 255),
            transmit + 3: ObjectEntry("TPDO inhibit time", "H"),
            transmit + 5: ObjectEntry("TPDO event timer", "H"),
        }
        for base, defaults in (
            (0x160000, ((0x60400010,), (0x60400010, 0x60600008))),
            (0x1A0000, ((0x60410010,), (0x60410010, 0x60610008))),
        ):
            mapped = defaults[n] if n < len(defaults) else ()
            place = base + (n << 8)
            table[place] = ObjectEntry("mapped objects", "B", "rw", len(mapped), high=MOST_MAPPED)
            for k in range(MOST_MAPPED):
                table[place + k + 1] = ObjectEntry(
                    f"mapped object {k + 1}", "I", "rw", mapped[k] if k < len(mapped) else 0
                )
    return table


def _drive() -> dict[int, ObjectEntry]:
    low, high = I32
    return {
        0x320100: ObjectEntry("temperatures", "B", "const", 1),
        0x320101: ObjectEntry("temperature of the power stage", "h", "ro", mapping="t"),  # 0.1 °C
        0x600700: ObjectEntry("abort connection option", "h", "rw", 1, low=0, high=3),
        0x603F00: ObjectEntry("error code", "H", "ro", mapping="t"),
        0x604000: ObjectEntry("controlword", "H", "rw", mapping="r"),
        0x604100: ObjectEntry("statusword", "H", "ro", mapping="t"),
        0x605A00: ObjectEntry("quick stop option", "h", "rw", 2, choices=(0, 1, 2, 5, 6)),
        0x605D00: ObjectEntry("halt option", "h", "rw", 1, low=1, high=2),
        0x605E00: ObjectEntry("fault reaction option", "h", "rw", 2, low=0, high=2),
        0x606000: ObjectEntry("modes of operation", "b", "rw", 0, "r", choices=(0, 1, 3, 6, 8, 9, 10)),
        0x606100: ObjectEntry("modes of operation display", "b", "ro", mapping="t"),
        0x606200: ObjectEntry("position demand value", "i", "ro", mapping="t"),
        0x606400: ObjectEntry("position actual value", "i", "ro", mapping="t"),
        0x606500: ObjectEntry("following error window", "I"),
        0x606600: ObjectEntry("following error time out", "H", "rw", 100),
        0x606700: ObjectEntry("position window", "I"),
        0x606B00: ObjectEntry("velocity demand value", "i", "ro", mapping="t"),
        0x606C00: ObjectEntry("velocity actual value", "i", "ro", mapping="t"),
        0x606D00: ObjectEntry("velocity window", "H"),
        0x607100: ObjectEntry("target torque", "h", "rw", 0, "r"),
        0x607200: ObjectEntry("max torque", "H", "rw", 0, "r"),
        0x607400: ObjectEntry("torque demand", "h", "ro", mapping="t"),
        0x607500: ObjectEntry("motor rated current", "I", "ro"),  # mA
        0x607600: ObjectEntry("motor rated torque", "I", "ro"),  # mN·m, or as its settings say
        0x607700: ObjectEntry("torque actual value", "h", "ro", mapping="t"),
        0x607800: ObjectEntry(
            "current actual value", "h", "ro", mapping="t"
        ),  # per mille of the rated torque's current
        0x607900: ObjectEntry("DC link circuit voltage", "I", "ro", mapping="t"),  # mV
        0x607A00: ObjectEntry("target position", "i", "rw", 0, "r"),
        0x607C00: ObjectEntry("home offset", "i"),
        0x607D00: ObjectEntry("software position limits", "B", "const", 2),
        0x607D01: ObjectEntry("min position limit", "i", "rw", low),
        0x607D02: ObjectEntry("max position limit", "i", "rw", high),
        0x607E00: ObjectEntry("polarity", "B", "ro"),
        0x608000: ObjectEntry("max motor speed", "I"),  # rpm
        0x608100: ObjectEntry("profile velocity", "I", "rw", 0, "r"),
        0x608300: ObjectEntry("profile acceleration", "I", "rw", 0, "r", low=1),
        0x608400: ObjectEntry("profile deceleration", "I", "rw", 0, "r", low=1),
        0x608500: ObjectEntry("quick stop deceleration", "I", "rw", low=1),
        0x608F00: ObjectEntry("position encoder resolution", "B", "const", 2),
        0x608F01: ObjectEntry("encoder increments", "I", "ro"),
        0x608F02: ObjectEntry("motor revolutions", "I", "ro", 1),
        0x609000: ObjectEntry("velocity encoder resolution", "B", "const", 2),
        0x609001: ObjectEntry("encoder increments per second", "I", "ro"),
        0x609002: ObjectEntry("motor revolutions per second", "I", "ro", 1),
        0x609100: ObjectEntry("gear ratio", "B", "const", 2),
        0x609101: ObjectEntry("motor shaft revolutions", "I", "ro", 1),
        0x609102: ObjectEntry("driving shaft revolutions", "I", "ro", 1),
        0x609200: ObjectEntry("feed constant", "B", "const", 2),
        0x609201: ObjectEntry("feed", "I", "ro"),
        0x609202: ObjectEntry("driving shaft revolutions", "I", "ro", 1),
        0x609600: ObjectEntry("velocity factor", "B", "const", 2),
        0x609601: ObjectEntry("numerator", "I", "ro", 1),
        0x609602: ObjectEntry("divisor", "I", "ro", 1),
        0x609700: ObjectEntry("acceleration factor", "B", "const", 2),
        0x609701: ObjectEntry("numerator", "I", "ro", 1),
        0x609702: ObjectEntry("divisor", "I", "ro", 1),
        0x609800: ObjectEntry("homing method", "b", "rw", 0, choices=HOMING_METHODS),
        0x609900: ObjectEntry("homing speeds", "B", "const", 2),
        0x609901: ObjectEntry("speed during search for switch", "I", low=1),
        0x609902: ObjectEntry("speed during search for zero", "I", low=1),
        0x609A00: ObjectEntry("homing acceleration", "I", low=1),
        0x60A800: ObjectEntry("SI unit position", "I", "ro", INCREMENTS),
        0x60A900: ObjectEntry("SI unit velocity", "I", "ro"),
        0x60B100: ObjectEntry("velocity offset", "i", "rw", 0, "r"),
        0x60B200: ObjectEntry("torque offset", "h", "rw", 0, "r"),
        0x60C200: ObjectEntry("interpolation time", "B", "const", 2),
        0x60C201: ObjectEntry("interpolation time period", "B", "rw", 1, low=1),
        0x60C202: ObjectEntry("interpolation time index", "b", "rw", -3, low=-6, high=0),
        0x60F400: ObjectEntry("following error actual value", "i", "ro", mapping="t"),
        0x60F900: ObjectEntry("velocity control parameters", "B", "const", 2),
        0x60F901: ObjectEntry("velocity gain", "I"),  # µN·m·s/rad
        0x60F902: ObjectEntry("velocity integral time", "H", "rw", 50, low=1),  # ms
        0x60FB00: ObjectEntry("position control parameters", "B", "const", 1),
        0x60FB01: ObjectEntry("position gain", "H", "rw", 20),  # 1/s
        0x60FF00: ObjectEntry("target velocity", "i", "rw", 0, "r"),
        0x650200: ObjectEntry("supported drive modes", "I", "ro", SUPPORTED_MODES),
    }


# the process data of a drive that does not let them be mapped
_FIXED = {
    0x1600: (0x60400010, 0x60600008, 0x60710010),
    0x1601: (0x607A0020, 0x60B10020),
    0x1602: (0x60FF0020, 0x60B20010, 0x60720010),
    0x1A00: (0x60410010, 0x60640020),
    0x1A01: (0x60610008, 0x606C0020, 0x60770010),
    0x1A02: (0x60780010, 0x32010110),
    0x1A03: (0x60790020,),
}
FIXED_MAPS = {index << 8: len(mapped) for index, mapped in _FIXED.items()}
FIXED_MAPS |= {index << 8 | k: each for index, mapped in _FIXED.items() for k, each in enumerate(mapped, 1)}
OBJECTS = _communication() | _drive()
INDICES = frozenset(key >> 8 for key in OBJECTS)


def start_values(node: int) -> dict[int, int | str]:
    """The values of a drive with this id after switching on, before its motor's own are filled in."""
    values = {key: entry.default for key, entry in OBJECTS.items()}
    return values | {key: int(entry.default) + node for key, entry in OBJECTS.items() if entry.per_node}


def width(key: int) -> int:
    """Bits of an object in a PDO."""
    return 8 * PACKERS[OBJECTS[key].kind].size


def encode(key: int, value: int | str) -> bytes:
    return PACKERS[OBJECTS[key].kind].pack(value) if isinstance(value, int) else value.encode()


def fits(entry: ObjectEntry, value: int) -> bool:
    """Whether a value of the right length is in the range of its object."""
    if entry.choices:
        return value in entry.choices
    return (entry.low is None or value >= entry.low) and (entry.high is None or value <= entry.high)
