"""Symbols of two-poles as polylines: along u from 0 to LENGTH, to the side v, in inches."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, sin

from cosim.apps.derive.text_boxes import Point

LENGTH = 0.5
HALF_WIDTH = 0.13
RADIUS = 0.16  # of a source

Line = Sequence[Point]
M, W = LENGTH / 2, HALF_WIDTH


def symbol(kind: str, domain: str) -> list[Line]:
    """Of an element; electrical, hydraulic and mechanical parts have their own signs."""
    mechanical = domain in ("translational", "rotational")
    return _SYMBOLS.get((kind, domain)) or _SYMBOLS[kind, "mechanical" if mechanical else ""]


def _arc(u: float, v: float, radius: float, start: float = 0.0, end: float = 2 * pi, parts: int = 24) -> Line:
    steps = (start + (end - start) * k / parts for k in range(parts + 1))
    return [(u + radius * cos(angle), v + radius * sin(angle)) for angle in steps]


def _leads(first: float, last: float) -> list[Line]:
    """The wires from the ends of the symbol to its middle part."""
    return [[(0.0, 0.0), (first, 0.0)], [(last, 0.0), (LENGTH, 0.0)]]


def _box(first: float, last: float, half: float) -> Line:
    return [(first, -half), (last, -half), (last, half), (first, half), (first, -half)]


def _coil() -> list[Line]:
    radius = 0.05
    arcs = [_arc(M + (2 * k - 3) * radius, 0.0, radius, pi, 0.0, 8) for k in range(4)]
    return [*_leads(M - 4 * radius, M + 4 * radius), [point for arc in arcs for point in arc]]


def _spring() -> list[Line]:
    teeth = [(0.1 + 0.3 * (k + 0.5) / 6, (-1) ** k * 0.09) for k in range(6)]
    return [[(0.0, 0.0), (0.1, 0.0), *teeth, (0.4, 0.0), (LENGTH, 0.0)]]


def _plates() -> list[Line]:
    return [*_leads(M - 0.04, M + 0.04), *([(M + side, -W), (M + side, W)] for side in (-0.04, 0.04))]


def _damper() -> list[Line]:
    cup = [(0.4, -W), (0.16, -W), (0.16, W), (0.4, W)]
    return [[(0.0, 0.0), (0.16, 0.0)], cup, [(0.3, -W + 0.03), (0.3, W - 0.03)], [(0.3, 0.0), (LENGTH, 0.0)]]


def _throttle() -> list[Line]:
    """Of an orifice or a laminar resistance: a narrowed line."""
    arcs = [_arc(M, side * 0.16, 0.12, -side * pi / 2 - 1.0, -side * pi / 2 + 1.0, 12) for side in (-1, 1)]
    return [[(0.0, 0.0), (LENGTH, 0.0)], *arcs]


def _source(inside: Sequence[Line]) -> list[Line]:
    return [*_leads(M - RADIUS, M + RADIUS), _arc(M, 0.0, RADIUS), *inside]


# + at u = 0, the positive end; the arrow of a flow points to u = LENGTH
_PLUS: list[Line] = [
    [(M - 0.12, 0.0), (M - 0.04, 0.0)], [(M - 0.08, -0.04), (M - 0.08, 0.04)], [(M + 0.08, -0.04), (M + 0.08, 0.04)],
]  # fmt: skip
_ARROW: list[Line] = [[(M - 0.1, 0.0), (M + 0.1, 0.0)], [(M + 0.03, -0.05), (M + 0.1, 0.0), (M + 0.03, 0.05)]]
_BOND: list[Line] = [
    [(0.0, 0.0), (0.1, 0.0)],
    [(0.4, 0.0), (LENGTH, 0.0)],
    _arc(0.13, 0.0, 0.03),
    _arc(0.37, 0.0, 0.03),
]

_SYMBOLS: dict[tuple[str, str], list[Line]] = {
    ("R", ""): [*_leads(0.08, LENGTH - 0.08), _box(0.08, LENGTH - 0.08, 0.08)],
    ("R", "mechanical"): _damper(),
    ("R", "hydraulic"): _throttle(),
    ("I", ""): _coil(),
    ("I", "mechanical"): [*_leads(M - 0.12, M + 0.12), _box(M - 0.12, M + 0.12, 0.12)],
    ("C", ""): _plates(),
    ("C", "mechanical"): _spring(),
    **{
        (kind, family): _source(inside)
        for kind, inside in (("Se", _PLUS), ("Sf", _ARROW))
        for family in ("", "mechanical")
    },
    **{("bond", family): _BOND for family in ("", "mechanical")},
}
