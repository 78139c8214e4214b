"""Rigs with many joints: loops over drives, encoders, guard and controllers give the bits of straight-line code."""

import numpy as np
import pytest

from cosim import load_rig
from cosim.core.compile import like_items
from tests.kit import many_joints

NEVER = 10**9


def mixed(n):
    """A chain with rigid and elastic drives, encoders with noise and delay, joints without drive and a moved one, and a
    latch."""
    elastic = many_joints.MOTOR.replace("ratio: 101", "ratio: 101, stiffness: 300 N*m/rad, damping: 1 N*m*s/rad")
    text = many_joints.chain(n).replace("gravity: [0, 0, 0]", "gravity: [0, -1, 0]")
    text = text.replace("[1e-5, 8e-5, 8e-5]", "[0.1, 0.1, 0.1]")
    lines = []
    for k in range(1, n + 1):
        if k % 3 == 0:
            lines.append(f"  h_{k}: {{actuator: {elastic}, limits: {{velocity: {5 + k}, effort: {700 + k}}}}}")
        elif k % 3 == 1:
            lines.append(f"  h_{k}: {{encoder: {{cpr: {2000 + k % 2}, delay: {k % 2}, noise: 0.1 mrad}}}}")
    lines[0] = "  h_1: {prescribed: {type: sine, amplitude: 0.05, frequency: 1 Hz}, actuator: null}"
    lines.append(f"  h_{n - 1}: {{actuator: null}}")
    driven = [f"h_{k}" for k in range(2, n + 1) if k != n - 1]
    pid = f"name: c, type: feedforward_pd, joints: [{', '.join(driven)}], kp: 1000, kd: 30"
    text = text.replace("name: c, type: computed_torque, bandwidth: 5 Hz, damping: 1", pid)
    text = text.replace("controllers:", "\n".join([*lines, "controllers:"]))
    text += "guard: {actions: {velocity: warn, effort: saturate}}\nevents:\n"
    return text + f"  - {{do: latch, of: h_{n - 1}, name: lock, at: 20 ms}}\n"


@pytest.mark.parametrize("rig", ["mixed", "arms"])
def test_loops_give_the_bits_of_straight_line_code(rig, tmp_path, monkeypatch):
    path = tmp_path / "rig.yaml"
    path.write_text(mixed(12) if rig == "mixed" else many_joints.arms(tmp_path, 2))
    made, replaced = [], like_items._Rolling._replace
    monkeypatch.setattr(like_items._Rolling, "_replace", lambda *given: made.append(len(given[2])) or replaced(*given))
    found = []
    for least in (4, NEVER):  # straight-line code of more joints compiles for long
        monkeypatch.setattr(like_items, "LEAST_ITEMS", least)
        run = load_rig(path).run("40 ms")
        found.append({name: run[name].tobytes() for name in run.signals})
        assert made
    assert found[0].keys() == found[1].keys()
    assert [name for name in found[0] if found[0][name] != found[1][name]] == []


def test_rollouts_of_many_joints_equal_single_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(like_items, "LEAST_ITEMS", 4)
    pid = "feedforward_pd, kp: 1000, kd: 30"
    path = tmp_path / "rig.yaml"
    path.write_text(many_joints.chain(8).replace("computed_torque, bandwidth: 5 Hz, damping: 1", pid))
    rig, kp = load_rig(path), [800.0, 1000.0, 1300.0]
    batch = rig.rollouts({"c.kp": np.array(kp)}, keep="all", duration=0.02)
    for k, value in enumerate(kp):
        single = rig.run("20 ms", parameters={"c.kp": value})
        for name in ("h_1/position", "h_8/position", "h_5/effort", "energy/kinetic"):
            np.testing.assert_array_equal(batch[name][k], single[name], err_msg=name)
