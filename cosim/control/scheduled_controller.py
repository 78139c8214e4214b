"""A controller whose gains depend on a signal: gain scheduling (Åström and Wittenmark, Adaptive Control, chapter 9).

The gain of a field `kp` at the present value of its signal is the signal `scheduled_kp`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from cosim import ops
from cosim.control.control_loop import DeclaredInputs
from cosim.control.controller_result import accepted
from cosim.layout import Layout
from cosim.types import Array, Controller, Numeric, Parameters, Signal, Signals, State, joint_signals, signals_of


class GainSchedule(NamedTuple):
    """The field of parameters that has the gains `rows` (k, n) where an input of all dofs, such as `all_position`, has
    the values `points` (k,) for this dof; linear between them, constant outside."""

    field: str
    input: str
    dof: int
    points: tuple[float, ...]
    rows: Array

    def gains(self, value: Numeric) -> Numeric:
        """(n,) at a value of the signal."""
        found: Numeric = self.rows[0]
        for (low, high), (first, second) in zip(pairwise(self.points), pairwise(self.rows), strict=True):
            found = found + (second - first) * ops.clip((value - low) / (high - low), 0.0, 1.0)
        return found


class ScheduledController:
    """The block `controller` with scheduled parameters. Its own parameters have the schedules in their place."""

    def __init__(self, controller: Controller, schedules: Sequence[GainSchedule], nv: int) -> None:
        self._controller, self._schedules = controller, tuple(schedules)
        self.params = _replaced(controller.params, {schedule.field: schedule for schedule in schedules})
        over = tuple({schedule.input: None for schedule in schedules})
        self.inputs: Signals = {**controller.inputs, **joint_signals(over, nv)}
        self.outputs = controller.outputs
        units = {name: field.metadata.get("unit", "1") for name, field in self.params.__dataclass_fields__.items()}
        self._n = self._schedules[0].rows.shape[1]
        own = {f"scheduled_{one.field}": Signal((self._n,), units[one.field]) for one in self._schedules}
        self.signals: Signals = {**signals_of(controller), **own}
        self._layout = Layout(controller.initial())

    def initial(self) -> State:
        return self._controller.initial()

    def update(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        """Raises WrongResult if the controller returns anything but its next state, its command and its signals."""
        gains = {schedule.field: schedule.gains(u[schedule.input][schedule.dof]) for schedule in self._schedules}
        own = DeclaredInputs({name: u[name] for name in self._controller.inputs})
        result = self._controller.update(t, _replaced(p, gains), x, own)
        state, outputs = accepted(result, self._controller, self._layout, self._n)
        return state, outputs | {f"scheduled_{field}": value for field, value in gains.items()}


def _replaced(params: Parameters, values: Mapping[str, object]) -> Any:
    """The parameters with other values, without the checks of their class: they are for numbers."""
    changed = copy.copy(params)
    for name, value in values.items():
        object.__setattr__(changed, name, value)
    return changed


def at_points(params: Parameters, schedules: Sequence[GainSchedule]) -> list[Any]:
    """The parameters with the numbers of every row of the schedules in turn, others at their first row; the parameters
    themselves without schedules."""
    first = _replaced(params, {schedule.field: _numbers(schedule.rows[0]) for schedule in schedules})
    rows = [(schedule.field, row) for schedule in schedules for row in schedule.rows[1:]]
    return [first, *(_replaced(first, {field: _numbers(row)}) for field, row in rows)]


def _numbers(row: Array) -> tuple[float, ...]:
    return tuple(np.asarray(row, dtype=float).tolist())
