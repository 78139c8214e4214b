"""The units of a drive by its factor group, and what contradicts itself."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from cosim.drivers.cia402.factor_group import (
    Contradiction,
    Declared,
    FactorGroup,
    Manufacturer,
    drive_units,
    unit_code,
    velocity_unit_of,
)
from cosim.drivers.cia402.manufacturers import DEVIATIONS, deviation_of, manufacturer_of

TURN, RPM, DEGREE = 2.0 * math.pi, 2.0 * math.pi / 60.0, math.pi / 180.0
COUNTS = FactorGroup(encoder=(4096, 1), velocity_unit=0x00B50300, rated_torque=500)
NOBODY, NOTHING = Manufacturer(), Declared()


def units(declared=NOTHING, manufacturer=NOBODY, **objects):
    return drive_units(COUNTS._replace(**objects), declared, manufacturer)


def refused(declared=NOTHING, manufacturer=NOBODY, **objects) -> str:
    with pytest.raises(Contradiction) as caught:
        units(declared, manufacturer, **objects)
    return str(caught.value)


def test_counts_of_the_encoder():
    found = units()
    assert found.position == found.velocity == found.acceleration == TURN / 4096
    assert found.effort == pytest.approx(0.5e-3) and found.gear == 1.0


def test_one_revolution_of_the_shaft_is_one_feed_constant_whatever_the_encoder():
    for gear in ((1, 1), (50, 1), (7, 2)):
        found = units(encoder=(131072, 1), gear_ratio=gear, feed_constant=(10000, 1), velocity_unit=0x00B44700)
        assert found.position == TURN / 10000 and found.velocity == pytest.approx(RPM)
        assert found.effort == pytest.approx(0.5e-3 * gear[0] / gear[1])  # of the motor, at the shaft


def test_feed_and_encoder_over_several_revolutions():
    assert units(encoder=(8192, 2), feed_constant=(36000, 10)).position == pytest.approx(TURN / 3600)


@pytest.mark.parametrize(
    ("code", "unit"),
    [
        (0x00B44700, RPM),
        (0xFFB44700, 0.1 * RPM),
        (0xFDB44700, 1e-3 * RPM),
        (0x00B40300, TURN),
        (0xFD100300, 1e-3),
        (0x00410300, DEGREE),
        (0x00B54700, TURN / 4096 / 60),
        (0xFEB50300, 0.01 * TURN / 4096),
    ],
)
def test_units_of_velocity_by_their_code(code, unit):
    assert units(velocity_unit=code).velocity == pytest.approx(unit)


def test_the_velocity_factor_scales_position_units_per_second():
    found = units(encoder=(131072, 1), feed_constant=(10000, 1), velocity_unit=0, velocity_factor=(60, 10000))
    assert found.velocity == pytest.approx(RPM)
    assert units(velocity_unit=0x00B44700, velocity_factor=(60, 4096)).velocity == pytest.approx(RPM)
    assert units(acceleration_factor=(1, 10)).acceleration == pytest.approx(10 * TURN / 4096)


def test_a_unit_of_velocity_that_nothing_says_is_unknown():
    assert units(velocity_unit=None).velocity is None
    assert units(velocity_unit=0).velocity is None
    assert units(velocity_unit=0, velocity_factor=(1, 1)).velocity is None  # a default that may mean nothing
    # increments of the encoder, or position units
    assert units(encoder=(131072, 1), feed_constant=(10000, 1)).velocity is None
    assert units(velocity_encoder=(1024, 1)).velocity is None
    assert units(velocity_encoder=(4096, 1)).velocity == TURN / 4096


def test_a_unit_of_velocity_is_declared():
    for text, unit in (("rpm", RPM), ("0.1 rpm", 0.1 * RPM), ("mrpm", 1e-3 * RPM), ("10 counts/s", 10 * TURN / 4096)):
        declared = Declared(velocity_unit=velocity_unit_of(text))
        assert units(declared, velocity_unit=None).velocity == pytest.approx(unit)
    assert units(Declared(velocity_unit=velocity_unit_of("counts/s"))).velocity == TURN / 4096


def test_reversed_positions_count_against_the_torque():
    assert units(polarity=0xC0).effort == pytest.approx(-0.5e-3)
    for polarity in (0x80, 0x40, 0xE0):
        assert refused(polarity=polarity) == (
            f"has a polarity (607Eh: 0x{polarity:02X}) that does not reverse positions and velocities alike; set it to"
            " 0, and give the joint 'direction: -1' to reverse it"
        )


def test_position_units_by_their_code():
    assert units(encoder=None, position_unit=0xFD410000).position == pytest.approx(1e-3 * DEGREE)
    assert units(feed_constant=(360000, 1), position_unit=0xFD410000).position == pytest.approx(1e-3 * DEGREE)
    assert units(feed_constant=(5000, 1), position_unit=0xFA010000).position == TURN / 5000  # micrometres of a spindle
    assert refused(feed_constant=(10000, 1), position_unit=0xFD410000) == (
        "has 10000 position units per revolution (feed constant, 6092h) but names a unit (60A8h) of which a revolution"
        " has 360000; correct one of them in the drive"
    )


CONTRADICTIONS = {
    "has a feed constant (6092h) but no encoder resolution (608Fh) to which it belongs; give 'cpr', its position units"
    " per revolution": ({}, {"encoder": None, "feed_constant": (10000, 1)}),
    "has a feed constant of 1 position units per revolution (6092h), too few to be its positions; set it, or give"
    " 'cpr', its position units per revolution": ({}, {"feed_constant": (1, 1)}),
    "has a gear of 50:1 (6091h) but no feed constant (6092h), so that its positions may be those of the motor or of"
    " the shaft; give 'cpr', its position units per revolution of the shaft": ({}, {"gear_ratio": (50, 1)}),
    "has a gear of 50:1 (6091h), and the joint has ratio 50: it would count twice; give 'ratio' what lies behind the"
    " drive's gear, or set 6091h to 1:1": ({"ratio": 50.0}, {"gear_ratio": (50, 1), "feed_constant": (10000, 1)}),
    "does not report its counts per revolution (608Fh); give 'cpr'": ({}, {"encoder": None}),
    "has 131072 position units per revolution (608Fh), the rig has 'cpr: 10000'; take 'cpr' out or correct the drive": (
        {"cpr": 10000},
        {"encoder": (131072, 1)},
    ),
    "has 10000 position units per revolution (feed constant, 6092h), the rig has 'cpr: 131072'; take 'cpr' out or"
    " correct the drive": ({"cpr": 131072}, {"encoder": (131072, 1), "feed_constant": (10000, 1)}),
    "has an unknown unit of velocity (60A9h: 0x00010300); give 'velocity_unit'": ({}, {"velocity_unit": 0x00010300}),
    "has two units of velocity, 60A9h: 0x00B44700 and 6096h: 1/10, of which one is 6.82667 times the other; correct"
    " one of them in the drive": ({}, {"velocity_unit": 0x00B44700, "velocity_factor": (1, 10)}),
    "has a unit of velocity (60A9h: 0x00B44700) that is 10 times 'velocity_unit' of the rig; take 'velocity_unit' out"
    " or correct the drive": ({"velocity_unit": velocity_unit_of("0.1 rpm")}, {"velocity_unit": 0x00B44700}),
    "does not report its rated torque (6076h); give 'rated_torque'": ({}, {"rated_torque": 0}),
    "has a rated torque of 500 N*m (6076h: 500000), 1e+03 times as much: its rated current (6075h) times the torque"
    " constant of the joint's motor is 0.5 N*m; is 6076h in another unit, as uN*m? Give 'rated_torque', that of the"
    " motor": ({"torque_constant": 0.1}, {"rated_torque": 500_000, "rated_current": 5000}),
    "has a rated torque of 0.0005 N*m (6076h: 500), 1e+03 times less: its rated current (6075h) times the torque"
    " constant of the joint's motor is 0.5 N*m; is 6076h in another unit, as uN*m? Give 'rated_torque', that of the"
    " motor": ({"torque_constant": 0.1}, {"rated_current": 5000, "manufacturer": Manufacturer(torque=1e-6)}),
    "has a rated torque of 500 N*m (6076h: 500000), 250 times as much: the joint's limit of effort is 2 N*m there; is"
    " 6076h in another unit, as uN*m? Give 'rated_torque', that of the motor": (
        {"effort": 2.0},
        {"rated_torque": 500_000},
    ),
    "has a rated torque of 0.5 N*m (6076h: 500), the rig has 'rated_torque: 1 N*m'; take 'rated_torque' out or correct"
    " it": ({"rated_torque": 1.0}, {}),
    "has 'rated_torque: 100 N*m' in the rig, 50 times as much: the joint's limit of effort is 2 N*m there; correct"
    " 'rated_torque', that of the motor": ({"rated_torque": 100.0, "effort": 2.0}, {}),
    "has 'rated_torque: 0.01 N*m' in the rig, 50 times less: its rated current (6075h) times the torque constant of the"
    " joint's motor is 0.5 N*m; correct 'rated_torque', that of the motor": (
        {"rated_torque": 0.01, "torque_constant": 0.1},
        {"rated_current": 5000},
    ),
}


@pytest.mark.parametrize("expected", CONTRADICTIONS)
def test_what_contradicts_itself_is_refused(expected):
    declared, objects = CONTRADICTIONS[expected]
    assert refused(Declared(**declared), **objects) == expected


def test_what_is_declared_settles_what_is_open():
    assert units(Declared(cpr=204800), gear_ratio=(50, 1)).position == TURN / 204800
    assert units(Declared(cpr=4096), feed_constant=(1, 1)).position == TURN / 4096
    assert units(Declared(cpr=10000), encoder=None, feed_constant=(10000, 1)).position == TURN / 10000
    assert units(Declared(rated_torque=0.5), rated_torque=500_000, rated_current=1).effort == pytest.approx(0.5e-3)
    assert units(Declared(rated_torque=0.5004), rated_torque=500).effort == pytest.approx(0.5004e-3)  # in whole mN·m
    assert units(Declared(torque_constant=0.12), rated_current=4000).effort == pytest.approx(0.5e-3)


def test_units_as_text():
    for text in ("rpm/s", "counts", "0 rpm", "-1 rpm", "1e999 rpm", "", "m/s", "1..2 rpm", "RPM"):
        with pytest.raises(ValueError) as caught:
            velocity_unit_of(text)
        assert str(caught.value).startswith(f"no unit of velocity '{text}'; use one of 'counts/s', 'rad/s', ")
    for text in ("counts/s", "0.1 rpm", "mrpm", "deg/s", "rev/s", "0.01 rad/s"):
        assert units(velocity_unit=unit_code(text)).velocity == pytest.approx(velocity_unit_of(text).step(TURN / 4096))
    assert unit_code("2 rpm") == 0


def test_rows_of_manufacturers_are_found_by_identity():
    for product in (0x60500000, 0x61500000, 0x63500000, 0x65510000, 0x65520000, 0x69500000):
        assert deviation_of(0xFB, product).name == "maxon EPOS4" and manufacturer_of(0xFB, product).torque == 1e-6
    assert manufacturer_of(0xFB, 0x63220000) == Manufacturer()  # an EPOS2 50/5
    assert manufacturer_of(0xFB, 0x64400000) == manufacturer_of(0xFB, 0x64401234) != manufacturer_of(0xFB, 0x69500000)
    assert manufacturer_of(None, None) == manufacturer_of(0xFFFF, 1) == Manufacturer()
    assert deviation_of(0x681168, 0x464445).name == "Kinco FD" and deviation_of(0x681168, 5) is None
    assert deviation_of(0xAB, None).name == "Copley Controls"  # without a product code, the rows of all products
    assert deviation_of(0x6A, 0x414B44) is None  # Kollmorgen: scaled by a parameter of the drive
    # Kinco: 606Ch is rpm · 512 · encoder resolution / 1875
    value, kinco = 600 * 512 * 4096 / 1875, manufacturer_of(0x681168, 0x464445)
    assert value * units(manufacturer=kinco, velocity_unit=None).velocity == pytest.approx(600 * RPM)
    assert units(manufacturer=manufacturer_of(0xFB, 0x64400000), velocity_unit=None).velocity == pytest.approx(RPM)


def test_velocities_of_the_motor_are_converted_to_the_shaft():
    motor = manufacturer_of(0xFB, 0x69500000)
    found = units(
        manufacturer=motor, gear_ratio=(10, 1), feed_constant=(4096, 1), velocity_unit=0x00B44700, rated_torque=500_000
    )
    assert found.velocity == pytest.approx(0.1 * RPM) and found.effort == pytest.approx(0.5e-2)


def test_every_row_has_a_source_and_is_documented():
    page = (Path(__file__).parents[3] / "docs/reference/drivers/cia402.md").read_text()
    for row in DEVIATIONS:
        assert len(row.source) > 30 and len(row.identity) > 30 and row.manufacturer != Manufacturer()
        assert f"| {row.name} | 0x{row.vendor:X} | " in page
