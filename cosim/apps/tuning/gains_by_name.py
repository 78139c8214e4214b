"""The proportional, integral and derivative gains among the parameters of a session, by the names kp, ki and kd."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cosim.apps.tuning.evaluation import TrialEvaluator
from cosim.core.errors import SectionError
from cosim.core.types import Array
from cosim.rig.parameter_table import table_of

WORDS = ("kp", "ki", "kd")


@dataclass(frozen=True)
class JointGains:
    """Of a joint: its dof and its controller; kp, ki, kd: numbers of their dimensions of the space, None for a ki that
    is not varied, which stays at `fixed_ki`."""

    joint: str
    dof: int
    controller: str
    kp: int
    ki: int | None
    kd: int
    fixed_ki: float


def joint_gains(evaluator: TrialEvaluator, method: str) -> list[JointGains]:
    """Raises InputError where the parameters are not the gains of joints."""
    space, rig = evaluator.space, evaluator.rig
    known, found = table_of(rig).live, dict[tuple[str, int], dict[str, int]]()
    for k, dimension in enumerate(space.dimensions):
        controller, _, word = dimension.parameter.partition(".")
        if dimension.parameter not in known or word not in WORDS:
            what = f"optimiser '{method}' sets kp, kd and ki of joints alone, not '{dimension.name}'"
            raise SectionError(f"{what}; use another one", ("optimiser",))
        found.setdefault((controller, dimension.element), {})[word] = k
    gains = []
    for (controller, element), words in found.items():
        loop = known[f"{controller}.{next(iter(words))}"].loop
        dof = int(loop.index[element])
        for word in ("kp", "kd"):
            if word not in words:
                what = f"optimiser '{method}' sets kp and kd together, and {word} of '{rig.joints[dof]}' is not varied"
                raise SectionError(f"{what}; add the parameter {controller}.{word}", ("optimiser",))
        fixed = 0.0 if "ki" in words else _value(evaluator, f"{controller}.ki", element)
        gains.append(JointGains(rig.joints[dof], dof, controller, words["kp"], words.get("ki"), words["kd"], fixed))
    return gains


def _value(evaluator: TrialEvaluator, name: str, element: int) -> float:
    """Of an element of a parameter of the rig, 0 without such a parameter."""
    item = table_of(evaluator.rig).live.get(name)
    if item is None:
        return 0.0
    values = evaluator.rig.tick_model.parameters[item.where]
    return float(values[min(element, len(values) - 1)])


def positions_within(evaluator: TrialEvaluator, candidates: list[Mapping[int, float]]) -> Array:
    """(m, d) positions of candidates, dimension -> value, that are within all bounds."""
    space = evaluator.space
    rows = []
    for candidate in candidates:
        values = [candidate.get(k, dimension.start) for k, dimension in enumerate(space.dimensions)]
        if all(d.low <= value <= d.high for d, value in zip(space.dimensions, values, strict=True)):
            rows.append(values)
    return space.positions(np.array(rows)) if rows else np.zeros((0, len(space)))


class Proposals:
    """An optimiser that has a list of trials to propose, and ends with it."""

    def __init__(self, positions: Array) -> None:
        self._positions, self._next = positions, 0

    def ask(self, n: int) -> Array:
        first, self._next = self._next, self._next + n
        return self._positions[first : self._next]

    def tell(self, positions: Array, scores: Array) -> None:
        pass
