"""A measured loop beside that of the linear rig: crossover, margins, and the largest deviation of both."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.analysis.loops import Margins, crossover_of, margins_of
from cosim.analysis.measured import MeasuredResponse
from cosim.analysis.relay import RelayPoint
from cosim.output.text_table import TextTable
from cosim.types import Array
from cosim.units import TURN, format_seconds


@dataclass(frozen=True)
class MeasuredLoop:
    """response: as measured; linear (m,): the loop gain of the linear rig at its frequencies."""

    response: MeasuredResponse
    linear: Array

    @property
    def gain_deviation(self) -> float:
        """The largest deviation of the gain of the loop [dB]."""
        return float(np.abs(20.0 * np.log10(np.abs(self.response.loop / self.linear))).max())

    @property
    def phase_deviation(self) -> float:
        """The largest deviation of the phase of the loop [rad]."""
        return float(np.abs(np.angle(self.response.loop / self.linear)).max())

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
            **{name: {"real": np.real(loop).tolist(), "imag": np.imag(loop).tolist()} for name, loop in loops.items()},
            "gain_deviation_db": self.gain_deviation,
            "phase_deviation": self.phase_deviation,
        }


def measured_lines(loops: Sequence[MeasuredLoop]) -> Iterator[str]:
    """A table, each cell with the measured figure and that of the linear rig."""
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
            f"±{loop.gain_deviation:.2g} dB",
            f"±{math.degrees(loop.phase_deviation):.2g}°",
            f"{hertz[0]:.3g}",
            f"{hertz[-1]:.3g} Hz",
        )
    yield from table.lines()


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
