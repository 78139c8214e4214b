"""Orders of signals: their ripple as waves over the angle of a joint, by the number of waves per turn.

Over the last whole turns of a run a signal is s(φ) = s_0 + Σ a_n cos(n φ + φ_n). What the parts of a
motor cause has their orders: 1 of an encoder beside its centre, p and 2 p of p pole pairs, 6 p of an inverter, those of
cogging, of teeth. Orders are per turn of the joint: a gear before it multiplies those of the motor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from cosim.core.errors import InputError, near_names
from cosim.core.units import TURN, show_quantity
from cosim.output.text_table import TextTable, bold
from cosim.rig.run.run import Run

SHOWN = 8  # the largest ones of a signal
FEWEST_TICKS = 4  # per wave of the highest order
LEAST = 1e-9  # of the largest value, below which a wave is rounding


def orders_of(angle: NDArray[np.float64], values: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """(Amplitudes of the orders 0, 1, 2, … [unit of the values], the number of turns). angle: [rad], grows or falls.

    Raises ValueError for an angle that turns back, and for less than a turn."""
    steps = np.diff(angle)
    if not (np.all(steps > 0.0) or np.all(steps < 0.0)):
        raise ValueError("it stands or turns back")
    turns = math.floor(abs(angle[-1] - angle[0]) / TURN * (1.0 + 1e-12))
    if not turns:
        raise ValueError("it turns by less than one turn")
    way = np.abs(angle - angle[-1])[::-1]
    count = math.floor(float(np.sum(way <= turns * TURN)) / turns / FEWEST_TICKS)
    grid = np.linspace(0.0, turns * TURN, 4 * FEWEST_TICKS * max(count, 1) * turns, endpoint=False)
    spectrum = np.fft.rfft(CubicSpline(way, values[::-1])(grid)) / len(grid)
    waves = np.abs(spectrum[::turns][: count + 1])
    return np.concatenate([waves[:1], 2.0 * waves[1:]]), turns


@dataclass(frozen=True)
class SignalOrders:
    """Of one signal. amplitudes: of the orders 0, 1, 2, …; mean: with its sign."""

    signal: str
    unit: str
    turns: int
    mean: float
    amplitudes: NDArray[np.float64]

    @property
    def largest(self) -> list[int]:
        """Orders of the largest waves, in descending order."""
        found = 1 + np.argsort(-self.amplitudes[1:], kind="stable")[:SHOWN]
        least = LEAST * float(self.amplitudes.max())
        return [int(order) for order in found if self.amplitudes[order] > least]

    def lines(self) -> Iterator[str]:
        highest = len(self.amplitudes) - 1
        turns = "turn" if self.turns == 1 else "turns"
        mean = show_quantity(self.mean, self.unit)
        yield f"{bold(self.signal)}  {self.turns} {turns}, orders up to {highest}, mean {mean}"
        table = TextTable(["order"], ["amplitude", "of the mean"])
        for order in self.largest:
            amplitude = float(self.amplitudes[order])
            share = f"{100.0 * amplitude / abs(self.mean):.3g} %" if self.mean else "–"
            table.add_row(str(order), show_quantity(amplitude, self.unit), share)
        yield from table.lines()

    def as_json(self) -> dict[str, Any]:
        return {"unit": self.unit, "turns": self.turns, "mean": self.mean, "amplitudes": self.amplitudes.tolist()}


def signal_orders(run: Run, signals: Sequence[str], begin: float = 0.0) -> list[SignalOrders]:
    """Of signals of joints, `<joint>/<signal>`, over the angle of their joint from a time [s] on.

    Raises InputError for an unknown signal, one of no rotational joint, and an angle that turns back or is short."""
    found = []
    for signal in signals:
        if signal not in run.signals:
            raise InputError(f"there is no signal '{signal}'{near_names(signal, run.signals)}", "--orders")
        joint = signal.rpartition("/")[0]
        angle = f"{joint}/position"
        if angle not in run.signals or run.units[angle] != "rad":
            raise InputError(f"'{signal}' is of no rotational joint; name a signal of one", "--orders")
        late = run.t >= begin - 1e-12
        values = run[signal][late]
        try:
            amplitudes, turns = orders_of(run[angle][late], values) if late.sum() > 1 else _none()
        except ValueError as error:
            what = f"'{joint}' has no orders from {begin:g} s on: {error}"
            raise InputError(f"{what}; give --at, from which it turns on, or run longer", "--orders") from None
        spread = math.copysign(float(amplitudes[0]), float(values.mean()))
        found.append(SignalOrders(signal, run.units[signal], turns, spread, amplitudes))
    return found


def _none() -> Any:
    raise ValueError("the run has ended")
