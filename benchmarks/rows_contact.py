"""Robots with legs on the ground: runs and rollouts of rig files beside MuJoCo's of the same robots."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.legged_robots import BASE, SOLO, TALOS, LeggedRobot
from benchmarks.paired_timing import Budget, RepeatedCall, Samples, time_pairs
from benchmarks.peers import import_peer
from benchmarks.rows import BenchCase, Measurement, Target
from benchmarks.rows_runs import loop_alone
from cosim import load_rig
from cosim.mechanics.multibody.contact.contact_solver import TOLERANCE
from cosim.rig.rig import Rig

STEP = 1e-3  # s
PAIRS = 20  # of blocks, in which one block is one call or a few
RUNS, APART = 64, 2e-3  # drops, from heights that differ by so much [m]
LONG = 10  # s, of a run; MuJoCo's steps are as many
DROP = 4  # s, of runs that begin in the air
ACCURATE_DROP, ACCURATE_END = 0.05, 0.4  # m, s; of the comparison of accuracies
FINEST = 12.5e-6  # s


def rig_of(robot: LeggedRobot, clearance: float, duration: float, step: float = STEP, stiffness: str = "rigid") -> Rig:
    with tempfile.TemporaryDirectory() as folder:
        return load_rig(robot.rig(Path(folder), clearance, step, duration, stiffness), interpret=False)


def _time_pairs(ours: RepeatedCall, other: RepeatedCall, budget: Budget) -> Samples:
    return time_pairs(ours, other, replace(budget, pairs=min(PAIRS, budget.pairs)), time.process_time)


def _steps_of_mujoco(
    robot: LeggedRobot, clearance: float, duration: float, integrator: str, step: float = STEP, hard: bool = False
) -> RepeatedCall:
    """n times: so many seconds by `mj_step` in C. Raises MissingPeer."""
    mujoco = import_peer("mujoco")
    model, data = robot.mujoco(step, integrator, "ELLIPTIC" if hard else "PYRAMIDAL", hard)
    steps = round(duration / step)

    def block(n: int) -> None:
        for _ in range(n):
            robot.place(model, data, clearance)
            mujoco.mj_step(model, data, nstep=steps)

    return block


def run(
    robot: LeggedRobot, clearance: float, stiffness: str, integrator: str, alone: bool, budget: Budget
) -> Measurement:
    """Per step: `rig.run` with all signals and its summary, or the ticks alone."""
    seconds = budget.of(LONG if clearance == 0.0 else DROP)
    rig = rig_of(robot, clearance, seconds, stiffness=stiffness)
    steps = round(seconds / STEP)

    def ours(n: int) -> None:
        for _ in range(n):
            loop_alone(rig, steps + 1) if alone else rig.run()

    found = rig.run()
    unsolved = int(np.sum(found["contacts/residual"] > TOLERANCE))
    passes = found["contacts/passes"]
    note = f"{passes.mean():.2f} passes of the solver per step, at most {passes.max():.0f}"
    samples = _time_pairs(ours, _steps_of_mujoco(robot, clearance, seconds, integrator), budget)
    return Measurement(samples.per(steps, steps), note=note, failed=f"{unsolved} steps unsolved" if unsolved else "")


def base_after(rig: Rig) -> np.ndarray:
    found = rig.run()
    return np.array([found[f"{BASE}.{axis}/position"][-1] for axis in "xyz"])


def accuracy(step: float, other: float, budget: Budget) -> Measurement:
    """Per simulated second, at about the same error of the base: ours with a long step, MuJoCo's contacts as hard as
    its short step allows."""
    rig, drop = rig_of(SOLO, ACCURATE_DROP, ACCURATE_END, step), (ACCURATE_DROP, ACCURATE_END)
    exact = base_after(rig_of(SOLO, *drop, FINEST))
    mujoco = import_peer("mujoco")
    model, data = SOLO.mujoco(other, "IMPLICITFAST", "ELLIPTIC", hard=True)
    SOLO.place(model, data, ACCURATE_DROP)
    mujoco.mj_step(model, data, nstep=round(ACCURATE_END / other))
    errors = np.abs(base_after(rig) - exact).max(), np.abs(data.qpos[:3] - exact).max()
    ticks = round(ACCURATE_END / step) + 1

    def ours(n: int) -> None:
        for _ in range(n):
            loop_alone(rig, ticks)

    samples = _time_pairs(ours, _steps_of_mujoco(SOLO, *drop, "IMPLICITFAST", other, hard=True), budget)
    note = f"error of the base after {ACCURATE_END} s: {errors[0]:.1e} m here, {errors[1]:.1e} m there"
    return Measurement(samples.per(ACCURATE_END, ACCURATE_END), note=note)


def rollouts(robot: LeggedRobot, stiffness: str, budget: Budget) -> Measurement:
    """Per step of a run, in one thread on both sides."""
    mujoco, pool = import_peer("mujoco"), import_peer("mujoco.rollout")
    few, seconds = budget.of(RUNS, 8), budget.of(DROP)
    rig, steps = rig_of(robot, 0.0, seconds, stiffness=stiffness), round(seconds / STEP)
    clearances = APART * np.arange(few)
    heights = np.array([robot.base_height(clearance) for clearance in clearances])

    def ours(n: int) -> None:
        for _ in range(n):
            batch = rig.rollouts(initial={f"{BASE}.z/position": heights}, threads=1)
            assert not batch.stopped.any()

    model, data = robot.mujoco(STEP, "IMPLICITFAST")
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    starts = np.empty((few, mujoco.mj_stateSize(model, full)))
    for clearance, start in zip(clearances, starts, strict=True):
        robot.place(model, data, clearance)
        mujoco.mj_getState(model, data, start, full)
    control = np.broadcast_to(data.ctrl, (few, steps, model.nu)).copy()
    states = np.empty((few, steps, starts.shape[1]))

    with pool.Rollout(nthread=1) as rollout:

        def other(n: int) -> None:
            for _ in range(n):
                nothing = np.empty((few, steps, 0))
                rollout.rollout(model, [data], starts, control, state=states, sensordata=nothing)

        samples = _time_pairs(ours, other, budget)
    return Measurement(samples.per(few * (steps + 1), few * steps), note="one thread on both sides")


SOLO_12 = "solo12 (18 dofs, 4 spheres) under PD drives"
HUMANOID = "TALOS (38 dofs, 8 spheres, 1e7 N/m) under PD drives"

CASES = (
    *(
        BenchCase(
            f"contact solo12 {name}{' ticks' if alone else ''}",
            f"a step of 1 ms of {SOLO_12}, {name}: {'ticks alone' if alone else 'rig.run with all signals'}",
            partial(run, SOLO, clearance, "rigid", "EULER", alone),
            "mj_step at its defaults, Euler, in C",
            target=Target("ratio", 3.0),
        )
        for name, clearance in (("standing", 0.0), ("dropped", 0.3))
        for alone in (False, True)
    ),
    BenchCase(
        "contact solo12 accuracy",
        f"a second of {SOLO_12}, dropped from 5 cm, steps of 2 ms",
        partial(accuracy, 2e-3, 2.5e-4),
        "MuJoCo with contacts as hard as steps of 0.25 ms allow",
        unit="ms",
        target=Target("ratio", 10.0),
    ),
    BenchCase(
        "contact solo12 rollouts",
        f"a step of {RUNS} drops of {SOLO_12}, {DROP} s each",
        partial(rollouts, SOLO, "rigid"),
        "mujoco.rollout, implicitfast",
        target=Target("ratio", 15.0),
    ),
    *(
        BenchCase(
            f"contact talos dropped{' ticks' if alone else ''}",
            f"a step of 1 ms of {HUMANOID}: {'ticks alone' if alone else 'rig.run with all signals'}",
            partial(run, TALOS, 0.3, "1e7", "IMPLICITFAST", alone),
            "mj_step, implicitfast (with Euler it falls), in C",
            target=Target("ratio", 2.0),
        )
        for alone in (False, True)
    ),
    BenchCase(
        "contact talos rollouts",
        f"a step of {RUNS} drops of {HUMANOID}, {DROP} s each",
        partial(rollouts, TALOS, "1e7"),
        "mujoco.rollout, implicitfast",
        target=Target("ratio", 10.0),
    ),
)
