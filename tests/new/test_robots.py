"""Robots of the package example-robot-data run the first time; `python -m tests.kit.first_runs` runs all of them."""

import pytest

from cosim import load_rig
from cosim.apps.new.command import new_rig
from cosim.errors import InputError, RunWarning
from tests.kit.first_runs import judged, travels
from tests.oracle.conftest import ROBOTS

# an arm with a prismatic gripper and mimics, a quadruped, an arm with friction, limits that are all 0
ROBOTS_THAT_RUN = {
    "panda_description/urdf/panda.urdf": 8,
    "anymal_c_simple_description/urdf/anymal.urdf": 12,
    "talos_data/robots/talos_left_arm.urdf": 7,
    "double_pendulum_description/urdf/double_pendulum.urdf": 2,
}


@pytest.mark.parametrize("robot", ROBOTS_THAT_RUN)
def test_the_first_run_tracks(robot, tmp_path):
    rig = tmp_path / "first.yaml"
    new_rig(rig, str(ROBOTS / robot))
    found = judged(robot, 0.0, load_rig(rig).run(duration=1.0).summary, travels(rig))
    assert (found.problem, found.joints) == ("", ROBOTS_THAT_RUN[robot])
    assert found.error < 5e-3


def test_a_humanoid_has_a_rig(tmp_path):
    """TALOS: friction that is strong for the inertia of arms and grippers, starts at limits, mimics."""
    rig = tmp_path / "talos.yaml"
    new_rig(rig, str(ROBOTS / "talos_data/robots/talos_full_v2.urdf"))
    spec = load_rig(rig).spec
    assert len(travels(rig)) == 32
    motors = [name for name, joint in spec.joints.items() if joint.actuator.name == "dc_motor"]
    assert {"gripper_left_joint", "arm_right_7_joint"} <= set(motors) and "leg_left_1_joint" not in motors
    assert (spec.schedule.integrator, spec.schedule.step_ns) == ("rk4", 500_000)


CASSIE = "cassie_description/robots/cassie_{}.sdf"


def test_legs_with_loops_that_are_drawn_beyond_their_limits_track(tmp_path):
    """Cassie: of each leg the knee and the heel spring leave two motions, and the foot leaves one."""
    rig = tmp_path / "cassie.yaml"
    new_rig(rig, str(ROBOTS / CASSIE.format("wo_gearbox_spring")))
    with pytest.warns(RunWarning, match="contacts of the file are not taken|CassiePlugin"):
        loaded = load_rig(rig)
    summary, travel = loaded.run(duration=0.5).summary, travels(rig)
    assert summary["guard"] == {} and len(travel) == 1 + 2 * (3 + 2 + 1)
    # the stiff springs of the heels move with the knees, and the controller meets them a tick late
    assert all((summary["joints"][name]["error_max"] or 1.0) < 0.05 * way for name, way in travel.items())


def test_a_loop_that_is_drawn_where_it_cannot_be_is_refused(tmp_path):
    """The axes of the foot of this Cassie are no parallelogram, and its joints are drawn beyond their limits."""
    with pytest.raises(InputError, match="'right-plantar-foot-joint': no position is found in which it is closed"):
        new_rig(tmp_path / "cassie.yaml", str(ROBOTS / CASSIE.format("simple")))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, ""),
        ({"guard": {"j": {"velocity": {}}}}, "limits of j"),
        ({"joints": {"j": {"error_max": 0.003}}}, "'j' is off by 3.0% of its travel"),
        ({"energy": {"residual_relative": 0.02}}, "energy residual 2.0e-02"),
    ],
)
def test_a_run_is_judged_by_limits_errors_and_energy(change, problem):
    summary = {"guard": {}, "joints": {"j": {"error_max": 0.001}}, "energy": {"residual_relative": 1e-6}}
    found = judged("r", 2.0, {**summary, **change}, {"j": 0.1})
    assert (found.problem, found.joints, found.seconds) == (problem, 1, 2.0)
