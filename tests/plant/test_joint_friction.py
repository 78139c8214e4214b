"""Friction laws of joints against the published experiments with the LuGre model, closed forms and scipy."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim.core.errors import InputErrors
from tests.kit.refusals import raised
from tests.kit.rigs import controller

BLOCK = """
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: block, type: prismatic, axis: [1, 0, 0], mass: 1 kg}]
joints: {block: {friction: {coulomb: 1, static: 1.5, stribeck_speed: 1 mm/s, viscous: 0.4, bristle_stiffness: 1e5,
                            bristle_damping: 316.2}}}
schedule: {step: 1 ms, duration: 1 s, integrator: rodas4}
"""
PUSHED = BLOCK + "controllers: [{type: push.py, name: push}]\n"
CONSTANT = controller("effort = ops.array([p.size])")
RAMP = controller("effort = p.size * 1e-3 * n")  # p.size newtons per second, held over each millisecond
# the block on a slope of 20 degrees
SLOPE = BLOCK.replace("gravity: [0, 0, 0]", "gravity: [3.355, 0, 0]")


def bristles(pull, times, start=(0.0, 0.0, 0.0), static=1.5):
    """(k, 3) position, velocity and deflection of the block under the force pull(t, x), written out again."""

    def rates(t, y):
        x, v, z = y
        bristle = v - 1e5 * abs(v) / (1.0 + (static - 1.0) * np.exp(-((v / 1e-3) ** 2))) * z
        return [v, pull(t, x) - (1e5 * z + 316.2 * bristle + 0.4 * v), bristle]

    found = solve_ivp(rates, (0.0, times[-1]), start, "Radau", times, rtol=1e-8, atol=1e-11)
    assert found.success
    return found.y.T


def test_a_pulled_block_sticks_and_slips_as_published(sample):
    """At the numbers of Canudas de Wit et al. 1995: it sticks until the spring pulls with the static friction."""
    run = sample("mechanisms/stick_slip", "schedule.duration=11 s").run()
    expected = bristles(lambda t, x: 2.0 * (0.1 * t - 0.0005 if t > 0.01 else 5.0 * t * t) - 2.0 * x, run.t)
    np.testing.assert_allclose(run["block/position"], expected[:, 0], atol=2e-7)
    np.testing.assert_allclose(run["block/velocity"], expected[:, 1], atol=1e-5)
    moving = run["block/velocity"] > 0.01
    assert run.t[moving][[0, -1]] == pytest.approx([7.46, 10.23], abs=0.01)
    assert run["block/friction_effort"].min() == pytest.approx(-1.48, abs=0.01)
    assert run.summary["energy"]["residual_relative"] < 1e-6


def test_the_faster_the_force_rises_the_less_breaks_the_block_away(rig_of):
    """The force of breakaway of Canudas de Wit et al. 1995."""
    broken = []
    for rate in (5.0, 50.0):
        run = rig_of(PUSHED, f"controllers.push.size={rate}", push=RAMP).run(1.2 * 1.5 / rate)
        expected = bristles(lambda t, x, rate=rate: rate * (t - 0.0005), run.t)  # the mean of the steps
        np.testing.assert_allclose(run["block/position"], expected[:, 0], atol=1e-6)
        broken.append(float(run["block/effort"][np.argmax(run["block/velocity"] > 1e-3)]))
    assert 1.5 > broken[0] > broken[1] + 0.02


@pytest.mark.parametrize("integrator", ["rosenbrock", "rodas4", "multirate"])
def test_what_friction_holds_does_not_move(rig_of, integrator):
    """3.355 N on a block that 3.6 N hold: for 20 s from rest, and after it has come to rest."""
    held = [
        f"schedule.integrator={integrator}",
        "joints.block.friction.coulomb=3.5",
        "joints.block.friction.static=3.6",
    ]
    run = rig_of(SLOPE, *held, "keep={every: 100}").run("20 s")
    assert np.abs(run["block/position"]).max() < 1e-12
    assert run["block/friction_effort"] == pytest.approx(-3.355, rel=1e-12)
    run = rig_of(SLOPE, *held, "joints.block.initial={velocity: 50 mm/s}", "keep={every: 100}").run("22 s")
    slid = run["block/position"]
    assert slid[-1] > 0.005 and np.ptp(slid[run.t >= 2.0]) < 1e-9


def test_too_weak_friction_starts_to_slide_at_once(rig_of):
    run = rig_of(SLOPE, "joints.block.friction.static=1.2").run(0.2)
    assert run["block/friction_effort"][0] == pytest.approx(-1.2)
    expected = bristles(lambda t, x: 3.355, run.t, (0.0, 0.0, 1.2e-5), static=1.2)
    np.testing.assert_allclose(run["block/position"], expected[:, 0], atol=1e-5)
    np.testing.assert_allclose(run["block/velocity"], expected[:, 1], atol=1e-4)


def test_a_sliding_block_starts_with_the_friction_of_its_speed(rig_of):
    run = rig_of(BLOCK, "joints.block.initial={velocity: 1}").run(0.01)
    assert run["block/acceleration"][:2] == pytest.approx([-1.4, -1.4], abs=1e-3)


def test_energy_is_stored_in_bristles_and_lost_as_heat(rig_of):
    precise = ["schedule.substeps=auto", "schedule.tolerance=1e-9", "schedule.step=0.2 ms"]
    run = rig_of(BLOCK, *precise, "joints.block.initial={velocity: 0.2}").run("0.5 s")
    energy, stored = run.summary["energy"], run["energy/stored"]
    # the bristles of the block hold no load at the end; at the start they slide
    assert stored[0] == pytest.approx(0.5 * 0.2**2 + 0.5 * 1.0**2 / 1e5, rel=1e-9)
    assert energy["dissipated"] == pytest.approx(stored[0], rel=1e-5)
    assert energy["residual_relative"] < 1e-6
    assert np.all(np.diff(run["energy/dissipated"]) > -1e-9)


@pytest.mark.parametrize("model", ["smooth", "lugre"])
def test_a_prescribed_joint_needs_the_effort_of_its_friction(rig_of, model):
    moved = BLOCK.replace(
        "{friction", "{prescribed: {type: trapezoidal, goal: 1, max_velocity: 0.3, max_acceleration: 3}, friction"
    )
    run = rig_of(moved, f"joints.block.friction.model={model}").run("1 s")
    cruise = (run.t > 0.2) & (run.t < 0.9)
    sliding = 1.0 if model == "lugre" else 0.3 / np.hypot(0.3, 0.01)
    np.testing.assert_allclose(run["block/effort"][cruise], sliding + 0.4 * 0.3, rtol=1e-6)
    assert run.summary["energy"]["residual_relative"] < 1e-3  # steps end where the acceleration jumps


def test_friction_grows_with_the_effort_of_the_drive(rig_of):
    of_load = "joints.block.friction.load_friction=0.2"
    run = rig_of(PUSHED, of_load, "controllers.push.size=4", push=CONSTANT).run("1 s")
    fast = run["block/velocity"] > 0.1
    friction = 1.0 + 0.2 * 4.0 + 0.4 * run["block/velocity"]
    np.testing.assert_allclose(-run["block/friction_effort"][fast], friction[fast], rtol=1e-6)
    slow = {"push": controller("effort = ops.minimum(p.size, 2e-3 * n)")}
    held = rig_of(PUSHED, of_load, "controllers.push.size=1.7", **slow).run("1.5 s")  # less than 1.5 N + 0.2 · 1.7 N
    assert held["block/velocity"][-1] == pytest.approx(0.0, abs=1e-9)
    assert rig_of(PUSHED, "controllers.push.size=1.7", **slow).run("1.5 s")["block/velocity"][-1] > 0.1


def test_the_law_replaces_coulomb_friction_and_adds_to_damping(rig_of):
    text = BLOCK.replace("mass: 1 kg", "mass: 1 kg, friction: 7, damping: 3")
    rig = rig_of(text, "joints.block.friction.model=stribeck", "schedule.integrator=rk4")
    sign = 0.5 / np.hypot(0.5, 0.01)
    assert rig.plant.model.friction_effort([0.5]) == pytest.approx([3.4 * 0.5 + 1.0 * sign], rel=1e-12)


def test_controllers_compensate_it(rig_of):
    """Feedforward without gains."""
    text = BLOCK + (
        "controllers: [{name: arm, type: feedforward_pd, kp: 0, kd: 0,"
        " trajectory: {type: quintic, goal: 0.5, duration: 1}}]\n"
    )
    errors = {}
    for compensated in ("true", "false"):
        run = rig_of(text, "joints.block.friction.model=stribeck", f"controllers.arm.friction={compensated}").run("1 s")
        errors[compensated] = np.abs(run["block/position"] - run["block/reference_position"]).max()
    assert errors["true"] < 1e-3 < 0.1 < errors["false"]


def test_dofs_of_one_joint_have_laws_of_their_own(rig_of):
    text = """
    mechanism:
      gravity: [0, 0, 0]
      bodies: [{name: puck, type: planar, mass: 1 kg, inertia: [1, 1, 1], friction: 0.5}]
    joints:
      puck.x: {initial: {velocity: 1}, friction: {coulomb: 2, viscous: 0.1}}
      puck.y: {initial: {velocity: 1}}
      puck.angle: {initial: {velocity: 0}, friction: {model: smooth, coulomb: 3}}
    schedule: {step: 1 ms, duration: 1 s, integrator: rodas4}
    """
    rig = rig_of(text)
    found = rig.plant.model.friction_effort([1.0, 1.0, 1.0])
    sign = 1.0 / np.hypot(1.0, 0.01)
    assert found == pytest.approx([2.0 * sign + 0.1, 0.5 * sign, 3.0 * sign], rel=1e-12)
    run = rig.run("0.1 s")
    assert run["puck.x/acceleration"][0] == pytest.approx(-2.1, rel=1e-9)
    assert "puck.y/friction_effort" not in run.signals and "mechanism.puck.friction" in rig.numbers


def test_rollouts_equal_runs_of_rigs_with_their_numbers(rig_of):
    """Bristles hold from the start in each run, whatever its mass and stiffness are."""
    values = {
        "joints.block.friction.bristle_stiffness": [1e5, 2e5, 1e5],
        "joints.block.friction.static": [3.5, 3.5, 1.1],
        "mechanism.block.mass": [1.0, 1.02, 0.9],
    }
    start = np.array([0.0, 0.0, 0.1])
    batch = rig_of(SLOPE, "joints.block.friction.static=3.5").rollouts(
        values, duration="0.2 s", initial={"block/velocity": start}, signals=["block/position"]
    )
    keys = ("joints.block.friction.bristle_stiffness", "joints.block.friction.static", "mechanism.bodies.0.mass")
    for k in range(3):
        numbers = [f"{key}={value[k]}" for key, value in zip(keys, values.values(), strict=True)]
        run = rig_of(SLOPE, *numbers, f"joints.block.initial.velocity={start[k]}").run("0.2 s")
        np.testing.assert_allclose(batch["block/position"][k], run["block/position"], atol=1e-14)
    assert np.abs(batch["block/position"][:2]).max() < 1e-12 < 0.01 < batch["block/position"][2, -1]


MISTAKES = """coulomb=0
viscous=-1
load_friction=-1
coulomb=1 N*m
model=dahl
load_friction=0.1""".splitlines()


@pytest.mark.parametrize("setting", MISTAKES)
def test_a_mistake_in_a_law_of_friction(rig_of, setting, said):
    line = str(raised(InputErrors, rig_of, BLOCK, f"joints.block.friction.{setting}"))
    assert line.startswith(f"--set joints.block.friction.{setting}: ")
    said(line)


@pytest.mark.parametrize("change", [("rodas4", "rk4"), ("static: 1.5", "static: 0.5")], ids=str)
def test_numbers_that_do_not_fit_together(rig_of, change, said):
    line = str(raised(InputErrors, rig_of, BLOCK.replace(*change)))
    assert "rig.yaml:5 joints.block.friction: " in line
    said(line)


def test_a_joint_of_a_closed_loop_has_friction(sample):
    law = "joints.crank.friction={coulomb: 0.01, static: 0.02, bristle_damping: 1}"
    run = sample("mechanisms/four_bar", law, "schedule.integrator=rodas4").run("1 s")
    turning = np.abs(run["crank/velocity"]) > 1.0
    np.testing.assert_allclose(-run["crank/friction_effort"][turning], 0.01 * np.sign(run["crank/velocity"][turning]))
    assert turning.sum() > 500 and run.summary["energy"]["residual_relative"] < 1e-6
