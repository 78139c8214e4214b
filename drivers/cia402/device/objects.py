"""The object dictionary of the emulated drive: CiA 301 communication objects and CiA 402 drive objects, one table.

Keys are index · 256 + sub-index. Kinds are the letters of `struct`; "" is a string.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

VENDOR, PRODUCT, REVISION, SERIAL = 0x0000FFFF, 0x00000402, 0x00010000, 1
SERVO_DRIVE = 0x00020192  # device type: profile 402 in the lower half, servo drive in the upper
INCREMENTS_PER_SECOND = 0x00B50300  # SI unit velocity
SUPPORTED_MODES = 0x3A5  # profile position and velocity, homing, cyclic synchronous position, velocity and torque
INVALID = 0x80000000  # bit 31 of a COB-ID: the PDO does not exist
NO_REMOTE = 0x40000000  # bit 30: it is not sent on request
ERRORS_KEPT = 8
PDOS = range(4)
MAPPED = 8  # objects that one PDO can hold


class Entry(NamedTuple):
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


def _communication() -> dict[int, Entry]:
    table = {
        0x100000: Entry("device type", "I", "ro", SERVO_DRIVE),
        0x100100: Entry("error register", "B", "ro", mapping="t"),
        0x100300: Entry("number of errors", "B", "rw", high=0),
        0x100500: Entry("COB-ID SYNC", "I", "rw", 0x80, low=1, high=0x7FF),
        0x100800: Entry("manufacturer device name", "", "const", "emulated CiA 402 drive"),
        0x100900: Entry("manufacturer hardware version", "", "const", "1.0"),
        0x100A00: Entry("manufacturer software version", "", "const", "1.0.0"),
        0x101400: Entry("COB-ID EMCY", "I", "ro", 0x80, per_node=True),
        0x101600: Entry("heartbeat consumers", "B", "const", 2),
        0x101601: Entry("consumer heartbeat time 1", "I", high=0x7FFFFF),
        0x101602: Entry("consumer heartbeat time 2", "I", high=0x7FFFFF),
        0x101700: Entry("producer heartbeat time", "H"),
        0x101800: Entry("identity entries", "B", "const", 4),
        0x101801: Entry("vendor", "I", "ro", VENDOR),
        0x101802: Entry("product code", "I", "ro", PRODUCT),
        0x101803: Entry("revision number", "I", "ro", REVISION),
        0x101804: Entry("serial number", "I", "ro", SERIAL),
        0x102900: Entry("error classes", "B", "const", 1),
        0x102901: Entry("reaction to communication errors", "B", high=2),
        0x120000: Entry("SDO server entries", "B", "const", 2),
        0x120001: Entry("COB-ID client to server", "I", "ro", 0x600, per_node=True),
        0x120002: Entry("COB-ID server to client", "I", "ro", 0x580, per_node=True),
    }
    table |= {0x100301 + k: Entry(f"error {k + 1}", "I", "ro") for k in range(ERRORS_KEPT)}
    for n in PDOS:
        receive, transmit = 0x140000 + (n << 8), 0x180000 + (n << 8)
        shut = 0 if n < 2 else INVALID
        table |= {
            receive: Entry("RPDO entries", "B", "const", 2),
            receive + 1: Entry("RPDO COB-ID", "I", "rw", shut | 0x200 + 0x100 * n, per_node=True),
            receive + 2: Entry("RPDO transmission type", "B", "rw", 255),
            transmit: Entry("TPDO entries", "B", "const", 5),
            transmit + 1: Entry("TPDO COB-ID", "I", "rw", shut | NO_REMOTE | 0x180 + 0x100 * n, per_node=True),
            transmit + 2: Entry("TPDO transmission type", "B", "rw", 255),
            transmit + 3: Entry("TPDO inhibit time", "H"),
            transmit + 5: Entry("TPDO event timer", "H"),
        }
        for base, defaults in (
            (0x160000, ((0x60400010,), (0x60400010, 0x60600008))),
            (0x1A0000, ((0x60410010,), (0x60410010, 0x60610008))),
        ):
            mapped = defaults[n] if n < len(defaults) else ()
            place = base + (n << 8)
            table[place] = Entry("mapped objects", "B", "rw", len(mapped), high=MAPPED)
            for k in range(MAPPED):
                table[place + k + 1] = Entry(f"mapped object {k + 1}", "I", "rw", mapped[k] if k < len(mapped) else 0)
    return table


def _drive() -> dict[int, Entry]:
    low, high = I32
    return {
        0x320100: Entry("temperatures", "B", "const", 1),
        0x320101: Entry("temperature of the power stage", "h", "ro", mapping="t"),  # 0.1 °C
        0x600700: Entry("abort connection option", "h", "rw", 1, low=0, high=3),
        0x603F00: Entry("error code", "H", "ro", mapping="t"),
        0x604000: Entry("controlword", "H", "rw", mapping="r"),
        0x604100: Entry("statusword", "H", "ro", mapping="t"),
        0x605A00: Entry("quick stop option", "h", "rw", 2, choices=(0, 1, 2, 5, 6)),
        0x605D00: Entry("halt option", "h", "rw", 1, low=1, high=2),
        0x605E00: Entry("fault reaction option", "h", "rw", 2, low=0, high=2),
        0x606000: Entry("modes of operation", "b", "rw", 0, "r", choices=(0, 1, 3, 6, 8, 9, 10)),
        0x606100: Entry("modes of operation display", "b", "ro", mapping="t"),
        0x606200: Entry("position demand value", "i", "ro", mapping="t"),
        0x606400: Entry("position actual value", "i", "ro", mapping="t"),
        0x606500: Entry("following error window", "I"),
        0x606600: Entry("following error time out", "H", "rw", 100),
        0x606700: Entry("position window", "I"),
        0x606B00: Entry("velocity demand value", "i", "ro", mapping="t"),
        0x606C00: Entry("velocity actual value", "i", "ro", mapping="t"),
        0x606D00: Entry("velocity window", "H"),
        0x607100: Entry("target torque", "h", "rw", 0, "r"),
        0x607200: Entry("max torque", "H", "rw", 0, "r"),
        0x607400: Entry("torque demand", "h", "ro", mapping="t"),
        0x607600: Entry("motor rated torque", "I", "ro"),  # mN·m
        0x607700: Entry("torque actual value", "h", "ro", mapping="t"),
        0x607800: Entry("current actual value", "h", "ro", mapping="t"),  # per mille of the rated torque's current
        0x607900: Entry("DC link circuit voltage", "I", "ro", mapping="t"),  # mV
        0x607A00: Entry("target position", "i", "rw", 0, "r"),
        0x607C00: Entry("home offset", "i"),
        0x607D00: Entry("software position limits", "B", "const", 2),
        0x607D01: Entry("min position limit", "i", "rw", low),
        0x607D02: Entry("max position limit", "i", "rw", high),
        0x608000: Entry("max motor speed", "I"),  # rpm
        0x608100: Entry("profile velocity", "I", "rw", 0, "r"),
        0x608300: Entry("profile acceleration", "I", "rw", 0, "r", low=1),
        0x608400: Entry("profile deceleration", "I", "rw", 0, "r", low=1),
        0x608500: Entry("quick stop deceleration", "I", "rw", low=1),
        0x608F00: Entry("position encoder resolution", "B", "const", 2),
        0x608F01: Entry("encoder increments", "I", "ro"),
        0x608F02: Entry("motor revolutions", "I", "ro", 1),
        0x609800: Entry("homing method", "b", "rw", 0, choices=HOMING_METHODS),
        0x609900: Entry("homing speeds", "B", "const", 2),
        0x609901: Entry("speed during search for switch", "I", low=1),
        0x609902: Entry("speed during search for zero", "I", low=1),
        0x609A00: Entry("homing acceleration", "I", low=1),
        0x60A900: Entry("SI unit velocity", "I", "ro", INCREMENTS_PER_SECOND),
        0x60B100: Entry("velocity offset", "i", "rw", 0, "r"),
        0x60B200: Entry("torque offset", "h", "rw", 0, "r"),
        0x60C200: Entry("interpolation time", "B", "const", 2),
        0x60C201: Entry("interpolation time period", "B", "rw", 1, low=1),
        0x60C202: Entry("interpolation time index", "b", "rw", -3, low=-6, high=0),
        0x60F400: Entry("following error actual value", "i", "ro", mapping="t"),
        0x60F900: Entry("velocity control parameters", "B", "const", 2),
        0x60F901: Entry("velocity gain", "I"),  # µN·m·s/rad
        0x60F902: Entry("velocity integral time", "H", "rw", 50, low=1),  # ms
        0x60FB00: Entry("position control parameters", "B", "const", 1),
        0x60FB01: Entry("position gain", "H", "rw", 20),  # 1/s
        0x60FF00: Entry("target velocity", "i", "rw", 0, "r"),
        0x650200: Entry("supported drive modes", "I", "ro", SUPPORTED_MODES),
    }


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


def fits(entry: Entry, value: int) -> bool:
    """Whether a value of the right length is in the range of its object."""
    if entry.choices:
        return value in entry.choices
    return (entry.low is None or value >= entry.low) and (entry.high is None or value <= entry.high)
