"""Brakes and hard stops: sticking, slipping, impacts and their energy."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from tests.kit.rigs import controller
from tests.plant.event_runs import BALL, PUSHED, SLIDER, EventRun, G, M, with_events


def test_a_latch_opens_when_it_takes_too_much(run_of):
    """An overload clutch: the push 10 sin ω t, held for a step, is above 7.5 N from asin(0.75)/ω on."""
    text = PUSHED.replace("initial: {velocity: 3}", "latched: true")
    event = "do: unlatch, of: a, when: {signal: a/holding_effort, below: -7.5 N}"
    ran = run_of([event], text, "duration: 0.6 s, step: 1 ms")
    slips = math.asin(0.75) / (math.pi / 2)
    assert ran.event("unlatch a")[:2] == (1, pytest.approx(slips, abs=2e-3))
    assert ran["a/holding_effort"].min() == pytest.approx(-7.5, abs=0.02)


def test_a_brake_sticks_and_slips(run_of):
    """From rest the push 10 sin(ω t) overcomes the 6 N of the brake, then the body stops until it is pushed back."""
    text = PUSHED.replace("velocity: 3", "velocity: 0")
    ran = run_of(["do: brake, of: a, effort: 6, at: 0"], text, "duration: 4 s, step: 1 ms")
    omega, velocity = math.pi / 2, ran["a/velocity"]
    slips = math.asin(0.6) / omega

    def speed(t, since, way):
        """2 v̇ = 10 sin ω t − 6 way from rest."""
        return (10 / omega * (math.cos(omega * since) - math.cos(omega * t)) - 6 * way * (t - since)) / 2

    sticks = brentq(lambda t: speed(t, slips, 1), 1.5, 2.4)
    assert sticks < 2 + slips
    for t in (0.5, 1.0, 2.0):
        assert velocity[round(t * 1000)] == pytest.approx(speed(t, slips, 1), abs=1e-2)
    for t in (2.5, 3.0, 3.5):
        assert velocity[round(t * 1000)] == pytest.approx(speed(t, 2 + slips, -1), abs=1e-2)
    still = np.flatnonzero(velocity == 0) / 1000
    first, second = still[still < 1], still[still > 1]
    assert first[-1] == pytest.approx(slips, abs=2e-3)
    assert second[[0, -1]] == pytest.approx([sticks, 2 + slips], abs=4e-3)
    assert len(second) == round((second[-1] - second[0]) * 1000) + 1


def test_the_instant_at_which_a_brake_stops_a_body(run_of):
    """v = 3 − (6/2) t stops at 1 s after 1.5 m, and stays."""
    text = PUSHED.split("controllers")[0]
    ran = run_of(["do: brake, of: a, effort: 6, at: 0"], text, "duration: 2 s, step: 7 ms")
    assert ran["a/position"][-1] == pytest.approx(1.5, abs=1e-9)
    assert ran["energy/dissipated"][-1] == pytest.approx(9, rel=1e-9)
    assert not ran["a/velocity"][143:].any()


def test_a_brake_that_is_released(run_of):
    """Gravity pulls with 6 N; 8 N hold it, after 0.25 s of fall it takes 0.75 s to stop."""
    events = ["do: brake, of: a, effort: 8, at: 0.25", "do: unbrake, of: a, at: 1.5"]
    ran = run_of(events, schedule="duration: 2 s")
    rest = 0.5 * G * 0.25**2 + 0.5**2 / 2 / (2 / M)
    assert ran["a/position"][1400] == pytest.approx(rest, rel=1e-9)
    assert ran["a/position"][-1] == pytest.approx(rest + 0.5 * G * 0.5**2, rel=1e-9)


@pytest.mark.parametrize(("effort", "at"), [(0.1, 0.0), (2.0, 0.0005), (5.999, 0.2)])
def test_a_brake_that_is_too_weak_slips_from_standstill(run_of, effort, at):
    """Gravity pulls with 6 N at a body that is at rest until it is unlatched, or from the start."""
    text = SLIDER + "joints: {a: {latched: true}}\n"
    unlatch = at + 0.25
    events = [f"do: brake, of: a, effort: {effort}, at: {at}", f"do: unlatch, of: a, at: {unlatch}"]
    ran = run_of(events, text)
    assert ran["a/position"][-1] == pytest.approx(0.5 * (6 - effort) / M * (1 - unlatch) ** 2, rel=1e-9)
    assert ran["energy/dissipated"][-1] == pytest.approx(effort * ran["a/position"][-1], rel=1e-9)
    if at == 0.0:
        ran = run_of(events[:1])
        assert ran["a/position"][-1] == pytest.approx(0.5 * (6 - effort) / M, rel=1e-9)


def test_a_brake_in_the_place_of_a_stronger_one_slips(run_of):
    """8 N hold 6 N; 2 N at the same joint do not."""
    events = ["do: brake, of: a, effort: 8, at: 0", "do: brake, of: a, effort: 2, at: 0.5, name: weaker"]
    ran = run_of(events)
    assert not ran["a/velocity"][:500].any()
    assert ran["a/position"][-1] == pytest.approx(0.5 * (6 - 2) / M * 0.5**2, rel=1e-9)


def test_a_brake_resists_when_the_push_reverses_as_it_begins_to_slip(rig_of):
    """±8 N; the body is unlatched at the very end of the last step with +8 N, and its brake of 6 N slips then."""
    text = SLIDER.replace("[2, 0, 0]", "[0, 0, 0]") + "joints: {a: {latched: true}}\n"
    text += "controllers: [{type: push.py, joints: [a]}]\n"
    events = ["do: brake, of: a, effort: 6, at: 0", "do: unlatch, of: a, at: 0.5"]
    push = controller("effort = ops.where(ops.array([t]) < 0.4999, 8.0, -8.0)")
    ran = EventRun(rig_of(with_events(events, text), push=push))
    assert ran["a/position"][-1] == pytest.approx(-0.5 * (8 - 6) / M * 0.5**2, rel=1e-6)
    assert ran["energy/dissipated"][-1] == pytest.approx(-6 * ran["a/position"][-1], rel=1e-6)


def test_a_brake_of_a_joint_at_its_stop_resists_leaving_it(run_of):
    """Gravity presses the body with 6 N to its stop; the push 12 sin ω t moves it at 6 N, with the brake at 8 N."""
    text = BALL.replace("restitution: 0.5", "restitution: 0")
    text += """\
controllers: [{type: passthrough, interface: effort, trajectory: {type: chirp, of: effort, amplitude: -12, f0: 0.05,
               f1: 0.05, duration: 20}}]
"""
    for braked, at in ((0, 4), (2, 0.6)):  # the first after the end
        ran = run_of([f"do: brake, of: a, effort: 2, at: {at}"], text, "duration: 3 s, step: 1 ms")
        resting = np.flatnonzero(ran["a/position"] > 0.25 - 1e-9)
        assert resting[-1] / 1000 == pytest.approx(math.asin((6 + braked) / 12) / (0.1 * math.pi), abs=3e-3)
        assert np.all(np.diff(ran["a/position"][600:]) <= 1e-12) and ran["a/velocity"][-1] < -0.1
        # the force of the stop carries what is left of gravity
        assert np.allclose(ran["a/acceleration"][resting[5:-5]], 0)


def test_bounces(rig_of):
    """The first fall takes T = √(2 h/g), the flights after it 2 T e, 2 T e², …; energy falls by 1 − e² each."""
    ran = EventRun(rig_of(BALL + "schedule: {duration: 2 s}\n"))
    first, e = math.sqrt(2 * 0.25 / G), 0.5
    position = ran["a/position"]
    for n in (1, 2, 3):
        start = first * (1 + 2 * sum(e**k for k in range(1, n)))
        top = round((start + first * e**n) * 1000)
        assert position[top - 2 : top + 3].min() == pytest.approx(0.25 - 0.25 * e ** (2 * n), abs=1e-5)
    over = math.ceil(first * (1 + 2 * e / (1 - e)) * 1000)
    assert not ran["a/velocity"][over:].any()
    np.testing.assert_allclose(position[over:], 0.25, rtol=0, atol=1e-9)
    assert position.max() < 0.25 + 1e-9
    count, last, lost = ran.event("a at its upper stop")
    assert 8 <= count <= 12
    assert lost == pytest.approx(M * G * 0.25, rel=1e-9)
    assert last == pytest.approx(first * (1 + 2 * e / (1 - e)), abs=2e-3)


def test_two_stops(rig_of):
    """To and fro between walls at 1 m/s."""
    text = """
mechanism: {gravity: [0, 0, 0], bodies: [{name: a, type: prismatic, axis: [1, 0, 0], mass: 1 kg}]}
joints: {a: {initial: {velocity: 1}, stops: {lower: -0.1, upper: 0.2, restitution: 1}}}
schedule: {duration: 2 s}
"""
    ran = EventRun(rig_of(text))
    assert ran.event("a at its upper stop")[:2] == (4, pytest.approx(0.2 + 3 * 0.6, abs=1e-9))
    assert ran.event("a at its lower stop")[:2] == (3, pytest.approx(0.5 + 2 * 0.6, abs=1e-9))
    assert np.abs(ran["a/velocity"]) == pytest.approx(np.ones(2001))


FLOATING = """
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: base1, joint: root, type: free, mass: 4 kg, inertia: [1, 1, 1]}
    - {name: cart, joint: rail, type: prismatic, axis: [1, 0, 0], mass: 2 kg, inertia: [1, 1, 1]}
joints:
  root: {initial: {velocity: [0, 0, 0, 0.5, 0, 0]}}
"""


def linear(ran):
    """Momentum of base and cart along x [kg m/s]."""
    speed = next(n for n in ("root.x/velocity", "root.vx/velocity") if n in ran.names)
    return 6 * ran[speed] + 2 * ran["rail/velocity"]


@pytest.mark.parametrize(
    ("rail", "events", "restitution"),
    [
        ("stops: {upper: 0.1, restitution: 0.4}", "[]", 0.4),
        ("stops: {upper: 0.1}", "[]", 0.0),
        ("encoder: {}", "[{do: latch, of: rail, when: {signal: rail/position, above: 0.1}}]", 0.0),
    ],
)
def test_on_a_floating_base(rig_of, rail, events, restitution):
    """Momentum stays; ½ μ Δv² (1 − e²) is lost, μ the reduced mass."""
    text = FLOATING.replace("[0, 0, 0, 0.5, 0, 0]", "[0.5, 0, 0, 0, 0, 0]")
    text += f"  rail: {{initial: {{velocity: 1.5}}, {rail}}}\nevents: {events}\nschedule: {{duration: 0.2}}\n"
    rig = rig_of(text)
    ran = EventRun(rig)
    assert rig.tick_model.plant.model.dof_names[0] == "root.x"
    np.testing.assert_allclose(linear(ran), 6 * 0.5 + 2 * 1.5, rtol=1e-12)
    count, last, lost = ran.event(ran.event_names[0])
    assert (count, last) == (1, pytest.approx(0.1 / 1.5, abs=1e-9))
    assert lost == pytest.approx(0.5 * (4 * 2 / 6) * 1.5**2 * (1 - restitution**2), rel=1e-9)
    assert ran["rail/velocity"][-1] == pytest.approx(-restitution * 1.5, abs=1e-12)
    kinetic = ran["energy/kinetic"]
    assert kinetic[0] - kinetic[-1] == pytest.approx(lost, rel=1e-9)


def test_a_body_that_starts_at_its_stop_and_moves_away(rig_of):
    text = """
mechanism: {gravity: [0, 0, -9.81], bodies: [{name: a, type: prismatic, axis: [0, 0, 1], mass: 1 kg}]}
joints: {a: {initial: {velocity: 5}, stops: {lower: 0}}}
schedule: {duration: 0.9}
"""
    ran = EventRun(rig_of(text))
    np.testing.assert_allclose(ran["a/position"], 5 * ran.t - 0.5 * 9.81 * ran.t**2, atol=1e-9)
    assert ran.event("a at its lower stop")[0] == 0


# c on top of b, both moving at 1 m/s until b is stopped dead at 0.5 s
CARRIED = """
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: b, type: prismatic, axis: [1, 0, 0], mass: 1 kg}
    - {name: c, type: prismatic, axis: [1, 0, 0], mass: 2 kg}
joints:
  b: {initial: {velocity: 1}, stops: {upper: 0.5, restitution: 0}}
"""


def test_a_stop_does_not_pull_in_an_impact(rig_of):
    """c only leans on b: it flies on, and b alone loses its energy; on the other side c is stopped as well."""
    for stops, speed, lost in (("lower", 1.0, 0.5), ("upper", 0.0, 1.5)):
        text = CARRIED + f"  c: {{stops: {{{stops}: 0, restitution: 0}}}}\nschedule: {{duration: 1 s}}\n"
        ran = EventRun(rig_of(text))
        np.testing.assert_allclose(ran["c/velocity"][502:], speed, atol=1e-12)
        assert ran["c/position"][-1] == pytest.approx(0.5 * speed, abs=1e-9)
        assert ran.event("b at its upper stop") == (1, pytest.approx(0.5, abs=1e-9), pytest.approx(lost))


@pytest.mark.parametrize(("interpret", "step_ms"), [(False, 1), (True, 10)])
def test_a_brake_that_sticks_gives_way_to_an_impact(rig_of, interpret, step_ms):
    """0.1 N of it slow c down from 1 m/s by 0.05 m/s² afterwards."""
    text = with_events(["do: brake, of: c, effort: 0.1, at: 0"], CARRIED, "duration: 0.6")
    ran = EventRun(rig_of(text, f"schedule.step={step_ms} ms", interpret=interpret))
    assert not ran["c/velocity"][: 500 // step_ms].any()
    assert ran["c/velocity"][-1] == pytest.approx(1 - 0.05 * 0.1, abs=1e-9)
    assert ran.event("b at its upper stop")[2] == pytest.approx(0.5)
    kept = ran["energy/stored"] + ran["energy/dissipated"]
    np.testing.assert_allclose(kept, kept[0], atol=1e-9)


def test_a_brake_turns_with_its_body(run_of):
    """It bounces at 0.5 s with half its speed, 0.9 m/s by then, and the brake goes on against the way back."""
    text = CARRIED.replace("restitution: 0", "restitution: 0.5").replace("upper: 0.5", "upper: 0.475")
    ran = run_of(["do: brake, of: b, effort: 0.2, at: 0"], text, "duration: 1 s")
    assert ran.event("b at its upper stop")[:2] == (1, pytest.approx(0.5, abs=1e-9))
    assert ran["b/velocity"][-1] == pytest.approx(-0.45 + 0.2 * 0.5, abs=1e-9)


def moving_wall(restitution, moved):
    """A cart at rest in space that a wall catches after 0.5 s, at 1 m/s all along: by a joint or a moving_base."""
    sine = "{type: sine, amplitude: 1000, frequency: 0.00015915494309189535}"
    wall = "    - {name: wall, type: prismatic, axis: [1, 0, 0], mass: 1 kg}\n" if moved == "joint" else ""
    return f"""
mechanism:
  gravity: [0, 0, 0]
{"  moving_base: {x: " + sine + "}" if moved == "moving_base" else ""}
  bodies:
{wall}    - {{name: cart, type: prismatic, axis: [1, 0, 0], mass: 3 kg}}
joints:
{"  wall: {prescribed: " + sine + "}" if wall else ""}
  cart: {{initial: {{position: 0.5, velocity: -1}}, stops: {{lower: 0, restitution: {restitution}}}}}
schedule: {{duration: 1 s}}
"""


@pytest.mark.parametrize(("restitution", "moved"), [(0.0, "moving_base"), (0.5, "joint"), (1.0, "joint")])
def test_imposed_motions_do_work_in_an_impact(rig_of, moved, restitution):
    """The relative motion loses ½ m u² (1 − e²); the wall puts in its speed times m u (1 + e)."""
    ran = EventRun(rig_of(moving_wall(restitution, moved)))
    assert ran.event("cart at its lower stop") == (
        1,
        pytest.approx(0.5, abs=1e-6),
        pytest.approx(1.5 * (1 - restitution**2), abs=1e-5),
    )
    assert ran["energy/work"][-1] == pytest.approx(3 * (1 + restitution), rel=1e-5)
    kept = ran["energy/stored"] - ran["energy/work"] + ran["energy/dissipated"]
    np.testing.assert_allclose(kept, kept[0], atol=1e-9)
