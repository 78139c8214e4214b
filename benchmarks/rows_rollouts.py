"""Many runs of one rig in SIMD lanes and threads: by themselves, per thread, and beside MuJoCo's rollouts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks import paired_timing
from benchmarks.paired_timing import Budget, RepeatedCall, Samples
from benchmarks.peers import import_peer, mujoco_arm
from benchmarks.robots import sample_rig
from benchmarks.rows import BenchCase, Measurement, NotMeasured, Target
from cosim import Rig, load_rig

RUNS, SECONDS = 1000, 5.0
# of the rows per step: long enough for the fixed cost of a call not to count
FEW, LONG = 128, 5
# pairs of blocks of these rows, in which one block is one call
PAIRS = 20


def _parameters(rig: Rig, k: int) -> dict[str, np.ndarray]:
    """Gains from half to one and a half of the rig's."""
    factors = np.random.default_rng(0).uniform(0.5, 1.5, (k, 1))
    return {name: factors * np.atleast_1d(values) for name, values in rig.parameters.items()}


def _rollouts(rig: Rig, k: int, seconds: float, threads: int | None = None) -> Callable[[int], None]:
    parameters = _parameters(rig, k)

    def block(n: int) -> None:
        for _ in range(n):
            batch = rig.rollouts(parameters, duration=seconds, metrics=["error_rms"], threads=threads)
            assert not batch.stopped.any()

    return block


def _time_pairs(ours: RepeatedCall, other: RepeatedCall, budget: Budget) -> Samples:
    return paired_timing.time_pairs(ours, other, replace(budget, pairs=min(PAIRS, budget.pairs)), all_processors=True)


def all_runs(budget: Budget) -> Measurement:
    """The whole call: parameters checked, 1 000 runs, one metric; nothing to compare with."""
    runs = budget.of(RUNS)
    block, times = _rollouts(load_rig(sample_rig(), interpret=False), runs, SECONDS), []
    block(1)
    for _ in range(3):
        begun = time.perf_counter()
        block(1)
        times.append((time.perf_counter() - begun) * (RUNS / runs))
    return Measurement(Samples(np.array(times), None), note=f"{len(os.sched_getaffinity(0))} threads")


def threads(budget: Budget) -> Measurement:
    if len(os.sched_getaffinity(0)) < 2:
        raise NotMeasured("this machine has one processor core; use one with two or more")
    rig = load_rig(sample_rig(), interpret=False)
    pair = _rollouts(rig, budget.of(FEW), budget.of(LONG), 2), _rollouts(rig, budget.of(FEW), budget.of(LONG), 1)
    return Measurement(_time_pairs(*pair, budget))


def against_mujoco(integrator: str, budget: Budget) -> Measurement:
    """Per step. Ours: the whole tick of every rig. MuJoCo: the bare arm falling freely, without contacts and limits, in
    its own pool of threads, one per core."""
    mujoco, pool = import_peer("mujoco"), import_peer("mujoco.rollout")
    path, cores = sample_rig(), len(os.sched_getaffinity(0))
    few, seconds = budget.of(FEW), budget.of(LONG)
    rig = load_rig(path, interpret=False)
    model, data = mujoco_arm(path.parent / "robots/ur5.urdf", rig.tick_model.step, integrator)
    order = [model.joint(name).dofadr[0] for name in rig.joints]
    data.qpos[order] = rig.plant.position
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.empty(mujoco.mj_stateSize(model, full))
    mujoco.mj_getState(model, data, state, full)
    starts, steps = np.repeat(state[None], few, axis=0), round(seconds / rig.tick_model.step)
    workers = [mujoco.MjData(model) for _ in range(cores)]
    states = np.empty((few, steps, state.size))

    with pool.Rollout(nthread=cores) as rollout:

        def other(n: int) -> None:
            for _ in range(n):
                rollout.rollout(model, workers, starts, nstep=steps, state=states, sensordata=np.empty((few, steps, 0)))

        samples = _time_pairs(_rollouts(rig, few, seconds), other, budget)
    return Measurement(samples.per(few * (steps + 1), few * steps), note=f"{cores} threads on both sides")


CASES = (
    BenchCase(
        "rollouts ur5_sim",
        f"{RUNS} runs of {SECONDS:g} s with other gains, the whole call",
        all_runs,
        unit="s",
        target=Target("ours", 1.5, at_most=True),
    ),
    BenchCase(
        "rollouts threads",
        f"{FEW} runs of {LONG} s in two threads",
        threads,
        "in one thread",
        unit="ms",
        target=Target("ratio", 1.8),
    ),
    *(
        BenchCase(
            f"rollouts mujoco {integrator.lower()}",
            f"one tick of {FEW} runs of {LONG} s on all cores: arm, drives, controller, guard, RK4",
            partial(against_mujoco, integrator),
            f"mujoco.rollout of the bare arm on all cores, {integrator}",
            target=Target("ratio", target),
        )
        for integrator, target in (("EULER", 5.0), ("IMPLICITFAST", 5.0), ("RK4", 15.0))
    ),
)
