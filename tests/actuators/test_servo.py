"""The actuator `servo` against its equations written out again and integrated by scipy."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim.core.errors import InputError, InputErrors
from cosim.plugins.actuators import servo
from tests.kit.refusals import raised

KT, R, SUPPLY, KP, GAIN, ARMATURE = 0.4, 3.0, 7.4, 300.0, 3e-3, 2e-3
RIG = f"""
mechanism:
  gravity: [0, 0, -9.81]
  bodies: [{{name: arm, axis: [0, -1, 0], mass: 0.5 kg, com: [0, 0, -0.1], inertia: [1e-3, 1e-3, 1e-3], damping: 0.01}}]
joints:
  arm:
    actuator: {{type: servo, torque_constant: {KT}, resistance: {R}, supply_voltage: {SUPPLY}, kp: {KP}, gain: {GAIN},
               armature: {ARMATURE}}}
controllers: [{{name: goal, type: passthrough, kp: 1, trajectory: {{type: sine, amplitude: 1.2, frequency: 1.5}}}}]
schedule: {{step: 1 ms, duration: 1 s, integrator: rodas4}}
"""
INERTIA = 0.5 * 0.1**2 + 1e-3 + ARMATURE


def late(commands: np.ndarray, delay: float) -> np.ndarray:
    """The mean over each tick of 1 ms of the commands, held from tick to tick and so much later, by fine parts."""
    fine = 1000
    held = np.concatenate([np.zeros(100 * fine), np.repeat(commands, fine)])
    moved = np.roll(held, round(delay * 1e3 * fine))[100 * fine :]
    return moved.reshape(-1, fine).mean(axis=1)


def motion(goals: np.ndarray, on: np.ndarray, sampled: float | None = None) -> np.ndarray:
    """(ticks, 2) position and velocity at the ticks of 1 ms with these goals; sampled: the step of positions that a
    sampled loop reads."""
    rows, x = [], np.zeros(2)
    for goal, is_on in zip(goals, on, strict=True):
        rows.append(x)
        read = None if sampled is None else (round(x[0] / sampled) * sampled if sampled else x[0])

        def rates(t, x, goal=goal, is_on=is_on, read=read):
            q, v = x
            duty = min(max(GAIN * KP * (goal - (q if read is None else read)), -1.0), 1.0)
            torque = KT * (duty * SUPPLY - KT * v) / R if is_on else 0.0
            return [v, (torque - 0.5 * 9.81 * 0.1 * math.sin(q) - 0.01 * v) / INERTIA]

        x = solve_ivp(rates, (0.0, 1e-3), x, rtol=1e-9, atol=1e-11).y[:, -1]
    return np.array(rows)


@pytest.mark.parametrize(
    ("settings", "delay", "sampled"),
    [
        ({}, 0.0, None),
        ({"kp": 3 * KP}, 0.0, None),  # the duty at its limit
        ({"delay": "3 ms"}, 3e-3, None),
        ({"delay": "4.3 ms"}, 4.3e-3, None),
        ({"delay": "4.3 ms", "longest_delay": "20 ms"}, 4.3e-3, None),
        ({"loop": "sampled"}, 0.0, 0.0),
        ({"loop": "sampled", "resolution": "1 deg", "delay": "0.4 ms"}, 0.4e-3, math.radians(1.0)),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_it_moves_as_its_equations_written_out(rig_of, settings, delay, sampled, monkeypatch):
    if "kp" in settings:
        monkeypatch.setattr(f"{__name__}.KP", settings["kp"])
    given = [f"joints.arm.actuator.{key}={value}" for key, value in settings.items()]
    run = rig_of(RIG, *given).run("0.6 s")
    goals = late(1.2 * np.sin(2 * np.pi * 1.5 * run.t), delay)
    expected = motion(goals, np.ones(len(goals), bool), sampled)
    np.testing.assert_allclose(run["arm/position"], expected[:, 0], atol=2e-6)
    np.testing.assert_allclose(run["arm/velocity"], expected[:, 1], atol=2e-4)
    assert (np.abs(run["arm/duty"]).max() == 1.0) == ("kp" in settings)
    assert run.summary["energy"]["residual_relative"] < 1e-4


def test_switched_off_it_lets_go_and_then_holds_where_it_is(rig_of):
    off = "events=[{do: disable, of: arm, at: 0.1 s}, {do: enable, of: arm, at: 0.4 s}]"
    run = rig_of(RIG, off, "joints.arm.actuator.max_speed=2").run("0.6 s")
    is_off = (run.t > 0.1005) & (run.t < 0.3995)
    for name in ("current", "duty", "electrical_power"):
        assert not run[f"arm/{name}"][is_off].any()
    assert run["arm/current"][run.t > 0.41].any()
    # on again, its profile goes from where it is
    k = int(np.argmax(run.t > 0.4015))
    assert abs(run["arm/duty"][k]) < GAIN * KP * (2.0 * 3e-3 + abs(run["arm/velocity"][k]) * 3e-3)


def test_the_profile_has_its_greatest_speed(rig_of):
    step = "controllers.goal.trajectory={type: quintic, goal: 0.3, duration: 10 ms}"  # soon ahead of the profile
    run = rig_of(RIG, step, "joints.arm.actuator.max_speed=1").run("0.5 s")
    goals = np.minimum(np.arange(len(run.t)) * 1e-3, 0.3)
    expected = motion(goals, np.ones(len(goals), bool))
    np.testing.assert_allclose(run["arm/position"], expected[:, 0], atol=2e-6)


def test_rollouts_have_each_number(rig_of):
    """Side by side, runs with other numbers are those of rigs with these numbers, and each number has an effect."""
    settings = ["joints.arm.actuator.delay=4.3 ms", "joints.arm.actuator.longest_delay=20 ms",
                "joints.arm.actuator.max_speed=5"]  # fmt: skip
    rig = rig_of(RIG, *settings)
    values = {"torque_constant": 0.44, "resistance": 3.3, "supply_voltage": 7.0, "kp": 330.0, "gain": 3.3e-3,
              "armature": 2.5e-3, "delay": 7.7e-3, "max_speed": 4.0}  # fmt: skip
    for key, value in values.items():
        name = f"joints.arm.actuator.{key}"
        own = getattr(rig.spec.joints["arm"].actuator.params, key)
        batch = rig.rollouts({name: [own, value]}, duration="0.2 s", signals=["arm/position"])["arm/position"]
        other = rig_of(RIG, *settings, f"{name}={value}").run("0.2 s")
        np.testing.assert_allclose(batch[1], other["arm/position"], atol=1e-13)
        assert np.abs(batch[1] - batch[0]).max() > 1e-5


def test_a_run_has_an_exact_derivative(rig_of):
    rig = rig_of(RIG, "joints.arm.actuator.delay=4.3 ms", "joints.arm.actuator.longest_delay=20 ms")
    names = [f"joints.arm.actuator.{key}" for key in ("torque_constant", "resistance", "kp", "delay", "armature")]
    found = rig.gradient(["error_rms"], names, duration="0.2 s")
    for name in names:
        own = getattr(rig.spec.joints["arm"].actuator.params, name.rpartition(".")[2])
        h = 1e-5 * own
        batch = rig.rollouts({name: [own - h, own + h]}, duration="0.2 s", metrics=["error_rms"])
        below, above = batch.metrics["error_rms"][:, 0]
        assert found[name] == pytest.approx((above - below) / (2.0 * h), rel=1e-4)


def test_a_delay_shifts_a_ramp_by_itself():
    """Of commands along a line the goal is the line so much earlier, less the half sample of the mean, exactly."""
    for delay in (0.0, 0.3e-3, 1e-3, 2.75e-3):
        block = servo.load(servo.Params(0.4, 3.0, 7.4, 300.0, delay=delay))
        x = block.initial(0.0, 0.0)
        for n in range(12):
            u = {"request": 0.0, "position": 0.0, "velocity": 0.0, "setpoint_position": 5.0 * n * 1e-3, "enabled": 1.0}
            x = x | block.update(n * 1e-3, block.params, x, u)
        assert float(x["goal"]) == pytest.approx(5.0 * (11e-3 - delay), rel=1e-12)


MISTAKES = {
    "a prismatic joint": "mechanism.bodies.0.type=prismatic",
    "steps of a continuous loop": "joints.arm.actuator.resolution=1 deg",
    "a delay above the longest": "joints.arm.actuator={type: servo, torque_constant: 1, resistance: 1, kp: 1,"
    " supply_voltage: 1, delay: 5 ms, longest_delay: 2 ms}",
    "a long delay": "joints.arm.actuator.delay=2 s",
    "a tick between samples": "schedule.step=1.5 ms",
    "a duty above 1": "joints.arm.actuator.max_duty=1.5",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused(rig_of, name, said):
    said(str(raised(InputErrors, rig_of, RIG, MISTAKES[name])))


def test_a_run_cannot_have_a_delay_for_which_no_commands_are_kept(rig_of):
    rig = rig_of(RIG, "joints.arm.actuator.delay=4.3 ms")
    line = str(raised(InputError, rig.rollouts, {"joints.arm.actuator.delay": [2e-3, 8e-3]}, duration=0.1))
    assert "commands are kept for the delay of the rig alone; give longest_delay" in line


# --- gears with play ---

PLAY, STIFFNESS = 0.03, 150.0  # rad, N m/rad
ELASTIC = [f"joints.arm.actuator.play={PLAY} rad", f"joints.arm.actuator.gear_stiffness={STIFFNESS}"]


def motion_with_play(goals: np.ndarray) -> np.ndarray:
    """(ticks, 4) position and velocity of the arm and of the rotor."""
    damping = 0.6 * math.sqrt(STIFFNESS * ARMATURE)
    of_arm = INERTIA - ARMATURE
    rows, x = [], np.zeros(4)
    for goal in goals:
        rows.append(x)

        def rates(t, x, goal=goal):
            q, v, a, w = x
            gap = a - q
            pressed = gap - min(max(gap, -0.5 * PLAY), 0.5 * PLAY)
            torque = STIFFNESS * pressed + damping * (w - v)
            torque = max(torque, 0.0) if pressed > 0.0 else min(torque, 0.0) if pressed < 0.0 else 0.0
            duty = min(max(GAIN * KP * (goal - q), -1.0), 1.0)
            motor = KT * (duty * SUPPLY - KT * w) / R
            return [v, (torque - 0.5 * 9.81 * 0.1 * math.sin(q) - 0.01 * v) / of_arm, w, (motor - torque) / ARMATURE]

        x = solve_ivp(rates, (0.0, 1e-3), x, rtol=1e-9, atol=1e-11, max_step=1e-4).y[:, -1]
    return np.array(rows)


def test_the_rotor_moves_freely_in_the_play_of_its_gears(rig_of):
    run = rig_of(RIG, *ELASTIC, "schedule.integrator=rk4", "schedule.substeps=20").run("0.5 s")
    expected = motion_with_play(1.2 * np.sin(2 * np.pi * 1.5 * run.t))
    np.testing.assert_allclose(run["arm/position"], expected[:, 0], atol=3e-4)
    # it is on both flanks, and between them
    gap = expected[:, 2] - expected[:, 0]
    assert gap.min() < -0.5 * PLAY and gap.max() > 0.5 * PLAY
    assert (np.abs(gap) < 0.4 * PLAY).any()
    assert run.summary["energy"]["residual_relative"] < 1e-3


def test_stiff_gears_without_play_are_rigid_ones(rig_of):
    stiff = ["joints.arm.actuator.gear_stiffness=5000", "schedule.integrator=rk4"]
    elastic, rigid = (rig_of(RIG, *settings).run("0.4 s")["arm/position"] for settings in (stiff, []))
    np.testing.assert_allclose(elastic, rigid, atol=2e-3)
    assert np.abs(elastic - rigid).max() > 1e-9


def test_steps_are_short_enough_for_the_gears(rig_of):
    assert rig_of(RIG, *ELASTIC).spec.schedule.substeps == math.ceil(1e-3 / (math.sqrt(ARMATURE / STIFFNESS) / 4))


def test_a_load_goes_through_the_play_when_its_weight_changes_sides(rig_of):
    """Beyond the upright position the load pulls at the other flank: the servo's error changes by about the play."""
    slow = "controllers.goal.trajectory={type: quintic, goal: 4.2, duration: 6 s, delay: 0.2 s}"
    positions = [rig_of(RIG, slow, *settings).run("6.5 s")["arm/position"] for settings in (ELASTIC, ELASTIC[1:])]
    apart = positions[0] - positions[1]
    before, after = apart[positions[1] < 2.8], apart[positions[1] > 3.5]
    assert np.median(before) < 0.0 < np.median(after)
    assert np.abs(apart).max() < PLAY


@pytest.mark.parametrize(
    "settings",
    [["play=0.1 rad"], ["gear_damping=1"], ["gear_stiffness=100", "armature=0"], ["gear_stiffness=0"]],
    ids=lambda value: "-".join(value),
)
def test_gears_that_are_not_complete(rig_of, said, settings):
    said(raised(InputErrors, rig_of, RIG, *[f"joints.arm.actuator.{setting}" for setting in settings]))
