"""Hard stops of a joint: positions of the rig, or the limits of the mechanism."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from cosim.control.limits import POSITION_TOLERANCE
from cosim.core.types import param, params
from cosim.mechanics.multibody.joints import unit_of
from cosim.mechanics.multibody.mechanism import Joint
from cosim.rig.reading.schema import READERS, KeyPath, Reading, read
from cosim.rig.reading.yaml_source import YamlValue

LIMITS = "limits"


@params
class StopsKeys:
    at: Literal["limits"] | None = param(default=None, doc="those of `lower` and `upper` that are not given")
    lower: float | None = param(unit="joint position", default=None, doc="position of a hard stop")
    upper: float | None = param(unit="joint position", default=None, doc="position of a hard stop")
    restitution: float = param(min=0, max=1, default=0.0, doc="coefficient of restitution")

    def bounds(self, joint: Joint | None) -> tuple[tuple[float, float], ...]:
        """(side, bound) of each stop, -1 for the lower one."""
        of_mechanism = (joint.lower, joint.upper) if joint is not None and self.at == LIMITS else (None, None)
        found = ((-1.0, self.lower, of_mechanism[0]), (1.0, self.upper, of_mechanism[1]))
        sides = ((side, limit if given is None else given) for side, given, limit in found)
        return tuple((side, bound) for side, bound in sides if bound is not None and math.isfinite(bound))


def _short(
    reading: Reading, hint: object, value: YamlValue, meta: Mapping[str, Any], path: KeyPath
) -> StopsKeys | None:
    """`stops: limits` is short for `stops: {at: limits}`."""
    return read(StopsKeys, {"at": LIMITS} if value == LIMITS else value, path, reading)


READERS[StopsKeys] = _short


def read_stops(
    stops: StopsKeys, position: float, joint: Joint | None, for_all: bool, at: tuple, reading: Reading
) -> tuple[tuple[float, float], ...]:
    """(side, bound) of each stop. position: at the start; for_all: they are declared for all joints, of which those
    without a range have no stops. Records a missing range, and an initial position beyond a stop."""
    unit = "rad" if joint is None else unit_of(joint.kind)
    found = stops.bounds(joint)
    if not found and joint is not None and stops.at == LIMITS and not for_all:
        what = f"joint '{at[1]}' has no range in the mechanism"
        reading.fail((*at, "stops"), f"{what}; give the positions of its stops, 'lower' and 'upper'")
    for side, bound in found:
        if side * (position - bound) > POSITION_TOLERANCE:
            key = "lower" if side < 0 else "upper"
            what = f"joint '{at[1]}' starts at {position:.6g} {unit}, beyond its {key} stop at {bound:.6g} {unit}"
            of_key = (key,) if getattr(stops, key) is not None else ()
            reading.fail((*at, "stops", *of_key), f"{what}; move one of them")
    return found
