"""The law of a contact as a rig writes it: friction, stiffness, restitution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from cosim.core.types import param, params
from cosim.rig.reading.schema import READERS, KeyPath, Reading, number, read, show
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.joint_definition import keyed

RIGID = "rigid"
_BOUNDS = ("min", "above", "max")


class FrictionPair(tuple):
    """The coefficients of friction that sticks and that slides."""


class ContactStiffness(float):
    """N/m; inf for a rigid contact."""


@params
class FrictionKeys:
    static: float = param(min=0, doc="from which times the normal force on a contact slides")
    sliding: float = param(min=0, doc="of a contact that slides; at most `static`")

    def __post_init__(self) -> None:
        if self.static < self.sliding:
            raise ValueError(f"static {self.static:g} is below sliding {self.sliding:g}; give at least as much")


@keyed
class ContactLawKeys:
    friction: FrictionPair | None = param(min=0, default=None, doc="one coefficient, or `static` and `sliding`")
    torsional: float | None = param(unit="m", min=0, default=None, doc="moment against spinning per normal force")
    rolling: float | None = param(unit="m", min=0, default=None, doc="moment against rolling per normal force")
    stiffness: ContactStiffness | None = param(unit="N/m", above=0, default=None, doc="of each point, or `rigid`")
    restitution: float = param(min=0, max=1, default=0.0, doc="part of the normal velocity after an impact")


def _friction(
    reading: Reading, hint: object, value: YamlValue, meta: Mapping[str, Any], path: KeyPath
) -> FrictionPair | None:
    if isinstance(value, dict):
        keys = read(FrictionKeys, value, path, reading)
        return None if keys is None else FrictionPair((keys.static, keys.sliding))
    found = number(value, meta.get("unit", "1"), path, reading, {key: meta.get(key) for key in _BOUNDS})
    return None if found is None else FrictionPair((found, found))


def _stiffness(
    reading: Reading, hint: object, value: YamlValue, meta: Mapping[str, Any], path: KeyPath
) -> ContactStiffness | None:
    if value == RIGID:
        return ContactStiffness(math.inf)
    if isinstance(value, str) and value[:1].isalpha():
        return reading.fail(path, f"expected a stiffness such as 1e6 N/m, or '{RIGID}'; got {show(value)}")
    found = number(value, meta.get("unit", "1"), path, reading, {key: meta.get(key) for key in _BOUNDS})
    return None if found is None else ContactStiffness(found)


READERS[FrictionPair] = _friction
READERS[ContactStiffness] = _stiffness
