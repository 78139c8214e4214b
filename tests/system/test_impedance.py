"""The impedance controller in task space of `rigs/impedance`: machine code, and the tool does what it says."""

import numpy as np


def test_the_tool_moves_along_a_line_with_its_orientation(sample):
    rig = sample("impedance/ur5_impedance")
    assert rig.native
    run, model = rig.run(), rig.plant.model
    q = np.column_stack([run[f"{name}/position"] for name in model.dof_names])[::50]
    pose = model.frame_pose(q, "tool0")
    moved = pose[:, :3, 3] - pose[0, :3, 3]
    np.testing.assert_allclose(moved[-1], [0.0, 0.2, -0.1], atol=1e-6)
    line = np.array([0.0, 0.2, -0.1]) / np.hypot(0.2, 0.1)
    assert np.abs(moved - np.outer(moved @ line, line)).max() < 2e-3
    assert np.abs(pose[:, :3, :3] - pose[0, :3, :3]).max() < 5e-3
    assert np.abs(moved @ line).max() > 0.2


def test_machine_code_computes_what_python_does(sample):
    name, ticks = "impedance/ur5_impedance", 0.02
    slow = sample(name, interpret=True).run(ticks)
    np.testing.assert_allclose(sample(name).run(ticks).values, slow.values, rtol=1e-9, atol=1e-9)
