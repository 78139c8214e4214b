"""The holding brake of a drive: when it opens and closes, what falls before it holds, and that it does not creep."""

import numpy as np
import pytest

from cosim.core.errors import InputError, InputErrors

MASS, ARM, INERTIA, ROTOR, RATIO, BRAKE = 4.0, 0.25, 0.05, 2e-4, 20.0, 25.0
RIG = f"""
mechanism:
  gravity: [0, 0, -9.81]
  bodies:
    - {{name: arm, joint: axis, axis: [0, 1, 0], mass: {MASS}, com: [{ARM}, 0, 0], inertia: [0.01, {INERTIA}, 0.05]}}
joints:
  axis:
    actuator:
      type: drive
      motor: {{type: dc_machine, resistance: 0.5, inductance: 2 mH, torque_constant: 0.05, inertia: {ROTOR}}}
      control: {{bandwidth: 700, current_limit: 20 A}}
      gears: [{{ratio: {RATIO}}}]
      loops:
        current: {{rate: 16000}}
        velocity: {{rate: 4000, gain: 5, integral_time: 20 ms}}
        position: {{rate: 1000, gain: 30}}
      brake: {{effort: {BRAKE} N*m, opens: 50 ms, closes: 40 ms}}
controllers: [{{type: feedforward_pd, kp: 0, kd: 0, trajectory: {{type: quintic, goal: 0, duration: 0.1 s}}}}]
events: [{{do: disable, of: axis, at: 0.2}}, {{do: enable, of: axis, at: 0.4}}]
schedule: {{step: 1 ms, duration: 0.6 s, integrator: rk4}}
"""


def test_the_brake_opens_and_closes_later_and_holds_without_creep(rig_of) -> None:
    run = rig_of(RIG).run()
    events = {event.name: event.t for event in run.events}
    assert events["the brake of 'axis' closes"] == pytest.approx(0.24, abs=1e-9)  # the last of two
    assert events["the brake of 'axis' opens"] == pytest.approx(0.45, abs=1e-9)
    at, q, v = run.t, run["axis/position"], run["axis/velocity"]
    closed = run["axis/brake"] > 0.5
    assert closed[:50].all() and not closed[52:240].any() and closed[242:450].all() and not closed[452:].any()
    # on and open, the drive holds the arm by its feedforward
    assert np.abs(q[at < 0.2]).max() < 1e-4
    # off and open, it falls: the current decays within a ms or two
    inertia = INERTIA + MASS * ARM**2 + ROTOR * RATIO**2
    fall = MASS * 9.81 * ARM / inertia
    assert v[240] == pytest.approx(0.04 * fall, rel=0.05) and (np.diff(q[205:240]) > 0.0).all()
    # the brake slips with its effort, then it holds exactly
    slip = (MASS * 9.81 * ARM * np.cos(q[245]) - BRAKE) / inertia
    assert (v[247] - v[244]) / 0.003 == pytest.approx(slip, rel=2e-3)
    held = (at > 0.24 + 1.1 * v[240] / -slip) & (at < 0.45)
    assert held.sum() > 100 and np.ptp(q[held]) == 0.0 and not v[held].any()
    # on again, the loops take over from the brake and bring the arm back
    assert abs(q[-1]) < 0.5 * abs(q[430])
    assert run.summary["energy"]["residual_relative"] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("setting", "message"),
    {
        "joints.axis.actuator.loops=null": (
            "a brake is switched at samples of the drive; give 'loops' too, or take 'brake' out"
        ),
        "joints.axis.actuator.brake.effort=0": "must be above 0 N*m, is 0 N*m",
        "joints.axis.actuator={type: ideal}": (
            "joint 'axis' has no simulated drive with sampled loops to disable; give its actuator of type drive 'loops'"
        ),
    }.items(),
)
def test_a_mistake_is_refused_with_its_fix(rig_of, setting: str, message: str) -> None:
    with pytest.raises((InputError, InputErrors)) as raised:
        _ = rig_of(RIG, setting).plant
    assert str(raised.value).splitlines()[0].endswith(f": {message}")


def test_the_sample_rig_follows_its_motion_and_stays_when_it_is_off(sample) -> None:
    run = sample("drives/servo_axis").run()
    moving, held = run.t < 1.8, run.t > 1.95
    assert np.ptp(run["axis/position"][moving]) > 1.0
    assert np.abs(run["axis/position"] - run["axis/reference_position"])[moving].max() < 2e-3
    assert np.ptp(run["axis/position"][held]) == 0.0 and not run["axis/velocity"][held].any()
    assert run.summary["energy"]["residual_relative"] == pytest.approx(0.0, abs=1e-6)
