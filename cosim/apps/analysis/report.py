"""What an analysis prints, and its figures as plain data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from cosim.apps.analysis.contact_states import ContactStates
from cosim.apps.analysis.frequency import ClosedLoopMode, FrequencyResponse
from cosim.apps.analysis.inner_loops import InnerLoopFigures
from cosim.apps.analysis.linearisation import LinearRig
from cosim.apps.analysis.loops import DiskMargin, LoopFigures, Margins
from cosim.core.units import TURN, format_seconds, show_percent
from cosim.output.text_table import TextTable

SHOWN = 10  # modes
NONE = "–"
OF_MARGINS = ("gain margin", "phase margin", "delay margin", "disk margin")
ROUNDING = 1e-5  # a smaller fraction is shown as 0


@dataclass(frozen=True)
class Analysis:
    """Of a rig at a state: its modes, the figures of its loops, the margin of all of them together, the figures of
    the loops inside its drives, and what its contacts do."""

    rig: LinearRig
    response: FrequencyResponse
    modes: Sequence[ClosedLoopMode]
    loops: Sequence[LoopFigures]
    together: DiskMargin | None
    drives: Sequence[InnerLoopFigures] = ()
    contacts: ContactStates = field(default_factory=ContactStates)

    @property
    def unstable(self) -> list[ClosedLoopMode]:
        return [mode for mode in self.modes if mode.grows]

    def as_json(self) -> dict[str, Any]:
        """Angular frequencies in rad/s, angles in rad, times in s; None for what is infinite or does not exist."""
        data = {
            "t": self.rig.t,
            "step": self.rig.step,
            "ticks": self.rig.ticks,
            "exact": self.rig.exact,
            "stable": not self.unstable,
            "poles": [
                {
                    "real": m.pole.real,
                    "imag": m.pole.imag,
                    "frequency": m.frequency,
                    "frequency_hz": m.frequency / TURN,
                    "damping": m.damping,
                    "part": m.part,
                }
                for m in self.modes
            ],
            "loops": {figures.dof: asdict(figures) for figures in self.loops},
            "drives": [asdict(figures) for figures in self.drives],
            "contacts": dict(self.contacts.kinds),
            "disk_margin": None if self.together is None else asdict(self.together),
        }
        return _finite(data)

    def lines(self, name: str) -> Iterator[str]:
        rig = self.rig
        how = "exactly" if rig.exact else "between the switches of its plant"
        yield f"{name} at {rig.t:.6g} s: {len(rig.A)} states, linearised {how}"
        if rig.ticks > 1:
            period = format_seconds(rig.step)
            yield f"several rates: the loops are seen every {period}, the hyper-period of {rig.ticks} ticks"
        if faster := [dof for dof, phase in zip(rig.dofs, rig.phases, strict=True) if phase is None]:
            yield f"no figures of {', '.join(faster)}: their controllers are called more than once in it"
        yield from self.contacts.lines()
        if self.loops:
            yield from self._loop_table().lines()
        else:
            yield "no joint has a loop from its measured position to the effort requested of its drive"
        if self.together is not None:
            low, high = self.together.gains
            gains = f"gains × {low:.3g} to {high:.3g}" if math.isfinite(high) else f"any gains from × {low:.3g} on"
            yield f"together  stable with {gains} in all loops, or phases of ±{_degrees(self.together.phase)}"
        if self.drives:
            yield from self._drive_table().lines()
        for dof in dict.fromkeys(loop.dof for loop in self.drives if loop.locked):
            yield f"locked    {dof} cannot move at this time, by a brake for example; give a later --at"
        moving = [mode for mode in self.modes if mode.frequency]
        yield from _mode_table(moving[:SHOWN]).lines()
        if len(moving) > SHOWN:
            yield f"… and {len(moving) - SHOWN} faster ones"
        if held := len(self.modes) - len(moving):
            yield f"{held} with the pole 0: what is held or integrated"
        for mode in self.unstable:
            doubled = format_seconds(math.log(2.0) / mode.pole.real)
            yield f"unstable  {_frequency(mode)}, mostly {mode.part}: doubles within {doubled}"

    def _drive_table(self) -> TextTable:
        table = TextTable(["drive", "loop"], ["crossover", "peak |S|", *OF_MARGINS])
        for loop in self.drives:
            peak = f"{loop.peak_sensitivity:.3g}"
            table.add_row(loop.dof, loop.loop, _hertz(loop.crossover), peak, *_margin_cells(loop.margins))
        return table

    def _loop_table(self) -> TextTable:
        columns = ("crossover", "bandwidth", "peak |S|", *OF_MARGINS)
        table = TextTable(["joint"], [*columns, "rise", "settling", "overshoot", "final error"])
        for loop in self.loops:
            step, of_step = loop.step, [NONE] * 4
            if step is not None:
                times = (step.rise_time, step.settling_time)
                of_step = [*map(_seconds, times), _percent(step.overshoot), _percent(step.steady_state_error)]
            table.add_row(
                loop.dof,
                _hertz(loop.crossover),
                _hertz(loop.bandwidth),
                f"{loop.peak_sensitivity:.3g}",
                *_margin_cells(loop.margins),
                *of_step,
            )
        return table


def _margin_cells(margins: Margins | None) -> list[str]:
    """Of the columns OF_MARGINS."""
    if margins is None:
        return [NONE] * len(OF_MARGINS)
    return [_decibel(margins), _degrees(margins.phase), _seconds(margins.delay), alpha_text(margins.disk.alpha)]


def _mode_table(modes: Sequence[ClosedLoopMode]) -> TextTable:
    table = TextTable(["mode"], ["frequency", "damping", "time constant"])
    for mode in modes:
        decay = -mode.pole.real
        undamped = abs(mode.damping) < ROUNDING
        lasting = format_seconds(1.0 / decay) if decay > 0.0 and not undamped else NONE
        table.add_row(mode.part, _frequency(mode), "0" if undamped else f"{mode.damping:.3g}", lasting)
    return table


def _frequency(mode: ClosedLoopMode) -> str:
    return _hertz(mode.frequency)


def _hertz(omega: float) -> str:
    return f"{omega / TURN:.3g} Hz" if math.isfinite(omega) else NONE


def _decibel(margins: Margins) -> str:
    """The gains at which the loop becomes unstable, the lower one where there is one."""
    bounds = [gain for gain in (margins.gain_reduction, margins.gain) if 0.0 < gain < math.inf]
    return " to ".join(f"{20.0 * math.log10(gain):.1f}" for gain in bounds) + " dB" if bounds else "∞"


def alpha_text(alpha: float) -> str:
    """A disk margin: a small one in full."""
    return f"{alpha:.2f}" if alpha >= 0.1 else f"{alpha:.2g}"


def _degrees(angle: float) -> str:
    return f"{math.degrees(angle):.1f}°" if math.isfinite(angle) else "∞"


def _seconds(seconds: float) -> str:
    if math.isnan(seconds):
        return NONE
    return format_seconds(seconds) if math.isfinite(seconds) else "∞"


def _percent(fraction: float) -> str:
    shown = 0.0 if abs(fraction) < ROUNDING else fraction
    return show_percent(shown, 2) if math.isfinite(fraction) else NONE


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
