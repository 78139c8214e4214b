"""A controller whose commanded effort is filtered: what its command requests of the drive passes low-pass filters and
notches before the drive gets it.

The drive gets the filtered effort alone, so the gains of the command act in the controller, at its rate. What enters
the filters is the signal `unfiltered_effort`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.control.control_loop import DeclaredInputs
from cosim.control.controller_result import accepted
from cosim.control.tunables import Leaf, ParameterTree, leaves_of, of_part, replaced
from cosim.core import filters
from cosim.core.filters import Section
from cosim.core.layout import Layout
from cosim.core.types import (
    COMMAND,
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
    """The block `controller` of n joints, and its filters."""

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
