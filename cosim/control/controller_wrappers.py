"""Controllers around a controller: filters of what it commands, gains that depend on a signal, a given excitation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cosim.control.control_loop import DeclaredInputs
from cosim.control.controller_result import accepted
from cosim.control.tunables import Leaf, ParameterTree, leaves_of, of_part, replaced
from cosim.core import filters, ops
from cosim.core.filters import Section
from cosim.core.interpolation import interpolated
from cosim.core.layout import Layout
from cosim.core.types import (
    COMMAND,
    Array,
    Controller,
    Numeric,
    Parameters,
    Signal,
    Signals,
    State,
    joint_signals,
    requested_effort,
    signals_of,
)

Sections = Callable[[Sequence[Any]], Sequence[Section]]  # of the parameters of all filters, in series


@dataclass(frozen=True, eq=False)
class FilteredParameters(ParameterTree):
    """Parameters of a controller, and of its filters as `filters.0.frequency` …"""

    own: Any
    filters: tuple[Parameters, ...]

    def leaves(self) -> dict[str, Leaf]:
        of_filters = {
            f"filters.{k}.{name}": leaf
            for k, params in enumerate(self.filters)
            for name, leaf in leaves_of(params).items()
        }
        return leaves_of(self.own) | of_filters

    def replaced(self, values: Mapping[str, Any], checked: bool) -> FilteredParameters:
        of_filters = of_part(values, "filters")
        own = {path: value for path, value in values.items() if not path.startswith("filters.")}
        filters = (replaced(one, of_part(of_filters, str(k)), checked) for k, one in enumerate(self.filters))
        return FilteredParameters(replaced(self.own, own, checked), tuple(filters))


class FilteredController:
    """The block `controller` of n joints, and its filters: what its command requests of the drive passes low-pass
    filters and notches before the drive gets it.

    The drive gets the filtered effort alone, so the gains of the command act in the controller, at its rate. What
    enters the filters is the signal `unfiltered_effort`.
    """

    def __init__(self, controller: Controller, filters: Sequence[Parameters], sections_of: Sections, n: int) -> None:
        """filters: their parameters; sections_of: the sections of parameters of numbers or symbols."""
        self._controller, self._sections_of, self._n = controller, sections_of, n
        self.params = FilteredParameters(controller.params, tuple(filters))
        self.inputs: Signals = {**controller.inputs, **joint_signals(("position", "velocity"), n)}
        self.outputs = joint_signals(COMMAND, n)
        self.signals: Signals = {
            **signals_of(controller),
            "unfiltered_effort": Signal((n,), "joint effort", "commanded effort before the filters", "command"),
        }
        self._layout, self._no_gain = Layout(controller.initial()), np.zeros(n)

    def initial(self) -> State:
        return {
            "controller": self._controller.initial(),
            "filter": filters.initial(self._sections_of(self.params.filters), self._n),
        }

    def update(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        """Raises WrongResult if the controller returns anything but its next state and its command."""
        own = DeclaredInputs({name: u[name] for name in self._controller.inputs})
        result = self._controller.update(t, p.own, x["controller"], own)
        state, outputs = accepted(result, self._controller, self._layout, self._n)
        request = requested_effort(outputs, u)
        effort, after = filters.filtered(self._sections_of(p.filters), x["filter"], request)
        outputs |= {"effort": effort, "kp": self._no_gain, "kd": self._no_gain, "unfiltered_effort": request}
        return {"controller": state, "filter": after}, outputs


class ExcitedController:
    """The block `controller` of n joints beside an excitation: the effort of its trajectory is added to what it
    commands, past the controller and its filters.

    So the effort enters where the loop is broken in the analysis, at the drive; an estimator or a filter of the
    controller has no part of it but what is measured.
    """

    def __init__(self, controller: Controller, n: int) -> None:
        self._controller, self._n = controller, n
        self.params, self.initial = controller.params, controller.initial
        self.inputs: Signals = {**controller.inputs, **joint_signals(("reference_effort",), n)}
        self.outputs, self.signals = joint_signals(COMMAND, n), signals_of(controller)
        self._layout = Layout(controller.initial())

    def update(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        """Raises WrongResult if the controller returns anything but its next state and its command."""
        own = {name: u[name] for name in self._controller.inputs}
        if "reference_effort" in own:
            own["reference_effort"] = np.zeros(self._n)
        result = self._controller.update(t, p, x, DeclaredInputs(own))
        state, outputs = accepted(result, self._controller, self._layout, self._n)
        return state, outputs | {"effort": outputs["effort"] + u["reference_effort"]}


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
        return interpolated(value, self.points, self.rows.__getitem__)


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
    """The block `controller` with scheduled parameters, see `ScheduledParameters`: gain scheduling (Åström and
    Wittenmark, Adaptive Control, chapter 9).

    The gain of a field `kp` at the present value of its signal is the signal `scheduled_kp`.
    """

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
