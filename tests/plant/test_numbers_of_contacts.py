"""Numbers of contacts that vary from run to run act: rollouts against closed forms, and a session of tuning that finds
the friction of a log."""

import numpy as np
import pytest

from cosim import load_rig, tune
from tests.kit.rigs import rig_in

G = 9.81
BALL = """
name: ball
mechanism:
  bodies: [{name: ball, joint: fly, type: prismatic, axis: [0, 0, 1], mass: 2 kg}]
  contacts: [{name: floor, link: ball, sphere: 5 cm, with: ground, friction: 0.5, stiffness: 1e7}]
joints: {fly: {initial: {position: POSITION}}}
schedule: {step: 20 us, duration: 0.6 s}
"""
PUCK = """
name: puck
mechanism:
  bodies: [{name: puck, type: free, mass: 1 kg, inertia: [2e-3, 3e-3, 4e-3]}]
  contacts:
    - {name: floor, link: puck, box: [20 cm, 20 cm, 2 cm], with: ground, friction: FRICTION, stiffness: 1e5}
joints: {puck: {initial: {position: [0, 0, 0.01, 0, 0, 0, 1], velocity: [1, 0, 0, 0, 0, 0]}}}
schedule: {step: 1 ms, duration: 0.2 s}
"""


def test_stiffness_is_how_deep_a_ball_lies(tmp_path):
    rig = rig_in(tmp_path, BALL.replace("POSITION", "0.05"))
    stiffness = np.array([1e5, 1e6, 1e7])
    found = rig.rollouts({"mechanism.floor.stiffness": stiffness}, duration=2.0)
    np.testing.assert_allclose(-found.final["floor/gap"], 2 * G / stiffness, rtol=1e-6)


def test_restitution_is_how_high_a_ball_rebounds(tmp_path):
    rig = rig_in(tmp_path, BALL.replace("POSITION", "0.25"))
    restitution = np.array([0.2, 0.5, 0.8])
    found = rig.rollouts({"mechanism.floor.restitution": restitution}, keep="all", signals=["fly/position"])
    touched = np.argmin(found["fly/position"][:, :12500], axis=1)
    heights = [row[k:].max() - 0.05 for row, k in zip(found["fly/position"], touched, strict=True)]
    np.testing.assert_allclose(heights, 0.2 * restitution**2, rtol=0.08, atol=2e-4)


def test_friction_is_how_fast_a_puck_slows(tmp_path):
    rig = rig_in(tmp_path, PUCK.replace("FRICTION", "0.3"))
    friction = np.array([0.1, 0.2, 0.4])
    found = rig.rollouts({"mechanism.floor.friction": friction})
    np.testing.assert_allclose(found.final["puck.x/velocity"], 1.0 - friction * G * 0.2, rtol=2e-3)


def test_static_and_sliding_friction_are_numbers_of_their_own(tmp_path):
    rig = rig_in(tmp_path, PUCK.replace("FRICTION", "{static: 0.6, sliding: 0.3}"))
    sliding = np.array([0.1, 0.2, 0.4])
    found = rig.rollouts({"mechanism.floor.friction.sliding": sliding})
    np.testing.assert_allclose(found.final["puck.x/velocity"], 1.0 - sliding * G * 0.2, rtol=2e-3)


def test_tuning_finds_the_friction_of_a_log(tmp_path):
    log = rig_in(tmp_path, PUCK.replace("FRICTION", "0.24")).run()
    table = np.stack([log.t, log["puck.x/position"], log["puck.x/velocity"]], axis=1)
    header = "t,puck.x/position,puck.x/velocity"
    np.savetxt(tmp_path / "log.csv", table[1:], delimiter=",", header=header, comments="")
    (tmp_path / "rig.yaml").write_text(PUCK.replace("FRICTION", "0.5"))
    rig = load_rig(tmp_path / "rig.yaml")
    numbers = {"mechanism.floor.friction": "0.1..0.6"}
    session = tune(rig, numbers, ["misfit"], measured=tmp_path / "log.csv", optimiser="de", trials=240, seed=1)
    assert session.best.values[0] == pytest.approx(0.24, abs=0.01)
