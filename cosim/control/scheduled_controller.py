"""A controller whose gains depend on a signal: gain scheduling (Åström and Wittenmark, Adaptive Control, chapter 9).

The gain of a field `kp` at the present value of its signal is the signal `scheduled_kp`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from cosim.control.control_loop import DeclaredInputs
from cosim.control.controller_result import accepted
from cosim.control.tunables import Leaf, ParameterTree, leaves_of, of_part, replaced
from cosim.core import ops
from cosim.core.layout import Layout
from cosim.core.types import Array, Controller, Numeric, Parameters, Signal, Signals, State, joint_signals, signals_of


class GainSchedule(NamedTuple):
    """The field of parameters that has the gains `rows` (k, n) where an input of all dofs, such as `all_position`, has
    the values `points` (k,) for this dof; linear between them, constant outside."""

    field: str
    input: str
    dof: int
    points: tuple[float, ...]
    rows: Numeric

    def gains(self, value: Numeric) -> Numeric:
        """(n,) at a value of the signal."""
        found: Numeric = self.rows[0]
        for (low, high), (first, second) in zip(pairwise(self.points), pairwise(self.rows), strict=True):
            found = found + (second - first) * ops.clip((value - low) / (high - low), 0.0, 1.0)
        return found


@dataclass(frozen=True, eq=False)
class ScheduledParameters(ParameterTree):
    """Parameters of which the schedules give some: the gains of `kp` are `kp.gains.0`, `kp.gains.1` …"""

    own: Parameters
    schedules: tuple[GainSchedule, ...]

    def leaves(self) -> dict[str, Leaf]:
        own, found = leaves_of(self.own), dict[str, Leaf]()
        for schedule in self.schedules:
            declared = own.pop(schedule.field).declared
            found |= {
                f"{schedule.field}.gains.{k}": Leaf(_numbers(row), declared) for k, row in enumerate(schedule.rows)
            }
        return own | found

    def replaced(self, values: Mapping[str, Any], checked: bool) -> ScheduledParameters:
        schedules = []
        for one in self.schedules:
            rows = of_part(values, f"{one.field}.gains")
            schedules.append(one._replace(rows=ops.array([rows.get(str(k), row) for k, row in enumerate(one.rows)])))
        own = {path: value for path, value in values.items() if "." not in path}
        return ScheduledParameters(replaced(self.own, own, checked), tuple(schedules))


class ScheduledController:
    """The block `controller` with scheduled parameters, see `ScheduledParameters`."""

    def __init__(self, controller: Controller, schedules: Sequence[GainSchedule], nv: int) -> None:
        self._controller, self._schedules = controller, tuple(schedules)
        self.params = ScheduledParameters(controller.params, self._schedules)
        over = tuple({schedule.input: None for schedule in schedules})
        self.inputs: Signals = {**controller.inputs, **joint_signals(over, nv)}
        self.outputs = controller.outputs
        units = {name: field.metadata.get("unit", "1") for name, field in self.params.own.__dataclass_fields__.items()}
        self._n = self._schedules[0].rows.shape[1]
        own = {
            f"scheduled_{one.field}": Signal((self._n,), units[one.field], f"present value of {one.field}")
            for one in self._schedules
        }
        self.signals: Signals = {**signals_of(controller), **own}
        self._layout = Layout(controller.initial())

    def initial(self) -> State:
        return self._controller.initial()

    def update(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        """Raises WrongResult if the controller returns anything but its next state, its command and its signals."""
        gains = {schedule.field: schedule.gains(u[schedule.input][schedule.dof]) for schedule in p.schedules}
        own = DeclaredInputs({name: u[name] for name in self._controller.inputs})
        result = self._controller.update(t, replaced(p.own, gains, checked=False), x, own)
        state, outputs = accepted(result, self._controller, self._layout, self._n)
        return state, outputs | {f"scheduled_{field}": value for field, value in gains.items()}


def at_points(params: Parameters, schedules: Sequence[GainSchedule]) -> list[Any]:
    """The parameters with the numbers of every row of the schedules in turn, others at their first row; the parameters
    themselves without schedules."""
    first = _with(params, {schedule.field: _numbers(schedule.rows[0]) for schedule in schedules})
    rows = [(schedule.field, row) for schedule in schedules for row in schedule.rows[1:]]
    return [first, *(_with(first, {field: _numbers(row)}) for field, row in rows)]


def _with(params: Parameters, values: Mapping[str, object]) -> Any:
    return replaced(params, values, checked=False)


def _numbers(row: Array) -> tuple[float, ...]:
    return tuple(np.asarray(row, dtype=float).tolist())
