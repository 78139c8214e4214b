"""A pendulum without friction in its rig, and tables of the motion of another one, from its equation of motion."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

RIG = """\
mechanism:
  bodies: [{name: bob, joint: pivot, axis: [0, 1, 0], mass: 1, com: [0, 0, -0.3], inertia: [0.01, 0.01, 0.001]}]
joints: {pivot: {actuator: {type: ideal}}}
controllers: [{name: c, type: pid, kp: 20, ki: 0, kd: 2}]
schedule: {step: 2 ms, duration: 10 s}
"""
MASS, LENGTH, INERTIA, DAMPING, FRICTION, GRAVITY = 1.4, 0.35, 0.02, 0.15, 0.1, 9.81


def motion(seed: int = 0) -> dict[str, np.ndarray]:
    """Of the true pendulum, with the noise of an encoder."""

    def effort(t):
        return 3 * np.sin(2 * np.pi * 0.5 * t) + 2 * np.sin(2 * np.pi * 1.3 * t + 1) + np.sin(2 * np.pi * 2.1 * t)

    def rates(t, x):
        weight = MASS * GRAVITY * LENGTH * np.sin(x[0])
        friction = DAMPING * x[1] + FRICTION * np.tanh(x[1] / 0.01)
        return [x[1], (effort(t) - weight - friction) / (INERTIA + MASS * LENGTH**2)]

    t = np.arange(0, 20, 0.002)
    q = solve_ivp(rates, (0, 20), [0, 0], t_eval=t, rtol=1e-8, atol=1e-10, method="LSODA").y[0]
    noise = np.random.default_rng(seed).normal(0, 2e-4, len(t))
    return {"t": t, "pivot/position": q + noise, "pivot/effort": effort(t)}


def write(path: Path, columns: Mapping[str, np.ndarray], separator: str = ",") -> Path:
    rows = np.column_stack(list(columns.values()))
    np.savetxt(path, rows, delimiter=separator, header=separator.join(columns), comments="")
    return path
