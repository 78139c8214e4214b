"""Conversion of units: SI inside the program; `27 V`, `90 deg` or `6000 rpm` in files.

The only module with factors of 2π, degrees, rpm and turns.
"""

from __future__ import annotations

import math
import re

from cosim.core.errors import shortened

LONGEST_TIME = 1e9  # s; longer times are typing errors

TURN = 2.0 * math.pi
DEGREE = math.pi / 180.0
RPM = TURN / 60.0

# unit -> (dimension, factor to SI); a dimension is named by its SI unit
UNITS: dict[str, tuple[str, float]] = {
    "1": ("1", 1.0),
    "%": ("1", 1e-2),
    **{u: ("s", f) for u, f in {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0}.items()},
    **{u: ("Hz", f) for u, f in {"Hz": 1.0, "kHz": 1e3}.items()},
    "1/s": ("1/s", 1.0),
    **{u: ("rad", f) for u, f in {"rad": 1.0, "mrad": 1e-3, "deg": DEGREE, "turn": TURN}.items()},
    **{u: ("rad/s", f) for u, f in {"rad/s": 1.0, "mrad/s": 1e-3, "deg/s": DEGREE, "rpm": RPM, "turn/s": TURN}.items()},
    **{u: ("rad/s^2", f) for u, f in {"rad/s^2": 1.0, "deg/s^2": DEGREE, "turn/s^2": TURN}.items()},
    **{u: ("m", f) for u, f in {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6}.items()},
    **{u: ("m/s", f) for u, f in {"m/s": 1.0, "mm/s": 1e-3}.items()},
    "m/s^2": ("m/s^2", 1.0),
    "s/m": ("s/m", 1.0),
    **{u: ("kg", f) for u, f in {"kg": 1.0, "g": 1e-3, "t": 1e3}.items()},
    **{u: ("kg*m^2", f) for u, f in {"kg*m^2": 1.0, "kg*cm^2": 1e-4, "g*cm^2": 1e-7}.items()},
    **{u: ("N", f) for u, f in {"N": 1.0, "kN": 1e3}.items()},
    **{u: ("N*m", f) for u, f in {"N*m": 1.0, "N*cm": 1e-2, "mN*m": 1e-3}.items()},
    "N*m/rad": ("N*m/rad", 1.0),
    "N*m*s/rad": ("N*m*s/rad", 1.0),
    **{u: ("N/m", f) for u, f in {"N/m": 1.0, "N/mm": 1e3}.items()},
    "N*s/m": ("N*s/m", 1.0),
    "N*m/rad/s": ("N*m/rad/s", 1.0),
    "N/m/s": ("N/m/s", 1.0),
    **{u: ("N*m/A", f) for u, f in {"N*m/A": 1.0, "mN*m/A": 1e-3}.items()},
    **{u: ("V*s/rad", f) for u, f in {"V*s/rad": 1.0, "mV/rpm": 1e-3 / RPM}.items()},
    **{u: ("V", f) for u, f in {"V": 1.0, "mV": 1e-3}.items()},
    **{u: ("A", f) for u, f in {"A": 1.0, "mA": 1e-3}.items()},
    **{u: ("ohm", f) for u, f in {"ohm": 1.0, "mohm": 1e-3, "kohm": 1e3}.items()},
    **{u: ("H", f) for u, f in {"H": 1.0, "mH": 1e-3, "uH": 1e-6}.items()},
    **{u: ("ohm/m", f) for u, f in {"ohm/m": 1.0, "mohm/m": 1e-3, "ohm/km": 1e-3}.items()},
    **{u: ("H/m", f) for u, f in {"H/m": 1.0, "uH/m": 1e-6, "mH/km": 1e-6}.items()},
    **{u: ("W", f) for u, f in {"W": 1.0, "kW": 1e3}.items()},
    "J": ("J", 1.0),
    **{u: ("C", f) for u, f in {"C": 1.0, "A*h": 3600.0}.items()},
    **{u: ("F", f) for u, f in {"F": 1.0, "mF": 1e-3, "uF": 1e-6, "nF": 1e-9}.items()},
    "V/C": ("V/C", 1.0),
    **{u: ("V*s", f) for u, f in {"V*s": 1.0, "mV*s": 1e-3}.items()},
    "N*m*s": ("N*m*s", 1.0),
    "N*s": ("N*s", 1.0),
    "N/A": ("N/A", 1.0),
    **{u: ("Pa", f) for u, f in {"Pa": 1.0, "kPa": 1e3, "MPa": 1e6, "GPa": 1e9, "bar": 1e5}.items()},
    **{u: ("Pa*s", f) for u, f in {"Pa*s": 1.0, "mPa*s": 1e-3}.items()},
    "Pa/m^3": ("Pa/m^3", 1.0),
    "Pa*s/m^3": ("Pa*s/m^3", 1.0),
    **{u: ("m^3/s/Pa", f) for u, f in {"m^3/s/Pa": 1.0, "l/min/bar": 1e-8 / 60.0, "l/s/bar": 1e-8}.items()},
    **{u: ("kg/s", f) for u, f in {"kg/s": 1.0, "g/s": 1e-3}.items()},
    "Pa/kg": ("Pa/kg", 1.0),
    "Pa*s/kg": ("Pa*s/kg", 1.0),
    "kg/m^4": ("kg/m^4", 1.0),
    "kg/m^3": ("kg/m^3", 1.0),
    "kg/m": ("kg/m", 1.0),
    "kg*m": ("kg*m", 1.0),
    "N*m^2": ("N*m^2", 1.0),
    **{u: ("m^2", f) for u, f in {"m^2": 1.0, "cm^2": 1e-4, "mm^2": 1e-6}.items()},
    **{u: ("m^3", f) for u, f in {"m^3": 1.0, "l": 1e-3, "cm^3": 1e-6, "mm^3": 1e-9}.items()},
    **{u: ("m^3/s", f) for u, f in {"m^3/s": 1.0, "l/s": 1e-3, "l/min": 1e-3 / 60.0}.items()},
    **{u: ("m^3/rad", f) for u, f in {"m^3/rad": 1.0, "cm^3/turn": 1e-6 / TURN}.items()},
    "rad/m^3": ("rad/m^3", 1.0),
    "Pa/N": ("Pa/N", 1.0),
    **{u: ("m/rad", f) for u, f in {"m/rad": 1.0, "mm/turn": 1e-3 / TURN}.items()},
    "rad/m": ("rad/m", 1.0),
    "K/W": ("K/W", 1.0),
    "W/K": ("W/K", 1.0),
    **{u: ("J/K", f) for u, f in {"J/K": 1.0, "kJ/K": 1e3}.items()},
    "K/J": ("K/J", 1.0),
    "K*s": ("K*s", 1.0),
    **{u: ("B", f) for u, f in {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}.items()},
    **{u: ("B", f) for u, f in {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}.items()},
    **{u: ("bit/s", f) for u, f in {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6}.items()},
    **{u: ("degC", 1.0) for u in ("degC", "°C")},
    "K": ("K", 1.0),
    "N*m/s": ("N*m/s", 1.0),
    "1/N/m": ("1/N/m", 1.0),
    "1/N": ("1/N", 1.0),
    "N/s": ("N/s", 1.0),
}

# quantities of a joint: rotational or linear
JOINT_DIMENSIONS: dict[str, tuple[str, ...]] = {
    "joint position": ("rad", "m"),
    "joint velocity": ("rad/s", "m/s"),
    "joint acceleration": ("rad/s^2", "m/s^2"),
    "joint effort": ("N*m", "N"),
    "joint inertia": ("kg*m^2", "kg"),
    "joint effort rate": ("N*m/s", "N/s"),
    "joint stiffness": ("N*m/rad", "N/m"),
    "joint stiffness rate": ("N*m/rad/s", "N/m/s"),
    "joint ratio": ("1", "rad/m"),
    "joint damping": ("N*m*s/rad", "N*s/m"),
    "inverse joint effort": ("1/N/m", "1/N"),
}


def quantity_unit(quantity: str, position: str) -> str:
    """The SI unit of a quantity of a joint whose positions are in rad or m; another unit is itself."""
    return JOINT_DIMENSIONS[quantity][position == "m"] if quantity in JOINT_DIMENSIONS else quantity


# word of an SI unit -> the exponents of the base units in it
_SI_WORDS: dict[str, dict[str, int]] = {
    "1": {},
    **{base: {base: 1} for base in ("kg", "m", "s", "A", "K", "rad")},
    "degC": {"K": 1},
    "Hz": {"s": -1},
    "N": {"kg": 1, "m": 1, "s": -2},
    "Pa": {"kg": 1, "m": -1, "s": -2},
    "J": {"kg": 1, "m": 2, "s": -2},
    "W": {"kg": 1, "m": 2, "s": -3},
    "C": {"A": 1, "s": 1},
    "V": {"kg": 1, "m": 2, "s": -3, "A": -1},
    "ohm": {"kg": 1, "m": 2, "s": -3, "A": -2},
    "H": {"kg": 1, "m": 2, "s": -2, "A": -2},
    "F": {"kg": -1, "m": -2, "s": 4, "A": 2},
}

# other spellings of the words of a unit
SPELLINGS: dict[str, str] = {
    **dict.fromkeys(("°", "degree", "degrees"), "deg"),
    **dict.fromkeys(("radian", "radians"), "rad"),
    **dict.fromkeys(("rev", "turns"), "turn"),
    "RPM": "rpm",
    **dict.fromkeys(("sec", "second", "seconds"), "s"),
    **dict.fromkeys(("minute", "minutes"), "min"),
    **dict.fromkeys(("hour", "hours"), "h"),
    **dict.fromkeys(("Ω", "Ohm", "ohms"), "ohm"),
    **dict.fromkeys(("mΩ", "mOhm"), "mohm"),
    **dict.fromkeys(("kΩ", "kOhm"), "kohm"),
    "Wb": "V*s",
    "mWb": "mV*s",
    **{f"{prefix}Vs": f"{prefix}V*s" for prefix in ("", "m")},
    **{f"{prefix}Nm": f"{prefix}N*m" for prefix in ("", "m")},
    "Ncm": "N*cm",
    "Nms": "N*m*s",
    "Ns": "N*s",
    "kgm": "kg*m",
    **{f"{mass}cm": f"{mass}*cm" for mass in ("kg", "g")},
}
# whole units under other names
_NAMES: dict[str, str] = {name: "rpm" for name in ("1/min", "U/min", "r/min", "turn/min", "min^-1", "min-1", "min⁻¹")}
_SHOWN = {"*": "·", "^2": "²", "^3": "³", "^4": "⁴", "ohm": "Ω", "degC": "°C"}
_SIGNS = str.maketrans(
    {"·": "*", "⋅": "*", "²": "^2", "³": "^3", "⁴": "^4", "µ": "u", "μ": "u", "\u2126": "Ω"}  # µ: U+00B5 and U+03BC
)
_WORD = re.compile(r"°(?!C)|[^\W\d_]+")
_BARE_EXPONENT = re.compile(r"(?<=[^\W\d_])(?=[2-4]\b)")  # `kgcm2`
# what is written as a unit, and its parts: `N·m·s/rad`, of which `N`, `N·m` and `N·m·s` begin it
_WRITTEN = re.compile(r"(?:°C?|[^\W\d_]+)(?:\^[0-9]+|[²³⁴])?(?:[*/·⋅](?:°C?|[^\W\d_]+)(?:\^[0-9]+|[²³⁴])?)*")
_PART_OF_UNIT = re.compile(r"[*/·⋅]?(?:°C?|[^\W\d_]+)(?:\^[0-9]+|[²³⁴])?")
_UP_TO_SPACE = re.compile(r"[^\s()+,]*")
_IN_WORD = re.compile(r"[\w.^(]|\*\*")
_QUANTITY = re.compile(r"([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?) ?(.+)?")


def parse_quantity(text: str, unit: str, where: str = "here") -> float:
    """The SI value of `text`, a number with an optional unit of the dimension that `unit` names.

    `unit` is a unit of `UNITS` or a key of `JOINT_DIMENSIONS`. A number without a unit is SI.
    Raises ValueError with a message for the user; where: what a wrong unit does not fit.
    """
    allowed = JOINT_DIMENSIONS.get(unit) or (UNITS[unit][0],)
    text = " ".join(text.split())
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"expected a number, got '{shortened(text)}'")
    number, given = float(match[1]), match[2]
    if given is None:
        return number
    dimension, factor = UNITS.get(_canonical(given), (None, 1.0))
    if dimension not in allowed:
        fitting = ", ".join(u for u, (d, _) in UNITS.items() if d in allowed)
        raise ValueError(f"unit '{shortened(given)}' does not fit {where}; use {fitting}")
    return number * factor


def given_unit(text: str) -> str | None:
    """The unit of a quantity that `parse_quantity` reads, as `UNITS` names it; None without one."""
    match = _QUANTITY.fullmatch(" ".join(text.split()))
    return _canonical(match[2]) if match and match[2] else None


def known_unit(text: str) -> str | None:
    """The unit as `UNITS` names it, in any spelling; None for other words."""
    unit = _canonical(" ".join(text.split()))
    return unit if unit in UNITS else None


def si_exponents(unit: str) -> dict[str, int] | None:
    """The exponents of the SI base units and rad in the dimension of a unit of UNITS; None for a unit of data."""
    found: dict[str, int] = {}
    for sign, word, power in re.findall(r"([*/]?)([A-Za-z1]+)(?:\^([0-9]+))?", UNITS[unit][0]):
        if word not in _SI_WORDS:
            return None
        times = int(power or 1) * (-1 if sign == "/" else 1)
        for base, exponent in _SI_WORDS[word].items():
            found[base] = found.get(base, 0) + times * exponent
    return {base: exponent for base, exponent in found.items() if exponent}


def is_work(effort: str, displacement: str) -> bool:
    """Whether the product of quantities in these units is an energy in J, or a power in W if the second one is per
    second. Angles have no dimension in it. A unit that is not known is none."""
    if effort not in UNITS or displacement not in UNITS:
        return False
    total: dict[str, int] = {}
    for unit in (effort, displacement):
        for base, exponent in (si_exponents(unit) or {}).items():
            total[base] = total.get(base, 0) + exponent
    total.pop("rad", None)
    factor = UNITS[effort][1] * UNITS[displacement][1]
    wanted = _SI_WORDS["W" if displacement.endswith("/s") else "J"]
    return {base: n for base, n in total.items() if n} == wanted and math.isclose(factor, 1.0)


def show_quantity(value: float, unit: str, digits: int = 4) -> str:
    """An SI value with its unit: `39.4 deg`, `7.3 %`; a pure number alone."""
    return " ".join(filter(None, (f"{value / UNITS[unit][1]:.{digits}g}", unit_sign(unit))))


def show_percent(fraction: float, digits: int = 3) -> str:
    """A fraction in percent: `7.3 %`, and `120 %` where so few digits would need an exponent."""
    text = f"{100.0 * fraction:.{digits}g}"
    return f"{100.0 * fraction:.0f} %" if "e+" in text else f"{text} %"


def unit_sign(unit: str) -> str:
    """A unit as it is written by hand: `N·m`, `m/s²`, `°C`; empty for a pure number."""
    for sign, shown in _SHOWN.items():
        unit = unit.replace(sign, shown)
    return "" if unit == "1" else unit


def parse_any(text: str) -> float:
    """The SI value of `text`, a number with an optional unit of any dimension. Raises ValueError."""
    match = _QUANTITY.fullmatch(" ".join(text.split()))
    unit = _canonical(match[2]) if match and match[2] else "1"
    if unit not in UNITS:
        raise ValueError(f"there is no unit '{shortened(unit)}'")
    return parse_quantity(text, unit)


def unit_at(text: str, begin: int) -> tuple[int, float]:
    """(end, factor to SI) of the longest unit that the text has from `begin` on, without spaces in it and not cut out
    of a word. Raises ValueError with a message for the user."""
    written = _WRITTEN.match(text, begin)
    ends = [part.end() for part in _PART_OF_UNIT.finditer(written[0])] if written else []
    for end in reversed([begin + length for length in ends]):
        unit = _canonical(text[begin:end])
        if unit in UNITS and not _IN_WORD.match(text, end):
            if UNITS[unit][0] == "degC":  # its zero is another one: a factor does not convert it
                raise ValueError(f"'{unit_sign(unit)}' is no unit of an expression; give K, of a rise or above 0 K")
            return end, UNITS[unit][1]
    what = shortened(_UP_TO_SPACE.match(text, begin)[0])  # type: ignore[index]
    raise ValueError(f"there is no unit '{what}'; write * between a number and a name")


def _canonical(unit: str) -> str:
    """The unit as `UNITS` names it, where it is one: `N·m`, `N m` and `Nm` are `N*m`, `cm2` is `cm^2`."""
    text = re.sub(r" ?([*/^]) ?", r"\1", unit.translate(_SIGNS)).replace(" ", "*")
    text = _BARE_EXPONENT.sub("^", text)
    text = _WORD.sub(lambda word: SPELLINGS.get(word[0], word[0]), text)
    return _NAMES.get(text, text)


def format_seconds(seconds: float) -> str:
    """A time with three significant digits: `17.2 µs`."""
    for prefix, factor in (("", 1.0), ("m", 1e-3), ("µ", 1e-6), ("n", 1e-9)):
        if abs(seconds) >= factor * (1.0 - 0.5e-3):  # what rounds up to 1 of the larger unit has that unit
            size = seconds / factor
            return f"{size:,.0f} {prefix}s" if abs(size) >= 100.0 else f"{size:.3g} {prefix}s"
    return "0 s"


def show_time(ns: float) -> str:
    """A time as text with its unit: `2 ms`."""
    unit, factor = next((u for u in (("s", 1e9), ("ms", 1e6)) if ns >= u[1]), ("us", 1e3))
    return f"{ns / factor:.10g} {unit}"
