"""Brakes whose effort is a table over a position or velocity: against closed forms."""

import math

import numpy as np
import pytest

from tests.plant.event_runs import SLIDER, EventRun, M, with_events

# gravity pulls the block along x with 6 N; the lever turns by sin ω t, `witness` marks the instant of an event
OMEGA = math.pi / 2
SLOPE = """
mechanism:
  gravity: [2, 0, 0]
  bodies:
    - {{name: a, {joint}, mass: 3 kg, inertia: [1, 1, 1]}}
    - {{name: lever, parent: base, mass: 1 kg, inertia: [1, 1, 1]}}
    - {{name: witness, type: prismatic, axis: [0, 1, 0], parent: base, mass: 1 kg}}
joints: {{lever: {{prescribed: {{type: sine, amplitude: 1 rad, frequency: 0.25}}}}}}
"""
ONE, SEVERAL = "type: prismatic, axis: [1, 0, 0]", "type: planar"


def assert_energy_balances(ran, atol=1e-9):
    lost = ran["energy/stored"] + ran["energy/dissipated"] - ran["energy/work"]
    np.testing.assert_allclose(lost, lost[0], atol=atol)


@pytest.mark.parametrize(("joint", "dof"), [(ONE, "a"), (SEVERAL, "a.x")])
def test_a_block_slips_when_a_lever_has_released_its_brake(rig_of, joint, dof):
    """The effort 10 − 10 sin ω t falls to the pull of 6 N where the sine is 0.4, between two steps."""
    events = [
        "do: brake, of: a, efforts: [10, 0], over: {signal: lever/position, values: [0 deg, 1]}, at: 0",
        f"do: latch, of: witness, when: {{signal: {dof}/brake_slip, above: 0.5}}",
    ]
    text = with_events(events, SLOPE.format(joint=joint), "step: 7 ms, duration: 0.98 s")
    ran = EventRun(rig_of(text))
    slips = math.asin(0.4) / OMEGA
    assert ran.event("latch witness")[:2] == (1, pytest.approx(slips, abs=1e-9))
    t = np.maximum(ran.t, slips)
    effort = 10 - 10 * np.sin(OMEGA * t)
    speed = (-4 * (t - slips) + 10 / OMEGA * (math.cos(OMEGA * slips) - np.cos(OMEGA * t))) / M
    from_brake = (math.cos(OMEGA * slips) * (t - slips) - (np.sin(OMEGA * t) - 0.4) / OMEGA) / OMEGA
    np.testing.assert_allclose(ran[f"{dof}/velocity"], speed, atol=1e-9)
    np.testing.assert_allclose(ran[f"{dof}/position"], (-2 * (t - slips) ** 2 + 10 * from_brake) / M, atol=1e-9)
    np.testing.assert_allclose(ran[f"{dof}/brake_slip"], ran.t > slips)
    np.testing.assert_allclose(ran[f"{dof}/holding_effort"][1:], -np.where(ran.t > slips, effort, 6)[1:], atol=1e-8)
    assert_energy_balances(ran)


def test_the_compiled_and_the_interpreted_run_agree(rig_of):
    event = "do: brake, of: a, efforts: [10, 1, 4], over: {signal: lever/position, values: [0, 0.7, 0.9]}, at: 0"
    text = with_events([event], SLOPE.format(joint=SEVERAL), "step: 40 ms, duration: 0.4 s")
    compiled, interpreted = (EventRun(rig_of(text, interpret=interpret)) for interpret in (False, True))
    np.testing.assert_allclose(compiled.rows, interpreted.rows, rtol=1e-9, atol=1e-11)


def test_a_table_is_passed_in_both_directions(run_of):
    """The effort has bends at 0.3 and 0.8 rad; the lever passes each of them up and down. A step of 20 ms across a
    bend would be wrong by 3e-5 m/s."""
    event = "do: brake, of: a, efforts: [5, 1, 4], over: {signal: lever/position, values: [0, 0.3, 0.8]}, at: 0"
    ran = run_of([event], SLOPE.format(joint=ONE), "step: 20 ms, duration: 2.4 s")

    def integral(t):
        """∫ effort dt between bends, which are at asin(level)/ω and its mirror image."""
        grid = np.linspace(0, t, 400_001)
        return np.trapezoid(np.interp(np.sin(OMEGA * grid), [0, 0.3, 0.8], [5, 1, 4]), grid)

    for k in (40, 60, 80, 110, 120):
        assert ran["a/velocity"][k] == pytest.approx((6 * ran.t[k] - integral(ran.t[k])) / M, abs=2e-9)
    assert_energy_balances(ran)


@pytest.mark.parametrize(
    ("side", "schedule", "atol"),
    [
        (1, "step: 1 ms, duration: 1.5 s", 1e-9),
        (-1, "step: 7 ms, duration: 1.505 s", 1e-8),
        (1, "step: 1 ms, duration: 1.5 s, integrator: rosenbrock", 1e-5),
    ],
)
def test_stribeck_friction(run_of, side, schedule, atol):
    """3 kg, pulled with 2 N, slow down by 4 N of friction, which rises below 0.5 m/s to 10 N at rest: there
    3 v̇ = 2 − 10 + 12 v, so that v = 2/3 − e^(4 t)/6 until it rests."""
    event = "do: brake, of: a, efforts: [4, 10, 4], over: {signal: a/velocity, values: [-0.5, 0, 0.5]}, at: 0"
    text = (
        SLIDER.replace("[2, 0, 0]", f"[{side * 2 / 3}, 0, 0]") + f"joints: {{a: {{initial: {{velocity: {side}}}}}}}\n"
    )
    ran = run_of([event], text, schedule)
    bend, rests = 0.75, 0.75 + math.log(4) / 4
    t = np.clip(ran.t - bend, 0, rests - bend)
    slow, growth = ran.t > bend, np.exp(4 * t)
    speed = np.where(slow, np.where(ran.t < rests, 2 / 3 - growth / 6, 0), 1 - 2 / 3 * ran.t)
    path = np.where(slow, 0.5625 + 2 / 3 * t - (growth - 1) / 24, ran.t - ran.t**2 / 3)
    np.testing.assert_allclose(side * ran["a/velocity"], speed, atol=atol)
    np.testing.assert_allclose(side * ran["a/position"], path, atol=atol)
    assert ran["a/velocity"][-1] == 0.0
    assert ran["a/holding_effort"][-1] == pytest.approx(-2 * side)
    assert_energy_balances(ran, 10 * atol)


def test_a_block_breaks_away_along_a_stribeck_table(run_of):
    """At rest 5 N hold up to 5 N, and 6 N pull: 3 v̇ = 6 − 5 + 4 v up to 1 m/s, from rest, where a row ends."""
    event = "do: brake, of: a, efforts: [1, 5, 1], over: {signal: a/velocity, values: [-1, 0, 1]}, at: 0"
    ran = run_of([event], schedule="step: 1 ms, duration: 1.5 s")
    fast = 0.75 * math.log(5)
    t = np.minimum(ran.t, fast)
    speed = (np.exp(4 / 3 * t) - 1) / 4 + np.maximum(ran.t - fast, 0) * 5 / 3
    np.testing.assert_allclose(ran["a/velocity"], speed, atol=1e-9)


def test_an_effort_follows_a_velocity_that_jumps(run_of):
    """Latching `b` takes its velocity from 1 to 0 m/s and the effort from 9 N to 3 N: the pull of 6 N overcomes it."""
    text = """
mechanism:
  gravity: [2, 0, 0]
  bodies:
    - {name: a, type: prismatic, axis: [1, 0, 0], mass: 3 kg}
    - {name: b, type: prismatic, axis: [0, 1, 0], mass: 1 kg, parent: base}
joints: {b: {initial: {velocity: 1}}}
"""
    events = [
        "do: brake, of: a, efforts: [3, 9], over: {signal: b/velocity, values: [0, 1]}, at: 0",
        "do: latch, of: b, at: 0.5004",
    ]
    ran = run_of(events, text)
    np.testing.assert_allclose(ran["a/velocity"], np.maximum(ran.t - 0.5004, 0), atol=1e-9)
    assert ran.fault == ""


def test_a_brake_whose_effort_ends_at_zero_rests_without_a_load(run_of):
    """10 N to 0.1 N to 0 leave no rounding error, which an absent load would seem to exceed without end."""
    event = "do: brake, of: a, efforts: [10, 0.1, 0], times: [0, 0.1, 0.2], at: 0"
    ran = run_of([event], SLIDER.replace("[2, 0, 0]", "[0, 0, 0]"), "duration: 0.3 s")
    assert ran.fault == "" and not ran["a/position"].any()
