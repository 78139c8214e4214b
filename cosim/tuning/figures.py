"""The figures of a report: trials, parameters, runs, loops and plants, drawn with matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.analysis.frequency import FrequencyResponse
from cosim.output.plot.curves import PIXEL_COLUMNS, thin
from cosim.output.plot.signal_figure import COLORS
from cosim.output.plot.style import BLUE, DPI, FAINT, GREEN, INK, PALE, RUST, SOFT
from cosim.tuning.session_data import SessionData
from cosim.tuning.trials import Trial
from cosim.types import Array
from cosim.units import TURN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 10.0  # inches
COLUMNS = 4  # of small axes
MOST_DRAWN = 16  # small axes of a figure
START, BEST = "start", "best"
LOOKS: dict[str, dict[str, Any]] = {
    START: {"color": PALE, "linestyle": "--"},
    BEST: {"color": BLUE, "linestyle": "-"},
}
LOWEST = -80.0  # dB that are drawn
LEFT, RIGHT, TOP, BOTTOM, GAP = 0.7, 0.15, 0.3, 0.5, 0.5  # inches beside and between axes
NAMES = 2.6  # inches for the names of plants


@dataclass(frozen=True)
class JointCourse:
    """Of a joint: units; error and effort of the runs with the start and the best gains (2, times)."""

    joint: str
    unit: str
    effort_unit: str
    error: Array
    effort: Array


def draw_history(session: SessionData) -> Figure:
    """Costs of the trials, and the best so far; a trial that fails has a cross at the top."""
    figure, (axes,) = _figure(1, 2.8, 1)
    good = [trial for trial in session.trials if trial.outcome.feasible]
    failed = [trial.number for trial in session.trials if not trial.outcome.feasible]
    if good:
        costs = np.array([trial.outcome.cost for trial in good])
        numbers = [trial.number for trial in good]
        axes.plot(numbers, costs, ".", color=PALE, markersize=4, label="trials that hold all limits")
        axes.plot(numbers, np.minimum.accumulate(costs), color=BLUE, linewidth=1.6, label="best so far")
        if costs.max() > 10.0 * costs.min() > 0.0:
            axes.set_yscale("log")
    if failed:
        top = axes.get_ylim()[1]
        axes.plot(failed, np.full(len(failed), top), "x", color=RUST, markersize=4, label="stopped, or beyond a limit")
    axes.set(xlabel="trial", ylabel="cost")
    axes.legend(frameon=False, fontsize=8.0, loc="upper right")
    return figure


def draw_parameters(session: SessionData) -> Figure:
    """The cost of each trial against each number that was varied."""
    dimensions = session.evaluator.space.dimensions[:MOST_DRAWN]
    good = [trial for trial in session.trials if trial.outcome.feasible]
    costs = np.array([trial.outcome.cost for trial in good])
    values = np.array([trial.values for trial in good]).reshape(len(good), len(session.evaluator.space))
    numbers = np.array([trial.number for trial in good])
    figure, grid = _figure(len(dimensions), 2.0)
    for k, (axes, dimension) in enumerate(zip(grid, dimensions, strict=True)):
        axes.scatter(values[:, k], costs, c=numbers, cmap="Blues", vmin=-0.5 * len(session.trials), s=8)
        if (best := session.found) is not None:
            axes.plot([best.values[k]], [best.outcome.cost], "o", color=RUST, markersize=5)
        axes.set_xscale("log" if dimension.logarithmic else "linear")
        axes.set_xlim(dimension.low, dimension.high)
        marks = [dimension.value(position) for position in (0.0, 0.5, 1.0)]
        axes.set_xticks(marks, [f"{mark:.3g}" for mark in marks])
        axes.set_xticks([], minor=True)
        if len(costs) and costs.max() > 10.0 * costs.min() > 0.0:
            axes.set_yscale("log")
        unit = "" if dimension.unit == "1" else f" [{dimension.unit.replace('*', '·')}]"
        _title(axes, f"{dimension.name}{unit}")
    return figure


def draw_courses(t: Array, courses: Sequence[JointCourse]) -> Figure:
    """Errors and efforts of the joints over time, with the start and the best gains."""
    figure, grid = _figure(2 * len(courses), 1.6, 2)
    for k, course in enumerate(courses):
        for axes, pair, word in zip(grid[2 * k :], (course.error, course.effort), ("error", "effort"), strict=False):
            for name, values in zip((START, BEST), pair, strict=True):
                axes.plot(*thin(t, values, PIXEL_COLUMNS), linewidth=1.1, label=name, **LOOKS[name])
            _title(axes, f"{course.joint}: {word} [{course.unit if word == 'error' else course.effort_unit}]")
            axes.margins(x=0.0)
            axes.tick_params(labelbottom=k == len(courses) - 1)
    for axes in grid[-2:]:
        axes.set_xlabel("time [s]")
    grid[1].legend(frameon=False, fontsize=8.0, loc="upper right", ncols=2)
    return figure


def draw_loops(responses: Sequence[tuple[str, FrequencyResponse]], dofs: Sequence[int], names: Sequence[str]) -> Figure:
    """Bode diagrams of the loops, each broken at its drive; responses: START, dashed, and BEST."""
    figure, (gain, phase) = _figure(2, 3.4, 2)
    for k, dof in enumerate(dofs):
        for name, response in responses:
            loop, hertz = response.loop(dof), response.omega / TURN
            look: dict[str, Any] = {"color": COLORS[k % len(COLORS)], "linestyle": LOOKS[name]["linestyle"]}
            look |= {"linewidth": 1.3 if name == BEST else 0.8, "label": names[dof] if name == BEST else None}
            gain.plot(hertz, 20.0 * np.log10(np.maximum(np.abs(loop), 1e-12)), **look)
            phase.plot(hertz, np.degrees(np.unwrap(np.angle(loop))), **look)
    for axes, level, word in ((gain, 0.0, "gain [dB]"), (phase, -180.0, "phase [°]")):
        axes.axhline(level, color=INK, linewidth=0.6)
        axes.set(xscale="log", xlabel="frequency [Hz]")
        _title(axes, f"{word}; {START} dashed, {BEST} solid")
        axes.margins(x=0.0)
    low, high = gain.get_ylim()
    gain.set_ylim(max(low, LOWEST), high)
    gain.legend(frameon=False, fontsize=8.0, loc="lower left")
    return figure


def draw_plants(start: Trial, best: Trial, names: Sequence[str]) -> Figure:
    """The cost on each plant."""
    figure, (axes,) = _figure(1, 0.6 + 0.24 * len(names), 1)
    figure.subplots_adjust(left=NAMES / WIDTH)
    places = np.arange(len(names))
    for trial, color, label in ((start, FAINT, START), (best, BLUE, BEST)):
        costs = np.array(trial.outcome.costs)
        axes.plot(np.where(np.isfinite(costs), costs, np.nan), places, "o", color=color, markersize=5, label=label)
    axes.set_yticks(places, names, fontsize=7.5)
    axes.invert_yaxis()
    axes.set_xlabel("cost")
    axes.legend(frameon=False, fontsize=8.0)
    return figure


def draw_sides(t: Array, sides: Sequence[tuple[str, Array, Array]], title: str) -> Figure:
    """Errors of joints in simulation and on the real rig. sides: joint, simulated and real (times,)."""
    figure, grid = _figure(len(sides), 1.9, 2)
    for axes, (joint, simulated, real) in zip(grid, sides, strict=True):
        axes.plot(t, simulated, color=PALE, linewidth=1.1, label="simulated")
        axes.plot(t, real, color=GREEN, linewidth=1.1, label="real")
        _title(axes, f"{title}, {joint}: error")
        axes.set_xlabel("time [s]", fontsize=8.0)
        axes.margins(x=0.0)
    grid[0].legend(frameon=False, fontsize=8.0)
    return figure


def _figure(count: int, height: float, columns: int = COLUMNS) -> tuple[Figure, list[Axes]]:
    """A grid of axes, each as high [inches]. Its margins are fixed: to measure all labels takes longer than to draw."""
    from matplotlib.figure import Figure

    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(WIDTH, height * rows + BOTTOM), dpi=DPI)
    grid = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axes in grid[count:]:
        axes.set_visible(False)
    width, total = (WIDTH - LEFT) / columns, height * rows + BOTTOM
    figure.subplots_adjust(
        left=LEFT / WIDTH,
        right=1.0 - RIGHT / WIDTH,
        bottom=BOTTOM / total,
        top=1.0 - TOP / total,
        wspace=GAP / (width - GAP),
        hspace=GAP / (height - GAP),
    )
    return figure, grid[:count]


def _title(axes: Axes, text: str) -> None:
    axes.set_title(text, fontsize=8.0, color=SOFT, loc="left", parse_math=False)
    axes.tick_params(labelsize=7)
