"""The key `filters` of a controller: filters of its commanded effort, in the order in which it passes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.core import filters, ops
from cosim.core.errors import InputErrors, SectionError, did_you_mean
from cosim.core.filters import Section
from cosim.core.types import PerJoint, param, params
from cosim.rig.reading.schema import Reading, read, show
from cosim.rig.reading.yaml_source import YamlValue


@params
class LowPass:
    frequency: PerJoint = param(unit="Hz", above=0, doc="of −3 dB")
    order: int = param(min=1, max=8, default=2, doc="of the Butterworth filter")
    joints: tuple[str, ...] | None = param(default=None, doc="whose effort it filters; default: all of the controller")

    def sections(self, period: float) -> tuple[Section, ...]:
        return filters.low_pass(ops.array(self.frequency), self.order, period)


@params
class Notch:
    frequency: PerJoint = param(unit="Hz", above=0, doc="that it takes out")
    width: PerJoint = param(unit="Hz", above=0, doc="of the band that a notch of depth 0 attenuates by 3 dB or more")
    depth: PerJoint = param(min=0, max=1, default=0.0, doc="gain at the frequency; 0: nothing passes")
    joints: tuple[str, ...] | None = param(default=None, doc="whose effort it filters; default: all of the controller")

    def sections(self, period: float) -> tuple[Section, ...]:
        return filters.notch(ops.array(self.frequency), ops.array(self.width), ops.array(self.depth), period)


FILTERS: dict[str, type[LowPass] | type[Notch]] = {"low_pass": LowPass, "notch": Notch}
FREQUENCIES = ("frequency", "width")  # below half the rate


@dataclass(frozen=True)
class FilterSpec:
    """A filter of the effort of the joints at `index` (k,) of its controller."""

    params: LowPass | Notch
    joints: tuple[str, ...]
    index: tuple[int, ...]


def read_filters(
    items: list[YamlValue] | None,
    joints: tuple[str, ...],
    kinds: Mapping[str, str | None] | None,
    at: tuple,
    reading: Reading,
) -> tuple[FilterSpec, ...]:
    """The filters of a controller of these joints; errors are recorded in `reading`. kinds: of its joints, None if they
    are unknown."""
    found = (_read(item, joints, kinds, (*at, k), reading) for k, item in enumerate(items or ()))
    return tuple(spec for spec in found if spec is not None)


def _read(
    item: YamlValue, joints: tuple[str, ...], kinds: Mapping[str, str | None] | None, at: tuple, reading: Reading
) -> FilterSpec | None:
    if not isinstance(item, dict):
        return reading.fail(at, f"expected a mapping, got {show(item)}")
    if (kind := item.get("type")) not in FILTERS:
        wrong = f"there is no filter {show(kind)}" if "type" in item else "missing key 'type'"
        hint = did_you_mean(kind, FILTERS) if isinstance(kind, str) else ""
        return reading.fail((*at, "type") if "type" in item else at, f"{wrong}{hint or f'; known: {_listed(FILTERS)}'}")
    given: Any = item.get("joints")
    own = tuple(given) if isinstance(given, list) and all(isinstance(name, str) for name in given) else joints
    if kinds is not None:
        unknown = [(k, name) for k, name in enumerate(own) if name not in joints]
        for k, name in unknown:
            what = f"the controller does not command '{name}'{did_you_mean(name, joints)}"
            reading.fail((*at, "joints", k), what)
        if unknown:
            return None
    of = None if kinds is None else {name: kinds[name] for name in own}
    params = read(FILTERS[str(kind)], item, at, reading.of(of), besides=("type",))
    if params is None or kinds is None:
        return None
    return FilterSpec(params, own, tuple(joints.index(name) for name in own))


def check_filters(specs: Collection[FilterSpec], period: float) -> None:
    """Raises InputErrors for frequencies that are not below half the rate."""
    errors = [error for k, spec in enumerate(specs) for key in FREQUENCIES for error in _too_fast(spec, key, k, period)]
    if errors:
        raise InputErrors(errors)


def sections_of(specs: Sequence[FilterSpec], n: int, period: float, params: Sequence[Any]) -> list[Section]:
    """The filters in series with these parameters, numbers or symbols, as sections of n joints; a joint that a filter
    leaves out passes it unchanged."""
    found = []
    for spec, own in zip(specs, params, strict=True):
        for section in own.sections(period):
            rest = (np.full(n, 1.0 if k == 0 else 0.0) for k in range(len(section)))
            found.append(Section(*(ops.set_at(row, spec.index, own) for row, own in zip(rest, section, strict=True))))
    return found


def _too_fast(spec: FilterSpec, key: str, number: int, period: float) -> list[SectionError]:
    largest = 0.5 / period
    values = zip(spec.joints, getattr(spec.params, key, ()), strict=False)
    name, value = next(((name, value) for name, value in values if value >= largest * (1.0 - 1e-9)), ("", 0.0))
    if not name:
        return []
    what = f"{value:g} Hz of joint '{name}' is not below half the rate of the controller, {largest:g} Hz"
    return [SectionError(f"{what}; lower it, or shorten the period", ("filters", number, key))]


def _listed(names: Collection[str]) -> str:
    return ", ".join(names)
