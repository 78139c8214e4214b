"""Checks and settings of a drive before it runs: identity, limits, watchdog, process data."""

from __future__ import annotations

import math
from typing import NamedTuple

from cosim.core.errors import RunError
from cosim.core.units import RPM
from cosim.plugins.drivers.cia402 import codec, faults, process_data, profile, sdo
from cosim.plugins.drivers.cia402.client import Client
from cosim.plugins.drivers.cia402.factor_group import (
    Contradiction,
    Declared,
    DriveUnits,
    FactorGroup,
    Ratio,
    drive_units,
)
from cosim.plugins.drivers.cia402.manufacturers import manufacturer_of
from cosim.plugins.drivers.cia402.params import JointParams
from cosim.plugins.drivers.cia402.process_data import RPDO_OBJECTS, ProcessMap, letter

CONTROLWORD, STATUSWORD, ERROR_CODE, MODE, MAX_TORQUE = 0x604000, 0x604100, 0x603F00, 0x606000, 0x607200
MODE_DISPLAY = 0x606100
CONSUMER, PRODUCER, ON_COMMUNICATION_ERROR = 0x101601, 0x101700, 0x102901
ABORT_OPTION, QUICK_OPTION, FAULT_OPTION = 0x600700, 0x605A00, 0x605E00
ERROR_REGISTER, ERROR_HISTORY = 0x100100, 0x100300
SOFTWARE_LIMITS, LOWEST, HIGHEST = 0x607D00, -(2**31), 2**31 - 1  # at their extremes they do not limit
FAULT_SIGNAL, QUICK_RAMP_AND_OFF = 1, 2
PRE_OPERATIONAL, NO_CHANGE = 0, 1  # after a communication error; with NO_CHANGE the drive still reports its state
INVALID, NO_REMOTE, EVERY_SYNC = 0x80000000, 0x40000000, 1
MOST_MAPPED = 64  # objects of a PDO


class UnsuitableDrive(RunError):
    """A drive is not the expected one, or lacks a required function."""


class DriveProperties(NamedTuple):
    """Units and limits that a drive reports, at its shaft."""

    step: codec.Step
    units: DriveUnits
    max_torque: float  # N·m
    max_torque_raw: int  # the same in the drive's unit, per mille of the rated torque
    max_velocity: float  # rad/s, infinite if not reported
    lower: float  # rad, of its software position limits; infinite if not reported
    upper: float


def identify(client: Client, wiring: JointParams, mode: str, declared: Declared) -> DriveProperties:
    """Check the identity of a drive and read its units. Raises UnsuitableDrive, sdo.Aborted, NoAnswer,
    ConnectionLost."""
    node = wiring.id
    kind = client.read(node, 0x100000, "I")
    if kind & 0xFFFF != 402:
        raise UnsuitableDrive(
            f"node {node} is a device of profile {kind & 0xFFFF}, not a drive of CiA 402; check the id"
        )
    identity = []
    for key, what, expected in ((0x101801, "vendor", wiring.vendor), (0x101802, "product", wiring.product)):
        actual = client.read(node, key, "I") if expected is not None else client.read_optional(node, key, "I")
        identity.append(actual)
        if expected is not None and actual != expected:
            named = f" '{name}'" if (name := client.text(node, 0x100800)) else ""
            raise UnsuitableDrive(
                f"node {node}{named} is of {what} 0x{actual:X}, expected 0x{expected:X}; check the id"
            )
    modes = client.read(node, 0x650200, "I")
    wanted = [profile.MODES[mode]] + ([profile.HOMING] if wiring.homing is not None else [])
    for number in wanted:
        if not modes & profile.supported(number):
            raise UnsuitableDrive(f"node {node} has no mode '{profile.MODE_NAMES[number]}' (6502h); choose another")
    if client.read_optional(node, CONSUMER, "I") is None:
        raise UnsuitableDrive(f"node {node} has no heartbeat consumer (1016h), so it would run on without commands")
    try:
        units = drive_units(read_factor_group(client, node), declared, manufacturer_of(*identity))
    except Contradiction as error:
        raise UnsuitableDrive(f"node {node} {error}") from None
    _check_velocity_known(wiring, mode, units)
    return _properties(client, node, units)


def read_factor_group(client: Client, node: int) -> FactorGroup:
    """The factor group of a drive. Raises NoAnswer, ConnectionLost."""

    def ratio(index: int) -> Ratio | None:
        first, second = (client.read_optional(node, index << 8 | sub, "I") for sub in (1, 2))
        return (first, second) if first and second else None

    def number(index: int, kind: str = "I") -> int | None:
        return client.read_optional(node, index << 8, kind)

    return FactorGroup(
        encoder=ratio(0x608F),
        velocity_encoder=ratio(0x6090),
        gear_ratio=ratio(0x6091),
        feed_constant=ratio(0x6092),
        velocity_factor=ratio(0x6096),
        acceleration_factor=ratio(0x6097),
        polarity=number(0x607E, "B"),
        position_unit=number(0x60A8),
        velocity_unit=number(0x60A9),
        rated_current=number(0x6075),
        rated_torque=number(0x6076),
    )


def _check_velocity_known(wiring: JointParams, mode: str, units: DriveUnits) -> None:
    """Raises UnsuitableDrive for a drive that is to be commanded velocities in an unknown unit."""
    homing = wiring.homing is not None and (wiring.homing.search is not None or wiring.homing.slow is not None)
    if units.velocity is None and (mode == "velocity" or homing):
        what = "speeds of homing" if homing else "velocity mode"
        raise UnsuitableDrive(
            f"node {wiring.id} does not report its unit of velocity (60A9h), which {what} needs;"
            " give 'velocity_unit', such as 'rpm' or 'counts/s', from its manual"
        )


def _properties(client: Client, node: int, units: DriveUnits) -> DriveProperties:
    velocity = math.inf if units.velocity is None else units.velocity
    torque = abs(units.effort)
    own = client.read_optional(node, MAX_TORQUE, "H")
    speed = client.read_optional(node, 0x608000, "I")
    lower, upper = (client.read_optional(node, SOFTWARE_LIMITS + k, "i") for k in (1, 2))
    if lower is None or upper is None or lower >= upper:  # they do not limit
        lower, upper = LOWEST, HIGHEST
    return DriveProperties(
        codec.Step(units.position, velocity, units.effort),
        units,
        math.inf if own is None else torque * own,
        0xFFFF if own is None else own,
        math.inf if not speed else speed * RPM / units.gear,
        units.position * lower if lower != LOWEST else -math.inf,
        units.position * upper if upper != HIGHEST else math.inf,
    )


def standing_error(client: Client, node: int) -> int:
    """The error that a drive reports, 0 for none.

    A missed heartbeat replaces the error code of the fault before it. The error register still has the class of that
    fault, and the history its code, newest first. Raises NoAnswer, ConnectionLost.
    """
    code = client.read_optional(node, ERROR_CODE, "H") or 0
    register = client.read_optional(node, ERROR_REGISTER, "B") or 0
    if code != faults.HEARTBEAT or not register & ~(faults.GENERIC | faults.COMMUNICATION):
        return code
    kept = client.read_optional(node, ERROR_HISTORY, "B") or 0
    errors = ((client.read_optional(node, ERROR_HISTORY + 1 + k, "I") or 0) & 0xFFFF for k in range(kept))
    return next((error for error in errors if error not in (0, faults.HEARTBEAT)), faults.UNNAMED)


def limits(properties: DriveProperties) -> list[tuple[str, float, str]]:
    """(quantity, limit, object) of the drive."""
    effort = "6072h, which an earlier run may have lowered until power off"
    return [
        ("effort", properties.max_torque, effort),
        ("velocity", properties.max_velocity, "6080h"),
        ("lower position", properties.lower, "607Dh.1"),
        ("upper position", properties.upper, "607Dh.2"),
    ]


def limit_torque(client: Client, node: int, properties: DriveProperties, effort: float) -> None:
    """Set the drive's max torque to the guard's limit [N·m], rounded up so that no allowed effort is clipped."""
    if math.isfinite(effort):
        limit = math.ceil(effort / abs(properties.step.effort))
        client.write_optional(node, MAX_TORQUE, "H", min(properties.max_torque_raw, limit))


def set_watchdog(client: Client, node: int, master: int, watchdog: float) -> bool:
    """Let the drive stop by itself after `watchdog` [s] without a heartbeat of the host. Raises sdo.Aborted.

    It stops with a fault, on its quick stop ramp, and still reports its state; a drive without that option leaves the
    operational state, which stops it in its own way. Returns whether a quick stop is a ramp that ends with the voltage
    off: False if the drive did not accept that option.
    """
    milliseconds = max(1, math.ceil(1e3 * watchdog - 1e-6))
    client.write(node, CONSUMER, "I", master << 16 | milliseconds)
    client.write_optional(node, PRODUCER, "H", milliseconds)
    accepted = client.write_optional(node, ABORT_OPTION, "h", FAULT_SIGNAL)
    client.write_optional(node, ON_COMMUNICATION_ERROR, "B", NO_CHANGE if accepted else PRE_OPERATIONAL)
    client.write_optional(node, FAULT_OPTION, "h", QUICK_RAMP_AND_OFF)
    return client.write_optional(node, QUICK_OPTION, "h", QUICK_RAMP_AND_OFF)


def map_process_data(client: Client, node: int, mode: str, temperature: int | None) -> ProcessMap | None:
    """Map the process data of a mode and a temperature, exchanged at every SYNC; None where the drive takes the
    map of the driver, else its own, which is fixed. Raises UnsuitableDrive if the mode lacks something in that,
    sdo.Aborted."""
    try:
        _map_transmit_pdos(client, node, temperature)
        _map_receive_pdos(client, node, mode)
    except FixedMap as error:
        own = _own_map(client, node)
        missing = own.lacks(mode)
        named = process_data.named(missing)
        if temperature is not None and temperature not in own.transmitted:
            named = named or f"the temperature, {temperature >> 16:X}h"
        if named:
            what = f"node {node} has fixed process data ({error}) without {named}"
            raise UnsuitableDrive(f"{what}; use another mode or another drive") from None
        own = process_data.chosen(own, mode, temperature)
        _use_own_map(client, node, own)
        return own
    return None


class FixedMap(Exception):
    """A drive does not let its process data be mapped. what: the object and why."""

    def __init__(self, what: str) -> None:
        super().__init__(what)


def _map_transmit_pdos(client: Client, node: int, temperature: int | None) -> None:
    """Map TPDO1 and TPDO2, sent at every SYNC; the others are disabled."""
    (_, first), (_, second) = process_data.mapped("effort", temperature).transmit
    for number, objects in enumerate((first, second, (), ())):
        cob_id = NO_REMOTE | codec.TPDO + number * codec.PDO_STRIDE + node
        _map_pdo(client, node, 0x180000 + (number << 8), cob_id, objects)


def _map_receive_pdos(client: Client, node: int, mode: str) -> None:
    """Map RPDO1 and RPDO2 of a mode, applied at SYNC."""
    for number, objects in enumerate((*RPDO_OBJECTS[mode], (), ())):
        _map_pdo(client, node, 0x140000 + (number << 8), codec.RPDO + number * codec.PDO_STRIDE + node, objects)


def set_interpolation(client: Client, node: int, period: float) -> None:
    """Set the interpolation time of the cyclic modes."""
    count, exponent = interpolation(period)
    if client.write_optional(node, 0x60C202, "b", exponent):
        client.write_optional(node, 0x60C201, "B", count)


def _own_map(client: Client, node: int) -> ProcessMap:
    """The process data that a drive has. Raises UnsuitableDrive for some that are no whole bytes."""

    def pdos(key: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
        found = []
        for number in range(4):
            place = key + (number << 8)
            count = client.read_optional(node, place, "B") or 0
            objects = tuple(client.read(node, place + 1 + k, "I") for k in range(min(count, MOST_MAPPED)))
            if objects:
                found.append((number, objects))
        return tuple(found)

    receive, transmit = pdos(0x160000), pdos(0x1A0000)
    for mapped in (each for _, objects in (*receive, *transmit) for each in objects):
        if not mapped & 0xFF or mapped & 7:
            raise UnsuitableDrive(
                f"node {node} has fixed process data with bits of {mapped >> 16:04X}h; use another drive"
            )
    constants = {}
    for mapped in (each for _, objects in receive for each in objects if each not in process_data.NAMES):
        if mapped & 0xFF in (8, 16, 32):
            constants[mapped] = client.read_optional(node, mapped >> 8, letter(mapped)) or 0
    return ProcessMap(receive, transmit, constants)


def _use_own_map(client: Client, node: int, own: ProcessMap) -> None:
    """Let a drive exchange its own PDOs at every SYNC, with the identifiers of the predefined connection set."""
    for key, base, pdos in (
        (0x180000, NO_REMOTE | codec.TPDO, dict(own.transmit)),
        (0x140000, codec.RPDO, dict(own.receive)),
    ):
        for number in range(4):
            place, cob_id = key + (number << 8), base + number * codec.PDO_STRIDE + node
            if number in pdos:
                client.write(node, place + 1, "I", INVALID | cob_id)
                client.write(node, place + 2, "B", EVERY_SYNC)
                client.write(node, place + 1, "I", cob_id)
            else:
                client.write_optional(node, place + 1, "I", INVALID | cob_id)


def interpolation(period: float) -> tuple[int, int]:
    """(count ≤ 255, exponent) of 60C2h, count · 10^exponent s, closest to a period [s]."""
    fitting = [(n, e) for e in (-3, -4, -5, -6, -2, -1, 0) if 1 <= (n := round(period * 10.0**-e)) <= 255]
    # milliseconds first: some drives accept no other unit
    return min(fitting, key=lambda c: round(abs(c[0] * 10.0 ** c[1] / period - 1.0), 6), default=(1, -6))


def _map_pdo(client: Client, node: int, key: int, cob_id: int, objects: tuple[int, ...]) -> None:
    """Map a PDO in the order of CiA 301: invalid, no objects, objects, their number, type, valid. PDO 3 and 4 need not
    exist."""
    disabled = INVALID | cob_id
    if not objects:
        client.write_optional(node, key + 1, "I", disabled)
        return
    mapping = key + 0x020000
    client.write(node, key + 1, "I", disabled)
    try:
        client.write(node, mapping, "B", 0)
    except sdo.Aborted as error:
        raise FixedMap(f"{mapping >> 8:X}h: {error}") from None
    for k, mapped in enumerate(objects):
        try:
            client.write(node, mapping + 1 + k, "I", mapped)
        except sdo.Aborted as error:
            raise UnsuitableDrive(f"node {node} cannot map object {mapped >> 16:04X}h to a PDO: {error}") from None
    client.write(node, mapping, "B", len(objects))
    client.write(node, key + 2, "B", EVERY_SYNC)
    client.write(node, key + 1, "I", cob_id)
