"""The metrics of a run as one pure function of its rows, for the compiled loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cosim.core import ops
from cosim.core.layout import Layout
from cosim.core.types import Array, Numeric, State
from cosim.simulation.tick.metrics import METRICS, Ending, JointSample
from cosim.simulation.tick.signals import SignalMap

# field of a JointSample -> the signal without which a joint does not have it
SIGNALS = {"error": "reference_position", "request": "command_effort", "effort": "effort"}

TARGET = "/target"  # among the accumulators; no function has this name

UserMetric = Callable[[Numeric, Mapping[str, Numeric]], Numeric]  # (t, signals by name) -> () or (m,)


@dataclass(frozen=True, eq=False)
class Accumulation:
    """The function that accumulates metrics over the rows of a run.

    signals: of the rig; metrics: names out of METRICS; functions: of the user by name, integrated over time; limit,
    target (n,): of the joints' efforts, and their reference positions at the end; step [s].
    """

    signals: SignalMap
    metrics: tuple[str, ...]
    functions: Mapping[str, UserMetric]
    limit: Array
    target: Array
    step: float

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for equal functions of rows of one rig."""
        return self.metrics, tuple(self.functions.items())

    @property
    def joints(self) -> tuple[str, ...]:
        return self.signals.plant.model.dof_names

    @cached_property
    def _before(self) -> State:
        """The accumulators before the first tick."""
        n = len(self.joints)
        tree: State = {name: np.repeat(np.array(METRICS[name].initial)[:, None], n, axis=1) for name in self.metrics}
        if self.functions:
            first = self.signals.values(self.signals.first_start, self.signals.first_row)
            tree |= {name: np.zeros(np.shape(function(0.0, first))) for name, function in self.functions.items()}
        return tree | {TARGET: self.target}  # here it is no constant of the code

    @cached_property
    def layout(self) -> Layout:
        return Layout(self._before)

    def initial(self) -> Array:
        """The accumulators (nm,) before the first tick."""
        return self.layout.pack(self._before)

    def update(self, accumulators: Numeric, start: Numeric, row: Numeric) -> Numeric:
        """The accumulators (nm,) after a tick; start, row: see `SignalMap.observe`."""
        values = self.signals.values(start, row)
        t, a = self.signals.row.unpack(row)["t"], self.layout.unpack(accumulators)
        sample = self._sample(t, values, a[TARGET])
        new = {name: ops.array(METRICS[name].update(a[name], sample)) for name in self.metrics}
        new |= {name: a[name] + ops.array(function(t, values)) for name, function in self.functions.items()}
        return self.layout.pack(new | {TARGET: a[TARGET]})

    def _sample(self, t: Numeric, values: Mapping[str, Numeric], target: Numeric) -> JointSample:
        """The signals of a tick by joint; 0 where a joint has no such signal."""

        def of(name: str) -> Numeric:
            return ops.array([values.get(f"{joint}/{name}", 0.0) for joint in self.joints])

        position = of("position")
        error = ops.where(self._has("error"), of("reference_position") - position, 0.0)
        return JointSample(t, position, of("velocity"), of("effort"), error, of("command_effort"), self.limit, target)

    def has(self, metric: str) -> Array:
        """bool (n,): joints with what a metric needs."""
        return self._has(METRICS[metric].needs)

    def _has(self, field: str) -> Array:
        """bool (n,): joints with this field of a sample."""
        names = set(self.signals.names)
        return np.array([f"{joint}/{SIGNALS[field]}" in names for joint in self.joints])

    def results(self, accumulators: Numeric, ticks: Array) -> dict[str, Any]:
        """Name -> (k, n), of functions (k, …); accumulators (k, nm) and ticks (k,) of finished runs. NaN for joints
        without what a metric needs."""
        end = Ending(ticks[:, None], (ticks[:, None] - 1) * self.step, self.step, self.target)
        found = {}
        for name in (*self.metrics, *self.functions):
            where, shape = self.layout.place(name)
            values = accumulators[:, where].reshape(len(ticks), *shape)
            if name in self.functions:
                found[name] = values * self.step
                continue
            with np.errstate(all="ignore"):  # of runs that diverged
                found[name] = ops.where(self.has(name), METRICS[name].result(values, end), np.nan)
        return found
