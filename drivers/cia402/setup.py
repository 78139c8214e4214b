"""What the host asks of a drive before it runs, and what it sets in it: identity, limits, watchdog, process data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from cosim.drivers.cia402 import codec, profile, sdo
from cosim.drivers.cia402.client import Client
from cosim.errors import RunError
from cosim.units import DEGREE, RPM, TURN

if TYPE_CHECKING:
    from cosim.drivers.cia402 import JointParams

CONTROLWORD, STATUSWORD, ERROR_CODE, MODE, MAX_TORQUE = 0x604000, 0x604100, 0x603F00, 0x606000, 0x607200
CONSUMER, PRODUCER, ON_COMMUNICATION_ERROR = 0x101601, 0x101700, 0x102901
ABORT_OPTION, QUICK_OPTION, FAULT_OPTION = 0x600700, 0x605A00, 0x605E00
FAULT_SIGNAL, QUICK_RAMP_AND_OFF = 1, 2
PRE_OPERATIONAL, NO_CHANGE = 0, 1  # after a communication error; unchanged, the drive goes on telling its state
INVALID, NO_REMOTE, EVERY_SYNC = 0x80000000, 0x40000000, 1

# per mode, the objects of RPDO1 and RPDO2: index, sub-index, bits
_CONTROL, _TORQUE, _VELOCITY, _POSITION = 0x60400010, 0x60710010, 0x60FF0020, 0x607A0020
_VELOCITY_OFFSET, _TORQUE_OFFSET = 0x60B10020, 0x60B20010
RECEIVED = {
    "effort": ((_CONTROL, _TORQUE), ()),
    "velocity": ((_CONTROL, _VELOCITY, _TORQUE_OFFSET), ()),
    "position": ((_CONTROL, _POSITION, _TORQUE_OFFSET), (_VELOCITY_OFFSET,)),
}
SENT = ((0x60410010, 0x60610008, 0x60640020), (0x606C0020, 0x60770010))

# SI unit velocity, 60A9h: prefix, numerator, denominator (CiA 303-2)
_NUMERATORS = {0x10: 1.0, 0x41: DEGREE, 0xB4: TURN}
_INCREMENT = 0xB5
_DENOMINATORS = {0x03: 1.0, 0x47: 60.0}


class Unfit(RunError):
    """A drive is not the one that was expected, or cannot do what is asked of it."""


class Facts(NamedTuple):
    """What a drive says of itself."""

    step: codec.Step
    max_torque: float  # N·m, its own
    own_max_torque: int  # the same as the drive has it, per mille of the rated torque
    max_velocity: float  # rad/s, infinite where it does not say


def facts(client: Client, wiring: JointParams, mode: str) -> Facts:
    """Identity and units of a drive. Raises Unfit, sdo.Aborted, NoAnswer and LinkError."""
    node = wiring.id
    kind = client.read(node, 0x100000, "I")
    if kind & 0xFFFF != 402:
        raise Unfit(f"node {node} is a device of profile {kind & 0xFFFF}, not a drive of CiA 402; check the id")
    for key, what, expected in ((0x101801, "vendor", wiring.vendor), (0x101802, "product", wiring.product)):
        found = client.read(node, key, "I") if expected is not None else None
        if found != expected:
            named = f" '{name}'" if (name := client.text(node, 0x100800)) else ""
            raise Unfit(f"node {node}{named} is of {what} 0x{found:X}, expected 0x{expected:X}; check the id")
    modes = client.read(node, 0x650200, "I")
    wanted = [profile.MODES[mode]] + ([profile.HOMING] if wiring.homing is not None else [])
    for number in wanted:
        if not modes & profile.supported(number):
            raise Unfit(f"node {node} has no mode '{profile.MODE_NAMES[number]}' (6502h); choose another")
    if client.find(node, CONSUMER, "I") is None:
        raise Unfit(f"node {node} has no heartbeat consumer (1016h), so it would run on without commands")
    torque = _rated_torque(client, wiring)
    turn = TURN / _counts(client, wiring)
    own = client.find(node, MAX_TORQUE, "H")
    speed = client.find(node, 0x608000, "I")
    return Facts(
        codec.Step(turn, _velocity_unit(client, node, turn), 1e-3 * torque),
        math.inf if own is None else 1e-3 * torque * own,
        0xFFFF if own is None else own,
        math.inf if not speed else speed * RPM,
    )


def _rated_torque(client: Client, wiring: JointParams) -> float:
    if wiring.rated_torque is not None:
        return wiring.rated_torque
    told = client.find(wiring.id, 0x607600, "I")
    if not told:
        raise Unfit(f"node {wiring.id} does not say its rated torque (6076h); give 'rated_torque'")
    return 1e-3 * told


def _counts(client: Client, wiring: JointParams) -> float:
    """Increments per turn: as given, else those of the drive's encoder."""
    if wiring.counts is not None:
        return wiring.counts
    increments, turns = (client.find(wiring.id, key, "I") for key in (0x608F01, 0x608F02))
    if not increments or not turns:
        raise Unfit(f"node {wiring.id} does not say its encoder's increments (608Fh); give 'counts'")
    return increments / turns


def _velocity_unit(client: Client, node: int, increment: float) -> float:
    """rad/s of one unit of velocity; increments per second where the drive does not say."""
    unit = client.find(node, 0x60A900, "I")
    if not unit:
        return increment
    prefix, numerator, denominator = unit >> 24, unit >> 16 & 0xFF, unit >> 8 & 0xFF
    angle = increment if numerator == _INCREMENT else _NUMERATORS.get(numerator)
    if angle is None or denominator not in _DENOMINATORS:
        raise Unfit(f"node {node} counts velocities in a unit that is not known (60A9h: 0x{unit:08X})")
    return 10.0 ** (prefix - 256 if prefix > 127 else prefix) * angle / _DENOMINATORS[denominator]


def limits(known: Facts) -> list[tuple[str, float, str]]:
    """(quantity, limit, object) of the drive."""
    effort = "6072h, which an earlier run may have lowered until power off"
    return [("effort", known.max_torque, effort), ("velocity", known.max_velocity, "6080h")]


def lower(client: Client, node: int, known: Facts, effort: float) -> None:
    """The drive's max torque to the guard's limit [N·m]; rounded up, so that what the guard lets pass is not cut."""
    if math.isfinite(effort):
        client.offer(node, MAX_TORQUE, "H", min(known.own_max_torque, math.ceil(effort / known.step.effort)))


def watch(client: Client, node: int, master: int, watchdog: float) -> bool:
    """The drive stops by itself when the host's heartbeat stays away for `watchdog` [s].

    It does so with a fault, on its quick stop ramp, and goes on telling its state; a drive that cannot be told what to
    do leaves the operational state then, which stops it in its own way. Raises sdo.Aborted where it cannot watch.

    Whether a quick stop leads it down its ramp and off at its end: not where it did not take that option.
    """
    milliseconds = max(1, math.ceil(1e3 * watchdog - 1e-6))
    client.write(node, CONSUMER, "I", master << 16 | milliseconds)
    client.offer(node, PRODUCER, "H", milliseconds)
    told = client.offer(node, ABORT_OPTION, "h", FAULT_SIGNAL)
    client.offer(node, ON_COMMUNICATION_ERROR, "B", NO_CHANGE if told else PRE_OPERATIONAL)
    client.offer(node, FAULT_OPTION, "h", QUICK_RAMP_AND_OFF)
    return client.offer(node, QUICK_OPTION, "h", QUICK_RAMP_AND_OFF)


def map_sent(client: Client, node: int, temperature: int | None) -> None:
    """TPDO1 and TPDO2, answered to every SYNC; the others are silent."""
    first, second = SENT
    if temperature is not None:
        second = (*second, temperature << 8 | 16)
    for number, objects in enumerate((first, second, (), ())):
        cob_id = NO_REMOTE | codec.TPDO + number * codec.PDO_STRIDE + node
        _map(client, node, 0x180000 + (number << 8), cob_id, objects)


def map_received(client: Client, node: int, mode: str, period: float) -> None:
    """RPDO1 and RPDO2 of a mode, taken over at SYNC, and the interpolation time of the cyclic modes."""
    for number, objects in enumerate((*RECEIVED[mode], (), ())):
        _map(client, node, 0x140000 + (number << 8), codec.RPDO + number * codec.PDO_STRIDE + node, objects)
    count, exponent = interpolation(period)
    if client.offer(node, 0x60C202, "b", exponent):
        client.offer(node, 0x60C201, "B", count)


def interpolation(period: float) -> tuple[int, int]:
    """(count ≤ 255, exponent) of 60C2h, count · 10^exponent s, closest to a period [s]."""
    fitting = [(n, e) for e in (-3, -4, -5, -6, -2, -1, 0) if 1 <= (n := round(period * 10.0**-e)) <= 255]
    # milliseconds first: they are all that some drives know
    return min(fitting, key=lambda c: round(abs(c[0] * 10.0 ** c[1] / period - 1.0), 6), default=(1, -6))


def _map(client: Client, node: int, place: int, cob_id: int, objects: tuple[int, ...]) -> None:
    """CiA 301's order: invalid, no objects, objects, their number, type, valid. PDO 3 and 4 need not exist."""
    shut = INVALID | cob_id
    if not objects:
        client.offer(node, place + 1, "I", shut)
        return
    mapping = place + 0x020000
    client.write(node, place + 1, "I", shut)
    client.write(node, mapping, "B", 0)
    for k, mapped in enumerate(objects):
        try:
            client.write(node, mapping + 1 + k, "I", mapped)
        except sdo.Aborted as error:
            raise Unfit(f"node {node} cannot map object {mapped >> 16:04X}h to a PDO: {error}") from None
    client.write(node, mapping, "B", len(objects))
    client.write(node, place + 2, "B", EVERY_SYNC)
    client.write(node, place + 1, "I", cob_id)
