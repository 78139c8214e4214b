"""Limits of a joint and their actions; the keys come from the table of limits."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any, Literal

from cosim.control.limits import LIMITS, GuardLimit
from cosim.core.types import param, params
from cosim.mechanics.multibody.mechanism import Joint


def _dataclass(name: str, fields: Iterable[tuple[str, Any, Any]]) -> Any:
    return dataclasses.make_dataclass(name, fields, frozen=True)


def _action_of(row: GuardLimit) -> Any:
    """The annotation of an action of this limit."""
    literal: Any = Literal
    return literal[row.actions]


_JointActionKeys = _dataclass(
    "_JointActionKeys", [(row.key, _action_of(row) | None, param(default=None)) for row in LIMITS]
)
_ActionKeys = _dataclass(
    "_ActionKeys", [(row.key, _action_of(row), param(default=row.default_action)) for row in LIMITS]
)
_LimitKeys = _dataclass(
    "_LimitKeys",
    [
        (key, float | None, param(unit=row.unit, above=0 if row.positive else None, default=None, doc=row.meaning))
        for row in LIMITS
        for key in row.bound_keys
    ],
)


@params
class JointActions(_JointActionKeys):
    """The actions of one joint's limits that differ from the rig's."""

    @property
    def given(self) -> dict[str, str]:
        """Limit -> action."""
        return {key: action for key, action in dataclasses.asdict(self).items() if action is not None}


@params
class Actions(_ActionKeys):
    """The actions of all limits in a rig."""


@params
class JointLimits(_LimitKeys):
    """The limits of a joint as given in the rig."""

    actions: JointActions = param(default=JointActions())

    def bounds(self, joint: Joint | None) -> dict[str, float]:
        """Key -> bound of the rig, else of the mechanism's joint, else infinite."""
        bounds = {}
        for row in LIMITS:
            for key, attribute in zip(row.bound_keys, row.inherited or (None,) * len(row.bound_keys), strict=True):
                default = -math.inf if key == "lower" else math.inf
                inherited = default if joint is None or attribute is None else getattr(joint, attribute)
                given = getattr(self, key)
                bounds[key] = inherited if given is None else given
        return bounds
