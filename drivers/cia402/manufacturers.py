"""What drives of some manufacturers do otherwise than CiA 402, or leave out: one table, each row with its source.

A row holds only what its document states. A drive without a row is taken by its own objects, and what these leave open
has to be given in the rig.
"""

from __future__ import annotations

from typing import NamedTuple

from cosim.drivers.cia402.factor_group import Manufacturer, VelocityUnit
from cosim.units import RPM

MAXON, KINCO, COPLEY, INGENIA, KOLLMORGEN = 0xFB, 0x681168, 0xAB, 0x29C, 0x6A  # 1018h.1
ANY = range(0x1_0000_0000)


class Deviation(NamedTuple):
    """vendor, products: 1018h, sub-index 1 and 2."""

    name: str
    vendor: int
    products: range
    manufacturer: Manufacturer
    source: str


# the first row that fits
DEVIATIONS = (
    Deviation(
        "maxon EPOS3 EtherCAT",
        MAXON,
        range(0x64400000, 0x64410000),
        Manufacturer(velocity=VelocityUnit(None, RPM), at_motor=True),
        "ICube-Robotics/ethercat_driver_ros2, issue 115: configuration of an EPOS3, velocities in rpm of the motor",
    ),
    Deviation(
        "maxon EPOS4",
        MAXON,
        range(0x61000000, 0x70000000),
        Manufacturer(torque=1e-6, at_motor=True),
        "maxon EPOS4 Firmware Specification, rel8234, edition 2018-11: motor rated torque 6076h in µNm; the DCF of an"
        " EPOS4 Module 50/15 in Roboprotos/maxon_epos4_ros1 has 512871 for an EC 90 flat, product code 65520000h",
    ),
    Deviation(
        "Kinco FD",
        KINCO,
        ANY,
        Manufacturer(velocity=VelocityUnit(1875.0 / (512.0 * 60.0), None)),
        "Kinco FD5 manual, p. 162 and 190: 606Ch and 60FFh are rpm · 512 · encoder resolution / 1875",
    ),
    Deviation(
        "Copley Controls",
        COPLEY,
        ANY,
        Manufacturer(velocity=VelocityUnit(0.1, None)),
        "Copley Controls CANopen Programmer's Manual 16-01195 rev. 00 (2017), examples of its library CML:"
        " velocities in 0.1 counts/s",
    ),
    Deviation(
        "Ingenia (Novanta)",
        INGENIA,
        ANY,
        Manufacturer(velocity=VelocityUnit(1.0, None)),
        "Novanta EMCL reference, object 606Bh: increments per second",
    ),
    Deviation(
        "Kollmorgen AKD2G",
        KOLLMORGEN,
        ANY,
        Manufacturer(velocity=VelocityUnit(1.0, None)),
        "Kollmorgen AKD2G CANopen reference, object 6096h: velocities in position units per second by default",
    ),
)


def deviation_of(vendor: int | None, product: int | None) -> Deviation | None:
    """The row of a drive; None if there is none."""
    rows = (row for row in DEVIATIONS if row.vendor == vendor and (product or 0) in row.products)
    return next(rows, None)


def manufacturer_of(vendor: int | None, product: int | None) -> Manufacturer:
    """What is known of a drive by its identity."""
    row = deviation_of(vendor, product)
    return Manufacturer() if row is None else row.manufacturer
