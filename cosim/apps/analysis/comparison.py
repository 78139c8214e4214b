"""A measured loop beside the linear rig's: crossover, margins, and the largest deviation of both."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.apps.analysis.loops import Margins, crossover_of, margins_of
from cosim.apps.analysis.measured import MeasuredResponse
from cosim.apps.analysis.relay import RelayPoint
from cosim.core.errors import listed
from cosim.core.types import Array
from cosim.core.units import TURN, format_seconds
from cosim.output.text_table import TextTable

UNCERTAIN = 0.1  # relative standard deviation of the loop gain from which on a frequency is not trusted: 0.8 dB, 6°


@dataclass(frozen=True)
class MeasuredLoop:
    """response: as measured; linear (m,): the loop gain of the linear rig at its frequencies."""

    response: MeasuredResponse
    linear: Array

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
    def margins(self) -> tuple[Margins, Margins]:
        """(measured, linear), within the measured frequencies."""
        measured, linear = (
            margins_of(loop, self.response.omega, whole=False) for loop in (self.response.loop, self.linear)
        )
        return measured, linear

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
        }


def measured_lines(loops: Sequence[MeasuredLoop]) -> Iterator[str]:
    """A table, each cell with the measured figure and the linear rig's."""
    columns = ("crossover", "phase margin", "gain margin", "peak |S|", "gain", "phase", "from", "to")
    table = TextTable(["measured | linear"], columns)
    for loop in loops:
        response = loop.response
        hertz = response.omega / TURN
        both = (response.loop, loop.linear)
        margins = loop.margins
        table.add_row(
            response.dof,
            _pair([f"{crossover_of(np.abs(gain), response.omega) / TURN:.3g}" for gain in both], "Hz"),
            _pair([f"{math.degrees(found.phase):.1f}" for found in margins], "°"),
            _pair([f"{20.0 * math.log10(found.gain):.1f}" for found in margins], "dB"),
            _pair([f"{np.abs(1.0 / (1.0 + gain)).max():.3g}" for gain in both], ""),
            _limits(loop.gain_deviation, " dB"),
            _limits(math.degrees(loop.phase_deviation), "°"),
            f"{hertz[0]:.3g}",
            f"{hertz[-1]:.3g} Hz",
        )
    yield from table.lines()
    yield from (f"warning   {warning}" for loop in loops if (warning := loop.warning))


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
