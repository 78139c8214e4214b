"""The charts of a report: trials, parameters, runs, loops and plants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim.apps.analysis.frequency import FrequencyResponse
from cosim.apps.analysis.measured import MeasuredLoop
from cosim.apps.tuning.misfit import LogColumn, TargetLog
from cosim.apps.tuning.session_data import SessionData, Trial
from cosim.core.types import Array
from cosim.core.units import TURN, unit_sign
from cosim.output.palette import BLUE, FAINT, GREEN, PALE, PALETTE, RUST
from cosim.output.svg_chart import SvgChart

WIDE, HALF, SMALL = 960, 470, 310  # pixels
MOST_DRAWN = 24  # parameters
START, BEST = "start", "best"
LOWEST = -80.0  # dB that are drawn
SPREAD = 10.0  # largest over smallest cost from which on the scale is logarithmic
SHADES = ("#c9dcef", "#9cc3ea", "#6fabe4", "#3f86cc", "#1d5a9c")  # from the first trials to the last


@dataclass(frozen=True)
class JointCourse:
    """Of a joint: units; error and effort of the runs with the start and the best gains (2, times)."""

    joint: str
    unit: str
    effort_unit: str
    error: Array
    effort: Array


@dataclass(frozen=True)
class LoggedRuns:
    """A quantity of a joint in a log, its unit, and the runs with the start and the best gains (times,)."""

    column: LogColumn
    unit: str
    t: Array
    start: Array
    best: Array


def draw_history(session: SessionData) -> list[SvgChart]:
    """Costs of the trials, and the best so far; a trial that is stopped has a mark at the top. None without a cost."""
    good = [trial for trial in session.trials if trial.outcome.feasible]
    failed = [trial for trial in session.trials if not trial.outcome.feasible]
    costs, theirs = (np.array([trial.outcome.cost for trial in trials]) for trials in (good, failed))
    known = np.concatenate([costs, theirs[np.isfinite(theirs)]])
    if not len(known):
        return []
    chart = SvgChart("cost", "trial", WIDE, 260, log=(False, _is_wide(known)))
    if good:
        numbers = np.array([trial.number for trial in good])
        chart.dots(numbers, costs, PALE, "holds all limits")
        chart.line(numbers, np.minimum.accumulate(costs), BLUE, "best so far")
    if failed:
        shown = np.where(np.isfinite(theirs), theirs, known.max())
        chart.dots(np.array([trial.number for trial in failed]), shown, RUST, "stopped, or beyond a limit")
    return [chart]


def draw_parameters(session: SessionData) -> list[SvgChart]:
    """The cost of each trial against each number that was varied; later trials are darker. None
    without a trial that holds all limits."""
    if not (good := [trial for trial in session.trials if trial.outcome.feasible]):
        return []
    costs = np.array([trial.outcome.cost for trial in good])
    values = np.array([trial.values for trial in good]).reshape(len(good), len(session.evaluator.space))
    shade = np.array([trial.number * len(SHADES) // len(session.trials) for trial in good])
    charts = []
    for k, dimension in enumerate(session.evaluator.space.dimensions[:MOST_DRAWN]):
        unit = f" [{unit_sign(dimension.unit)}]" if dimension.unit != "1" else ""
        chart = SvgChart(f"{dimension.name}{unit}", "", SMALL, 170, log=(dimension.logarithmic, _is_wide(costs)))
        chart.set_range(x=(dimension.low, dimension.high))
        for number, color in enumerate(SHADES):
            chart.dots(values[shade == number, k], costs[shade == number], color, radius=1.8)
        if (best := session.found) is not None:
            chart.dots(np.array([best.values[k]]), np.array([best.outcome.cost]), RUST, radius=3.5)
        charts.append(chart)
    return charts


def draw_courses(t: Array, courses: Sequence[JointCourse]) -> list[SvgChart]:
    """Errors and efforts of the joints over time, with the start and the best gains."""
    charts = []
    for course in courses:
        sides = (("error", course.error, course.unit), ("effort", course.effort, course.effort_unit))
        for word, (start, best), unit in sides:
            chart = SvgChart(f"{course.joint}: {word} [{unit}]", "", HALF, 170)
            chart.line(t, start, FAINT, START, dashed=True, width=1.1)
            chart.line(t, best, BLUE, BEST)
            charts.append(chart)
    return charts


def draw_log(log: TargetLog, joints: Sequence[str], runs: Sequence[LoggedRuns]) -> list[SvgChart]:
    """What a log has of joints beside the runs with the start and the best gains, and the differences of these."""
    charts = []
    for drawn in runs:
        joint, quantity, unit = joints[drawn.column.joint], drawn.column.quantity, unit_sign(drawn.unit)
        beside = SvgChart(f"{joint}: {quantity} [{unit}]", "", HALF, 170)
        beside.line(log.t, drawn.column.values, GREEN, "log")
        apart = SvgChart(f"{joint}: {quantity} − log [{unit}]", "", HALF, 170)
        for values, color, label in ((drawn.start, FAINT, START), (drawn.best, BLUE, BEST)):
            look = {"dashed": label == START, "width": 1.1}
            beside.line(drawn.t, values, color, label, **look)
            apart.line(log.t, np.interp(log.t, drawn.t, values) - drawn.column.values, color, label, **look)
        charts += [beside, apart]
    return charts


def draw_loops(
    responses: Sequence[tuple[str, FrequencyResponse]], dofs: Sequence[int], names: Sequence[str]
) -> list[SvgChart]:
    """Bode diagrams of the loops, each broken at its drive; responses: START, dashed, and BEST."""
    gain, phase = (
        SvgChart(title, "frequency [Hz]", HALF, 300, log=(True, False)) for title in ("gain [dB]", "phase [°]")
    )
    lowest, highest = 0.0, 0.0
    for k, dof in enumerate(dofs):
        for name, response in responses:
            loop, hertz = response.loop(dof), response.omega / TURN
            size = 20.0 * np.log10(np.maximum(np.abs(loop), 1e-12))
            lowest, highest = min(lowest, float(size.min())), max(highest, float(size.max()))
            look = {"color": PALETTE[k % len(PALETTE)], "dashed": name == START, "width": 0.9 if name == START else 1.5}
            gain.line(hertz, size, **look)
            phase.line(hertz, np.degrees(np.unwrap(np.angle(loop))), **look)
    gain.set_range(y=(max(lowest, LOWEST) - 5.0, highest + 5.0))
    gain.level(0.0)
    phase.level(-180.0)
    return [gain, phase]


def draw_plants(start: Trial, best: Trial, names: Sequence[str]) -> list[SvgChart]:
    """The cost on each plant."""
    chart = SvgChart("cost", "", WIDE, 70 + 18 * len(names))
    rows = np.arange(len(names), dtype=float)
    for trial, color, label in ((start, FAINT, START), (best, BLUE, BEST)):
        costs = np.array(trial.outcome.costs or [np.nan] * len(names))
        chart.dots(np.where(np.isfinite(costs), costs, np.nan), rows, color, label, 3.5)
    chart.name_rows(list(names))
    return [chart]


def draw_sides(t: Array, sides: Sequence[tuple[str, str, Array, Array]], title: str) -> list[SvgChart]:
    """Errors of joints in simulation and on the real rig. sides: joint, unit, simulated and real (times,)."""
    charts = []
    for (joint, unit, simulated, real), width in zip(sides, _widths(len(sides)), strict=True):
        chart = SvgChart(f"{title}, {joint}: error [{unit}]", "time [s]", width, 200)
        chart.line(t, simulated, FAINT, "simulated", dashed=True, width=1.1)
        chart.line(t, real, GREEN, "real")
        charts.append(chart)
    return charts


def draw_measured_loop(measured: MeasuredLoop, title: str) -> list[SvgChart]:
    """The Bode diagram of a loop on the real rig, beside the simulated one's."""
    response, linear = measured.response, measured.linear
    hertz, angle = response.omega / TURN, np.unwrap(np.angle(linear))
    real = angle + np.angle(response.loop / linear)  # on the branch of the simulated one
    both = (
        ("gain [dB]", 0.0, *(20.0 * np.log10(np.abs(loop)) for loop in (linear, response.loop))),
        ("phase [°]", -180.0, np.degrees(angle), np.degrees(real)),
    )
    charts = []
    for what, level, simulated, values in both:
        chart = SvgChart(f"{title}: {what}", "frequency [Hz]", HALF, 220, log=(True, False))
        chart.line(hertz, simulated, FAINT, "simulated", dashed=True, width=1.1)
        chart.dots(hertz, values, GREEN, "real")
        chart.level(level)
        charts.append(chart)
    return charts


def _widths(count: int) -> list[int]:
    """Of charts in full rows, the last one as wide as the page where it would be alone."""
    if count % 3 == 0:
        return [SMALL] * count
    return [HALF] * (count - count % 2) + [WIDE] * (count % 2)


def _is_wide(costs: Array) -> bool:
    return len(costs) > 0 and float(costs.max()) > SPREAD * float(costs.min()) > 0.0
