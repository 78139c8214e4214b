"""Events whose condition may hold from the start, and stops and latches that act from the start."""

import numpy as np
import pytest

from tests.plant.event_runs import BALL, SLIDER, EventRun, G, M

UNLATCHED = SLIDER + "joints: {a: {latched: true}}\n"
GO = "do: unlatch, of: a, name: go, at: 0.2503"


@pytest.mark.parametrize("signal", ["a/velocity", "energy/dissipated"])
def test_a_value_at_its_bound_has_not_fallen_below_it(run_of, signal):
    """From rest at 0 it rises: it is never below 0."""
    ran = run_of([f"do: latch, of: a, when: {{signal: {signal}, below: 0}}"])
    assert ran.event("latch a")[0] == 0
    assert ran["a/velocity"][-1] == pytest.approx(G)


@pytest.mark.parametrize("signal", ["a/velocity", "a/position"])
def test_a_value_that_rests_at_its_bound_rises_later(run_of, signal):
    """A body at rest at 0 is unlatched between two steps: then it is above 0."""
    brake = f"do: brake, of: a, effort: 3, when: {{signal: {signal}, above: 0}}"
    ran = run_of([brake, GO], UNLATCHED)
    assert ran.event("brake a")[:2] == (1, pytest.approx(0.2503, abs=1e-12))
    np.testing.assert_allclose(ran["a/velocity"], np.maximum(ran.t - 0.2503, 0), atol=1e-9)


def test_a_value_that_touches_its_bound_at_the_end_of_a_step(run_of):
    """Thrown up with 1 m/s it turns at 0.25 m after 0.5 s, a multiple of the step, and does not go beyond."""
    text = SLIDER + "joints: {a: {initial: {velocity: -1}}}\n"
    schedule = "step: 31.25 ms, duration: 1"  # exact in binary
    latch = "do: latch, of: a, when: {signal: a/position, below: -0.25}"
    ran = run_of([latch], text, schedule)
    assert ran["a/position"].min() == -0.25
    assert ran.event("latch a")[0] == 0


def test_it_fires_once_until_it_has_been_below_again(run_of):
    text = SLIDER.replace("[2, 0", "[0, 0") + (
        "controllers: [{type: passthrough, interface: effort,"
        " trajectory: {type: chirp, of: effort, amplitude: 3, f0: 1, f1: 1, duration: 9}}]\n"
    )
    event = "do: unbrake, of: a, name: count, when: {signal: a/effort, above: 0}"
    later = "do: brake, of: a, effort: 1, at: 3"  # after the end
    ran = run_of([event, later], text, "step: 7 ms, duration: 2.9")
    assert ran.event("count")[0] == 3


def test_a_latch_beyond_its_window_engages_at_the_start(run_of):
    text = SLIDER + "joints: {a: {initial: {position: 3, velocity: 2}}}\n"
    ran = run_of(["do: latch, of: a, when: {signal: a/position, above: 1}"], text)
    assert ran.event("latch a") == (1, 0, pytest.approx(0.5 * M * 4))
    assert ran["a/position"][-1] == 3


@pytest.mark.parametrize(
    "event", ["at: 0", "when: {signal: a/position, above: -1}", "when: {signal: a/velocity, below: 1}"]
)
def test_a_latched_joint_is_unlatched_at_the_start(run_of, event):
    ran = run_of([f"do: unlatch, of: a, {event}"], UNLATCHED)
    assert ran.event("unlatch a") == (1, 0, 0)
    np.testing.assert_allclose(ran["a/velocity"], G * ran.t, atol=1e-9)


def test_latched_and_unlatched_at_the_start_in_the_order_of_the_file(run_of):
    events = ["do: latch, of: a, at: 0", "do: unlatch, of: a, at: 0"]
    for first, falls in ((events, True), (events[::-1], False)):
        assert (run_of(first)["a/velocity"][-1] > 0) == falls


@pytest.mark.parametrize(
    ("velocity", "leaves"),
    [(0, 0.0), (3, -1.5), (-0.5, -0.5)],  # pressed, thrown against it, thrown off it
)
def test_a_stop_that_is_touched_from_the_start(rig_of, velocity, leaves):
    text = BALL.replace("{stops:", f"{{initial: {{position: 0.25, velocity: {velocity}}}, stops:")
    ran = EventRun(rig_of(text + "schedule: {duration: 0.2}\n"))
    assert ran["a/position"].max() <= 0.25 + 1e-12
    np.testing.assert_allclose(ran["a/velocity"][1:], leaves + (G * ran.t[1:] if leaves else 0), atol=1e-9)
    lost = 0.5 * M * (velocity**2 - leaves**2)
    assert ran["energy/dissipated"][-1] == pytest.approx(lost, abs=1e-12)
    assert ran.event("a at its upper stop")[0] == (velocity >= 0)


def test_a_stop_and_a_brake_share_a_load_from_the_start(run_of):
    """A brake that is too weak alone rests with the stop."""
    text = BALL.replace("{stops:", "{initial: {position: 0.25}, stops:")
    ran = run_of(["do: brake, of: a, effort: 1, at: 0"], text, "duration: 0.2")
    assert not ran["a/velocity"].any() and ran.fault == ""
    assert ran["a/holding_effort"][-1] == pytest.approx(-M * G)
