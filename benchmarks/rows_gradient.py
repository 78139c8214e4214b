"""Exact gradients of runs beside the runs themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks import paired_timing
from benchmarks.paired_timing import Budget
from benchmarks.robots import sample_rig
from benchmarks.rows import BenchCase, Measurement, Target
from cosim import load_rig

SECONDS, METRIC, GAINS = 5.0, "error_rms", ("arm.kp", "arm.kd")
STEP = 1e-4  # of the gains, for the differences that the gradient is compared with
# pairs of blocks of these rows, in which one block is a few calls
PAIRS = 40


def against_a_run(budget: Budget) -> Measurement:
    """Twelve gains; the run has one rig, whose signals are not kept."""
    rig = load_rig(sample_rig(), interpret=False)
    gains = {name: np.asarray(rig.parameters[name], dtype=float) for name in GAINS}

    def gradient(n: int) -> None:
        for _ in range(n):
            rig.gradient(METRIC, GAINS, duration=SECONDS)

    def run(n: int) -> None:
        for _ in range(n):
            rig.run(duration=SECONDS, keep="final")

    exact = rig.gradient(METRIC, GAINS, duration=SECONDS).vector * np.concatenate(list(gains.values()))
    scale = 1.0 + STEP * np.concatenate([np.eye(exact.size), -np.eye(exact.size)])
    parts = np.split(scale, np.cumsum([values.size for values in gains.values()])[:-1], axis=1)
    rows = {name: part * gains[name] for name, part in zip(GAINS, parts, strict=True)}
    values = rig.rollouts(rows, duration=SECONDS, metrics=[METRIC])[METRIC].sum(axis=1)
    found = (values[: exact.size] - values[exact.size :]) / (2.0 * STEP)
    difference = float(np.abs(found - exact).max() / np.abs(exact).max())
    samples = paired_timing.time_pairs(gradient, run, replace(budget, pairs=min(PAIRS, budget.pairs)))
    note = f"differences of runs agree to {difference:.0e}, of the largest derivative"
    failed = "" if difference < 1e-6 else "differs from the differences of runs"
    return Measurement(samples, note=note, growth=True, failed=failed)


CASES = (
    BenchCase(
        "gradient ur5_sim",
        f"derivatives of {METRIC} with respect to 12 gains, a run of {SECONDS:g} s, the whole call",
        against_a_run,
        "one rig.run of the same duration, signals not kept",
        unit="ms",
        target=Target("ratio", 6.0, at_most=True),
    ),
)
