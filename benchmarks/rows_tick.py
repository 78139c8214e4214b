"""The whole tick of a rig in machine code, against a bare arm in MuJoCo."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.paired_timing import Budget, RepeatedCall
from benchmarks.peers import import_peer, mujoco_arm, relative_difference
from benchmarks.robots import random_state, sample_rig
from benchmarks.rows import BenchCase, Measurement, Target, beside
from cosim import load_rig
from cosim.core.errors import RunError
from cosim.rig.rig import Rig

STEPS = 300  # of the comparison of accuracies; 0.3 s
FINE = 16  # substeps of a reference


def tick(integrator: str, budget: Budget) -> Measurement:
    """Ours: six drives with gears and friction, controller, guard, RK4 and the recorded row. MuJoCo: the
    arm falling freely from the rig's start, no contacts, no limits, its loop in C as well."""
    path = sample_rig()
    rig = load_rig(path, interpret=False)
    engine = rig.engine()

    def ours(n: int) -> None:
        rows, stopped = engine.run(n)
        if stopped or len(rows) < n:
            raise RunError("the guard stopped the rig while it was timed", str(path))

    notes = [f"position error after {STEPS * rig.tick_model.step:g} s: {_our_error(rig):.0e} rad here"]

    def peer() -> tuple[RepeatedCall, float]:
        mujoco = import_peer("mujoco")
        start, step = rig.plant.position, rig.tick_model.step
        model, data = mujoco_arm(path.parent / "robots/ur5.urdf", step, integrator)
        order = [model.joint(name).dofadr[0] for name in rig.joints]

        def fall(model: Any, steps: int) -> np.ndarray:
            mujoco.mj_resetData(model, data)
            data.qpos[order] = start
            mujoco.mj_step(model, data, nstep=steps)
            return data.qpos[order].copy()

        fine, _ = mujoco_arm(path.parent / "robots/ur5.urdf", step / FINE, "rk4")
        error = np.abs(fall(model, STEPS) - fall(fine, STEPS * FINE)).max()
        notes.append(f"{error:.0e} rad there")
        return partial(fall, model), _difference(rig, mujoco, model, data, order)

    found = beside(ours, peer, budget)
    notes.append("agreement of the bare arms' accelerations")
    return Measurement(found.samples, found.agreement, "; ".join([*([found.note] if found.note else []), *notes]))


def _our_error(rig: Rig) -> float:
    """The largest error of a position [rad] of the rig's step in its own motion."""
    duration = STEPS * rig.tick_model.step
    fine = load_rig(rig.spec.path, [f"schedule.substeps={FINE}"], interpret=False)
    ends = [
        np.array([run[f"{name}/position"][-1] for name in rig.joints])
        for run in (rig.run(duration), fine.run(duration))
    ]
    return float(np.abs(ends[0] - ends[1]).max())


def _difference(rig: Rig, mujoco: Any, model: Any, data: Any, order: list[int]) -> float:
    """The relative difference of the accelerations of the bare arm."""
    bare = rig.plant.model.with_rotor_inertia(np.zeros(rig.plant.model.nv))
    q, v, tau = random_state(bare)
    mujoco.mj_resetData(model, data)
    data.qpos[order], data.qvel[order], data.qfrc_applied[order] = q, v, tau
    mujoco.mj_forward(model, data)
    found = bare.forward_dynamics(q, v, tau - bare.friction_effort(v))
    return relative_difference(found, data.qacc[order])


CASES = tuple(
    BenchCase(
        f"tick ur5_sim {integrator}",
        f"the whole tick: arm, drives, controller, guard, RK4 at 1 ms, in machine code; beside {label}",
        partial(tick, integrator),
        f"MuJoCo mj_step of the bare arm, {label} at 1 ms, in C",
        target=Target("ratio", least),
    )
    for integrator, label, least in (
        ("rk4", "RK4", 7.0),
        ("implicitfast", "implicitfast", 1.7),
        ("euler", "Euler", 1.5),
    )
)
