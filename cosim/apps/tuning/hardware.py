"""Candidates of a session tried on the real rig, each of them guarded.

Before each run its gains are simulated on all plants. From the last safe gains, at first the first run's, the way to a
candidate is in small steps, each a run of its own, confirmed by a human. A failure ends it: the motors are stopped by
the guard of the rig, and a run with the last safe gains returns the rig to its start. Margins that are limits are
measured with the best gains, in an experiment for each joint. Figures of merit of a run that is over have the
definitions of rollouts; of a real joint they use its samples, each of which counts until the next one, and not the
estimated motion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from cosim.apps.tuning.hardware_margins import RealMargins, margin_experiments
from cosim.apps.tuning.hardware_trials import check_fits
from cosim.apps.tuning.misfit import MISFIT, TargetLog
from cosim.apps.tuning.objective import Objective, worst
from cosim.apps.tuning.session_data import SessionData, Trial
from cosim.core.errors import InputError, RunError
from cosim.core.types import Array
from cosim.output.output_files import write_error, write_file
from cosim.rig.moving_motors import what_moves
from cosim.rig.parameter_table import table_of
from cosim.rig.reading.yaml_source import overlay_text
from cosim.rig.rig import Rig
from cosim.rig.run.consent import GivenQuestion, asking
from cosim.rig.run.run import Run, StoppedRun
from cosim.simulation.tick.accumulation import SIGNALS
from cosim.simulation.tick.metrics import METRICS, Ending, JointSample
from cosim.simulation.tick.signals import reported_effort

STEP_FACTOR = 1.5  # factor of a gain from one run to the next, at most
LINEAR_STEP = 0.25  # of the larger of two values, where one of them is 0: the same
WORSE_COST = 3.0  # times the cost of the last safe run: a failure
RETURN_DURATIONS = 2.0  # times the length of a run: an arm without torque may have fallen far from its start
FOLDER = "hardware"  # of a session
INTERFACES = ("position", "velocity", "effort", "command_effort")


@dataclass(frozen=True)
class RealRun:
    """A run on the real rig. name: of its gains; values (d,); simulated, real: figure -> the sum of a term or the worst
    joint of a limit; costs: simulated on the plant of the rig, and real; failure: why it was not good, else "";
    returning: whether it only brought the rig back."""

    name: str
    values: tuple[float, ...]
    simulated: Mapping[str, float | None]
    real: Mapping[str, float | None]
    costs: tuple[float, float]
    failure: str = ""
    run: Run | None = field(default=None, compare=False)
    returning: bool = False

    @property
    def good(self) -> bool:
        """Whether its cost counts."""
        return not self.failure and not self.returning and math.isfinite(self.costs[1])


@dataclass
class HardwareReplay:
    """The runs of a session's candidates on the real rig. session: whose candidates are tried; rig: the real one; ask:
    before each run; note: prints a line."""

    session: SessionData
    rig: Rig
    ask: GivenQuestion
    note: Callable[[str], None]
    factor: float = STEP_FACTOR
    runs: list[RealRun] = field(default_factory=list)
    margins: list[RealMargins] = field(default_factory=list)
    _asked: bool = False  # whether a human has seen what moves

    def __post_init__(self) -> None:
        """Raises InputError for a rig without real motors, or that is not the one of the session."""
        check_fits(self.rig, self.session.evaluator)
        dimensions = self.session.evaluator.space.dimensions
        self.safe = np.array([table_of(self.rig).numbers(d.parameter)[d.element] for d in dimensions])
        assert self.session.path is not None
        self.folder = _new_folder(self.session.path / FOLDER)

    def try_all(self, candidates: Sequence[Trial]) -> None:
        """First the gains of the real rig, then each candidate. Raises RunError at the first failure, after the return;
        InputError where a run is not confirmed."""
        try:
            first = self._run("gains of the rig", self.safe)
            if first.failure:
                raise RunError(f"its own gains are not safe: {first.failure}", str(self.rig.spec.path))
            for candidate in candidates:
                self._approach(candidate)
            self._measure_margins()
        finally:
            self._keep_gains()

    def _approach(self, candidate: Trial) -> None:
        goal = np.array(candidate.values)
        ladder = steps_between(self.safe, goal, self.factor)
        if why := self._refused(ladder):
            self.note(f"trial {candidate.number} is left out: {why}")
            return
        for k, values in enumerate(ladder, 1):
            way = f", step {k} of {len(ladder)}" if k < len(ladder) else ""
            done = self._run(f"trial {candidate.number}{way}", values)
            if done.failure:
                self._return(done)
                raise RunError(f"{done.name}: {done.failure}; the last safe gains are in {self.gains_file}", "tune")
            self.safe = values

    def _refused(self, ladder: Array) -> str:
        """Why the simulation refuses the way to a candidate: a run is stopped on it, or a limit does not hold at its
        end."""
        outcomes = self.session.evaluator.evaluate(ladder)
        stopped = next((outcome.failed for outcome in outcomes if outcome.stopped), "")
        return stopped or outcomes[-1].failed

    def _run(self, name: str, values: Array, returning: bool = False) -> RealRun:
        """One run, confirmed. returning: whether its figures do not matter."""
        (expected,) = self.session.evaluator.evaluate(values[None])
        simulated = {figure: pair[0] for figure, pair in expected.figures.items()}
        lines = self._what_is_asked(name, values)
        run, failure = self._real_run(
            values, RETURN_DURATIONS * self.session.evaluator.seconds if returning else None, lines
        )
        real, cost = dict[str, float | None](), math.inf
        if run is not None and len(run.t):
            real, cost, broken = self._measured(run)
            failure = failure or ("" if returning else broken)
        costs = expected.costs[0] if expected.costs else math.inf, cost
        done = RealRun(name, tuple(values.tolist()), simulated, real, costs, failure, run, returning)
        self.runs.append(done)
        self.note(f"{name}: cost {_shown(cost)}, simulated {_shown(costs[0])}")
        return done

    def _real_run(self, values: Array, seconds: float | None, lines: Sequence[str]) -> tuple[Run | None, str]:
        """The run with these gains and why it was stopped; seconds: by default the session's; lines: what is
        asked before it."""
        duration = self.session.request.duration if seconds is None else seconds
        return self._recorded(self.rig, f"run_{len(self.runs)}", values, duration, lines)

    def _recorded(
        self, rig: Rig, name: str, values: Array, duration: float | None, lines: Sequence[str]
    ) -> tuple[Run | None, str]:
        """A run in a file of this name, and why it was stopped; duration [s]: by default the rig's; lines: asked
        before it."""
        record, parameters, consent = self.folder / f"{name}.mcap", self._parameters(values), asking(self.ask, lines)
        try:
            return rig.run(duration, record, parameters=parameters, consent=consent, keep="all"), ""
        except StoppedRun as stopped:
            return stopped.run, str(stopped)
        except RunError as failed:
            return None, str(failed)

    def _measured(self, run: Run) -> tuple[dict[str, float | None], float, str]:
        """(figures, cost, what is wrong with them) of a run: a limit that the gains of the rig held, or a cost that is
        much larger than in the last safe run."""
        objective = self.session.evaluator.objective
        ticks = min(len(run.t), round(self.session.evaluator.seconds / self.rig.tick_model.step) + 1)
        figures = figures_of_run(run, self.rig, objective, ticks, self.session.evaluator.log)
        real: dict[str, float | None] = {
            measure.name: float(np.nansum(measure.of(figures[measure.figure]))) for measure, _ in objective.terms
        }
        cost, broken = float(objective.costs(figures)[0]), ""
        for limit in (limit for limit in objective.limits if not limit.at_least):  # margins have runs of their own
            value = worst(limit.measure.of(figures[limit.measure.figure]), False)
            real[limit.measure.name] = float(value[0])
            before = self.runs[0].real[limit.measure.name] if self.runs else math.inf
            if float(limit.violation(value)[0]) > 0.0 and value[0] > (before or 0.0):
                broken = broken or limit.breach(float(value[0]))
        safe = next((done.costs[1] for done in reversed(self.runs) if done.good), math.inf)
        if cost > WORSE_COST * safe and not broken:
            broken = f"the cost is {cost / safe:.1f} times the last safe run's"
        return real, cost, broken

    # --- margins ---

    def _measure_margins(self) -> None:
        """Of the best run. Gains without the margins that the session promises have failed, and the next best run is
        measured. Raises RunError for the first failure, after all of them."""
        failed = ""
        while (best := self.best) is not None and (why := self._lacking_margin(best)):
            failed = failed or f"{best.name}: {why}"
            self.runs = [replace(run, failure=why) if run is best else run for run in self.runs]
        if failed:
            rest = "no other run is good" if best is None else f"the best gains that hold it are in {self.gains_file}"
            raise RunError(f"{failed}; {rest}", "tune")

    def _lacking_margin(self, best: RealRun) -> str:
        """The first limit of a margin that the real rig does not hold with the gains of a run, else ""."""
        values = np.array(best.values)
        for experiment in margin_experiments(self.session.evaluator, values, self.rig, self.note):
            rig = experiment.rig(self.rig)
            asked = [f"{best.name}: {experiment.what}"]
            run, stopped = self._recorded(rig, f"loop_{len(self.margins)}", values, None, asked)
            if run is None or stopped:
                why = f"the experiment of {experiment.joint} ended early: {stopped}"
                self._return(replace(best, failure=why, run=run))
                return why
            found = experiment.result(best.name, run, rig.tick_model.step)
            self.margins.append(found)
            figures = (
                f"{figure} {value:.4g}, {found.promised[figure]:.4g} promised"
                for figure, value in found.measured.items()
            )
            self.note(f"{best.name}, loop of {found.joint}: {'; '.join(figures)}")
            if found.loop.hidden:
                self.note(found.loop.hidden)
            if found.failure:
                return found.failure
        return ""

    def _return(self, failure: RealRun) -> None:
        """Back to the start with the last safe gains, where the guard or a drive has stopped the run."""
        if (failure.run is not None and not failure.run.fault) or "interrupted" in failure.failure:
            return
        self.note(f"{failure.name}: {failure.failure}")
        try:
            back = self._run("return with the last safe gains", self.safe, returning=True)
        except InputError as refused:
            self.note(f"no return: {refused.what}")
            return
        if back.failure:
            self.note(f"no return: {back.failure}")

    def _what_is_asked(self, name: str, values: Array) -> list[str]:
        dimensions = self.session.evaluator.space.dimensions
        changes = [
            f"{d.name} {old:.5g} to {new:.5g}"
            for d, old, new in zip(dimensions, self.safe.tolist(), values.tolist(), strict=True)
            if old != new
        ]
        lines = [] if self._asked else list(what_moves(self.rig))
        self._asked = True
        return [*lines, f"{name}: {', '.join(changes) or 'no change'}"]

    def _parameters(self, values: Array) -> dict[str, float | list[float]]:
        """As `Rig.run` takes them: elements that are not varied as the real rig has them."""
        table, found = table_of(self.rig), dict[str, list[float]]()
        for d, value in zip(self.session.evaluator.space.dimensions, values.tolist(), strict=True):
            row = found.setdefault(d.parameter, table.numbers(d.parameter).tolist())
            row[d.element] = value
        return {name: row[0] if len(row) == 1 else row for name, row in found.items()}

    # --- results ---

    @property
    def gains_file(self) -> Path:
        return self.folder / "gains.yaml"

    @property
    def best(self) -> RealRun | None:
        """The run without a failure that has the smallest real cost."""
        return min((run for run in self.runs if run.good), key=lambda run: run.costs[1], default=None)

    def _keep_gains(self) -> None:
        """The gains of the best run as an overlay of the real rig."""
        if (best := self.best) is None:
            return
        values = {f"controllers.{k}": v for k, v in self._parameters(np.array(best.values)).items()}
        write_file(self.gains_file, overlay_text(values, str(self.rig.spec.path)).encode(), "gains")


def steps_between(start: Array, goal: Array, factor: float) -> Array:
    """(k, d) values from `start`, without it, to `goal`: no value grows or shrinks by more than a factor in one step;
    one from or to 0 changes by a fraction of the larger one."""
    if np.array_equal(start, goal):
        return goal[None]
    positive = (start > 0.0) & (goal > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(positive, np.abs(np.log(goal / start)) / math.log(factor), 0.0)
        sizes = np.maximum(np.abs(start), np.abs(goal))
        lengths = np.where(positive | (sizes == 0.0), ratios, np.abs(goal - start) / (LINEAR_STEP * sizes))
    count = max(1, math.ceil(float(lengths.max()) - 1e-9))
    rows = []
    for k in range(1, count):
        with np.errstate(divide="ignore", invalid="ignore"):
            geometric = start * np.where(positive, goal / start, 1.0) ** (k / count)
        rows.append(np.where(positive, geometric, start + (goal - start) * k / count))
    return np.array([*rows, goal])


def _new_folder(parent: Path) -> Path:
    for k in range(1, 10_000):
        path = parent.with_name(f"{parent.name}_{k}")
        try:
            path.mkdir()
            return path
        except FileExistsError:
            continue
        except OSError as cause:
            raise write_error(path, "folder of runs", cause) from cause
    raise InputError("has too many folders of runs; remove some", str(parent.parent))


def _shown(cost: float) -> str:
    return f"{cost:.6g}" if math.isfinite(cost) else "none"


def figures_of_run(
    run: Run, rig: Rig, objective: Objective, ticks: int, log: TargetLog | None = None
) -> dict[str, Array]:
    """figure -> (1, joints) of a metric and of the misfit to a log, (1, 1) of a signal, for its first ticks; NaN of
    joints without it. Margins are
    not among them: they have experiments of their own."""
    found = {name: _metric(run, rig, name, ticks)[None] for name in objective.metrics}
    for name in objective.signals:
        found[name] = np.array([[np.nanmax(np.abs(run[name][:ticks]))]])
    if log is not None:
        found[MISFIT] = log.misfit_of_run(run, rig.joints, ticks)
    return found


def _metric(run: Run, rig: Rig, name: str, ticks: int) -> Array:
    """(joints,)"""
    metric, n = METRICS[name], len(rig.joints)
    courses = {what: _courses(run, rig, what)[:ticks] for what in INTERFACES}
    reference = _courses(run, rig, "reference_position")[:ticks]
    error = _courses(run, rig, "measured_error")[:ticks]
    error = np.where(np.isnan(error), reference - courses["position"], error)
    error = np.where(np.isnan(reference), 0.0, error)
    target = np.nan_to_num(reference[-1])
    accumulators = np.repeat(np.array(metric.initial)[:, None], n, axis=1)
    for k, t in enumerate(run.t[:ticks] - run.t[0]):
        position, velocity, effort, request = (np.nan_to_num(courses[what][k]) for what in INTERFACES)
        sample = JointSample(t, position, velocity, effort, error[k], request, rig.limits.effort, target)
        accumulators = np.array(metric.update(accumulators, sample))
    count = len(run.t[:ticks])
    end = Ending(np.array([[count]]), np.array([[run.t[count - 1] - run.t[0]]]), rig.tick_model.step, target)
    with np.errstate(all="ignore"):
        values = metric.result(accumulators[None], end)[0]
    has = [f"{joint}/{SIGNALS[metric.needs]}" in run.signals for joint in rig.joints]
    return np.where(has, values, np.nan)


def _courses(run: Run, rig: Rig, what: str) -> Array:
    """(ticks, joints) of a signal of each joint, of real joints as measured, efforts as drives report them; NaN of
    those without it."""
    nothing = np.full(len(run.t), np.nan)
    names = (f"{joint}/{what}" for joint in rig.joints)
    if what in ("position", "velocity"):
        real = {joint for joint, role in run.rig.roles.items() if role == "real"}
        names = (f"{joint}/measured_{what}" if joint in real else f"{joint}/{what}" for joint in rig.joints)
    if what == "effort":
        names = (reported_effort(joint, run.signals) for joint in rig.joints)
    return np.stack([run[name] if name in run.signals else nothing for name in names], axis=1)
