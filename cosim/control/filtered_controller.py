"""A controller whose commanded effort is filtered: what its command requests of the drive passes low-pass filters and
notches before the drive gets it.

The drive gets the filtered effort alone, so the gains of the command act in the controller, at its rate. What enters
the filters is the signal `unfiltered_effort`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cosim import filters
from cosim.control.control_loop import DeclaredInputs
from cosim.control.controller_result import accepted
from cosim.filters import Section
from cosim.layout import Layout
from cosim.types import (
    COMMAND,
    Controller,
    Numeric,
    Signal,
    Signals,
    State,
    joint_signals,
    requested_effort,
    signals_of,
)


class FilteredController:
    """The block `controller` of n joints, and the sections of its filter."""

    def __init__(self, controller: Controller, sections: Sequence[Section], n: int) -> None:
        self._controller, self._sections, self._n = controller, tuple(sections), n
        self.params = controller.params
        self.inputs: Signals = {**controller.inputs, **joint_signals(("position", "velocity"), n)}
        self.outputs = joint_signals(COMMAND, n)
        self.signals: Signals = {**signals_of(controller), "unfiltered_effort": Signal((n,), "joint effort")}
        self._layout, self._no_gain = Layout(controller.initial()), np.zeros(n)

    def initial(self) -> State:
        return {"controller": self._controller.initial(), "filter": filters.initial(self._sections, self._n)}

    def update(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        """Raises WrongResult if the controller returns anything but its next state and its command."""
        own = DeclaredInputs({name: u[name] for name in self._controller.inputs})
        result = self._controller.update(t, p, x["controller"], own)
        state, outputs = accepted(result, self._controller, self._layout, self._n)
        request = requested_effort(outputs, u)
        effort, after = filters.filtered(self._sections, x["filter"], request)
        outputs |= {"effort": effort, "kp": self._no_gain, "kd": self._no_gain, "unfiltered_effort": request}
        return {"controller": state, "filter": after}, outputs
