"""The rows of tuning sessions."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import rows_tuning
from benchmarks.paired_timing import QUICK
from benchmarks.robots import sample_rig
from benchmarks.rows import measure_case
from cosim import load_rig

CASES = {case.name: case for case in rows_tuning.CASES}


def test_the_loop_in_mujoco_is_the_same_closed_loop():
    """In any order of joints, its errors equal the rig's."""
    rig = load_rig(sample_rig(), interpret=False)
    error = rows_tuning.MujocoLoop(rig).tracking_error()
    joints = rig.run(rows_tuning.SECONDS).summary["joints"]
    own = np.sqrt(sum(joint["error_rms"] ** 2 for joint in joints.values()))
    assert error == pytest.approx(own, rel=0.03)


def test_runs_until_a_cost_is_reached_are_counted(monkeypatch):
    for name, value in {"SEEDS": 1, "SEARCHED": 60, "SECONDS": 0.5}.items():
        monkeypatch.setattr(rows_tuning, name, value)
    row = measure_case(CASES["tuning gradient"], QUICK)
    assert not row.failed and row.other == 60.0
    assert row.ours is not None and 7.0 <= row.ours < 60.0 and row.ours == int(row.ours)
