"""The impedance controller in task space of `rigs/impedance`: machine code, and the tool does what it says."""

import numpy as np

PUSH = """
from cosim.plugin import ops
from cosim.plugin import ForceLaw
from cosim.plugin import params
@params
class Params:
    pass
def load(params):
    return ForceLaw(lambda frames, q, v, t: [ops.array([12.0, -6.0, 9.0])])
"""


def tip_of(run):
    return np.column_stack([run[f"tip.{axis}/position"] for axis in "xyz"])


def test_the_tool_moves_along_a_line_with_its_orientation(sample):
    rig = sample("impedance/ur5_impedance")
    assert rig.native
    run = rig.run()
    moved = tip_of(run) - tip_of(run)[0]
    np.testing.assert_allclose(moved[-1], [0.0, 0.2, -0.1], atol=1e-6)
    line = np.array([0.0, 0.2, -0.1]) / np.hypot(0.2, 0.1)
    assert np.abs(moved - np.outer(moved @ line, line)).max() < 2e-3
    angles = np.column_stack([run[f"tip.{angle}/position"] for angle in ("roll", "pitch", "yaw")])
    assert np.abs(np.unwrap(angles, axis=0) - angles[0]).max() < 5e-3


def test_the_tool_gives_way_by_force_over_stiffness(sample, tmp_path):
    """At rest K (x_d − x) is the force on the tool, if the model of the controller does not know it."""
    (tmp_path / "push.py").write_text(PUSH)
    force = f"mechanism.forces=[{{name: push, type: {tmp_path}/push.py, between: [tool0], known: no}}]"
    rig = sample("impedance/ur5_impedance", force, "controllers.impedance.displacement=[0, 0, 0]")
    rest = sample("impedance/ur5_impedance", "controllers.impedance.displacement=[0, 0, 0]").run()
    moved = tip_of(rig.run())[-1] - tip_of(rest)[-1]
    np.testing.assert_allclose(moved, np.array([12.0, -6.0, 9.0]) / 2000.0, atol=2e-5)
