"""Robots with legs under PD drives stand, land and agree with MuJoCo where its contacts are hard."""

import mujoco
import numpy as np
import pytest

from benchmarks.legged_robots import ANYMAL, SOLO, TALOS
from cosim import load_rig
from cosim.mechanics.multibody.contact.contact_solver import TOLERANCE

G = 9.81
SPAN = 0.2  # s, of the slip while standing

# the root link of ANYmal has next to no inertia
pytestmark = pytest.mark.filterwarnings("ignore:.*link 'base'. the inertia is physically impossible")


@pytest.fixture
def run(tmp_path):
    def run(robot, clearance, duration, step=1e-3, stiffness="rigid"):
        found = load_rig(robot.rig(tmp_path, clearance, step, duration, stiffness)).run()
        assert np.max(found["contacts/residual"]) <= TOLERANCE
        return found

    return run


def of_feet(robot, run, signal):
    """(feet, ticks)"""
    return np.array([run[f"foot_{k}/{signal}"] for k in range(len(robot.feet))])


@pytest.mark.parametrize("stiffness", ["rigid", "1e6"])
@pytest.mark.parametrize("robot", [SOLO, ANYMAL], ids=lambda robot: robot.name)
def test_a_quadruped_stands_still(run, robot, stiffness):
    found = run(robot, 0.0, 6.0, stiffness=stiffness)
    last = found.t >= 6.0 - SPAN
    slip = of_feet(robot, found, "slip")[:, last].sum(axis=1) * 1e-3
    assert slip.max() <= 1e-12
    force = of_feet(robot, found, "normal_force")[:, -1]
    assert force.sum() == pytest.approx(robot.mass * G, rel=1e-8)
    gap = of_feet(robot, found, "gap")[:, -1]
    expected = 0.0 if stiffness == "rigid" else -force / 1e6
    np.testing.assert_allclose(gap, expected, rtol=0, atol=1e-12)
    assert np.all(of_feet(robot, found, "state")[:, last] == 1.0)


@pytest.mark.parametrize("robot", [SOLO, ANYMAL], ids=lambda robot: robot.name)
def test_a_quadruped_lands(run, robot):
    found = run(robot, 0.3, 3.0)
    assert of_feet(robot, found, "gap").min() >= -5e-4
    assert of_feet(robot, found, "normal_force")[:, -1].sum() == pytest.approx(robot.mass * G, rel=1e-6)
    assert found["contacts/passes"].max() <= 4
    assert found.summary["energy"]["residual_relative"] < 3e-3  # drives do work at the mean velocity of an impact


@pytest.mark.parametrize("clearance", [0.0, 0.3])
def test_a_humanoid_on_eight_points(run, clearance):
    """No step of the solver is left unconverged, see `run`; on feet of four points each, which are redundant."""
    found = run(TALOS, clearance, 4.0, stiffness="1e7")
    assert len(found.t) == 4001
    assert of_feet(TALOS, found, "gap").min() >= -6e-4
    # it still sways
    assert of_feet(TALOS, found, "normal_force")[:, -1].sum() == pytest.approx(TALOS.mass * G, rel=2e-3)


# --- two programs, one limit --------------------------------------------------------------------------------

DROP, END = 0.05, 0.4  # m, s


def base(found):
    return np.array([found[f"root_joint.{axis}/position"][-1] for axis in "xyz"])


def in_mujoco(step):
    """The base of the same drop in MuJoCo, with contacts as hard as the step allows."""
    model, data = SOLO.mujoco(step, "IMPLICITFAST", "ELLIPTIC", hard=True)
    SOLO.place(model, data, DROP)
    mujoco.mj_step(model, data, round(END / step))
    return data.qpos[:3].copy()


@pytest.fixture
def finest(run):
    return base(run(SOLO, DROP, END, 12.5e-6))


def test_a_drop_converges_with_order_one(run, finest):
    steps = np.array([4e-3, 1e-3, 2.5e-4])
    errors = [np.abs(base(run(SOLO, DROP, END, step)) - finest).max() for step in steps]
    assert errors[0] <= 2e-5
    order, _ = np.polyfit(np.log(steps), np.log(errors), 1)
    assert order > 0.9


def test_hard_contacts_of_mujoco_converge_to_the_same_drop(finest):
    errors = [np.abs(in_mujoco(step) - finest).max() for step in (1e-3, 2.5e-4, 1.25e-4)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] <= 3e-6


# --- side by side -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("robot", "stiffness"), [(SOLO, "rigid"), (TALOS, "1e7")], ids=["solo12", "talos"])
def test_drops_in_simd_lanes_are_single_drops_to_the_bit(tmp_path, robot, stiffness):
    """From heights so far apart that some lanes fly while others are on the ground."""
    clearances = np.linspace(0.0, 0.15, 11)
    heights = np.array([robot.base_height(clearance) for clearance in clearances])
    rig = load_rig(robot.rig(tmp_path, 0.0, duration=0.3, stiffness=stiffness))
    batch = rig.rollouts(initial={"root_joint.z/position": heights})
    for k in (0, 4, 10):
        single = load_rig(robot.rig(tmp_path, clearances[k], duration=0.3, stiffness=stiffness)).run()
        assert single["root_joint.z/position"][0] == heights[k]
        assert np.any(single["foot_0/normal_force"] > 0.0)
        assert {name: float(single[name][-1]) for name in single.signals} == {
            name: float(batch.final[name][k]) for name in single.signals
        }
