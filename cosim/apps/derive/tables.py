"""Tables and quantities of reports as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cosim.core.units import unit_sign

# prefix -> (factor, the smallest number before it)
PREFIXES = {"G": (1e9, 1.0), "M": (1e6, 1.0), "k": (1e3, 1.0), "": (1.0, 0.1), "m": (1e-3, 0.1), "µ": (1e-6, 0.1)}
PREFIXED = {"V", "A", "ohm", "H", "N", "N*m", "Pa", "W", "J"}  # units that take a prefix
SIGNS = {1: "+1", -1: "-1", 0: "·"}  # of the elements of incidence matrices


def table(rows: Iterable[Sequence[str]], aligned: str) -> list[str]:
    """Columns as wide as their widest cell; `aligned`: < (left) or > (right) for the first ones, others right. No lines
    for no rows."""
    columns = list(zip(*rows, strict=True))
    if not columns:
        return []
    widths = [max(map(len, column)) for column in columns]
    sides = aligned.ljust(len(columns), ">")
    padded = [[f"{cell:{s}{w}}" for cell in column] for column, w, s in zip(columns, widths, sides, strict=True)]
    return ["  ".join(cells).rstrip() for cells in zip(*padded, strict=True)]


def counted(n: int, one: str, more: str = "") -> str:
    """`3 bodies`, `1 body`, `no bodies`"""
    return f"{n or 'no'} {one if n == 1 else more or one + 's'}"


def quantity(value: float, unit: str) -> str:
    """Four significant digits, with a prefix where the unit takes one: `0.9 mH`, `1e-05 kg·m²`, `1750 MPa`."""
    prefixes = PREFIXES.items() if unit in PREFIXED else ()
    fitting = ((prefix, factor) for prefix, (factor, least) in prefixes if abs(value) >= factor * least * (1 - 1e-9))
    prefix, factor = next(fitting, ("", 1.0))
    return f"{value / factor:.4g} {prefix}{unit_sign(unit)}".rstrip()
