"""A controller beside an excitation: the effort of its trajectory is added to what it commands, past the controller and
its filters.

So the effort enters where the loop is broken in the analysis, at the drive; an estimator or a filter of the controller
has no part of it but what is measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cosim.control.control_loop import DeclaredInputs
from cosim.control.controller_result import accepted
from cosim.core.layout import Layout
from cosim.core.types import COMMAND, Controller, Numeric, Signals, State, joint_signals, signals_of


class ExcitedController:
    """The block `controller` of n joints."""

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
