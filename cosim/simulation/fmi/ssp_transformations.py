"""What a connection of SSP does to a value in SI, by linear transformations and the conversion of units."""

from __future__ import annotations

from collections.abc import Iterable

from cosim.simulation.fmi.unit_conversion import Conversion, shift_between


def in_a_row(steps: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """(factor, offset) of transformations one after the other."""
    factor, offset = 1.0, 0.0
    for f, o in steps:
        factor, offset = f * factor, f * offset + o
    return factor, offset


def in_si(
    steps: Iterable[tuple[float, float]], ours: Conversion | None, theirs: Conversion | None, suppressed: bool
) -> tuple[float, float]:
    """(factor, offset) from the source to the target, both in SI.

    steps: (factor, offset) of the transformations on the way; ours, theirs: of the unit of source and target, None
    without one. Transformations act on values in the unit of the target, or, where the conversion of units is
    suppressed, one end has no unit or the units differ in kind, on the number of the source. Raises ValueError for
    units that differ in kind without a transformation.
    """
    factor, offset = in_a_row(steps)
    if ours and theirs and not suppressed:
        shift = shift_between(ours.unit, theirs.unit)
        if shift is not None:  # SI of the target = theirs(factor · theirs⁻¹(SI of the source + shift) + offset)
            return factor, factor * (shift - theirs.offset) + theirs.factor * offset + theirs.offset
        if (factor, offset) == (1.0, 0.0):
            raise ValueError
    a, b = ours or Conversion(), theirs or Conversion()
    # SI of the target = b(factor · a⁻¹(SI of the source) + offset)
    scale = b.factor * factor / a.factor
    return scale, b.factor * offset + b.offset - scale * a.offset
