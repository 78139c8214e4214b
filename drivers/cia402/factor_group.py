"""The units of a CiA 402 drive: what its factor group states of its numbers, in radians and newton metres at its shaft.

CiA 402-2 (IEC 61800-7-201), factor group: the drive converts increments of its encoder to user-defined units,

    position = increments · feed constant / (encoder resolution · gear ratio)
    velocity = increments/s · feed constant / (velocity encoder resolution · gear ratio) · velocity factor
    acceleration = velocity / s · acceleration factor
    torque = thousandths of the rated torque of the motor

    608Fh, 6090h   encoder resolution: increments per revolution of the motor; increments/s per revolution/s
    6091h          gear ratio: revolutions of the motor per revolution of the driving shaft
    6092h          feed constant: position units per revolution of the driving shaft
    6096h, 6097h   velocity factor, acceleration factor
    607Eh          polarity: bit 7 reverses positions, bit 6 velocities; torques are not reversed

so that one revolution of the driving shaft is `feed constant` position units, whatever the encoder. The resolutions
cancel out; they matter where the feed constant is missing, and to find what cannot be. 60A8h and 60A9h name units:
prefix, numerator, denominator (CiA 303-2). The shaft here is the driving shaft, behind the gear 6091h.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from cosim.core.units import DEGREE, RPM, TURN, UNITS

Ratio = tuple[int, int]

UNIT_TOLERANCE = 1e-3  # relative, of two statements of one unit
COARSEST_UNIT = DEGREE  # of a position unit: 6092h is left at 1:1 in drives that do not use it
PLAUSIBLE_RATIO = 10.0  # factor between two statements of the rated torque
POSITION_REVERSED, VELOCITY_REVERSED = 0x80, 0x40

# units of CiA 303-2 in 60A8h and 60A9h
_ANGLES = {0x10: 1.0, 0x41: DEGREE, 0xB4: TURN}
_INCREMENT = 0xB5
_TIMES = {0x03: 1.0, 0x47: 60.0}
_SPEEDS = {name: factor for name, (kind, factor) in UNITS.items() if kind == "rad/s"}
_SPEEDS |= {"mrpm": 1e-3 * RPM, "rev/s": TURN, "mrev/s": 1e-3 * TURN}
_COUNTS = "counts/s"


class Contradiction(ValueError):
    """What a drive reports does not fit together, or does not suffice. what: goes on after the drive's name."""

    def __init__(self, what: str) -> None:
        super().__init__(what)


class FactorGroup(NamedTuple):
    """The objects as a drive reports them; None: it has no such object, or its value means nothing."""

    encoder: Ratio | None = None  # 608Fh
    velocity_encoder: Ratio | None = None  # 6090h
    gear_ratio: Ratio | None = None  # 6091h
    feed_constant: Ratio | None = None  # 6092h
    velocity_factor: Ratio | None = None  # 6096h
    acceleration_factor: Ratio | None = None  # 6097h
    polarity: int | None = None  # 607Eh
    position_unit: int | None = None  # 60A8h
    velocity_unit: int | None = None  # 60A9h
    rated_current: int | None = None  # 6075h
    rated_torque: int | None = None  # 6076h


class VelocityUnit(NamedTuple):
    """A unit of velocity: so many counts (position units) per second, or so many radians per second."""

    increments: float | None
    angle: float | None

    def step(self, count: float) -> float:
        """rad/s; count: one position unit [rad]."""
        return self.increments * count if self.increments is not None else self.angle or 0.0


class Declared(NamedTuple):
    """What a rig states of a drive. torque_constant: of the motor of the joint, at the shaft of the drive [N·m/A]."""

    cpr: float | None = None  # position units per revolution of the shaft
    velocity_unit: VelocityUnit | None = None
    rated_torque: float | None = None  # N·m
    ratio: float = 1.0  # of the gear behind the shaft
    torque_constant: float = math.nan
    effort: float = math.inf  # limit of the guard at the shaft [N·m]


class Manufacturer(NamedTuple):
    """What is known of the drives of a manufacturer; None: nothing that differs from the profile."""

    torque: float | None = None  # N·m of one unit of 6076h
    velocity: VelocityUnit | None = None  # where 60A9h is missing
    at_motor: bool = False  # velocities are the motor's, before the gear


class DriveUnits(NamedTuple):
    """One unit of the drive at its shaft. velocity, acceleration: None if unknown. effort: of a thousandth of the rated
    torque, negative where positions are reversed. gear: revolutions of the motor per revolution of the shaft."""

    position: float  # rad
    velocity: float | None  # rad/s
    acceleration: float | None  # rad/s²
    effort: float  # N·m
    gear: float


def velocity_unit_of(text: str) -> VelocityUnit:
    """The unit in a text: `counts/s`, `0.1 rpm`, `mrpm`. Raises ValueError."""
    found = re.fullmatch(r"\s*(?:([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*\*?\s*)?([A-Za-z]+(?:/s)?)\s*", text)
    name = found[2] if found else ""
    try:
        factor = float(found[1]) if found and found[1] else 1.0
    except ValueError:
        factor = math.nan
    if not math.isfinite(factor) or factor <= 0.0 or (name != _COUNTS and name not in _SPEEDS):
        known = ", ".join(f"'{each}'" for each in (_COUNTS, *_SPEEDS))
        raise ValueError(f"no unit of velocity '{text}'; use one of {known}, with a number before it as in '0.1 rpm'")
    return VelocityUnit(factor, None) if name == _COUNTS else VelocityUnit(None, factor * _SPEEDS[name])


def unit_code(text: str) -> int:
    """60A9h of a unit of velocity; 0 if none is exact. Raises ValueError."""
    unit = velocity_unit_of(text)
    for time, seconds in _TIMES.items():
        for angle, size in {**_ANGLES, _INCREMENT: None}.items():
            wanted = unit.increments if size is None else unit.angle and unit.angle / size
            exponent = math.log10(wanted * seconds) if wanted else math.nan
            if math.isclose(exponent, round(exponent) if wanted else 0.0, abs_tol=1e-9):
                return (round(exponent) & 0xFF) << 24 | angle << 16 | time << 8
    return 0


def drive_units(group: FactorGroup, declared: Declared, manufacturer: Manufacturer) -> DriveUnits:
    """The units of a drive by the rule above. Raises Contradiction."""
    gear = _quotient(group.gear_ratio) or 1.0
    if gear != 1.0 and _agree(gear, declared.ratio):
        raise Contradiction(
            f"has a gear of {gear:.6g}:1 (6091h), and the joint has ratio {declared.ratio:.6g}: it would count twice;"
            " give 'ratio' what lies behind the drive's gear, or set 6091h to 1:1"
        )
    count = TURN / _units_per_turn(group, declared, gear)
    velocity = _velocity(group, declared, manufacturer, count, gear)
    factor = _quotient(group.acceleration_factor) or 1.0
    torque = 1e-3 * gear * _rated_torque(group, declared, manufacturer, gear)
    sense = _sense(group.polarity or 0)
    return DriveUnits(count, velocity, None if velocity is None else velocity / factor, sense * torque, gear)


def _quotient(ratio: Ratio | None) -> float | None:
    return ratio[0] / ratio[1] if ratio is not None and ratio[0] and ratio[1] else None


def _agree(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=UNIT_TOLERANCE)


def _sense(polarity: int) -> float:
    """Torque against position. Raises Contradiction."""
    reversed_both = POSITION_REVERSED | VELOCITY_REVERSED
    if polarity not in (0, reversed_both):
        raise Contradiction(
            f"has a polarity (607Eh: 0x{polarity:02X}) that does not reverse positions and velocities alike;"
            " set it to 0, and give the joint 'direction: -1' to reverse it"
        )
    return -1.0 if polarity else 1.0


def _units_per_turn(group: FactorGroup, declared: Declared, gear: float) -> float:
    """Position units per revolution of the shaft. Raises Contradiction."""
    increments, feed = _quotient(group.encoder), _quotient(group.feed_constant)
    named = _named_angle(group.position_unit)
    unused = feed is not None and feed * COARSEST_UNIT < TURN and named is None  # a default that scales nothing
    if feed is not None and not unused:
        if increments is None and declared.cpr is None:
            raise Contradiction(
                "has a feed constant (6092h) but no encoder resolution (608Fh) to which it belongs;"
                " give 'cpr', its position units per revolution"
            )
        found, by = feed, "feed constant, 6092h"
    elif named is not None:
        found, by = TURN / named, "SI unit position, 60A8h"
    elif increments is not None and gear == 1.0 and not (unused and declared.cpr is None):
        found, by = increments, "608Fh"
    elif declared.cpr is not None:
        return declared.cpr
    elif unused:
        raise Contradiction(
            f"has a feed constant of {feed:.6g} position units per revolution (6092h), too few to be its positions;"
            " set it, or give 'cpr', its position units per revolution"
        )
    elif increments is not None:
        raise Contradiction(
            f"has a gear of {gear:.6g}:1 (6091h) but no feed constant (6092h), so that its positions may count turns"
            " of the motor or of the shaft; give 'cpr', its position units per revolution of the shaft"
        )
    else:
        raise Contradiction("does not report its counts per revolution (608Fh); give 'cpr'")
    if named is not None and not _agree(found * named, TURN):
        raise Contradiction(
            f"has {found:.6g} position units per revolution ({by}) but names a unit (60A8h) of which a revolution has"
            f" {TURN / named:.6g}; correct one of them in the drive"
        )
    if declared.cpr is not None and not _agree(found, declared.cpr):
        raise Contradiction(
            f"has {found:.9g} position units per revolution ({by}), the rig has 'cpr: {declared.cpr:.9g}';"
            " take 'cpr' out or correct the drive"
        )
    return found


def _named_angle(unit: int | None) -> float | None:
    """The angle [rad] that 60A8h names; None for increments, lengths and no unit."""
    angle = _ANGLES.get((unit or 0) >> 16 & 0xFF)
    return None if angle is None else _prefix(unit or 0) * angle


def _prefix(unit: int) -> float:
    exponent = unit >> 24 & 0xFF
    return 10.0 ** (exponent - 256 if exponent > 127 else exponent)


def _velocity(
    group: FactorGroup, declared: Declared, manufacturer: Manufacturer, count: float, gear: float
) -> float | None:
    """One unit of velocity [rad/s] at the shaft; None if nothing states it. Raises Contradiction."""
    found: list[tuple[float, str]] = []
    at_shaft = 1.0 / gear if manufacturer.at_motor else 1.0
    if group.velocity_unit:
        named = _named_velocity(group, count, gear)
        if named is not None:
            found.append((named * at_shaft, f"60A9h: 0x{group.velocity_unit:08X}"))
        elif declared.velocity_unit is None and not _is_increments(group.velocity_unit):
            raise Contradiction(
                f"has an unknown unit of velocity (60A9h: 0x{group.velocity_unit:08X}); give 'velocity_unit'"
            )
    factor = _quotient(group.velocity_factor)
    if factor is not None and group.velocity_factor is not None and factor != 1.0:
        numerator, divisor = group.velocity_factor
        found.append((count / factor, f"6096h: {numerator}/{divisor}"))
    if not found and manufacturer.velocity is not None and not group.velocity_unit:
        return _checked(declared, [(manufacturer.velocity.step(count) * at_shaft, "by its manufacturer")], count)
    return _checked(declared, found, count)


def _checked(declared: Declared, found: list[tuple[float, str]], count: float) -> float | None:
    """What is declared or found, if all agree. Raises Contradiction."""
    if len(found) > 1 and not _agree(found[0][0], found[1][0]):
        times = found[0][0] / found[1][0]
        raise Contradiction(
            f"has two units of velocity, {found[0][1]} and {found[1][1]}, of which one is {times:.6g} times the other;"
            " correct one of them in the drive"
        )
    if declared.velocity_unit is None:
        return found[0][0] if found else None
    own = declared.velocity_unit.step(count)
    if found and not _agree(found[0][0], own):
        raise Contradiction(
            f"has a unit of velocity ({found[0][1]}) that is {found[0][0] / own:.6g} times 'velocity_unit' of the rig;"
            " take 'velocity_unit' out or correct the drive"
        )
    return own


def _is_increments(unit: int) -> bool:
    return unit >> 16 & 0xFF == _INCREMENT and unit >> 8 & 0xFF in _TIMES


def _named_velocity(group: FactorGroup, count: float, gear: float) -> float | None:
    """What 60A9h names [rad/s]; None if that is unknown: increments may be encoder counts or position units."""
    unit = group.velocity_unit or 0
    time = _TIMES.get(unit >> 8 & 0xFF)
    if _is_increments(unit):
        encoders = [_quotient(encoder) for encoder in (group.encoder, group.velocity_encoder)]
        alike = all(_agree(increments * gear * count, TURN) for increments in encoders if increments)
        angle = count if alike else None
    else:
        angle = _ANGLES.get(unit >> 16 & 0xFF)
    return None if time is None or angle is None else _prefix(unit) * angle / time


def _rated_torque(group: FactorGroup, declared: Declared, manufacturer: Manufacturer, gear: float) -> float:
    """Of the motor [N·m]: as declared, where the drive states it in another unit or not at all. Raises
    Contradiction."""
    step = manufacturer.torque or 1e-3
    reported, torque = step * (group.rated_torque or 0), declared.rated_torque
    if torque is None:
        if not reported:
            raise Contradiction("does not report its rated torque (6076h); give 'rated_torque'")
        torque, what = reported, f"has a rated torque of {reported:.4g} N*m (6076h: {group.rated_torque})"
        fix = "is 6076h in another unit, as uN*m? Give 'rated_torque' of the motor"
    else:
        rounded = math.isclose(reported, torque, rel_tol=UNIT_TOLERANCE, abs_tol=0.5 * step)
        if not rounded and 1.0 / PLAUSIBLE_RATIO < reported / torque < PLAUSIBLE_RATIO:
            raise Contradiction(
                f"has a rated torque of {reported:.4g} N*m (6076h: {group.rated_torque}), the rig has 'rated_torque:"
                f" {torque:.4g} N*m'; take 'rated_torque' out or correct it"
            )
        what, fix = f"has 'rated_torque: {torque:.4g} N*m' in the rig", "correct 'rated_torque' of the motor"
    by_current = 1e-3 * (group.rated_current or 0) * declared.torque_constant / gear
    if math.isfinite(by_current) and by_current > 0.0:
        expected = f"its rated current (6075h) times the torque constant of the joint's motor is {by_current:.4g} N*m"
        factor = torque / by_current
        off = not 1.0 / PLAUSIBLE_RATIO < factor < PLAUSIBLE_RATIO
    else:
        limit = declared.effort / gear
        expected = f"the joint's limit of effort is {limit:.4g} N*m there"
        factor = torque / limit if limit > 0.0 else 0.0
        off = factor >= PLAUSIBLE_RATIO
    if off:
        times = f"{factor:.3g} times as much" if factor >= 1.0 else f"{1.0 / factor:.3g} times less"
        raise Contradiction(f"{what}, {times}: {expected}; {fix}")
    return torque
