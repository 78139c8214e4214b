"""How long a thermal network may be heated as it is now: `time_to_limit`.

    C Ṫ = P + P_w α (T_w − T_w0) / (1 + α T_w0) − L (T − T_ambient)

with the present losses P of each node and the losses P_w of the windings at their present temperature T_w0, which
grow with their resistance. So the currents and the speed stay as they are: the torque stays too, as far as no magnet
weakens. With y = T − T(0) this is ẏ = r + A y, whose solution over a step s is exact,

    y(t + s) = y + G y + h,   G = e^{A s} − 1,   h = ∫ e^{A τ} dτ r,

and is doubled by G ← 2 G + G², h ← 2 h + G h (Moler and Van Loan, Nineteen Dubious Ways to Compute the Exponential of
a Matrix, method 3). `time_to_limit` is the first time at which a node with a limit reaches it; 0 beyond it, and 10⁶ s
where none is reached.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.bondgraph.components._thermal_network import AMBIENT, WINDING, Thermal

NEVER = 1e6  # s
SHORTEST, LONGEST = 1e-3, 640.0  # times of the search, in the fastest and the slowest time constant of the cold network
HALVINGS = 10  # of the shortest time; then a secant, whose error is of its square
LARGEST = 1e50  # of what a network that runs away has reached before: its square is finite


class NetworkStep(NamedTuple):
    """The exact solution over a step. seconds; G: (n, n); h: (n,) K."""

    seconds: float
    G: Numeric
    h: Numeric

    def taken(self, y: Numeric) -> Numeric:
        return y + self.G @ y + self.h

    @property
    def doubled(self) -> NetworkStep:
        G, h = 2.0 * self.G + self.G @ self.G, 2.0 * self.h + self.G @ self.h
        return NetworkStep(2.0 * self.seconds, *(ops.clip(of, -LARGEST, LARGEST) for of in (G, h)))


@dataclass(frozen=True)
class HeatedNetwork:
    """The solution of a network for the present currents and speed. heated: the node of each loss; copper: whether it
    grows with the resistance of the windings; empty: none does."""

    thermal: Thermal
    heated: tuple[str, ...]
    copper: tuple[bool, ...] = ()

    @cached_property
    def _names(self) -> list[str]:
        return [node.name for node in self.thermal.network_nodes]

    @cached_property
    def _capacities(self) -> np.ndarray:
        return np.array([node.capacity for node in self.thermal.network_nodes])

    @cached_property
    def _conductances(self) -> np.ndarray:
        """L (n, n): heat out of each node per rise over the ambient air [W/K]."""
        n = len(self._names)
        found = np.zeros((n, n))
        for coupling in self.thermal.network_couplings:
            at = [self._names.index(name) for name in coupling.between if name != AMBIENT]
            for i in at:
                found[i, i] += coupling.heat_per_difference
            if len(at) == 2:
                found[at[0], at[1]] -= coupling.heat_per_difference
                found[at[1], at[0]] -= coupling.heat_per_difference
        return found

    @cached_property
    def _time_constants(self) -> tuple[float, float]:
        """The fastest and the slowest one [s] of constant losses."""
        root = np.sqrt(self._capacities)
        rates = np.linalg.eigvalsh(self._conductances / np.outer(root, root))
        return 1.0 / float(rates[-1]), 1.0 / float(rates[0])

    def time_to_limit(self, *signals: Numeric) -> Numeric:
        """s; signals: the time, if the ambient temperature depends on it, the rises and the losses."""
        n, ambient = len(self._names), self.thermal.ambient
        t, rest = ((signals[0],), signals[1:]) if ambient is not None else ((), signals)
        air: Numeric = ambient.fn(*t[: len(ambient.uses)]) if ambient is not None else 0.0
        rises, losses = list(rest[:n]), rest[n:]
        limits = [(k, node.limit) for k, node in enumerate(self.thermal.network_nodes) if node.limit is not None]

        def beyond(y: Numeric) -> Numeric:
            """By how much a node is beyond its limit; the most of all."""
            return reduce(ops.maximum, [rises[k] + y[k] - limit for k, limit in limits])

        return _first_time(self._shortest_step(rises, losses, air), self._octaves, beyond)

    @cached_property
    def _octaves(self) -> int:
        """Doublings from the shortest time of the search to its longest one."""
        fastest, slowest = self._time_constants
        return math.ceil(math.log2(LONGEST * slowest / (SHORTEST * fastest)))

    def _shortest_step(self, rises: list[Numeric], losses: tuple[Numeric, ...], air: Numeric) -> NetworkStep:
        """By the series of the exponential, whose fourth term is beyond rounding."""
        power, slope = self._heating(rises, losses)
        rate = (ops.array(power) - self._conductances @ ops.array([rise - air for rise in rises])) / self._capacities
        A = ops.array(
            [
                [(slope if i == j == self._names.index(WINDING) else 0.0) - part for j, part in enumerate(row)]
                for i, row in enumerate(self._conductances)
            ]
        ) / self._capacities.reshape(-1, 1)
        seconds = SHORTEST * self._time_constants[0] / 2.0**HALVINGS
        X, h = seconds * A, seconds * rate
        return NetworkStep(seconds, X + X @ X / 2.0 + X @ X @ X / 6.0, h + X @ h / 2.0 + X @ X @ h / 6.0)

    def _heating(self, rises: list[Numeric], losses: tuple[Numeric, ...]) -> tuple[list[Numeric], Numeric]:
        """(losses in each node [W], their slope by the temperature of the windings [W/K])"""
        power: list[Numeric] = [0.0] * len(self._names)
        for node, loss in zip(self.heated, losses, strict=True):
            power[self._names.index(node)] = power[self._names.index(node)] + loss
        hot = [loss for loss, grows in zip(losses, self.copper, strict=False) if grows]
        if not hot or not (alpha := self.thermal.coefficient):
            return power, 0.0
        return power, alpha * ops.sum(hot) / (1.0 + alpha * rises[self._names.index(WINDING)])


def _first_time(shortest: NetworkStep, octaves: int, beyond: Callable[[Numeric], Numeric]) -> Numeric:
    """The first time at which `beyond` is 0 or more: on four times of each octave, then between two of them by halves
    and a secant."""
    steps = [shortest]
    for _ in range(HALVINGS + octaves):
        steps.append(steps[-1].doubled)
    still = 0.0 * shortest.h
    low, high, at, found = 0.0, steps[HALVINGS].seconds, still, ops.where(beyond(steps[HALVINGS].h) >= 0.0, 1.0, 0.0)
    for number, step in enumerate(steps[HALVINGS:-1], HALVINGS):
        y, quarter = step.h, steps[number - 2]
        for k in range(4):
            after = quarter.taken(y)
            low, at = (
                ops.where(found > 0.5, old, new) for old, new in ((low, step.seconds + k * quarter.seconds), (at, y))
            )
            high = ops.where(found > 0.5, high, step.seconds + (k + 1) * quarter.seconds)
            found = ops.maximum(found, ops.where(beyond(after) >= 0.0, 1.0, 0.0))
            y = after
    time = low
    for step in reversed(steps):
        after = step.taken(at)
        goes = ops.logical_and(time + step.seconds < high - 0.5 * shortest.seconds, beyond(after) < 0.0)
        time, at = ops.where(goes, time + step.seconds, time), ops.where(goes, after, at)
    before, behind = beyond(at), beyond(shortest.taken(at))
    rest = shortest.seconds * ops.clip(-before / ops.maximum(behind - before, 1e-300), 0.0, 1.0)
    return ops.where(beyond(still) >= 0.0, 0.0, ops.where(found > 0.5, time + rest, NEVER))
