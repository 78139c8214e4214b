"""Numbers whose unit depends on what they are joined to: read with any unit, and checked when that is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cosim.core.units import UNITS, given_unit
from cosim.rig.reading.schema import READERS, KeyPath, Reading, number
from cosim.rig.reading.yaml_source import YamlValue


class NumberWithUnit(NamedTuple):
    """A number in SI; text: as it is written with a unit, empty for a bare number."""

    value: float
    text: str = ""


def _number_with_unit(
    reading: Reading, hint: object, value: YamlValue, meta: Mapping[str, Any], path: KeyPath
) -> NumberWithUnit | None:
    unit = given_unit(value) if isinstance(value, str) else None
    if unit is not None and unit not in UNITS:
        return reading.fail(path, f"unit '{unit}' is not known; give the unit of the input, or a bare number in SI")
    read = number(value, unit or "1", path, reading)
    return None if read is None else NumberWithUnit(read, str(value) if unit else "")


READERS[NumberWithUnit] = _number_with_unit
