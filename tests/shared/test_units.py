"""Quantities: numbers with units, and the spellings of units."""

import math

import pytest

from cosim.core.units import SPELLINGS, UNITS, format_seconds, parse_quantity, quantity_unit, show_percent, unit_sign


@pytest.mark.parametrize("unit", UNITS)
def test_a_number_of_each_unit(unit):
    dimension, factor = UNITS[unit]
    for text in (f"2 {unit}", f" +2.0e0   {unit} ", *([] if unit.startswith("1") else [f"2{unit}"])):
        assert parse_quantity(text, dimension) == pytest.approx(2.0 * factor, rel=1e-15)
    assert parse_quantity("2", dimension) == 2.0


TURN = 2 * math.pi
# (dimension, value) -> what is written for it
WRITTEN = {
    ("N*m", 3.0): ["3 Nm", "3 N m", "3 N·m", "3 N⋅m", "3 N * m"],
    ("N*m", 3e-3): ["3 mNm"],
    ("N*m", 3e-2): ["3 Ncm"],
    ("N*m/rad", 3.0): ["3 Nm/rad"],
    ("N*m*s/rad", 3.0): ["3 Nms/rad"],
    ("N*m/A", 3.0): ["3 Nm/A"],
    ("N*m/A", 3e-3): ["3 mNm/A"],
    ("N*m/s", 3.0): ["3 Nm/s"],
    ("N*s/m", 3.0): ["3 Ns/m"],
    ("kg*m^2", 3.0): ["3 kgm^2", "3 kg·m²", "3 kg m ^ 2", "3 kgm2", "3 kg m2"],
    ("kg*m^2", 3e-4): ["3 kgcm2", "3 kgcm²", "3 kg cm^2"],
    ("kg*m^2", 3e-7): ["3 gcm2", "3 gcm²"],
    ("m^3", 3e-6): ["3 cm3"],
    ("V*s", 3e-3): ["3 mWb", "3 mVs"],
    ("V*s", 3.0): ["3 Wb", "3 Vs"],
    ("m/s^2", 3.0): ["3 m/s²"],
    ("s", 3e-6): ["3 \u00b5s", "3 \u03bcs"],
    ("m", 3e-6): ["3 µm"],
    ("H", 3e-6): ["3 µH"],
    ("s", 3.0): ["3 sec", "3 seconds"],
    ("s", 180.0): ["3 minutes"],
    ("s", 3600.0): ["1 hour"],
    ("rad", math.pi): ["180°", "180 degrees"],
    ("rad/s", math.pi): ["180 degrees/s", "180°/s"],
    ("rad", 3.0): ["3 radians"],
    ("rad", math.radians(3)): ["3\u00a0deg"],
    ("rad", TURN): ["1 rev"],
    ("rad/s", TURN): ["60 RPM"],
    ("ohm", 3.0): ["3 Ω", "3 \u2126"],
    ("ohm", 3e-3): ["3 mΩ"],
    ("degC", 3.0): ["3 °C"],
    ("joint effort", 5.0): ["5 Nm"],
    ("joint effort", 5e3): ["5 kN"],
}


def test_spellings():
    for (unit, value), texts in WRITTEN.items():
        for text in texts:
            assert parse_quantity(text, unit) == pytest.approx(value, rel=1e-15), text


def test_no_spelling_hides_a_unit():
    assert not set(SPELLINGS) & set(UNITS)


WRONG = {
    "s": ["", "s", "-", ".", "nan", "inf s", "١ s", "3 S", "3 MS", "3 s s", "1" + 70 * "x", "x" * 70],
    "1": ["1/2", "1 2"],
    "N*m": ["3 mn*m"],
    "rad": ["3 °C"],
    "joint position": ["3 Nm"],
}
WRONG["s"] += ["1" + " " * 100_000 + "x"]


@pytest.mark.parametrize("unit", WRONG)
def test_what_is_no_quantity(unit, said):
    for text in WRONG[unit]:
        with pytest.raises(ValueError) as caught:
            parse_quantity(text, unit)
        said(caught.value)


# 1 of each unit in SI, from its definition
DEFINITIONS = {
    "1": 1.0, "%": 0.01, "s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0, "Hz": 1.0, "kHz": 1e3, "1/s": 1.0,
    "rad": 1.0, "mrad": 1e-3, "deg": 0.017453292519943295, "turn": 6.283185307179586,
    "rad/s": 1.0, "mrad/s": 1e-3, "deg/s": 0.017453292519943295, "rpm": 0.10471975511965977,
    "turn/s": 6.283185307179586, "rad/s^2": 1.0, "deg/s^2": 0.017453292519943295, "turn/s^2": 6.283185307179586,
    "m": 1.0, "cm": 0.01, "mm": 1e-3, "um": 1e-6, "m/s": 1.0, "mm/s": 1e-3, "m/s^2": 1.0,
    "kg": 1.0, "g": 1e-3, "t": 1e3, "kg*m^2": 1.0, "kg*cm^2": 1e-4, "g*cm^2": 1e-7, "N": 1.0, "kN": 1e3,
    "N*m": 1.0, "N*cm": 0.01, "mN*m": 1e-3, "N*m/rad": 1.0, "N*m*s/rad": 1.0, "N/m": 1.0, "N/mm": 1e3, "N*s/m": 1.0,
    "N*m/A": 1.0, "mN*m/A": 1e-3, "V": 1.0, "mV": 1e-3, "A": 1.0, "mA": 1e-3, "ohm": 1.0, "mohm": 1e-3,
    "H": 1.0, "mH": 1e-3, "uH": 1e-6, "W": 1.0, "kW": 1e3, "J": 1.0, "bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6,
    "degC": 1.0, "°C": 1.0, "K": 1.0, "N*m/s": 1.0, "N/s": 1.0, "rad/m": 1.0,
    "N*m/rad/s": 1.0, "N/m/s": 1.0,
    "B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1024.0, "MiB": 1048576.0, "GiB": 1073741824.0,
    "TiB": 1099511627776.0,
    "s/m": 1.0, "C": 1.0, "A*h": 3600.0, "F": 1.0, "mF": 0.001, "uF": 1e-06, "nF": 1e-09, "V/C": 1.0, "V*s": 1.0,
    "N*m*s": 1.0, "N*s": 1.0, "N/A": 1.0, "Pa": 1.0, "kPa": 1000.0, "MPa": 1000000.0, "GPa": 1000000000.0,
    "bar": 100000.0, "Pa*s": 1.0, "mPa*s": 0.001, "Pa/m^3": 1.0, "Pa*s/m^3": 1.0, "m^3/s/Pa": 1.0,
    "l/min/bar": 1.6666666666666666e-10, "l/s/bar": 1e-8, "kg/s": 1.0, "g/s": 0.001, "Pa/kg": 1.0, "Pa*s/kg": 1.0,
    "kg/m^4": 1.0, "kg/m^3": 1.0,
    "kg/m": 1.0, "kg*m": 1.0, "N*m^2": 1.0, "m^2": 1.0, "cm^2": 0.0001, "mm^2": 1e-06,
    "m^3": 1.0, "l": 0.001, "cm^3": 1e-06, "mm^3": 1e-09, "m^3/s": 1.0, "l/s": 0.001,
    "l/min": 1.6666666666666667e-05, "m^3/rad": 1.0, "cm^3/turn": 1.5915494309189535e-07, "rad/m^3": 1.0,
    "Pa/N": 1.0, "m/rad": 1.0, "mm/turn": 1.5915494309189535e-04, "K/W": 1.0, "J/K": 1.0, "kJ/K": 1000.0, "K/J": 1.0,
    "K*s": 1.0, "kohm": 1000.0, "V*s/rad": 1.0, "mV/rpm": 0.009549296585513721, "ohm/m": 1.0, "mohm/m": 1e-3,
    "ohm/km": 1e-3, "H/m": 1.0, "uH/m": 1e-6, "mH/km": 1e-6,
    "ns": 1e-9, "mV*s": 1e-3, "W/K": 1.0,
}  # fmt: skip


def test_every_unit_has_its_definition():
    assert {unit: factor for unit, (_, factor) in UNITS.items()} == pytest.approx(DEFINITIONS, rel=1e-15)


TIMES = {0.0: "0 s", 1e-12: "0 s", 1.0: "1 s", -2.5: "-2.5 s", 0.9996: "1 s", 0.9994: "999 ms", 1.72e-5: "17.2 µs"}
TIMES |= {-1.72e-5: "-17.2 µs", 9.996e-4: "1 ms", 9.994e-4: "999 µs", 3e-9: "3 ns", 12345.0: "12,345 s"}
TIMES |= {99.94: "99.9 s", 100.4: "100 s"}


def test_times_with_three_digits():
    assert {seconds: format_seconds(seconds) for seconds in TIMES} == TIMES


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_is_read_as_it_is_shown(unit):
    """`m/s²` as `m/s^2`, with nothing of a keyboard left in it."""
    shown = unit_sign(unit)
    assert not {"*", "^"} & set(shown) and "ohm" not in shown and shown != "degC"
    assert parse_quantity(f"2 {shown}".rstrip(), unit) == 2.0 * UNITS[unit][1]


def test_units_of_quantities_of_a_joint_follow_the_unit_of_its_position():
    assert [quantity_unit("joint effort", unit) for unit in ("rad", "m")] == ["N*m", "N"]
    assert quantity_unit("degC", "m") == "degC"


def test_percentages_have_no_exponent_of_ten():
    shown = {(0.073, 2): "7.3 %", (0.999, 2): "100 %", (1.2, 2): "120 %", (45.6, 3): "4560 %", (1e-7, 3): "1e-05 %"}
    assert {(value, digits): show_percent(value, digits) for value, digits in shown} == shown
