"""The whole tick of a rig in machine code, against a bare arm in MuJoCo."""

from __future__ import annotations

import numpy as np

from cosim import load_rig
from cosim.bench import paired_timing
from cosim.bench.paired_timing import Budget
from cosim.bench.peers import import_peer, mujoco_arm, relative_difference
from cosim.bench.robots import random_state, sample_rig
from cosim.bench.rows import BenchCase, Measurement, Target
from cosim.errors import RunError


def tick(budget: Budget) -> Measurement:
    """Ours: six drives with gears and friction, controller, guard, RK4 and the recorded row. MuJoCo: the
    arm falling freely from the rig's start, RK4, no contacts, no limits, its loop in C as well."""
    mujoco = import_peer("mujoco")
    path = sample_rig()
    rig = load_rig(path, interpret=False)
    bare, start = rig.plant.model.with_rotor_inertia(np.zeros(rig.plant.model.nv)), rig.plant.position
    model, data = mujoco_arm(path.parent / "robots/ur5.urdf", rig.tick_model.step)
    order = [model.joint(name).dofadr[0] for name in rig.joints]
    engine, step = rig.engine(), mujoco.mj_step

    def ours(n: int) -> None:
        rows, stopped = engine.run(n)
        if stopped or len(rows) < n:
            raise RunError("the guard stopped the rig while it was timed", str(path))

    def other(n: int) -> None:
        mujoco.mj_resetData(model, data)
        data.qpos[order] = start
        step(model, data, nstep=n)

    q, v, tau = random_state(bare)
    data.qpos[order], data.qvel[order], data.qfrc_applied[order] = q, v, tau
    mujoco.mj_forward(model, data)
    found = bare.forward_dynamics(q, v, tau - bare.friction_effort(v))
    difference = relative_difference(found, data.qacc[order])
    note = "agreement is that of the bare arms' accelerations"
    return Measurement(paired_timing.time_pairs(ours, other, budget), difference, note)


CASES = (
    BenchCase(
        "tick ur5_sim",
        "the whole tick: arm, drives, controller, guard, RK4 at 1 ms, in machine code",
        tick,
        "MuJoCo mj_step of the bare arm, RK4 at 1 ms, in C",
        target=Target("ratio", 5.0),
    ),
)
