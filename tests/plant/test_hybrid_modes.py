"""Discrete modes of a plant: locked dofs, efforts of brakes, when indicators fire and which modes they change."""

import numpy as np
import pytest

from cosim.simulation.plant.brakes import Brake, Brakes
from cosim.simulation.plant.hybrid_modes import ACTIONS, MIN_REBOUND, HardStop, HybridModes, PlantEvent
from cosim.simulation.plant.indicators import KEEPS_VELOCITY


def event(do="latch", of=(0,), effort=0.0, name="e", number=1, **brake):
    braking = Brake(number, name, of, (effort,), **brake) if do == "brake" else None
    return PlantEvent(name, lambda inputs: inputs["t"] - 1, do, of, braking)


STOP = HardStop("wall", 1, 2.0, 1.0, 0.5)


def inputs(**motion):
    names = ("position", "velocity", "acceleration", "locking_effort", "slide", "held", "static_effort")
    still = {name: np.zeros(3) for name in names}
    return {"t": 0.0, "step": 1e-3} | still | {name: np.array(value, dtype=float) for name, value in motion.items()}


def test_a_plant_without_modes():
    assert not HybridModes(3)
    assert HybridModes(3, latched=(1,)) and HybridModes(3, events=(event(),)) and HybridModes(3, stops=(STOP,))


def test_locked_dofs():
    modes = HybridModes(3, events=(event("brake", (2,), 4.0),), stops=(STOP,), latched=(0,))
    s = modes.initial()
    assert modes.locked(s).tolist() == [1, 0, 0]
    assert modes.locked(s | {"stopped": np.ones(1)}).tolist() == [1, 1, 0]
    sticking = s | {"brake": np.array([0.0, 0, 1])}
    assert modes.locked(sticking).tolist() == [1, 0, 1]
    assert modes.locked(sticking | {"slide": np.array([0.0, 0, -1])}).tolist() == [1, 0, 0]


def test_a_slipping_brake_opposes_the_motion():
    brakes = Brakes(3, (Brake(1, "a", (1,), (3.0,)), Brake(2, "b", (2,), (4.0,), static_ratio=1.5)))
    s = HybridModes(3).initial() | {"brake": np.array([0.0, 1, 2]), "slide": np.array([0.0, 0, -1])}
    efforts = brakes.efforts(0.0, s, np.zeros(3), np.array([0.0, 9, -9]))
    assert {name: values.tolist() for name, values in efforts.items()} == {
        "braking_effort": [0, 0, 4],
        "static_effort": [0, 3, 6],
    }
    assert brakes.directions(s, np.zeros(3)) == {1: 0, 2: -1}


def test_the_effort_of_a_table():
    brake = Brake(1, "a", (0,), (2.0, 6.0, 1.0), (0.0, 1.0, 3.0), ("position", 1))
    efforts = [brake.effort({"position": [7.0, x]}) for x in (-5.0, 0.0, 0.25, 1.0, 2.0, 3.0, 9.0)]
    assert efforts == [2, 2, 3, 6, 3.5, 1, 1]


@pytest.mark.parametrize("points", [(0.0, 0.1, 0.2), (0.0, 1e-320, 0.2), (-1e12, 1e12, 1.1e12)])
def test_the_effort_of_a_table_is_never_negative(points):
    """Nor not a number: a sum of steps of 10 to 0.1 to 0 ends below 0, and a row may be steeper than any number."""
    brake = Brake(1, "a", (0,), (10.0, 0.1, 0.0), points)
    ends = [np.nextafter(point, side) for point in points for side in (-np.inf, np.inf)]
    assert all(0.0 <= brake.effort({"elapsed": [x]}) <= 10.0 for x in (*points, *ends, 1e300, -1e300))
    assert [brake.effort({"elapsed": [x]}) for x in (points[2], 1e300)] == [0, 0]


def test_the_friction_of_several_dofs_is_one_vector():
    brakes = Brakes(3, (Brake(1, "a", (0, 2), (10.0,), creep=0.5),))
    s = HybridModes(3).initial() | {"brake": np.array([1.0, 0, 1]), "slide": np.array([0.6, 0, 0.8])}

    def braking(velocity, s=s):
        return brakes.efforts(0.0, s, np.zeros(3), np.array(velocity))["braking_effort"]

    assert braking([4.0, 9, 3]) == pytest.approx([-8, 0, -6])
    # at low speed its direction tends to that in which it began to slip, and beyond its stop it is that one
    slow = np.array([0.6, 0.8]) * 0.4 + np.array([0.8, 0.6]) * 0.4
    expected = -10 * slow / np.linalg.norm(slow)
    assert braking([0.32, 0, 0.24])[[0, 2]] == pytest.approx(expected)
    assert braking([-5.0, 9, 3]) == pytest.approx([-6, 0, -8])
    assert not braking([1.0, 1, 1], s | {"slide": np.zeros(3)}).any()


def test_events_that_are_reported():
    clamps = event("brake", (0,), 5.0, "clamp"), event("brake", (2,), 5.0, "grip", 2)
    modes = HybridModes(3, events=(*clamps, event(name="lock")), stops=(STOP,))
    assert modes.event_names == ("clamp", "grip", "lock", "wall")
    # then separation from the stop, sticking and slipping of each brake
    assert [indicator.name for indicator in modes.indicators[4:]] == ["wall", "clamp", "clamp", "grip", "grip"]
    s = modes.initial()
    assert len(s["count"]) == len(s["last"]) == len(s["lost"]) == 4
    assert len(s["before"]) == len(s["fired"]) == 9


def test_constraints_that_are_released():
    modes = HybridModes(1, 3, (event("release", (1,)),))
    assert modes.releases and not HybridModes(1, 3, (event(),)).releases
    after = ACTIONS["release"](modes.events[0], modes.initial(), inputs()).state
    assert modes.active(after).tolist() == [1, 0, 1]


def test_latch_and_unlatch():
    s = HybridModes(3).initial()
    change = ACTIONS["latch"](event("latch", (0, 2)), s, inputs())
    assert change.state["latched"].tolist() == [1, 0, 1]
    assert change.rebound == {0: 0.0, 2: 0.0}
    back = ACTIONS["unlatch"](event("unlatch", (2,)), change.state, inputs())
    assert back.state["latched"].tolist() == [1, 0, 0] and not back.rebound
    assert not s["latched"].any()


def test_a_brake_starts_to_slip_in_the_direction_of_motion():
    braking = [event("brake", (k,), 5.0, number=k + 1) for k in range(3)]
    modes = HybridModes(3, events=tuple(braking))
    s = modes.initial()
    for indicator in modes.indicators[:3]:
        s = indicator.effect(s, inputs(velocity=[-2, 0, 1e-12])).state
    assert s["slide"].tolist() == [-1, 0, 0]
    assert s["brake"].tolist() == [1, 2, 3]
    off = ACTIONS["unbrake"](event("unbrake", (0, 1, 2)), s, inputs()).state
    assert not off["brake"].any() and not off["slide"].any()


def indicator(k, **modes):
    return HybridModes(3, **modes).indicators[k]


def test_when_a_stop_is_hit():
    hit = indicator(0, stops=(STOP,))
    assert hit.value(inputs(position=[0, 1.5, 0])) == -0.5
    assert indicator(0, stops=(HardStop("", 1, -2.0, -1.0, 0),)).value(inputs(position=[0, 1.5, 0])) == -3.5
    s = HybridModes(3, stops=(STOP,)).initial()
    there = inputs(position=[0, 2, 0])
    assert hit.enabled(s, there) and not hit.enabled(s | {"stopped": np.ones(1)}, there)
    assert hit.fires_while(inputs(velocity=[0, 1, 0])) and not hit.fires_while(inputs(velocity=[0, -1, 0]))


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
    hit, s = indicator(0, stops=(STOP,)), HybridModes(3, stops=(STOP,)).initial()
    motion = inputs(position=[0, position, 0], velocity=[0, speed, 0], acceleration=[0, pull, 0])
    assert hit.enabled(s, motion) == possible


def test_what_takes_impulses():
    """Latches do, and stops as long as they push; brakes do not."""
    modes = HybridModes(3, stops=(STOP, HardStop("floor", 2, 0.0, -1.0, 0.5)), latched=(0,))
    s = modes.initial() | {"brake": np.array([0.0, 1, 1])}
    assert modes.rigidly_locked(s, np.array([0.0, 0])).tolist() == [1, 0, 0]
    assert modes.rigidly_locked(s, np.array([0.0, 1])).tolist() == [1, 0, 1]
    for impulse, pushing in (([0.0, -1, 1], [1, 1]), ([0.0, 1, 1], [0, 1]), ([0.0, -1, -1], [1, 0])):
        assert modes.pushing_stops(np.ones(2), np.array(impulse)).tolist() == pushing
    assert modes.pushing_stops(np.array([0.0, 1]), np.array([0.0, -1, 1])).tolist() == [0, 1]


def test_what_an_impact_leaves():
    """Brakes slide the way their dofs move; a stop without a push is left only where its dof moves."""
    modes = HybridModes(3, events=tuple(event("brake", (k,), 4.0, number=k + 1) for k in range(3)), stops=(STOP,))
    s = modes.initial() | {"brake": np.array([1.0, 2, 0]), "slide": np.array([-1.0, 0, 0]), "stopped": np.ones(1)}
    after = modes.after_impact(s, np.zeros(1), np.array([2.0, -3, 1]))
    assert after["slide"].tolist() == [1, -1, 0] and after["stopped"].tolist() == [0]
    after = modes.after_impact(s, np.zeros(1), np.array([0.0, 1e-12, 1]))
    assert after["slide"].tolist() == [-1, 0, 0] and after["stopped"].tolist() == [1]


@pytest.mark.parametrize(
    ("speed", "pull", "stays"),
    [
        (1.0, 0.0, False),
        (2 * MIN_REBOUND * 0.99, 0.0, True),  # it would leave with less than MIN_REBOUND
        (2 * MIN_REBOUND * 1.01, 0.0, False),
        (0.1, 99.0, False),  # flies for 2 · 0.05/99 s: more than the step of 1 ms
        (0.1, 101.0, True),
        (0.1, -101.0, False),  # pulled away from the stop
    ],
)
def test_a_body_stays_at_its_stop(speed, pull, stays):
    change = indicator(0, stops=(STOP,)).effect(
        HybridModes(3, stops=(STOP,)).initial(), inputs(velocity=[0, speed, 0], acceleration=[0, pull, 0])
    )
    assert change.state["stopped"].tolist() == [stays]
    assert change.rebound == {1: 0.0 if stays else 0.5}


def test_when_a_stop_is_left():
    """As soon as it would have to pull."""
    leave = indicator(1, stops=(STOP,))
    s = HybridModes(3, stops=(STOP,)).initial() | {"stopped": np.ones(1)}
    assert leave.value(inputs(locking_effort=[0, -7, 0])) == -7 and leave.fires_while(inputs(locking_effort=[0, 1, 0]))
    assert leave.enabled(s, inputs())
    change = leave.effect(s, inputs())
    assert change.state["stopped"].tolist() == [0] and not change.rebound


def test_when_a_brake_sticks_and_slips():
    modes = HybridModes(3, events=(event("brake", (2,), 5.0),))
    _, stick, slip = modes.indicators
    sliding = modes.initial() | {"brake": np.array([0.0, 0, 1]), "slide": np.array([0.0, 0, 1])}
    sticking = sliding | {"slide": np.zeros(3)}
    assert stick.enabled(sliding, inputs()) and not stick.enabled(sticking, inputs())
    assert slip.enabled(sticking, inputs()) and not slip.enabled(sliding, inputs())
    assert not slip.enabled(modes.initial(), inputs())
    assert not slip.enabled(sticking, inputs(held=[0, 0, 1]))
    assert stick.value(inputs(velocity=[0, 0, 2], slide=[0, 0, 1])) == -2
    stuck = stick.effect(sliding, inputs(trial_acceleration=[0, 0, 1]))
    assert not stuck.state["slide"].any() and stuck.rebound == {2: 0.0}
    passing = stick.effect(sliding, inputs(trial_acceleration=[0, 0, -1]))
    assert passing.state["slide"].tolist() == [0, 0, -1] and passing.rebound == {2: KEEPS_VELOCITY}
    assert slip.value(inputs(locking_effort=[0, 0, -6], static_effort=[0, 0, 5])) == 1
    assert slip.effect(sticking, inputs(locking_effort=[0, 0, -6])).state["slide"].tolist() == [0, 0, 1]
    assert slip.effect(sticking, inputs(locking_effort=[0, 0, 6])).state["slide"].tolist() == [0, 0, -1]


def test_when_a_brake_of_several_dofs_sticks_turns_and_slips():
    modes = HybridModes(3, events=(event("brake", (0, 2), 5.0, creep=0.1),))
    _, stick, slip = modes.indicators
    sliding = modes.initial() | {"brake": np.array([1.0, 0, 1]), "slide": np.array([1.0, 0, 0])}
    assert stick.value(inputs(velocity=[2, 9, 0], slide=[1, 0, 0])) == pytest.approx(2 * (np.sqrt(0.75) - 1))
    assert stick.value(inputs(velocity=[1, 9, np.sqrt(1 / 3)], slide=[1, 0, 0])) == pytest.approx(0)
    assert stick.enabled(sliding | {"slide": np.array([0.6, 0, 0.8])}, inputs())
    loads = {"static_effort": [5, 0, 5], "trial_effort": [3, 9, -4]}
    turned = stick.effect(sliding, inputs(velocity=[0.3, 9, 0.4], **loads))
    assert turned.state["slide"].tolist() == pytest.approx([0.6, 0, 0.8])
    assert turned.rebound == {0: KEEPS_VELOCITY, 2: KEEPS_VELOCITY}
    held = stick.effect(sliding, inputs(velocity=[0.05, 9, 0.05], **loads))
    assert not held.state["slide"].any() and held.rebound == {0: 0.0, 2: 0.0}
    overcome = stick.effect(sliding, inputs(velocity=[0.05, 9, 0.05], **(loads | {"static_effort": [4.9, 0, 4.9]})))
    assert overcome.state["slide"].tolist() == pytest.approx([-0.6, 0, 0.8]) and overcome.rebound == {0: 0.0, 2: 0.0}
    assert slip.value(inputs(locking_effort=[3, 9, 4], static_effort=[4, 0, 4])) == pytest.approx(1)
    # a stop holds one of its dofs with it
    assert slip.value(inputs(locking_effort=[9, 9, 3], static_effort=[4, 0, 4], held=[1, 0, 0])) == pytest.approx(-1)
    sticking = sliding | {"slide": np.zeros(3)}
    assert slip.enabled(sticking, inputs(held=[1, 0, 0])) and not slip.enabled(sticking, inputs(held=[1, 0, 1]))
