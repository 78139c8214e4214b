"""How far runs are from a log of the machine, by joint: the figure `misfit`.

It is the root of the mean, over the quantities that the log has of a joint, of

    mean of (simulated − measured)² / mean of (measured − its mean)²

over the rows of the log within the run: 0 for a run like the log, 1 for one that knows no more than the mean. Of one
quantity it is √(1 − R²) with the coefficient of determination R² (Draper and Smith, Applied Regression Analysis,
chapter 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cosim.core.errors import InputError
from cosim.core.types import Array
from cosim.rig.rig import Rig
from cosim.rig.run.measured_log import COMPARED
from cosim.rig.run.run import Run

MISFIT = "misfit"
ROUNDING = 1e-9  # relative to a time or a value


@dataclass(frozen=True, eq=False)
class LogColumn:
    """A quantity of a joint in a log. joint: its number; signal: of the rig, that it is compared with; values (n,) at
    the times of the log; spread: their mean square deviation from their mean."""

    joint: int
    quantity: str
    signal: str
    values: Array
    spread: float


@dataclass(frozen=True, eq=False)
class TargetLog:
    """A log of the machine that runs are to be like. t (n,): times [s] of its rows since the first one, within the run;
    columns: that count; joints: number of joints of the rig; digest: SHA-256 of the file; notes: what was guessed,
    changed or left out when it was read."""

    path: str
    digest: str
    t: Array
    columns: tuple[LogColumn, ...]
    joints: int
    notes: tuple[str, ...]

    @property
    def signals(self) -> list[str]:
        """Of the rig, that a run must keep."""
        return [column.signal for column in self.columns]

    def misfit(self, t: Array, signal: Callable[[LogColumn], Array]) -> Array:
        """(k, joints) of k runs, from the values (k, times) of each column at the times t (times,) [s], NaN where a run
        had ended: rows of the log from there on do not count. NaN of joints that the log does not have."""
        values = [signal(column) for column in self.columns]
        end = float(t[-1])
        times = np.where(self.t <= end * (1.0 + ROUNDING), np.minimum(self.t, end), self.t)
        found = np.full((len(values[0]), self.joints), np.nan)
        for run in range(len(found)):  # each alone: its sums are the same to the bit among others
            squares = dict[int, list[float]]()
            for column, runs in zip(self.columns, values, strict=True):
                simulated = np.interp(times, t, runs[run], right=np.nan)
                squares.setdefault(column.joint, []).append(_mean_square(simulated - column.values) / column.spread)
            for joint, own in squares.items():
                found[run, joint] = math.sqrt(math.fsum(own) / len(own))
        return found

    def misfit_of_run(self, run: Run, joints: Sequence[str], ticks: int) -> Array:
        """(1, joints) of the first ticks of a run, of real joints as they were measured."""
        names = {c.signal: measured_signal(run, joints[c.joint], c.quantity) or c.signal for c in self.columns}
        return self.misfit(run.t[:ticks] - run.t[0], lambda column: run[names[column.signal]][None, :ticks])

    def check_signals(self, rig: Rig) -> None:
        """Raises InputError for a rig whose runs lack a quantity of the log."""
        names = rig.tick_model.signals.names
        for column in self.columns:
            joint = rig.joints[column.joint]
            if not any(f"{joint}/{signal}" in names for signal in COMPARED[column.quantity]):
                what = f"has no {column.quantity} of '{joint}', which the log of the session has"
                raise InputError(f"{what}; give a log without it in another session", str(rig.spec.path))


def measured_signal(run: Run, joint: str, quantity: str) -> str | None:
    """The signal of a run that has a quantity of a joint as the machine measured it."""
    real = (f"measured_{quantity}",) if run.rig.roles.get(joint) == "real" else ()
    names = (f"{joint}/{signal}" for signal in (*real, *COMPARED[quantity]))
    return next((name for name in names if name in run), None)


def _mean_square(values: Array) -> float:
    """Of the numbers among (n,), NaN without one."""
    known = values[~np.isnan(values)]
    return float(np.mean(known**2)) if len(known) else math.nan
