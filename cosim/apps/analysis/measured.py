"""Frequency responses measured on a running rig, simulated or real, from its recorded signals.

An effort d is added to the controller's; the effort requested of the drive is then their sum u.
The discrete transforms of both give S = U / D and the loop gain L = D / U − 1. Over whole periods of a periodic
excitation, and over a run that begins and ends at rest, they have no leakage (Pintelon and Schoukens, System
Identification, §2.4, §2.7).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from cosim.apps.analysis.linearisation import LinearRig
from cosim.apps.analysis.loops import CLOSED
from cosim.core.errors import InputError
from cosim.core.types import Array
from cosim.core.units import TURN
from cosim.rig.run.run import Run

EXCITED = 0.1  # of the largest line of the spectrum
REPEATED = 1e-6  # relative difference of two periods of the excitation
FEWEST, MOST = 4, 50  # periods, those faded in and out included
ONE_RATE: Mapping[str, int] = MappingProxyType({})
FEWEST_LEVELS = 16  # of the effort of the controller: with fewer, the encoder hardly saw the motion
SILENT = 1e-6  # of the largest line: a bin that is not excited
NEIGHBOURS = 6  # of such bins
POINTS = 400  # of a response that has more lines


@dataclass(frozen=True)
class MeasuredResponse:
    """Of the loop of a dof. omega (m,) [rad/s]; sensitivity (m,): S; deviation (m,): standard deviation of S: of the
    mean of the periods, and what counts of encoders and other nonlinear parts put into the lines beside it; 0 where one
    period was measured, inf where the controller hardly reacted."""

    dof: str
    omega: Array
    sensitivity: Array
    deviation: Array

    @property
    def loop(self) -> Array:
        """(m,) L = 1 / S − 1."""
        return 1.0 / self.sensitivity - 1.0


def excited_dof(run: Run, place: str | None = None) -> str:
    """The dof with a feedforward effort. place: of errors, by default the rig. Raises InputError unless there is
    one."""
    found = [name.removesuffix("/reference_effort") for name in run.signals if name.endswith("/reference_effort")]
    moved = [dof for dof in found if np.any(run[f"{dof}/reference_effort"])]
    if len(moved) != 1:
        what = f"{', '.join(moved)} are excited" if moved else "no joint is excited"
        raise InputError(f"{what} by an effort of its trajectory; record one run for each joint", place or run.rig.path)
    return moved[0]


def measured_response(
    run: Run, step: float, place: str | None = None, ticks: int = 1, phases: Mapping[str, int] = ONE_RATE
) -> MeasuredResponse:
    """Of the dof that the run excites; step: of its ticks [s]; place: of errors, by default the rig; ticks: from one
    call of its controller to the next; phases: dof -> tick of the first call.

    Raises InputError for a run that was stopped, lacks ticks, or is no such experiment.
    """
    dof, place = excited_dof(run, place), place or run.rig.path
    if run.fault:
        raise InputError(f"the experiment did not end: {run.fault}", place)
    numbers = np.rint(np.asarray(run.t) / step).astype(int)
    if np.any(np.diff(numbers) != 1):
        missing = int(numbers[-1] - numbers[0] + 1 - len(numbers))
        raise InputError(f"{missing} ticks are missing; measure again on a quieter machine", place)
    called, step = numbers % ticks == phases.get(dof, 0), ticks * step
    d, u = (np.asarray(run[f"{dof}/{name}_effort"])[called] for name in ("reference", "command"))
    begin, end = np.flatnonzero(d)[[0, -1]]
    period = _period(d[begin : end + 1])
    if period is None:  # all of it, to the end of the run
        rows = np.array([[begin, len(d)]])
    else:
        first = begin + period
        rows = np.array([[k, k + period] for k in range(first, end + 2 - 2 * period, period)])
    D, U = (np.array([np.fft.rfft(signal[slice(*row)] - _mean(signal, row)) for row in rows]) for signal in (d, u))
    size = np.abs(D).mean(axis=0)
    lines = np.flatnonzero(size > EXCITED * size.max())
    if len(lines) > POINTS:
        lines = np.unique(lines[np.rint(np.geomspace(1, len(lines), POINTS)).astype(int) - 1])
    S = U[:, lines] / D[:, lines]
    if np.abs(S - 1.0).max() < CLOSED:
        raise InputError(f"the effort of '{dof}' is not fed back in the rig: it has no loop to measure", place)
    omega = TURN * lines / ((rows[0, 1] - rows[0, 0]) * step)
    deviation = np.zeros(len(lines))
    if len(rows) > 1:
        spread = S.std(axis=0, ddof=1) / math.sqrt(len(rows))
        deviation = np.hypot(spread, _beside_lines(np.abs(U.mean(axis=0)), size, lines) / size[lines])
    if len(np.unique(np.round((u - d)[rows[0, 0] : rows[-1, 1]], 12))) < FEWEST_LEVELS:
        deviation[:] = np.inf
    return MeasuredResponse(dof, omega, S.mean(axis=0), deviation)


def linear_loop(rig: LinearRig, response: MeasuredResponse) -> Array:
    """(m,) the loop gain of the linear rig at the frequencies of a measured response."""
    dof = rig.dofs.index(response.dof)
    z = np.exp(1j * response.omega * rig.step)[:, None, None]
    column = np.linalg.solve(z * np.eye(len(rig.A)) - rig.A, rig.B[None, :, [dof]].astype(complex))
    return 1.0 / ((rig.C[[dof]] @ column)[:, 0, 0] + rig.D[dof, dof]) - 1.0


def _beside_lines(spectrum: Array, excitation: Array, lines: Array) -> Array:
    """(m,) root mean square of a spectrum at the nearest bins that are not excited, for each excited one."""
    silent = np.flatnonzero(excitation < SILENT * excitation.max())
    silent = silent[silent > 0]
    if not len(silent):
        return np.zeros(len(lines))
    found = []
    for line in lines:
        near = silent[np.argsort(np.abs(silent - line), kind="stable")[:NEIGHBOURS]]
        found.append(math.sqrt(np.mean(np.square(spectrum[near]))))
    return np.array(found)


def _mean(signal: Array, row: Array) -> float:
    return float(signal[slice(*row)].mean())


def _period(d: Array) -> int | None:
    """Ticks after which the excitation repeats between its first and its last period, None where it does not."""
    for periods in range(FEWEST, MOST + 1):
        for period in range((len(d) - 1) // periods, (len(d) + 1) // periods + 2):
            middle, next_one = d[period : -2 * period], d[2 * period : -period]
            if len(middle) >= period > 1 and np.abs(next_one - middle).max() < REPEATED * np.abs(d).max():
                return period
    return None
