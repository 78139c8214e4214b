"""Units of FMUs: their definitions, the names that they get here, values in SI."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.core.units import UNITS
from cosim.simulation.fmi.unit_conversion import Conversion, conversion_of, exponents_of

ENERGY = {"kg": 1, "m": 2, "s": -2}


@pytest.mark.parametrize(
    ("name", "base", "expected"),
    [
        ("", None, Conversion("1")),
        ("N.m", ENERGY, Conversion("N*m")),
        ("J", ENERGY, Conversion("J")),
        ("torque", ENERGY, Conversion("N*m")),
        ("rev/min", {"s": -1, "rad": 1, "factor": np.pi / 30}, Conversion("rad/s", np.pi / 30)),
        ("rad/s", {"s": -1}, Conversion("rad/s")),  # without the angle, as many tools write it
        ("Hz", {"s": -1}, Conversion("Hz")),
        ("kg.m2", {"kg": 1, "m": 2}, Conversion("kg*m^2")),
        ("m3/s", {"m": 3, "s": -1}, Conversion("m^3/s")),
        ("N.m.s/rad", {"kg": 1, "m": 2, "s": -1, "rad": -1}, Conversion("N*m*s/rad")),
        ("%", {"factor": 0.01}, Conversion("1", 0.01)),
        ("degC", {"K": 1, "offset": 273.15}, Conversion("degC")),
        ("degF", {"K": 1, "factor": 5 / 9, "offset": 459.67 * 5 / 9}, Conversion("K", 5 / 9, 459.67 * 5 / 9)),
        ("C", {"K": 1, "offset": 273.15}, Conversion("K", 1.0, 273.15)),  # not coulomb
        ("g", {"m": 1, "s": -2, "factor": 9.80665}, Conversion("m/s^2", 9.80665)),  # not gram
        ("W/(m2.K)", {"kg": 1, "s": -3, "K": -1}, Conversion("kg/s^3/K")),
        ("mol/m3", {"mol": 1, "m": -3}, Conversion("mol/m^3")),
        ("kN", None, Conversion("N", 1e3)),
        ("N.m/(rad.s)", None, Conversion("N*m/rad/s")),
        ("N.m/(rad.s2)", None, Conversion("N.m/(rad.s2)")),
        ("smoots", None, Conversion("smoots")),
    ],
)
def test_a_unit_has_the_dimension_of_its_definition(name, base, expected):
    found = conversion_of(name, base)
    assert found.unit == expected.unit
    assert (found.factor, found.offset) == pytest.approx((expected.factor, expected.offset), abs=1e-12)


def test_differences_have_no_offset():
    assert conversion_of("degC", {"K": 1, "offset": 273.15}, relative=True) == Conversion("K")


def test_values_go_both_ways():
    fahrenheit = conversion_of("degF", {"K": 1, "factor": 5 / 9, "offset": 459.67 * 5 / 9})
    assert fahrenheit.to_si(212.0) == pytest.approx(373.15)
    assert fahrenheit.from_si(273.15) == pytest.approx(32.0)


def test_every_unit_of_this_program_has_its_base_units():
    unknown = {dimension for dimension, _ in UNITS.values() if exponents_of(dimension) is None}
    assert unknown == {"B", "bit/s"}


@pytest.mark.parametrize(
    ("unit", "definition"),
    [
        ("N", "kg*m/s^2"),
        ("J", "N*m"),
        ("W", "J/s"),
        ("Pa", "N/m^2"),
        ("C", "A*s"),
        ("V", "W/A"),
        ("ohm", "V/A"),
        ("F", "C/V"),
        ("H", "V*s/A"),
        ("Hz", "1/s"),
        ("degC", "K"),
    ],
)
def test_derived_units_are_those_of_si(unit, definition):
    assert exponents_of(unit) == exponents_of(definition)
