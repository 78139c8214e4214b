"""Tuning sessions: the whole of one, beside the same closed loop stepped in MuJoCo from Python, and on workers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks import paired_timing
from benchmarks.paired_timing import Budget, Samples
from benchmarks.peers import MissingPeer, import_peer, mujoco_arm
from benchmarks.robots import sample_rig
from benchmarks.rows import BenchCase, Measurement, NotMeasured, Target
from cosim.apps.tuning.tune import tune
from cosim.rig.rig import Rig, load_rig

GAINS = {"arm.kp": "x0.2..x5", "arm.kd": "x0.2..x5"}
PLANTS = {"inertia": "20 %", "friction": "20 %"}  # and the rig's: five
TRIALS, RUNS, SECONDS = 199, 1000, 5.0  # and the gains of the rig: 200 on five plants
STEPS = 500  # of a run in MuJoCo that is timed
SESSIONS = 3
FRICTION_SPEED = 0.01  # rad/s, below which dry friction fades out
# of the row with gradients: seeds, trials of the sampler, trials of a line search, runs that a gradient counts as
SEEDS, SEARCHED, LINE, GRADIENT = 5, 500, 4, 6
# of the row with workers: batches that keep them busy
BATCH, BATCHES, PAIRS = 160, 8, 5


def _session(rig: Rig, folder: str, budget: Budget) -> int:
    """The number of its runs of 5 s, 1 000; with the report."""
    found = tune(rig, GAINS, plants=PLANTS, trials=budget.of(TRIALS), duration=SECONDS, folder=folder)
    return len(found.trials) * len(found.evaluator.plants)


def _session_times(rig: Rig, budget: Budget) -> tuple[list[float], int]:
    """Of whole sessions, each with its report, and the runs of one; the first one also compiles, and does not count."""
    times, runs = [], 0
    for _ in range(budget.of(SESSIONS) + 1):
        with TemporaryDirectory() as folder:
            begun = time.perf_counter()
            runs = _session(rig, f"{folder}/session", budget)
            times.append(time.perf_counter() - begun)
            assert Path(folder, "session", "report.html").stat().st_size > 0
    return times[1:], runs


def whole_session(budget: Budget) -> Measurement:
    rig = load_rig(sample_rig(), interpret=False)
    times, runs = _session_times(rig, budget)
    note = f"{len(os.sched_getaffinity(0))} threads, report included"
    return Measurement(Samples(np.array(times) * (RUNS / runs)), note=note)


def against_mujoco(budget: Budget) -> Measurement:
    """Per run of 5 s: the session, with its search and its report, and one run of the loop in MuJoCo."""
    rig = load_rig(sample_rig(), interpret=False)
    peer = MujocoLoop(rig)
    error, own = peer.tracking_error(), rig.run(SECONDS).summary["joints"]
    expected = float(np.sqrt(sum((own[name]["error_rms"] or 0.0) ** 2 for name in rig.joints)))
    times, runs = _session_times(rig, budget)
    steps = round(SECONDS / rig.tick_model.step)
    other = np.array([peer.seconds_per_step() * steps for _ in times])
    note = f"RMS error {error:.2e} rad there, {expected:.2e} rad here"
    wrong = "" if abs(error - expected) < 0.1 * expected else "the loops differ by more than 10 %"
    return Measurement(Samples(np.array(times) / runs, other), note=note, failed=wrong)


def by_gradients(budget: Budget) -> Measurement:
    """Runs until the cost is reached that Optuna's default sampler reaches; a gradient counts as GRADIENT runs."""
    rig = load_rig(sample_rig(), interpret=False)
    needed, seeds, searched = [], budget.of(SEEDS), budget.of(SEARCHED)
    for seed in range(seeds):
        goal = min(_costs(rig, "tpe", seed, searched))
        costs = _costs(rig, "gradient", seed, searched // 5)
        trials = next((k for k, cost in enumerate(costs, 1) if cost <= goal), None)
        if trials is None:
            return Measurement(Samples(np.array([np.nan])), failed=f"seed {seed}: {min(costs):.4g}, not {goal:.4g}")
        needed.append(trials + GRADIENT * -(-trials // LINE))
    runs = np.array(needed, dtype=float)
    return Measurement(Samples(runs, np.full(seeds, float(searched))), note=f"12 gains, {seeds} seeds: {needed} runs")


def _costs(rig: Rig, optimiser: str, seed: int, trials: int) -> list[float]:
    """Of each trial, inf of one that has none."""
    found = tune(rig, GAINS, optimiser=optimiser, seed=seed, trials=trials, batch=LINE, duration=SECONDS).trials
    return [np.inf if trial.outcome.cost is None else trial.outcome.cost for trial in found]


class MujocoLoop:
    """`ur5_sim` in MuJoCo: RK4 of the arm with its rotors, and in numpy the controller with its feedforward, the drives
    with the loop of the current, friction and limits."""

    def __init__(self, rig: Rig) -> None:
        """Raises MissingPeer."""
        self._mujoco, step = import_peer("mujoco"), rig.tick_model.step
        self._model, self._data = mujoco_arm(sample_rig().parent / "robots/ur5.urdf", step, "RK4")
        self._known = mujoco_arm(sample_rig().parent / "robots/ur5.urdf", step, "RK4")  # that the controller knows
        order = [self._model.joint(name).dofadr[0] for name in rig.joints]
        self._order, self._start = order, rig.plant.position

        def of(field: str) -> np.ndarray:
            drives = [rig.spec.joints[name].actuator for name in rig.joints]
            return self._placed(np.array([getattr(drive.params, field) for drive in drives if drive is not None]))

        self._per_ampere = of("torque_constant") * of("ratio")
        self._lag = 1.0 - np.exp(-step * (of("resistance") / of("inductance") + 2.0 * np.pi * of("bandwidth")))
        self._most, self._coulomb, self._viscous = of("current_limit"), of("coulomb"), of("viscous")
        self._model.dof_armature[:] = of("rotor_inertia") * of("ratio") ** 2
        self._model.dof_damping[:] = self._viscous
        self._kp, self._kd = (self._placed(np.array(rig.parameters[f"arm.{name}"])) for name in ("kp", "kd"))
        run = rig.run(SECONDS)
        self._reference = [
            np.stack([run[f"{name}/reference_{what}"] for name in rig.joints], axis=1)[:, np.argsort(order)]
            for what in ("position", "velocity", "acceleration")
        ]

    def _placed(self, values: np.ndarray) -> np.ndarray:
        """(n,) in the order of MuJoCo."""
        found = np.empty(len(values))
        found[self._order] = values
        return found

    def run(self, steps: int) -> float:
        """The root of the sum over joints of the mean square error [rad]."""
        data, (known, ahead), total = self._data, self._known, 0.0
        self._mujoco.mj_resetData(self._model, data)
        data.qpos[self._order] = self._start
        current = np.zeros(len(self._order))
        for q, v, a in zip(*(values[:steps] for values in self._reference), strict=True):
            ahead.qpos[:], ahead.qvel[:], ahead.qacc[:] = q, v, a
            self._mujoco.mj_inverse(known, ahead)
            error = q - data.qpos
            total += float(error @ error)
            request = ahead.qfrc_inverse + self._kp * error + self._kd * (v - data.qvel)
            target = np.clip(request / self._per_ampere, -self._most, self._most)
            current += self._lag * (target - current)
            data.qfrc_applied[:] = self._per_ampere * current - self._coulomb * np.tanh(data.qvel / FRICTION_SPEED)
            self._mujoco.mj_step(self._model, data)
        return float(np.sqrt(total / steps))

    def tracking_error(self) -> float:
        return self.run(len(self._reference[0]))

    def seconds_per_step(self) -> float:
        with paired_timing.undisturbed():
            begun = time.perf_counter()
            self.run(STEPS)
            return (time.perf_counter() - begun) / STEPS


def workers(budget: Budget) -> Measurement:
    """Two workers of one core each, and one."""
    if len(os.sched_getaffinity(0)) < 2:
        raise NotMeasured("this machine has one processor core; use one with two or more")
    with _cluster(2) as two, _cluster(1) as one:
        pair = _on_workers(two, budget), _on_workers(one, budget)
        samples = paired_timing.time_pairs(*pair, replace(budget, pairs=min(PAIRS, budget.pairs)), all_processors=True)
    batch = budget.of(BATCH)
    return Measurement(samples, note=f"{batch * budget.of(BATCHES)} trials on five plants, {batch} at a time")


def _on_workers(address: str, budget: Budget) -> Callable[[int], None]:
    batch = budget.of(BATCH)
    trials = batch * budget.of(BATCHES)
    rig = load_rig(sample_rig(), interpret=False)

    def block(n: int) -> None:
        for _ in range(n):
            tune(rig, GAINS, plants=PLANTS, optimiser="cma", trials=trials, batch=batch, dask=address)

    return block


@contextmanager
def _cluster(workers: int) -> Iterator[str]:
    """The address of a scheduler with so many workers, processes of one thread. Raises NotMeasured."""
    try:
        distributed = import_peer("distributed")
    except MissingPeer:
        raise NotMeasured("distributed is not installed: pip install 'cosim[tune]'") from None
    places = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(n_workers=workers, threads_per_worker=1, silence_logs=50, **places) as cluster:
        yield cluster.scheduler_address


CASES = (
    BenchCase(
        "tuning ur5_sim",
        f"a session of {RUNS} runs of {SECONDS:g} s: search, five plants, report",
        whole_session,
        unit="s",
        target=Target("ours", 10.0, at_most=True),
    ),
    BenchCase(
        "tuning mujoco",
        f"one run of {SECONDS:g} s within a session, with its part of search and report",
        against_mujoco,
        "a run of the same closed loop, MuJoCo stepped from Python",
        unit="ms",
        target=Target("ratio", 30.0),
    ),
    BenchCase(
        "tuning gradient",
        "runs of a session by gradients until the cost of the other one is reached, a gradient counted as six",
        by_gradients,
        f"the trials of Optuna's default sampler, {SEARCHED}",
        unit="runs",
        target=Target("ratio", 10.0),
    ),
    BenchCase(
        "tuning dask",
        "a session on two workers of Dask, one core each",
        workers,
        "on one worker",
        unit="s",
        target=Target("ratio", 1.7),
    ),
)
