"""Switches by themselves: what holds dofs still, what brakes do, when triggers fire and what they change."""

import numpy as np
import pytest

from cosim.plant.hybrid_modes import ACTIONS, REST, HardStop, HybridModes, PlantEvent


def event(do="latch", of=(0,), effort=0.0, name="e"):
    return PlantEvent(name, lambda seen: seen["t"] - 1, do, of, effort)


STOP = HardStop("wall", 1, 2.0, 1.0, 0.5)


def seen(**motion):
    still = {name: np.zeros(3) for name in ("position", "velocity", "acceleration", "hold", "brake", "slide")}
    return {"t": 0.0, "step": 1e-3} | still | {name: np.array(value, dtype=float) for name, value in motion.items()}


def test_nothing_switches():
    assert not HybridModes(3)
    assert HybridModes(3, latched=(1,)) and HybridModes(3, events=(event(),)) and HybridModes(3, stops=(STOP,))


def test_what_is_held():
    switches = HybridModes(3, stops=(STOP,), latched=(0,))
    s = switches.initial()
    assert switches.held(s).tolist() == [1, 0, 0]
    assert switches.held(s | {"stopped": np.ones(1)}).tolist() == [1, 1, 0]
    sticking = s | {"brake": np.array([0.0, 0, 4])}
    assert switches.held(sticking).tolist() == [1, 0, 1]
    assert switches.held(sticking | {"slide": np.array([0.0, 0, -1])}).tolist() == [1, 0, 0]


def test_a_brake_that_slides_pulls_against_its_way():
    switches = HybridModes(3)
    s = switches.initial() | {"brake": np.array([0.0, 3, 4]), "slide": np.array([0.0, 0, -1])}
    assert switches.braking(s).tolist() == [0, 0, 4]


def test_what_is_reported():
    switches = HybridModes(3, events=(event("brake", (0, 2), 5.0, "clamp"), event(name="lock")), stops=(STOP,))
    assert switches.reported == ("clamp", "lock", "wall")
    # then the stop is left, and the brake sticks and slips at each dof
    assert [trigger.name for trigger in switches.triggers[3:]] == ["wall", "clamp", "clamp", "clamp", "clamp"]
    s = switches.initial()
    assert len(s["count"]) == len(s["last"]) == len(s["lost"]) == 3
    assert len(s["before"]) == len(s["fired"]) == 8
    assert all(not np.any(rate) for rate in switches.still().values())


def test_couplings_that_are_released():
    switches = HybridModes(1, 3, (event("release", (1,)),))
    assert switches.releases and not HybridModes(1, 3, (event(),)).releases
    after = ACTIONS["release"](switches.events[0], switches.initial(), seen()).state
    assert switches.active(after).tolist() == [1, 0, 1]


def test_latch_and_unlatch():
    s = HybridModes(3).initial()
    change = ACTIONS["latch"](event("latch", (0, 2)), s, seen())
    assert change.state["latched"].tolist() == [1, 0, 1]
    assert change.rebound == {0: 0.0, 2: 0.0}
    back = ACTIONS["unlatch"](event("unlatch", (2,)), change.state, seen())
    assert back.state["latched"].tolist() == [1, 0, 0] and not back.rebound
    assert not s["latched"].any()


def test_a_brake_starts_to_slide_the_way_it_moves():
    change = ACTIONS["brake"](event("brake", (0, 1, 2), 5.0), HybridModes(3).initial(), seen(velocity=[-2, 0, 1e-12]))
    assert change.state["slide"].tolist() == [-1, 0, 0]
    assert change.state["brake"].tolist() == [5, 5, 5]
    off = ACTIONS["unbrake"](event("unbrake", (0, 1, 2)), change.state, seen()).state
    assert not off["brake"].any() and not off["slide"].any()


def trigger(k, **switches):
    return HybridModes(3, **switches).triggers[k]


def test_when_a_stop_is_hit():
    hit = trigger(0, stops=(STOP,))
    assert hit.value(seen(position=[0, 1.5, 0])) == -0.5
    assert trigger(0, stops=(HardStop("", 1, -2.0, -1.0, 0),)).value(seen(position=[0, 1.5, 0])) == -3.5
    s = HybridModes(3, stops=(STOP,)).initial()
    there = seen(position=[0, 2, 0])
    assert hit.enabled(s, there) and not hit.enabled(s | {"stopped": np.ones(1)}, there)
    assert hit.pressing(seen(velocity=[0, 1, 0])) and not hit.pressing(seen(velocity=[0, -1, 0]))


@pytest.mark.parametrize(
    ("position", "speed", "pull", "possible"),
    [
        (2.0, 1.0, -5.0, True),
        (2.0, -1.0, 5.0, False),  # it moves away
        (2.0, 0.0, 5.0, True),
        (2.0, 0.0, 0.0, True),
        (2.0, 0.0, -5.0, False),  # it is about to
        (1.9, -1.0, 5.0, True),  # it may still come back within the step
    ],
)
def test_a_body_that_moves_away_from_its_stop_does_not_hit_it(position, speed, pull, possible):
    hit, s = trigger(0, stops=(STOP,)), HybridModes(3, stops=(STOP,)).initial()
    motion = seen(position=[0, position, 0], velocity=[0, speed, 0], acceleration=[0, pull, 0])
    assert hit.enabled(s, motion) == possible


def test_what_takes_impulses():
    """Latches do, and stops as long as they push; brakes do not."""
    switches = HybridModes(3, stops=(STOP, HardStop("floor", 2, 0.0, -1.0, 0.5)), latched=(0,))
    s = switches.initial() | {"brake": np.array([0.0, 4, 4])}
    assert switches.blocked(s, np.array([0.0, 0])).tolist() == [1, 0, 0]
    assert switches.blocked(s, np.array([0.0, 1])).tolist() == [1, 0, 1]
    for impulse, pushing in (([0.0, -1, 1], [1, 1]), ([0.0, 1, 1], [0, 1]), ([0.0, -1, -1], [1, 0])):
        assert switches.pushing(np.ones(2), np.array(impulse)).tolist() == pushing
    assert switches.pushing(np.array([0.0, 1]), np.array([0.0, -1, 1])).tolist() == [0, 1]


def test_what_an_impact_leaves():
    """Brakes slide the way their dofs move; a stop without a push is left only where its dof moves."""
    switches = HybridModes(3, stops=(STOP,))
    s = switches.initial() | {"brake": np.array([4.0, 4, 0]), "slide": np.array([-1.0, 0, 0]), "stopped": np.ones(1)}
    after = switches.struck(s, np.zeros(1), np.array([2.0, -3, 1]))
    assert after["slide"].tolist() == [1, -1, 0] and after["stopped"].tolist() == [0]
    after = switches.struck(s, np.zeros(1), np.array([0.0, 1e-12, 1]))
    assert after["slide"].tolist() == [-1, 0, 0] and after["stopped"].tolist() == [1]


@pytest.mark.parametrize(
    ("speed", "pull", "stays"),
    [
        (1.0, 0.0, False),
        (2 * REST * 0.99, 0.0, True),  # it would leave with less than REST
        (2 * REST * 1.01, 0.0, False),
        (0.1, 99.0, False),  # flies for 2 · 0.05/99 s: more than the step of 1 ms
        (0.1, 101.0, True),
        (0.1, -101.0, False),  # pulled away from the stop
    ],
)
def test_a_body_stays_at_its_stop(speed, pull, stays):
    change = trigger(0, stops=(STOP,)).effect(
        HybridModes(3, stops=(STOP,)).initial(), seen(velocity=[0, speed, 0], acceleration=[0, pull, 0])
    )
    assert change.state["stopped"].tolist() == [stays]
    assert change.rebound == {1: 0.0 if stays else 0.5}


def test_when_a_stop_is_left():
    """As soon as it would have to pull."""
    leave = trigger(1, stops=(STOP,))
    s = HybridModes(3, stops=(STOP,)).initial() | {"stopped": np.ones(1)}
    assert leave.value(seen(hold=[0, -7, 0])) == -7 and leave.pressing(seen(hold=[0, 1, 0]))
    assert leave.enabled(s, seen())
    change = leave.effect(s, seen())
    assert change.state["stopped"].tolist() == [0] and not change.rebound


def test_when_a_brake_sticks_and_slips():
    switches = HybridModes(3, events=(event("brake", (2,), 5.0),))
    _, stick, slip = switches.triggers
    sliding = switches.initial() | {"brake": np.array([0.0, 0, 5]), "slide": np.array([0.0, 0, 1])}
    sticking = sliding | {"slide": np.zeros(3)}
    assert stick.enabled(sliding, seen()) and not stick.enabled(sticking, seen())
    assert slip.enabled(sticking, seen()) and not slip.enabled(sliding, seen())
    assert not slip.enabled(switches.initial(), seen())
    assert stick.value(seen(velocity=[0, 0, 2], slide=[0, 0, 1])) == -2
    stuck = stick.effect(sliding, seen())
    assert not stuck.state["slide"].any() and stuck.rebound == {2: 0.0}
    assert slip.value(seen(hold=[0, 0, -6], brake=[0, 0, 5])) == 1
    assert slip.effect(sticking, seen(hold=[0, 0, -6])).state["slide"].tolist() == [0, 0, 1]
    assert slip.effect(sticking, seen(hold=[0, 0, 6])).state["slide"].tolist() == [0, 0, -1]
