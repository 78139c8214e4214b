"""Rigs with joints of several dofs: what is refused, controllers beside them, weight carried by loops."""

import numpy as np
import pytest

from cosim import load_rig
from cosim.core.errors import InputError, InputErrors
from tests.kit.refusals import raised

CRAFT = """
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: craft, joint: b, type: free, mass: 5 kg, inertia: [1, 1, 1]}
    - {name: arm, joint: a, axis: [0, 1, 0], origin: {xyz: [0.1, 0, 0]}, mass: 1 kg, com: [0.3, 0, 0],
       inertia: [0.01, 0.03, 0.03]}
"""
FOUR_BAR = """
mechanism:
  gravity: [0, -9.81, 0]
  bodies:
    - {name: crank, joint: A, mass: 1 kg, com: [0.25, 0, 0], inertia: [0.01, 0.02, 0.02]}
    - {name: rod, joint: B, origin: {xyz: [0.5, 0, 0]}, mass: 1 kg, com: [0.5, 0, 0], inertia: [0.01, 0.08, 0.08]}
    - {name: rocker, joint: D, parent: base, origin: {xyz: [1, 0, 0]}, mass: 1 kg, com: [0.4, 0, 0],
       inertia: [0.01, 0.05, 0.05]}
  loops:
    - {name: C, parent: rod, child: rocker, origin: {xyz: [1, 0, 0]}, child_origin: {xyz: [0.8, 0, 0]}%s}
joints: {A: {initial: {position: 60 deg}}, B: {initial: {guess: -40 deg}}, D: {initial: {guess: 80 deg}}}
"""


@pytest.fixture
def rig(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def read(text):
        (tmp_path / "rig.yaml").write_text(text)
        return load_rig("rig.yaml")

    return read


@pytest.mark.parametrize("kind", ["feedforward_pd", "pd_gravity"])
def test_a_model_based_controller_of_an_arm_on_a_rotating_spacecraft(rig, kind):
    """Momentum of the whole stays while the arm follows; the craft has turned, so its quaternion matters."""
    run = rig(
        CRAFT
        + f"""
joints: {{b: {{initial: {{velocity: [0, 0, 0, 0.3, 0.2, 0.1]}}}}}}
controllers:
  - {{type: {kind}, joints: [a], kp: 400, kd: 20, trajectory: {{type: quintic, goal: 45 deg, duration: 1 s}}}}
schedule: {{duration: 2 s}}
"""
    ).run()
    assert np.abs(run["b.rx/position"]).max() > 0.3
    assert abs(run["a/position"][-1] - np.pi / 4) < 1e-2
    if kind == "feedforward_pd":
        assert np.abs(run["a/reference_position"] - run["a/position"]).max() < 1e-4
    assert run.summary["energy"]["residual_relative"] < 1e-9


def test_gravity_compensation_passes_through_loops(rig):
    hold = "controllers: [{type: pd_gravity, joints: [A], kp: 20, kd: 2}]\nschedule: {duration: 3 s}\n"
    run = rig(FOUR_BAR % "" + hold).run()
    assert np.abs(run["A/position"] - np.radians(60)).max() < 1e-9
    assert run["A/effort"][-1] > 1.0


def test_dofs_belong_to_their_joint_and_not_to_a_name_prefix(rig):
    run = rig(
        """
mechanism:
  bodies:
    - {name: ball, joint: a, type: spherical, mass: 1 kg, com: [1, 0, 0], inertia: [0.1, 0.1, 0.1]}
    - {name: rod, joint: a_b, parent: base, axis: [0, 1, 0], mass: 1 kg, com: [1, 0, 0], inertia: [0.1, 0.1, 0.1]}
joints: {a: {latched: true}}
schedule: {duration: 0.2 s}
"""
    ).run()
    assert run["a_b/position"][-1] > 0.1
    assert not run["a.ry/position"].any()


MISTAKES = {
    "stops of a dof": CRAFT + "joints: {b.x: {stops: {lower: 0}}}",
    "a latched dof": CRAFT + "joints: {b.x: {latched: true}}",
    "a prescribed dof": CRAFT + "joints: {b.x: {prescribed: {type: sine, amplitude: 1, frequency: 1}}}",
    "an event of a dof": CRAFT + "events: [{do: latch, of: b.x, at: 1}]",
    "a controlled dof": CRAFT + "controllers: [{type: passthrough, joints: [b.x], kp: 1}]",
    "a name of a joint and of a dof": "name: r\nmechanism: {urdf: robot.urdf}\n",
    "no dofs": "mechanism:\n  bodies: [{name: a, type: fixed, mass: 1 kg, inertia: [1, 1, 1]}]\n",
    "a released joint with coordinates": FOUR_BAR % ", coordinates: true" + "events: [{do: release, of: C, at: 1}]\n",
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes(rig, tmp_path, said, case):
    """Names of a URDF may have a '.'."""
    joints = "".join(
        f'<link name="{name}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        f'</inertial></link><joint name="{name}" type="{kind}"><parent link="base"/><child link="{name}"/></joint>'
        for name, kind in (("a", "planar"), ("a.x", "continuous"))
    )
    (tmp_path / "robot.urdf").write_text(f'<robot name="r"><link name="base"/>{joints}</robot>')
    said(raised((InputError, InputErrors), rig, MISTAKES[case]))


def test_standstill_gives_no_warning(rig):
    """A residual that is rounding of nothing is none."""
    run = rig(CRAFT + "schedule: {duration: 0.1 s}\n").run()
    assert run.summary["energy"]["residual_relative"] == 0.0
