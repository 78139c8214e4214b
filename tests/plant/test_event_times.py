"""The instants of events: conditions, times, simultaneous and repeated events."""

import math

import numpy as np
import pytest

from tests.plant.event_runs import SLIDER, G, M


def test_a_condition_is_located_within_the_step(run_of):
    ran = run_of(["do: latch, of: a, name: lock, when: {signal: a/position, above: 0.3}"])
    count, last, lost = ran.event("lock")
    assert (count, last) == (1, pytest.approx(math.sqrt(2 * 0.3 / G), abs=1e-9))
    assert lost == pytest.approx(M * G * 0.3, rel=1e-9)
    assert ran["a/position"][-1] == pytest.approx(0.3, abs=1e-9)
    assert ran["a/velocity"][-1] == 0
    assert ran["energy/dissipated"][-1] == pytest.approx(lost)


def test_a_condition_from_above(run_of):
    thrown = SLIDER + "joints: {a: {initial: {velocity: -1}}}\n"
    ran = run_of(["do: latch, of: a, when: {signal: a/velocity, above: 0}"], thrown)
    assert ran.event("latch a")[1] == pytest.approx(1 / G, abs=1e-9)
    ran = run_of(["do: latch, of: a, when: {signal: a/position, below: -0.1}"], thrown)
    assert ran.event("latch a")[1] == pytest.approx((1 - math.sqrt(1 - 4 * 0.1)) / G, abs=1e-9)


@pytest.mark.parametrize(("step", "at"), [("1 ms", 0.2503), ("5 ms", 0.035), ("5 ms", 0.05)])
def test_a_time(run_of, step, at):
    ran = run_of([f"do: latch, of: a, at: {at}"], schedule=f"step: {step}, duration: 0.3")
    count, last, lost = ran.event("latch a")
    assert (count, last) == (1, pytest.approx(at, abs=1e-12))
    assert lost == pytest.approx(0.5 * M * (G * at) ** 2, rel=1e-9)
    assert ran["a/position"][-1] == pytest.approx(0.5 * G * at**2, rel=1e-10)
    # the row at the time of the event shows its effect
    moving = np.flatnonzero(ran["a/velocity"])
    assert moving[-1] == math.ceil(at / ran.tick_model.step - 1e-6) - 1


def test_two_events_at_one_instant(run_of):
    """Each loses what its own impulse takes; what arrests nothing loses nothing."""
    text = SLIDER.replace("}]", "}, {name: b, type: prismatic, axis: [0, 1, 0], mass: 1 kg, parent: base}]")
    text += "joints: {a: {initial: {velocity: 1}}, b: {initial: {velocity: 4}}}\n"
    events = [f"do: {do}, at: 0.1" for do in ("latch, of: a", "latch, of: b", "unlatch, of: b, name: go")]
    ran = run_of([events[2], *events[:2]], text)
    for name, lost in (("latch a", 0.5 * M * 1.2**2), ("latch b", 0.5 * 1 * 4**2), ("go", 0.0)):
        assert ran.event(name) == (1, pytest.approx(0.1, abs=1e-12), pytest.approx(lost))
    assert ran["b/position"][-1] == pytest.approx(0.4)


def test_an_event_triggers_another(run_of):
    """A latch that stops a body makes the speed fall below a bound, which frees another one at that instant."""
    text = SLIDER.replace("}]", "}, {name: b, type: prismatic, axis: [1, 0, 0], mass: 1 kg, parent: base}]")
    text += "joints: {b: {latched: true}}\n"
    events = [
        "do: latch, of: a, when: {signal: a/position, above: 0.01}",
        "do: unlatch, of: b, name: go, when: {signal: a/acceleration, below: 1}",
    ]
    ran = run_of(events, text)
    at = math.sqrt(2 * 0.01 / G)
    assert ran.event("latch a")[:2] == ran.event("go")[:2] == (1, pytest.approx(at, abs=1e-9))
    assert ran["b/position"][-1] == pytest.approx(0.5 * G * (1 - at) ** 2, rel=1e-8)


def test_latched_from_the_start_and_unlatched(run_of):
    text = SLIDER + "joints: {a: {latched: true, initial: {position: 0.5}}}\n"
    ran = run_of(["do: unlatch, of: a, at: 0.4"], text)
    assert ran["a/position"][400] == 0.5
    assert ran["a/position"][-1] == pytest.approx(0.5 + 0.5 * G * 0.6**2, rel=1e-9)
    assert ran.event("unlatch a") == (1, pytest.approx(0.4), 0)


def test_an_event_occurs_at_every_crossing(run_of):
    """A pendulum passes a point twice per period in each direction."""
    text = """
mechanism:
  bodies: [{name: p, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -1], inertia: [1e-9, 1e-9, 1e-9]}]
joints: {p: {initial: {position: -0.1}}}
"""
    events = ["do: unlatch, of: p, when: {signal: p/position, above: 0}", "do: latch, of: p, at: 20"]  # after the end
    ran = run_of(events, text, "duration: 10 s")
    period = 2 * math.pi / math.sqrt(9.81) * (1 + 0.1**2 / 16)
    assert ran.event("unlatch p")[:2] == (5, pytest.approx(4.25 * period, rel=1e-5))
