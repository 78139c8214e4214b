"""What drives of some manufacturers do otherwise than CiA 402, or leave out: one table, each row with its source.

A row holds only what its document states, for drives whose identity a public file or document states. A drive without a
row is taken by its own objects, and what these leave open has to be given in the rig. So are the drives of

    Kollmorgen   AKD, AKD2G and others have one vendor id, and velocities of an AKD are scaled by FBUS.PARAM05 ("AKD
                 EtherCAT Scaling for Velocity, Acceleration, and Deceleration", Kollmorgen Developer Network)
    Beckhoff     AX8000 and AMP8000 have 0.0001 rpm, and state it in 6096h (object descriptions, 606Ch and 6096h)
"""

from __future__ import annotations

from typing import NamedTuple

from cosim.core.units import RPM
from cosim.plugins.drivers.cia402.factor_group import Manufacturer, VelocityUnit

MAXON, KINCO, COPLEY, INGENIA = 0xFB, 0x681168, 0xAB, 0x29C  # 1018h.1
ALL_BITS, HIGH_WORD = 0xFFFFFFFF, 0xFFFF0000
# of maxon's product codes, whose high word is the hardware: every EPOS4 known by a public file has 6 and 5 as its
# first and third digit (6050h, 6150h, 6350h, 6551h, 6552h, 6950h), and an EPOS2 50/5 has 6322h
FIRST_AND_THIRD_DIGIT = 0xF0F00000


class Products(NamedTuple):
    """Product codes (1018h.2) that agree with `code` in `bits`; the default: all."""

    code: int = 0
    bits: int = 0

    def __contains__(self, product: object) -> bool:
        return isinstance(product, int) and product & self.bits == self.code


class Deviation(NamedTuple):
    """A group of drives of one manufacturer, with what they do otherwise. vendor, products: 1018h, sub-index 1 and 2.
    source: of the deviation. identity: source of vendor and products."""

    name: str
    vendor: int
    products: Products
    manufacturer: Manufacturer
    source: str
    identity: str


# the first row that fits
DEVIATIONS = (
    Deviation(
        "maxon EPOS3 EtherCAT",
        MAXON,
        Products(0x64400000, HIGH_WORD),
        Manufacturer(velocity=VelocityUnit(None, RPM), at_motor=True),
        "ICube-Robotics/ethercat_driver_ros2, issue 115: configuration of an EPOS3, velocities in rpm of the motor",
        "the same configuration, and config_cia402_drive.rst of that repository: 64400000h",
    ),
    Deviation(
        "maxon EPOS4",
        MAXON,
        Products(0x60500000, FIRST_AND_THIRD_DIGIT),
        Manufacturer(torque=1e-6, at_motor=True),
        "maxon EPOS4 Firmware Specification, rel8234, edition 2018-11: motor rated torque 6076h in µNm; in the DCFs of"
        " Gowoon12/maxon_epos4_ros1_csp it is 4793 for a motor of 86 mA (3001h.1) and 55736 µNm/A (3001h.5)",
        "DCFs of a Module 24/1.5, 60500000h (Gowoon12/maxon_epos4_ros1_csp) and of a Module 50/15, 65520000h;"
        " configurations of EtherCAT masters: 63500000h (ICube-Robotics/ethercat_driver_ros2), 61500000h (its issue"
        " 186), 69500000h (EPFLXplore/Xcontrol), 65510000h (a program of the same people); an EPOS2 50/5 has 63220000h"
        " (EDS in KITmedical/kacanopen)",
    ),
    Deviation(
        "Kinco FD",
        KINCO,
        Products(0x464445, ALL_BITS),
        Manufacturer(velocity=VelocityUnit(1875.0 / (512.0 * 60.0), None)),
        "Kinco FD5 manual, p. 162 and 190: 606Ch and 60FFh are rpm · 512 · encoder resolution / 1875",
        "the EtherCAT device KincoFD of a motion controller that is public in source (class KincoFD): 681168h, 464445h;"
        " none was found for CANopen",
    ),
    Deviation(
        "Copley Controls",
        COPLEY,
        Products(),
        Manufacturer(velocity=VelocityUnit(0.1, None)),
        "Copley Controls CANopen Programmer's Manual 16-01195 rev. 00 (2017), examples of its library CML:"
        " velocities in 0.1 counts/s",
        "EtherCATdefines.h of Precitec Vision; the EDS of a Kollmorgen RGM, an amplifier of Copley's, has ABh too",
    ),
    Deviation(
        "Ingenia (Novanta)",
        INGENIA,
        Products(),
        Manufacturer(velocity=VelocityUnit(1.0, None)),
        "Novanta EMCL reference, object 606Bh: increments per second",
        "ICube-Robotics/ethercat_driver_ros2, issue 147: EVE-XCR drives as an EtherCAT master reports them, 29Ch",
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
