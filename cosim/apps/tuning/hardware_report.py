"""The report of candidates on the real rig: simulation and reality side by side."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from cosim.apps.tuning.figures import draw_measured_loop, draw_sides
from cosim.apps.tuning.hardware import HardwareReplay, RealRun
from cosim.output.output_files import write_file
from cosim.output.report_page import ReportPage

SHOWN = 6  # joints of a run
NONE = "–"


def write_hardware_report(replay: HardwareReplay, path: Path) -> None:
    """Raises InputError for a file that cannot be written, RunError for a full disk."""
    write_file(path, hardware_page(replay).content(), "report")


def hardware_page(replay: HardwareReplay) -> ReportPage:
    session, best = replay.session, replay.best
    page = ReportPage(f"{replay.rig.spec.name}: gains on the real rig")
    page.text(f"Candidates of the session {session.path}, each run recorded in {replay.folder}.")
    if best is None:
        page.text("No run was without a failure.")
    else:
        page.text(f"The best run is that with {best.name}, cost {best.costs[1]:.6g}; simulated, {best.costs[0]:.6g}.")
        page.code(f"cosim run {replay.rig.spec.path} --overlay {replay.gains_file}")
    _runs(page, replay)
    _margins(page, replay)
    page.heading("Gains")
    names = [dimension.name for dimension in session.evaluator.space.dimensions]
    page.table(["run", *names], [[run.name, *(f"{value:.6g}" for value in run.values)] for run in replay.runs])
    page.heading("Simulated and real")
    for run in replay.runs:
        _sides(page, replay, run)
    return page


def _runs(page: ReportPage, replay: HardwareReplay) -> None:
    """A row per run: each figure simulated and real."""
    page.heading("Runs")
    names = list(dict.fromkeys(name for run in replay.runs for name in run.real))
    header = ["run", *(f"{name} {side}" for name in ("cost", *names) for side in ("simulated", "real")), "failure"]
    rows = []
    for run in replay.runs:
        pairs = [run.costs, *((run.simulated.get(name), run.real.get(name)) for name in names)]
        rows.append([run.name, *(_number(value) for pair in pairs for value in pair), run.failure])
    page.table(header, rows)


def _margins(page: ReportPage, replay: HardwareReplay) -> None:
    """A row per limit of a loop: promised, the smallest of all plants; simulated, with the plant of the rig; real."""
    if not replay.margins:
        return
    page.heading("Margins")
    limits = {limit.measure.name: limit.bound for limit in replay.session.evaluator.objective.limits}
    rows = [
        [
            found.name,
            found.joint,
            figure,
            _number(limits.get(figure, limits.get(f"{found.joint}/{figure}"))),
            *(_number(values[figure]) for values in (found.promised, found.simulated, found.measured)),
        ]
        for found in replay.margins
        for figure in found.measured
    ]
    page.table(["run", "loop", "margin", "limit", "promised", "simulated", "real"], rows)
    for found in replay.margins[:SHOWN]:
        page.charts(draw_measured_loop(found.loop, f"{found.name}, {found.joint}"))
        page.text(f"Measured: {found.loop.resolution}.", note=True)


def _sides(page: ReportPage, replay: HardwareReplay, run: RealRun) -> None:
    if run.run is None or not len(run.run.t):
        return
    evaluator, real = replay.session.evaluator, run.run
    rig, known = evaluator.rig, set(evaluator.rig.tick_model.signals.names)
    joints = [joint for joint in rig.joints if f"{joint}/reference_position" in known & set(real.signals)][:SHOWN]
    signals = [f"{joint}/{what}" for joint in joints for what in ("reference_position", "position")]
    values = np.array([run.values])
    batch = rig.rollouts(evaluator.space.arrays(values), duration=evaluator.duration, signals=signals)
    n = min(len(batch.t), len(real.t))
    units = dict(zip(rig.joints, rig.plant.model.dof_units, strict=True))
    sides = [
        (
            joint,
            units[joint],
            (batch[f"{joint}/reference_position"] - batch[f"{joint}/position"])[0, :n],
            (real[f"{joint}/reference_position"] - real[f"{joint}/position"])[:n],
        )
        for joint in joints
    ]
    page.charts(draw_sides(batch.t[:n], sides, run.name))


def _number(value: float | None) -> str:
    return NONE if value is None or not math.isfinite(value) else f"{value:.4g}"
