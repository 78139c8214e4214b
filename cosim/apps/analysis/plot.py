"""The plot of an analysis: Bode diagrams, Nyquist diagram and steps of the loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cosim.apps.analysis.loops import DiskMargin
from cosim.apps.analysis.measured import MeasuredLoop
from cosim.apps.analysis.relay import RelayPoint
from cosim.apps.analysis.report import Analysis, alpha_text
from cosim.apps.analysis.signal_responses import SignalResponse
from cosim.apps.analysis.steps import step_response
from cosim.core.types import Array
from cosim.core.units import TURN
from cosim.output.palette import FAINT, INK, PALE, PALETTE
from cosim.output.plot import drawable
from cosim.output.plot.style import DPI, fix_layout
from cosim.output.plot.text_layout import anonymous, show_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = 11.0, 7.6  # inches
NYQUIST = 2.5  # half of the width of its diagram
LOWEST = -80.0  # dB that are drawn
SHOWN = 1.25  # of the longest settling time


def draw(
    analysis: Analysis, name: str, measured: Sequence[MeasuredLoop] = (), relays: Sequence[RelayPoint] = ()
) -> Figure:
    """The matplotlib figure; measured: drawn as points; relays: as the loops with the plants of their points."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(rect=(0.0, 0.02, 1.0, 0.88), w_pad=0.12, h_pad=0.08)
    figure = Figure(figsize=SIZE, dpi=DPI, layout=layout)
    (gain, nyquist), (phase, step) = figure.subplots(2, 2)
    rig, response = analysis.rig, analysis.response
    hertz, dofs = response.omega / TURN, [rig.dofs.index(loop.dof) for loop in analysis.loops]
    lines = {}
    for k, dof in enumerate(dofs):
        color, loop = PALETTE[k % len(PALETTE)], response.loop(dof)
        (lines[rig.dofs[dof]],) = gain.plot(hertz, _decibel(loop), color=color, linewidth=1.5)
        gain.plot(hertz, _decibel(response.tracking[:, dof, dof]), color=color, linewidth=0.9, linestyle="--")
        phase.plot(hertz, _phase(loop), color=color, linewidth=1.5)
        nyquist.plot(np.real(loop), np.imag(loop), color=color, linewidth=1.5)
        nyquist.plot(np.real(loop), -np.imag(loop), color=color, linewidth=0.6, alpha=0.5)
        if not analysis.unstable:
            step.step(*step_response(rig, dof), where="post", color=color, linewidth=1.5)
    for loop in measured:
        _draw_measured(
            (gain, phase, nyquist), loop, PALETTE[dofs.index(rig.dofs.index(loop.response.dof)) % len(PALETTE)]
        )
    for point in relays:
        dof = rig.dofs.index(point.joint)
        _draw_relay(
            (gain, phase, nyquist), point, response.omega, response.loop(dof), PALETTE[dofs.index(dof) % len(PALETTE)]
        )
    _format_bode(gain, "gain [dB]", "loop (solid), closed loop (dashed)", 0.0)
    low, high = gain.get_ylim()
    gain.set_ylim(max(low, LOWEST), high)
    _format_bode(phase, "phase [°]", "phase of the loop", -180.0)
    _format_nyquist(nyquist, analysis)
    step.set(xlabel="time [s]", title="position after a step of its reference, by feedback alone")
    step.axhline(1.0, color=PALE, linewidth=0.8)
    settled = [loop.step.settling_time for loop in analysis.loops if loop.step is not None]
    if longest := max(filter(math.isfinite, settled), default=0.0):
        step.set_xlim(0.0, SHOWN * longest)
    legend = figure.legend(
        list(lines.values()), anonymous(lines), loc="upper left", bbox_to_anchor=(0.008, 0.952), ncols=6, frameon=False,
        fontsize=8.5,
    )  # fmt: skip
    show_names(legend, map(drawable, lines))
    figure.text(0.012, 0.965, f"{drawable(name)} at {rig.t:.6g} s", fontsize=13.0, weight="bold", color=INK)
    figure.text(0.012, 0.008, _note(analysis), fontsize=8.5, color=FAINT)
    fix_layout(figure)
    return figure


def draw_responses(responses: Sequence[SignalResponse], title: str) -> Figure:
    """Bode diagrams of responses to one signal."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(rect=(0.0, 0.0, 1.0, 0.88), w_pad=0.12, h_pad=0.08)
    figure = Figure(figsize=SIZE, dpi=DPI, layout=layout)
    gain, phase = figure.subplots(2, 1)
    lines = {}
    for k, response in enumerate(responses):
        hertz, color = response.omega / TURN, PALETTE[k % len(PALETTE)]
        label = f"{response.signal} by {response.given} [{response.unit}]"
        (lines[label],) = gain.plot(hertz, _decibel(response.values), color=color, linewidth=1.5)
        phase.plot(hertz, np.degrees(np.angle(response.values)), color=color, linewidth=1.5)
    for axes, label, heading, level in ((gain, "gain [dB]", "gain", 0.0), (phase, "phase [°]", "phase", -180.0)):
        _format_bode(axes, label, heading, level)
    phase.set(ylim=(-190.0, 190.0), yticks=range(-180, 181, 90))
    legend = figure.legend(
        list(lines.values()), anonymous(lines), loc="upper left", bbox_to_anchor=(0.008, 0.952), ncols=2, frameon=False,
        fontsize=8.5,
    )  # fmt: skip
    show_names(legend, map(drawable, lines))
    figure.text(0.012, 0.965, drawable(title), fontsize=13.0, weight="bold", color=INK)
    fix_layout(figure)
    return figure


def _draw_measured(axes: tuple[Axes, Axes, Axes], measured: MeasuredLoop, color: str) -> None:
    gain, phase, nyquist = axes
    hertz, loop, linear = measured.response.omega / TURN, measured.response.loop, measured.linear
    angle = _phase(linear) + np.degrees(np.angle(loop / linear))  # on the branch of the curve
    points = {"color": color, "linestyle": "", "marker": "o", "markersize": 3.0, "markerfacecolor": "none"}
    gain.plot(hertz, _decibel(loop), **points)
    phase.plot(hertz, angle, **points)
    nyquist.plot(np.real(loop), np.imag(loop), **points)


def _draw_relay(axes: tuple[Axes, Axes, Axes], point: RelayPoint, omega: Array, linear: Array, color: str) -> None:
    """The loop of the linear rig where it oscillates under a relay, with the plant that the relay shows."""
    gain, phase, nyquist = axes
    ratio = point.plant / point.linear
    size = np.exp(np.interp(math.log(point.omega), np.log(omega), np.log(np.abs(linear)))) * abs(ratio)
    angle = float(np.interp(math.log(point.omega), np.log(omega), _phase(linear)) + np.degrees(np.angle(ratio)))
    loop, hertz = size * np.exp(1j * math.radians(angle)), [point.omega / TURN]
    marks = {"color": color, "linestyle": "", "marker": "D", "markersize": 6.0, "markeredgecolor": INK}
    gain.plot(hertz, _decibel(np.array([loop])), **marks)
    phase.plot(hertz, [angle], **marks)
    nyquist.plot([loop.real], [loop.imag], **marks)


def _phase(loop: np.ndarray) -> np.ndarray:
    """In degrees, without jumps, from −315 to 45 at the lowest frequency: loops of one kind lie side by side."""
    angle = np.degrees(np.unwrap(np.angle(loop)))
    return angle - 360.0 * math.ceil((angle[0] - 45.0) / 360.0)


def _decibel(values: np.ndarray) -> np.ndarray:
    return 20.0 * np.log10(np.maximum(np.abs(values), 1e-12))


def _format_bode(axes: Axes, label: str, title: str, level: float) -> None:
    axes.set(xscale="log", xlabel="frequency [Hz]", ylabel=label, title=title)
    axes.axhline(level, color=PALE, linewidth=0.8)
    axes.margins(x=0.0)


def _format_nyquist(axes: Axes, analysis: Analysis) -> None:
    angle = np.linspace(0.0, TURN, 200)
    axes.plot(np.cos(angle), np.sin(angle), color=PALE, linewidth=0.8, linestyle=":")
    axes.plot([-1.0], [0.0], marker="+", color=INK, markersize=8)
    if margins := _disk_margins(analysis):
        low, high = min(margins, key=lambda margin: margin.alpha).gains
        if math.isfinite(high):  # the loop stays outside of this disk
            left, right = -1.0 / low, -1.0 / high
            middle, radius = 0.5 * (left + right), 0.5 * (right - left)
            axes.fill(middle + radius * np.cos(angle), radius * np.sin(angle), color=PALE, alpha=0.25, linewidth=0.0)
    axes.set(xlim=(-NYQUIST, NYQUIST), ylim=(-NYQUIST, NYQUIST), aspect="equal", xlabel="real", ylabel="imaginary")
    axes.set_title("Nyquist diagram, smallest disk margin in grey")


def _note(analysis: Analysis) -> str:
    stable = "unstable" if analysis.unstable else "stable"
    together = "" if analysis.together is None else f", of all loops together {alpha_text(analysis.together.alpha)}"
    alone = [margin.alpha for margin in _disk_margins(analysis)]
    return f"{stable}; smallest disk margin {alpha_text(min(alone))}{together}" if alone else stable


def _disk_margins(analysis: Analysis) -> Sequence[DiskMargin]:
    """Of each loop of a stable rig."""
    return [loop.margins.disk for loop in analysis.loops if loop.margins is not None]
