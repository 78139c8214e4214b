"""The units of a drive by its factor group, and what contradicts itself."""

import math
from pathlib import Path

import pytest

from cosim.plugins.drivers.cia402.factor_group import (
    Contradiction,
    Declared,
    FactorGroup,
    Manufacturer,
    drive_units,
    unit_code,
    velocity_unit_of,
)
from cosim.plugins.drivers.cia402.manufacturers import DEVIATIONS, deviation_of, manufacturer_of

TURN, RPM, DEGREE = 2.0 * math.pi, 2.0 * math.pi / 60.0, math.pi / 180.0
COUNTS = FactorGroup(encoder=(4096, 1), velocity_unit=0x00B50300, rated_torque=500)
NOBODY, NOTHING = Manufacturer(), Declared()


def units(declared=NOTHING, manufacturer=NOBODY, **objects):
    return drive_units(COUNTS._replace(**objects), declared, manufacturer)


def test_counts_and_feeds():
    found = units()
    assert found.position == found.velocity == found.acceleration == TURN / 4096
    assert found.effort == pytest.approx(0.5e-3) and found.gear == 1.0
    # feed and encoder over several revolutions
    assert units(encoder=(8192, 2), feed_constant=(36000, 10)).position == pytest.approx(TURN / 3600)
    # reversed positions count against the torque
    assert units(polarity=0xC0).effort == pytest.approx(-0.5e-3)


def test_one_revolution_of_the_shaft_is_one_feed_constant_whatever_the_encoder():
    for gear in ((1, 1), (50, 1), (7, 2)):
        found = units(encoder=(131072, 1), gear_ratio=gear, feed_constant=(10000, 1), velocity_unit=0x00B44700)
        assert found.position == TURN / 10000 and found.velocity == pytest.approx(RPM)
        assert found.effort == pytest.approx(0.5e-3 * gear[0] / gear[1])  # of the motor, at the shaft


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


@pytest.mark.parametrize(
    "objects",
    [
        {"velocity_unit": None},
        {"velocity_unit": 0},
        {"velocity_unit": 0, "velocity_factor": (1, 1)},  # a default that may mean nothing
        {"encoder": (131072, 1), "feed_constant": (10000, 1)},  # increments of the encoder, or position units
        {"velocity_encoder": (1024, 1)},
    ],
)
def test_a_unit_of_velocity_that_nothing_says_is_unknown(objects):
    assert units(**objects).velocity is None
    assert units(velocity_encoder=(4096, 1)).velocity == TURN / 4096


def test_a_unit_of_velocity_is_declared():
    for text, unit in (("rpm", RPM), ("0.1 rpm", 0.1 * RPM), ("mrpm", 1e-3 * RPM), ("10 counts/s", 10 * TURN / 4096)):
        declared = Declared(velocity_unit=velocity_unit_of(text))
        assert units(declared, velocity_unit=None).velocity == pytest.approx(unit)
    assert units(Declared(velocity_unit=velocity_unit_of("counts/s"))).velocity == TURN / 4096


def test_position_units_by_their_code():
    assert units(encoder=None, position_unit=0xFD410000).position == pytest.approx(1e-3 * DEGREE)
    assert units(feed_constant=(360000, 1), position_unit=0xFD410000).position == pytest.approx(1e-3 * DEGREE)
    assert units(feed_constant=(5000, 1), position_unit=0xFA010000).position == TURN / 5000  # micrometres of a spindle


# what is declared, what the drive says
CONTRADICTIONS = {
    "feed constant without encoder": ({}, {"encoder": None, "feed_constant": (10000, 1)}),
    "small feed constant": ({}, {"feed_constant": (1, 1)}),
    "gear without feed constant": ({}, {"gear_ratio": (50, 1)}),
    "gear and ratio": ({"ratio": 50.0}, {"gear_ratio": (50, 1), "feed_constant": (10000, 1)}),
    "no counts": ({}, {"encoder": None}),
    "other counts": ({"cpr": 10000}, {"encoder": (131072, 1)}),
    "other feed constant": ({"cpr": 131072}, {"encoder": (131072, 1), "feed_constant": (10000, 1)}),
    "unknown unit": ({}, {"velocity_unit": 0x00010300}),
    "two units": ({}, {"velocity_unit": 0x00B44700, "velocity_factor": (1, 10)}),
    "other unit": ({"velocity_unit": velocity_unit_of("0.1 rpm")}, {"velocity_unit": 0x00B44700}),
    "no rated torque": ({}, {"rated_torque": 0}),
    "large torque for its current": ({"torque_constant": 0.1}, {"rated_torque": 500_000, "rated_current": 5000}),
    "small torque for its current": (
        {"torque_constant": 0.1},
        {"rated_current": 5000, "manufacturer": Manufacturer(torque=1e-6)},
    ),
    "large torque for the limit": ({"effort": 2.0}, {"rated_torque": 500_000}),
    "other torque": ({"rated_torque": 1.0}, {}),
    "large torque in the rig": ({"rated_torque": 100.0, "effort": 2.0}, {}),
    "small torque in the rig": ({"rated_torque": 0.01, "torque_constant": 0.1}, {"rated_current": 5000}),
    **{f"polarity {polarity:#x}": ({}, {"polarity": polarity}) for polarity in (0x80, 0x40, 0xE0)},
    "two units of position": ({}, {"feed_constant": (10000, 1), "position_unit": 0xFD410000}),
}


@pytest.mark.parametrize("case", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_what_contradicts_itself_is_refused(case, said):
    declared, objects = case
    with pytest.raises(Contradiction) as caught:
        units(Declared(**declared), **objects)
    said(caught.value)


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
