"""Frequency responses measured on a running rig, simulated or real, from its recorded signals, beside the linear rig's.

An effort d is added to the controller's; the effort requested of the drive is then their sum u. The discrete
transforms of both give S = U / D and the loop gain L = D / U − 1. Over whole periods of a periodic excitation, and over
a run that begins and ends at rest, they have no leakage (Pintelon and Schoukens, System Identification, §2.4, §2.7).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from cosim.apps.analysis.circle import SampledSystem
from cosim.apps.analysis.linearisation import LinearRig
from cosim.apps.analysis.loops import CLOSED, Margins, crossover_of, feedback_of, margins_of, sensitivity_peak
from cosim.apps.analysis.measured_margins import measured_crossover, measured_margins
from cosim.apps.analysis.relay import RelayPoint
from cosim.core.errors import InputError, listed
from cosim.core.types import Array
from cosim.core.units import TURN, format_seconds
from cosim.output.text_table import TextTable
from cosim.rig.run.run import Run

EXCITED = 0.1  # of the largest line of the spectrum
REPEATED = 1e-6  # relative difference of two periods of the excitation
FEWEST, MOST = 4, 50  # periods, those faded in and out included
ONE_RATE: Mapping[str, int] = MappingProxyType({})
FEWEST_LEVELS = 16  # of the effort of the controller: with fewer, the encoder hardly saw the motion
SILENT = 1e-6  # of the largest line: a bin that is not excited
SILENT_NEIGHBOURS = 6  # of such bins
MOST_POINTS = 400  # of a response that has more lines
HIDDEN = 0.05  # relative: how much higher a peak between measured frequencies is than at them
UNCERTAIN = 0.1  # relative standard deviation of the loop gain from which on a frequency is not trusted: 0.8 dB, 6°


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
    if len(lines) > MOST_POINTS:
        lines = np.unique(lines[np.rint(np.geomspace(1, len(lines), MOST_POINTS)).astype(int) - 1])
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


def _beside_lines(spectrum: Array, excitation: Array, lines: Array) -> Array:
    """(m,) root mean square of a spectrum at the nearest bins that are not excited, for each excited one."""
    silent = np.flatnonzero(excitation < SILENT * excitation.max())
    silent = silent[silent > 0]
    if not len(silent):
        return np.zeros(len(lines))
    found = []
    for line in lines:
        near = silent[np.argsort(np.abs(silent - line), kind="stable")[:SILENT_NEIGHBOURS]]
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


@dataclass(frozen=True)
class MeasuredLoop:
    """The measured response of a joint's loop beside the linear rig's. response: as measured; feedback: S − 1 of the
    linear rig, at the measured frequencies and between them; step: of one of its samples [s]."""

    response: MeasuredResponse
    feedback: SampledSystem
    step: float

    @property
    def linear(self) -> Array:
        """(m,) the loop gain of the linear rig at the measured frequencies."""
        return 1.0 / (1.0 + self.feedback.at(self.response.omega * self.step)[:, 0, 0]) - 1.0

    @property
    def uncertainty(self) -> Array:
        """(m,) relative standard deviation of the loop gain as measured: |dL / L| = |dS| / |S² L|; 0 of one period."""
        response = self.response
        size = np.abs(response.sensitivity**2 * response.loop)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = response.deviation / size
        return np.where(response.deviation > 0.0, found, 0.0)

    @property
    def trusted(self) -> Array:
        """(m,) whether a frequency counts."""
        return self.uncertainty < UNCERTAIN

    @property
    def gain_deviation(self) -> float:
        """The largest deviation of the gain of the loop at trusted frequencies [dB], NaN without any."""
        ratio = np.abs(self.response.loop / self.linear)[self.trusted]
        return float(np.abs(20.0 * np.log10(ratio)).max(initial=0.0)) if len(ratio) else math.nan

    @property
    def phase_deviation(self) -> float:
        """The largest deviation of the phase of the loop at trusted frequencies [rad], NaN without any."""
        ratio = (self.response.loop / self.linear)[self.trusted]
        return float(np.abs(np.angle(ratio)).max(initial=0.0)) if len(ratio) else math.nan

    @property
    def warning(self) -> str:
        """Which frequencies cannot be trusted, and the fix; "" where all can."""
        doubtful = np.flatnonzero(~self.trusted)
        if not len(doubtful):
            return ""
        groups = np.split(doubtful, np.flatnonzero(np.diff(doubtful) > 1) + 1)
        hertz = self.response.omega / TURN
        shown = [" to ".join(dict.fromkeys(f"{hertz[k]:.3g}" for k in group[[0, -1]])) for group in groups]
        what = f"{self.response.dof}: the loop gain is uncertain by more than {UNCERTAIN:.0%} at {listed(shown)} Hz"
        fix = "more --amplitude drowns counts of encoders and noise, less avoids friction and limits"
        return f"{what}, left out of the deviations; {fix}"

    @property
    def hidden(self) -> str:
        """That the linear rig has a peak between two of the measured frequencies, which cannot tell of it; "" without
        one."""
        omega, top = self.response.omega, sensitivity_peak(self.feedback)
        seen = float(np.abs(1.0 / (1.0 + self.linear)).max())
        if top.value <= (1.0 + HIDDEN) * seen:
            return ""
        k = int(np.clip(np.searchsorted(omega, top.angle / self.step), 1, len(omega) - 1))
        below, above = (value / TURN for value in omega[k - 1 : k + 1])
        hertz = top.angle / self.step / TURN
        what = f"{self.response.dof}: the linear rig has a peak |S| of {top.value:.3g} at {hertz:.4g} Hz"
        cannot = f"between the measured {below:.4g} and {above:.4g} Hz, which cannot tell of it (they see {seen:.3g})"
        return f"{what}, {cannot}; measure more frequencies: --measure chirp, or a longer period in an --excitation"

    @property
    def resolution(self) -> str:
        """How far the measured frequencies lie apart."""
        omega = self.response.omega
        apart = np.diff(omega) / omega[:-1]
        spans = " to ".join(dict.fromkeys(f"{value:.3g}" for value in 100.0 * np.array([apart.min(), apart.max()])))
        return f"{self.response.dof} at {len(omega)} frequencies, {spans} % apart: a narrower resonance may be missed"

    @property
    def margins(self) -> tuple[Margins, Margins]:
        """(measured, linear), within the measured frequencies; the linear ones also between them."""
        return measured_margins(self.response.loop, self.response.omega), margins_of(self.feedback, self.step)

    def as_json(self) -> dict[str, Any]:
        """Frequencies in rad/s, the loop gains as real and imaginary parts."""
        response = self.response
        loops = {"measured": response.loop, "linear": self.linear}
        return {
            "omega": response.omega.tolist(),
            "deviation": response.deviation.tolist(),
            "uncertainty": [None if math.isinf(value) else value for value in self.uncertainty.tolist()],
            "trusted": self.trusted.tolist(),
            **{name: {"real": np.real(loop).tolist(), "imag": np.imag(loop).tolist()} for name, loop in loops.items()},
            "gain_deviation_db": _number(self.gain_deviation),
            "phase_deviation": _number(self.phase_deviation),
            "hidden": self.hidden,
        }


def beside(response: MeasuredResponse, rig: LinearRig) -> MeasuredLoop:
    """A measured response beside the linear rig's."""
    feedback = feedback_of(rig, [rig.dofs.index(response.dof)])
    angles = response.omega * rig.step
    return MeasuredLoop(response, feedback.within(float(angles[0]), float(angles[-1])), rig.step)


def measured_lines(loops: Sequence[MeasuredLoop]) -> Iterator[str]:
    """A table, each cell with the measured figure and the linear rig's."""
    columns = ("crossover", "phase margin", "gain margin", "peak |S|", "gain", "phase", "from", "to")
    table = TextTable(["measured | linear"], columns)
    for loop in loops:
        response = loop.response
        hertz = response.omega / TURN
        margins, step = loop.margins, loop.step
        crossovers = measured_crossover(np.abs(response.loop), response.omega), crossover_of(loop.feedback) / step
        peaks = float(np.abs(response.sensitivity).max()), sensitivity_peak(loop.feedback).value
        table.add_row(
            response.dof,
            _pair([f"{crossover / TURN:.3g}" for crossover in crossovers], "Hz"),
            _pair([f"{math.degrees(found.phase):.1f}" for found in margins], "°"),
            _pair([f"{20.0 * math.log10(found.gain):.1f}" for found in margins], "dB"),
            _pair([f"{peak:.3g}" for peak in peaks], ""),
            _limits(loop.gain_deviation, " dB"),
            _limits(math.degrees(loop.phase_deviation), "°"),
            f"{hertz[0]:.3g}",
            f"{hertz[-1]:.3g} Hz",
        )
    yield from table.lines()
    yield from (f"measured  {loop.resolution}" for loop in loops)
    yield from (f"warning   {warning}" for loop in loops for warning in (loop.warning, loop.hidden) if warning)


def _limits(value: float, unit: str) -> str:
    return "–" if math.isnan(value) else f"±{value:.2g}{unit}"


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def relay_lines(points: Sequence[RelayPoint]) -> Iterator[str]:
    """A table of the plants of joints where they oscillate under a relay, measured and linear."""
    table = TextTable(["relay"], ["period", "frequency", "ultimate gain", "phase of the plant", "swing", "effort"])
    for point in points:
        both = (point.plant, point.linear)
        table.add_row(
            point.joint,
            format_seconds(TURN / point.omega),
            f"{point.omega / TURN:.4g} Hz",
            _pair([f"{1.0 / abs(plant):.4g}" for plant in both], ""),
            _pair([f"{math.degrees(np.angle(plant)) % -360.0:.1f}" for plant in both], "°"),
            f"± {point.swing:.3g}",
            f"± {point.amplitude:.3g}",
        )
    yield from table.lines()


def _pair(figures: Sequence[str], unit: str) -> str:
    shown = [figure.replace("inf", "∞").replace("nan", "–") for figure in figures]
    return f"{' | '.join(shown)} {unit}".rstrip()
