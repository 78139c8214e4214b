"""The rows of tuning sessions."""

from __future__ import annotations

import numpy as np
import pytest

from cosim import load_rig
from cosim.bench import rows_tuning
from cosim.bench.paired_timing import FULL, QUICK, Budget
from cosim.bench.robots import sample_rig
from cosim.bench.rows import measure_case
from tests.kit.levels import full

CASES = {case.name: case for case in rows_tuning.CASES}
TINY = Budget(pairs=2, block=1e-4, starts=1)


def test_budgets_below_that_of_a_quick_bench_have_a_part_of_the_runs():
    assert [budget.of(199) for budget in (FULL, QUICK, TINY)] == [199, 199, 13]
    assert TINY.of(3) == 1


def test_the_loop_in_mujoco_is_the_same_closed_loop():
    """In any order of joints, its errors are those of the rig."""
    rig = load_rig(sample_rig(), interpret=False)
    error = rows_tuning.MujocoLoop(rig).tracking_error()
    joints = rig.run(rows_tuning.SECONDS).summary["joints"]
    own = np.sqrt(sum(joint["error_rms"] ** 2 for joint in joints.values()))
    assert error == pytest.approx(own, rel=0.03)


@full
def test_sessions_are_measured_with_their_report(monkeypatch):
    monkeypatch.setattr(rows_tuning, "SECONDS", 0.5)
    whole, peer = (measure_case(CASES[name], TINY) for name in ("tuning ur5_sim", "tuning mujoco"))
    assert whole.ours is not None and 0.0 < whole.ours < 60.0
    assert peer.ratio is not None and peer.other is not None and peer.other > 0.0


@full
def test_runs_until_a_cost_is_reached_are_counted(monkeypatch):
    for name, value in {"SEEDS": 1, "SEARCHED": 60, "SECONDS": 0.5}.items():
        monkeypatch.setattr(rows_tuning, name, value)
    row = measure_case(CASES["tuning gradient"], QUICK)
    assert not row.failed and row.other == 60.0
    assert row.ours is not None and 7.0 <= row.ours < 60.0 and row.ours == int(row.ours)


@full
def test_workers_are_measured():
    row = measure_case(CASES["tuning dask"], TINY)
    assert row.ratio is not None and row.note == "11 trials on five plants, 11 at a time"
