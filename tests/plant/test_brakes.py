"""Brakes of several dofs, with a static ratio, with efforts that vary, and their signals: against closed forms."""

import math

import numpy as np
import pytest

from tests.kit.rigs import signal_units
from tests.plant.event_runs import PUSHED, SLIDER, EventRun, M, with_events

# a block of 2 kg on an incline: gravity along the plane is `pull` along x
BLOCK = """
mechanism:
  gravity: [{pull}, 0, -9]
  bodies: [{{name: a, joint: p, type: planar, mass: 2 kg, inertia: [1, 1, 1]}}]
joints: {{p: {{initial: {{velocity: {velocity}}}}}}}
"""


def block(velocity, *events, pull=0.0, schedule="duration: 1 s, step: 1 ms"):
    return with_events(events, BLOCK.format(pull=pull, velocity=[float(x) for x in velocity]), schedule)


@pytest.mark.parametrize("angle", [37.0, 180.0])
def test_a_block_stops_along_its_direction_of_motion(rig_of, angle):
    """6 N on 2 kg decelerate by 3 m/s² in any direction: 1.5 m/s stop after 0.5 s and 0.375 m."""
    way = np.array([math.cos(math.radians(angle)), math.sin(math.radians(angle))])
    text = block((*(1.5 * way), 0), "do: brake, of: p, effort: 6, at: 0", schedule="duration: 0.7 s, step: 7 ms")
    ran = EventRun(rig_of(text))
    speed = np.maximum(1.5 - 3 * ran.t, 0)
    for name, part in zip("xy", way, strict=True):
        np.testing.assert_allclose(ran[f"p.{name}/velocity"], part * speed, atol=1e-9)
        assert ran[f"p.{name}/position"][-1] == pytest.approx(0.375 * part, abs=1e-9)
        # the first row is that before the brake acts
        slip, effort = (ran[f"p.{name}/{what}"][1:] for what in ("brake_slip", "holding_effort"))
        np.testing.assert_allclose(slip, (part * (speed > 0))[1:], atol=1e-9)
        np.testing.assert_allclose(effort, (-6 * part * (speed > 0))[1:], atol=1e-8)
    assert ran["energy/dissipated"][-1] == pytest.approx(2.25, rel=1e-9)


@pytest.mark.parametrize(("effort", "slides"), [(4.999, True), (5.001, False)])
def test_the_efforts_of_a_block_at_rest_have_one_bound(rig_of, effort, slides):
    """Pulls of 3 N and 4 N are 5 N together; each of them is below the bound."""
    text = block((0, 0, 0), f"do: brake, of: p, effort: {effort}, at: 0").replace(
        "gravity: [0.0, 0", "gravity: [1.5, 2"
    )
    ran = EventRun(rig_of(text))
    distance = (5 - effort) / 2 / 2 if slides else 0.0
    assert ran["p.x/position"][-1] == pytest.approx(0.6 * distance, abs=1e-9)
    assert ran["p.y/position"][-1] == pytest.approx(0.8 * distance, abs=1e-9)
    assert ran["p.x/holding_effort"][-1] == pytest.approx(-3 * (effort / 5 if slides else 1))
    assert ran["p.y/holding_effort"][-1] == pytest.approx(-4 * (effort / 5 if slides else 1))


def test_a_block_that_slides_across_a_slope_turns_downhill(rig_of):
    """Where friction equals the pull downhill, v (1 + cos φ) stays, with φ to the slope: from across to v/2 downhill.
    The position downhill and the speed follow from the balance of energy."""
    text = block((0, 1, 0), "do: brake, of: p, effort: 4, at: 0", pull=2.0, schedule="duration: 4 s, step: 1 ms")
    ran = EventRun(rig_of(text))
    x, y = ran["p.x/velocity"], ran["p.y/velocity"]
    np.testing.assert_allclose(np.hypot(x, y) + x, 1, atol=1e-8)
    assert x[-1] == pytest.approx(0.5, abs=1e-3) and y[-1] < 0.03
    stored = ran["energy/stored"] + ran["energy/dissipated"]
    np.testing.assert_allclose(stored, stored[0], atol=1e-8)


@pytest.mark.parametrize("start", [(-1, 1e-3, 0), (0, 1, 0.5)])
def test_a_block_comes_to_rest_on_a_slope(rig_of, start):
    """A friction above the pull stops it, uphill motion turns first; it stays there and its energy is dissipated."""
    text = block(start, "do: brake, of: p, effort: 6, at: 0", pull=2.0, schedule="duration: 3 s, step: 1 ms")
    ran = EventRun(rig_of(text))
    assert not any(ran[f"p.{name}/velocity"][-500:].any() for name in ("x", "y", "angle"))
    stored = ran["energy/stored"] + ran["energy/dissipated"]
    np.testing.assert_allclose(stored, stored[0], atol=1e-5)
    assert ran["p.x/holding_effort"][-1] == pytest.approx(-4)
    assert ran.fault == ""


def test_a_block_slides_on_along_a_stop(rig_of):
    """Pulls of 3 N and 4 N against 4.5 N of friction; at the stop only 4 N pull, and friction ends the motion."""
    text = block((0, 0, 0), "do: brake, of: p, effort: 4.5, at: 0", schedule="duration: 2.2 s, step: 4 ms")
    text = text.replace("gravity: [0.0, 0", "gravity: [1.5, 2").replace(
        "joints: {", "joints: {p.x: {stops: {upper: 0.1}}, "
    )
    ran = EventRun(rig_of(text))
    hits = math.sqrt(2 * 0.1 / 0.15)
    assert ran.event("p.x at its upper stop")[:2] == (1, pytest.approx(hits, abs=1e-9))
    speed = np.where(ran.t < hits, 0.2 * ran.t, np.maximum(0.2 * hits - 0.25 * (ran.t - hits), 0))
    np.testing.assert_allclose(ran["p.y/velocity"], speed, atol=1e-9)
    assert ran["p.y/position"][-1] == pytest.approx(0.24)
    last = [ran[f"p.{name}/{what}"][-1] for what in ("holding_effort", "brake_slip") for name in "xy"]
    assert last == pytest.approx([-3, -4, 0, 0])


def test_a_ball_joint_slows_down_about_any_axis(run_of):
    """4 N·m on 0.5 kg·m² decelerate by 8 rad/s² about a skew axis."""
    text = """
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: a, joint: p, type: spherical, mass: 2 kg, inertia: [0.5, 0.5, 0.5]}]
joints: {p: {initial: {velocity: [1, -2, 2]}}}
"""
    ran = run_of(["do: brake, of: p, effort: 4, at: 0"], text, "duration: 0.6 s, step: 3 ms")
    speed = np.maximum(3 - 8 * ran.t, 0)
    for name, part in zip(("rx", "ry", "rz"), (1, -2, 2), strict=True):
        np.testing.assert_allclose(ran[f"p.{name}/velocity"], part / 3 * speed, atol=1e-8)


@pytest.mark.parametrize(("effort", "falls"), [(0.0299, True), (0.0301, False)])
def test_a_small_brake_holds_up_to_its_effort(run_of, effort, falls):
    """A pendulum of 0.1 kg at 3 cm of lever arm weighs 0.03 N·m."""
    text = """
mechanism:
  gravity: [0, -10, 0]
  bodies: [{name: a, axis: [0, 0, 1], mass: 0.1, com: [0.03, 0, 0], inertia: [0.01, 0.01, 0.01]}]
"""
    ran = run_of([f"do: brake, of: a, effort: {effort}, at: 0"], text, "duration: 0.1 s")
    moved = -0.5 * (0.03 - effort) / (0.01 + 0.1 * 0.03**2) * 0.01 if falls else 0.0
    assert ran["a/position"][-1] == pytest.approx(moved, rel=1e-6)
    assert ran["a/holding_effort"][-1] == pytest.approx(min(effort, 0.03))
    assert ran["a/brake_slip"][-1] == (-1 if falls else 0)


def test_a_static_ratio_holds_more_than_it_slows_down(run_of):
    """The push 10 sin(ω t) overcomes 1.25 · 6 N, and then 6 N."""
    text = PUSHED.replace("velocity: 3", "velocity: 0")
    events = ["do: brake, of: a, effort: 6, static_ratio: 1.25, at: 0"]
    ran = run_of(events, text, "duration: 1.2 s, step: 1 ms")
    omega = math.pi / 2
    slips = math.asin(0.75) / omega
    t = np.maximum(ran.t, slips)
    expected = (10 / omega * (math.cos(omega * slips) - np.cos(omega * t)) - 6 * (t - slips)) / 2
    # the effort of a controller is held for a step: the brake slips at the next one
    np.testing.assert_allclose(ran["a/velocity"], expected, atol=5e-3)
    moving = np.flatnonzero(ran["a/velocity"])
    assert ran.t[moving[0]] == pytest.approx(slips, abs=2e-3)
    assert set(ran["a/brake_slip"][moving]) == {1.0}
    np.testing.assert_allclose(np.abs(ran["a/holding_effort"][moving]), 6)
    assert np.abs(ran["a/holding_effort"]).max() == pytest.approx(7.5, abs=0.02)


@pytest.mark.parametrize(
    ("joint", "effort", "stays"), [("one", 0.61, True), ("one", 0.59, False), ("several", 0.59, False)]
)
def test_a_body_that_comes_to_rest_sticks_up_to_the_static_effort(rig_of, run_of, joint, effort, stays):
    """Gravity pulls with 0.9 N, more than the slipping brake: thrown uphill it rests only if the static one holds."""
    event = f"do: brake, of: {'a' if joint == 'one' else 'p'}, effort: {effort}, static_ratio: 1.5, at: 0"
    if joint == "one":
        text = SLIDER.replace("[2, 0, 0]", "[0.3, 0, 0]") + "joints: {a: {initial: {velocity: -0.2}}}\n"
        ran, name, mass = run_of([event], text), "a", M
    else:
        text = block((-0.2, 0, 0), event, pull=0.45)
        ran, name, mass = EventRun(rig_of(text)), "p.x", 2.0
    stops = 0.2 / ((0.9 + effort) / mass)
    after = 0.0 if stays else (0.9 - effort) / mass
    expected = np.where(ran.t < stops, -0.2 + (0.9 + effort) / mass * ran.t, after * (ran.t - stops))
    np.testing.assert_allclose(ran[f"{name}/velocity"], expected, atol=1e-9)


@pytest.mark.parametrize("at", [0.0, 0.1003])
def test_a_brake_slips_when_its_effort_has_fallen(run_of, at):
    """Gravity pulls with 6 N; the effort 10 − 20 t falls to it after 0.2 s, to 0 after 0.5 s, between two steps."""
    event = f"do: brake, of: a, efforts: [10, 0], times: [0, 500 ms], at: {at}"
    text = SLIDER + "joints: {a: {latched: true}}\n"
    ran = run_of([event, "do: unlatch, of: a, at: 0.15"], text, "step: 7 ms, duration: 1 s")
    slips, gone = at + 0.2, at + 0.5
    t = np.clip(ran.t, slips, gone)
    speed = (6 * (t - slips) - 10 * (t - slips) + 10 * ((t - at) ** 2 - 0.2**2)) / M + 2 * np.maximum(ran.t - gone, 0)
    np.testing.assert_allclose(ran["a/velocity"], speed, atol=1e-9)
    np.testing.assert_allclose(ran["a/brake_slip"], ran.t > slips)


def test_a_brake_that_is_applied_slowly(run_of):
    """Its effort rises to 12 N within 0.6 s and stays; 3 kg at 2 m/s² from rest stop where 2 t = ∫ effort / 3."""
    event = "do: brake, of: a, efforts: [0, 12, 12], times: [0, 0.6, 0.7], at: 0"
    ran = run_of([event], schedule="step: 1 ms, duration: 2 s")
    t = ran.t
    speed = 2 * t - np.where(t < 0.6, 10 * t**2, 3.6 + 12 * (t - 0.6)) / 3
    np.testing.assert_allclose(ran["a/velocity"], np.maximum(speed, 0), atol=1e-9)
    assert ran["a/holding_effort"][-1] == pytest.approx(-6)


def test_a_latch_shows_the_effort_that_it_takes(rig_of):
    rig = rig_of(
        SLIDER + "joints: {a: {latched: true}}\nevents: [{do: unlatch, of: a, at: 0.5}]\nschedule: {duration: 1}"
    )
    run = rig.run()
    np.testing.assert_allclose(run["a/holding_effort"], np.where(run.t < 0.5, -6, 0))
    assert "a/brake_slip" not in run.signals
    assert signal_units(rig)["a/holding_effort"] == "N"


def test_a_brake_that_slips_does_not_turn_another_around(run_of):
    """Where one brake stops, the other still slips: it takes part in what decides whether the first one sticks."""
    text = """
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: a, type: prismatic, axis: [1, 0, 0], mass: 1}
    - {name: b, type: prismatic, axis: [1, 0, 0], mass: 1}
joints: {a: {initial: {velocity: 0.1}}, b: {initial: {velocity: 9}}}
"""
    events = ["do: brake, of: a, effort: 1.5, at: 0", "do: brake, of: b, effort: 1, at: 0"]
    ran = run_of(events, text, "step: 1 ms, duration: 0.5 s")
    # b pushes a by 1 N against its direction, a's brake holds up to 1.5 N
    assert ran["a/velocity"][-1] == 0.0 and ran["b/velocity"][-1] > 8
    np.testing.assert_allclose(ran["a/holding_effort"][-1], -1.0, atol=1e-9)
