"""What a named number of a rig is: its unit, its bounds, its meaning, and what its elements are called."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from cosim.core.units import JOINT_DIMENSIONS, UNITS
from cosim.rig.reading.schema import SMALLEST_NUMBER

if TYPE_CHECKING:
    from cosim.output.stream.reading import ChangeKind, ParameterFacts, ParameterRecord


@dataclass(frozen=True, eq=False)
class RigParameter:
    """A named number of a rig, or a list of them.

    key: where the rig file has it, as an override writes it; declared: by its `param`; count: of a list, None of a
    single number; joints: of its elements, none where it has no value for each joint; linear: of each joint that its
    numbers belong to, whether it is linear.
    """

    name: str
    key: str
    declared: Mapping[str, Any]
    count: int | None
    joints: tuple[str, ...] = ()
    linear: tuple[bool, ...] = ()
    changes: ClassVar[ChangeKind] = "fixed"

    @property
    def size(self) -> int:
        return 1 if self.count is None else self.count

    @property
    def about(self) -> str:
        return self.declared.get("doc") or ""

    @property
    def unit(self) -> str:
        """In SI; a quantity of joints where these are of both kinds."""
        return si_unit(self.declared.get("unit", "1"), self.linear)

    @cached_property
    def units(self) -> tuple[str, ...]:
        """(size,) in SI."""
        if not self.joints:
            return (self.unit,) * self.size
        return tuple(si_unit(self.declared.get("unit", "1"), [linear]) for linear in self.linear)

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest value of each element, both inclusive; infinite where there is no bound."""
        return bounds_of(self.declared)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What its elements are called, as in `arm.kp/elbow`: after its joints, else by their numbers; none of a single
        number."""
        return self.joints or tuple(map(str, range(self.count or 0)))

    def value(self, numbers: np.ndarray) -> float | list[float]:
        """Of its elements (size,), as users read it."""
        return float(numbers[0]) if self.count is None else numbers.tolist()

    def record(self, value: Any) -> ParameterRecord[Any]:
        """With this value, in SI as users read it, for clients of a run. `units` stands where those of its elements
        differ."""
        found: ParameterRecord[Any] = {**facts_of(self.unit, value, *self.bounds, self.about), "changes": self.changes}
        if self.joints:
            found["joints"] = list(self.joints)
        if len(set(self.units)) > 1:
            found["units"] = list(self.units)
        return found

    def elements(self, numbers: Iterable[float]) -> Iterator[ParameterElement]:
        """Each as a single number, with these values (size,)."""
        names = [f"{self.name}/{label}" for label in self.labels] or [self.name]
        for name, unit, value in zip(names, self.units, numbers, strict=True):
            yield ParameterElement(name, unit, float(value), *self.bounds, self.about)


class ParameterElement(NamedTuple):
    """A single number: `arm.kp/elbow`, or a parameter that is no list. least, greatest: inclusive bounds."""

    name: str
    unit: str
    value: float
    least: float
    greatest: float
    about: str


def facts_of(unit: str, value: Any, least: float, greatest: float, about: str) -> ParameterFacts[Any]:
    """What every listing of parameters states of one; None for what is not finite, which JSON does not have."""
    bounds = _finite(least), _finite(greatest)
    return {"value": _finite(value), "unit": unit, "min": bounds[0], "max": bounds[1], "about": about}


def _finite(value: Any) -> Any:
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def si_unit(declared: str, linear: Iterable[bool]) -> str:
    """The unit of a number in SI, of linear or rotational joints; one that is not known stays as it is declared."""
    if declared not in JOINT_DIMENSIONS:
        return UNITS[declared][0] if declared in UNITS else declared
    kinds = set(linear)
    return JOINT_DIMENSIONS[declared][kinds.pop()] if len(kinds) == 1 else declared


def bounds_of(declared: Mapping[str, Any]) -> tuple[float, float]:
    """Inclusive bounds of what a `param` declares, as a file is read: an exclusive one begins with the next number, and
    one at 0 with the smallest that is no typing error."""
    least, above, greatest = (declared.get(key) for key in ("min", "above", "max"))
    lowest = -math.inf if least is None else float(least)
    if above is not None:
        lowest = max(lowest, math.nextafter(float(above), math.inf) if above else SMALLEST_NUMBER)
    return lowest, math.inf if greatest is None else float(greatest)
