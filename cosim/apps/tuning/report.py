"""The report of a session: its result, and what it rests on, in one HTML file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cosim.apps.analysis.frequency import respond
from cosim.apps.analysis.linearisation import LinearRig
from cosim.apps.analysis.loops import closed_dofs, disk_margin, feedback_of, is_stable, sensitivity_peak
from cosim.apps.tuning.figures import (
    BEST,
    MOST_DRAWN,
    START,
    JointCourse,
    LoggedRuns,
    draw_courses,
    draw_history,
    draw_log,
    draw_loops,
    draw_parameters,
    draw_plants,
)
from cosim.apps.tuning.misfit import TargetLog
from cosim.apps.tuning.session_data import SessionData, Trial
from cosim.core.errors import InputError, plural
from cosim.core.units import unit_sign
from cosim.output.output_files import write_file
from cosim.output.palette import PALETTE
from cosim.output.report_page import ReportPage
from cosim.output.signal_charts import EFFORT, TRACKING_ERROR, charts_of
from cosim.rig.rig import Rig
from cosim.simulation.tick.signals import reported_effort

COURSES = 6  # joints whose courses are drawn
NONE = "–"


def write_report(session: SessionData, path: str | Path) -> None:
    """Raises InputError for a file that cannot be written, RunError for a full disk."""
    write_file(path, report_page(session).content(), "report")


def report_page(session: SessionData) -> ReportPage:
    request, evaluator = session.request, session.evaluator
    page = ReportPage(f"Tuning of {session.rig_name}")
    done, plants = len(session.trials) - 1, len(evaluator.plants)
    page.text(
        f"{done} {plural(done, 'trial')} by {request.optimiser}, seed {request.seed}, each on"
        f" {plants} {plural(plants, 'plant')} for {evaluator.seconds:g} s; cost:"
        f" {_cost_text(session)}, {'mean' if request.robust == 'mean' else 'worst'} of the plants"
    )
    best, start = session.found, session.trials[0]
    page.text(session.why_none if best is None else _verdict(start, best))
    if best is not None:
        _results(page, session, start, best)
    elif (nearest := session.nearest) is not None:
        _nearest(page, session, start, nearest)
    if history := draw_history(session):
        page.heading("Trials")
        page.charts(history)
    if parameters := draw_parameters(session):
        page.heading("Parameters against cost")
        page.charts(parameters)
        if len(evaluator.space) > MOST_DRAWN:
            page.text(f"The first {MOST_DRAWN} of {len(evaluator.space)} are drawn.", note=True)
    if best is not None:
        _evidence(page, session, start, best)
    _failures(page, session)
    return page


def _cost_text(session: SessionData) -> str:
    return " + ".join(
        measure.name if weight == 1.0 else f"{weight:g} {measure.name}"
        for measure, weight in session.evaluator.objective.terms
    )


def _verdict(start: Trial, best: Trial) -> str:
    if not start.outcome.feasible:
        return f"The best is trial {best.number}, cost {best.outcome.cost:.6g}; start: {start.outcome.failed}."
    if best.number == 0:
        return f"No trial is better than the gains of the rig, cost {best.outcome.cost:.6g}."
    saved = 1.0 - best.outcome.cost / start.outcome.cost if start.outcome.cost else 0.0
    return (
        f"The best is trial {best.number}, cost {best.outcome.cost:.6g}:"
        f" {saved:.1%} below the start, {start.outcome.cost:.6g}."
    )


def _nearest(page: ReportPage, session: SessionData, start: Trial, nearest: Trial) -> None:
    """The gains of the trial that is nearest to the limits, and how far each of these is broken."""
    name = f"trial {nearest.number}"
    _gains(page, session, name, nearest)
    page.heading("Limits")
    rows = []
    for limit in session.evaluator.objective.limits:
        values = [trial.outcome.figures.get(limit.measure.name, (math.nan, math.nan))[1] for trial in (start, nearest)]
        shown = [limit.text(value) if math.isfinite(value) else NONE for value in values]
        broken = float(limit.violation(np.array(values[1:]))[0]) > 0.0
        beyond = "holds" if not broken else limit.text(abs(values[1] - limit.bound))
        bound = f"{limit.condition} {unit_sign(limit.unit)}".rstrip()
        rows.append([limit.measure.name, *shown, bound, NONE if math.isnan(values[1]) else beyond])
    if rows:
        page.table(["figure", START, name, "limit", "beyond by"], rows)
        page.text("Of the worst joint on the worst plant.", note=True)


def _gains(page: ReportPage, session: SessionData, name: str, best: Trial) -> None:
    page.heading("Gains")
    rows = [
        [d.name, f"{d.start:.6g}", f"{value:.6g}", f"{d.low:.4g} to {d.high:.4g}", unit_sign(d.unit)]
        for d, value in zip(session.evaluator.space.dimensions, best.values, strict=True)
    ]
    page.table(["parameter", START, name, "range", "unit"], rows)


def _results(page: ReportPage, session: SessionData, start: Trial, best: Trial) -> None:
    _gains(page, session, BEST, best)
    if session.path is not None:
        page.text("As an overlay:", note=True)
        page.code(f"cosim run {session.evaluator.rig.spec.path} --overlay {session.path}/gains.yaml")
    page.heading("Figures")
    objective, rows = session.evaluator.objective, []
    limits = {limit.measure.name: limit.condition for limit in objective.limits}
    for measure in dict.fromkeys(objective.measures):
        pairs = [trial.outcome.figures.get(measure.name, (math.nan, math.nan)) for trial in (start, best)]
        values = (_number(objective.shown(measure, x)) for pair in pairs for x in pair)
        rows.append([measure.name, *values, limits.get(measure.name, ""), unit_sign(objective.unit(measure))])
    page.table(["figure", START, "worst plant", BEST, "worst plant", "limit", "unit"], rows)
    page.text("A figure of the cost is summed over joints; one with a limit is the worst joint's.", note=True)


def _evidence(page: ReportPage, session: SessionData, start: Trial, best: Trial) -> None:
    if session.evaluator.log is not None:
        page.heading("Log and runs")
        _log(page, session, session.evaluator.log, start, best)
    page.heading("Start and best in time")
    _courses(page, session, start, best)
    page.heading("Loops and margins")
    _loops(page, session, start, best)
    plants = session.evaluator.plants
    if len(plants) > 1:
        page.heading("Perturbed plants")
        page.charts(draw_plants(start, best, plants.names))
        page.text("The controllers know the plant of the rig, not the perturbed ones.", note=True)


def _courses(page: ReportPage, session: SessionData, start: Trial, best: Trial) -> None:
    evaluator = session.evaluator
    rig = evaluator.rig
    charts = charts_of({name: signal.unit for name, signal in rig.tick_model.signals.declared.items()})
    tracked = [charts[joint] for joint in rig.joints if TRACKING_ERROR in charts[joint]][:COURSES]
    if not tracked:
        page.text("No joint follows a reference.")
        return
    errors = [own[TRACKING_ERROR] for own in tracked]
    efforts = {chart.owner: reported_effort(chart.owner, rig.tick_model.signals.declared) for chart in errors}
    signals = [signal for chart in errors for signal in (*chart.curves[0].signals, efforts[chart.owner])]
    values = np.array([start.values, best.values])
    batch = rig.rollouts(evaluator.space.arrays(values), duration=evaluator.duration, signals=signals)
    courses = [
        JointCourse(
            error.owner,
            error.unit,
            own[EFFORT].unit,
            error.curves[0].of(lambda name: batch[name], np.subtract),
            batch[efforts[error.owner]],
        )
        for own, error in zip(tracked, errors, strict=True)
    ]
    page.charts(draw_courses(batch.t, courses))


def _log(page: ReportPage, session: SessionData, log: TargetLog, start: Trial, best: Trial) -> None:
    """The first quantity of each joint, its position if the log has it."""
    evaluator = session.evaluator
    columns = list({column.joint: column for column in reversed(log.columns)}.values())[::-1][:COURSES]
    values, declared = np.array([start.values, best.values]), evaluator.rig.tick_model.signals.declared
    batch = evaluator.rig.rollouts(
        evaluator.space.arrays(values), duration=evaluator.duration, signals=[column.signal for column in columns]
    )
    runs = [LoggedRuns(c, declared[c.signal].unit, batch.t, *batch[c.signal]) for c in columns]
    page.charts(draw_log(log, evaluator.rig.joints, runs))
    page.text(f"Green: {log.path}; solid: best, dashed: start.", note=True)
    for note in log.notes:
        page.text(note, note=True)


def _loops(page: ReportPage, session: SessionData, start: Trial, best: Trial) -> None:
    evaluator = session.evaluator
    for moment in evaluator.moments:
        if len(evaluator.moments) > 1:
            t = moment * evaluator.rig.tick_model.step
            page.text(f"At {t:g} s, {'where the reference is fastest' if moment else 'the start'}:")
        try:
            linear = [evaluator.linear(np.array(trial.values), moment) for trial in (start, best)]
        except InputError as error:
            page.text(f"There is no linear model: {error.what}.")
            continue
        _loops_at(page, evaluator.rig, linear)


def _loops_at(page: ReportPage, rig: Rig, linear: Sequence[LinearRig]) -> None:
    dofs = closed_dofs(linear[1])
    if not dofs:
        page.text("No joint has a loop from its measured position to its effort.")
        return
    stable = [is_stable(model) for model in linear]
    rows = []
    for dof in dofs:
        pairs = [_loop_cells(model, dof, ok) for model, ok in zip(linear, stable, strict=True)]
        rows.append([rig.joints[dof], *(cell for pair in pairs for cell in pair)])
    columns = ["disk margin", "peak |S|"]
    page.table(["joint", *(f"{name} {column}" for name in (START, BEST) for column in columns)], rows)
    named = list(zip((START, BEST), map(respond, linear), strict=True))
    page.charts(draw_loops(named, dofs, rig.joints))
    page.legend({rig.joints[dof]: PALETTE[k % len(PALETTE)] for k, dof in enumerate(dofs)})
    page.text("Solid: best, dashed: start.", note=True)


def _loop_cells(rig: LinearRig, dof: int, stable: bool) -> Sequence[str]:
    feedback = feedback_of(rig, [dof])
    margin = f"{disk_margin(feedback, rig.step).alpha:.3f}" if stable else "unstable"
    return margin, f"{sensitivity_peak(feedback).value:.3f}"


def _failures(page: ReportPage, session: SessionData) -> None:
    failed = [trial for trial in session.trials if not trial.outcome.feasible]
    if not failed:
        return
    page.heading("Trials that failed")
    page.text(f"{len(failed)} of {len(session.trials)}; those nearest to the limits first.")
    nearest = sorted(failed, key=lambda trial: trial.outcome.score)[:10]
    page.table(["trial", "why"], [[str(trial.number), trial.outcome.failed] for trial in nearest])


def _number(value: float | None) -> str:
    return NONE if value is None or not math.isfinite(value) else f"{value:.4g}"
