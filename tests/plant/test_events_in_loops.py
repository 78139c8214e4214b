"""Events in mechanisms with closed loops."""

import numpy as np
import pytest

from tests.plant.event_runs import FOUR_BAR, EventRun


def test_a_latch_in_a_loop(run_of):
    """The rates of the constraints are met after the impulse: everything stands still with one joint."""
    ran = run_of(["do: latch, of: B, at: 0.1234"], FOUR_BAR, "duration: 0.3")
    assert abs(ran["A/velocity"][123]) > 0.5
    for name in "ABC":
        np.testing.assert_allclose(ran[f"{name}/velocity"][124:], 0, atol=1e-12)
    assert ran["pin/violation"].max() < 1e-12
    assert ran.event("latch B")[2] == pytest.approx(ran["energy/kinetic"][123], rel=0.05)
    stored, lost = ran["energy/stored"], ran["energy/dissipated"]
    np.testing.assert_allclose(stored + lost, stored[0], atol=1e-9)


def test_a_stop_in_a_loop(rig_of):
    text = FOUR_BAR.replace("guess: 60 deg}", "guess: 60 deg}, stops: {lower: 0.9, restitution: 0.5}")
    ran = EventRun(rig_of(text + "schedule: {duration: 0.4}\n"))
    assert ran["C/position"].min() > 0.9 - 1e-6
    assert ran.event("C at its lower stop")[0] > 0
    assert ran["pin/violation"].max() < 1e-12
    stored, lost = ran["energy/stored"], ran["energy/dissipated"]
    np.testing.assert_allclose(stored + lost, stored[0], atol=1e-6)


def test_a_released_loop_is_an_open_chain(rig_of, run_of):
    """From then on as the same tree without a loop does from that state."""
    ran = run_of(["do: release, of: pin, at: 0.1"], FOUR_BAR, "duration: 0.3")
    state = {
        name: f"{{initial: {{position: {float(ran[f'{name}/position'][100])!r}, velocity:"
        f" {float(ran[f'{name}/velocity'][100])!r}}}}}"
        for name in "ABC"
    }
    tree = FOUR_BAR.split("  loops:")[0]
    tree += "joints: {" + ", ".join(f"{k}: {v}" for k, v in state.items()) + "}\nschedule: {duration: 0.2}\n"
    alone = EventRun(rig_of(tree))
    for name in "ABC":
        np.testing.assert_allclose(ran[f"{name}/position"][100:], alone[f"{name}/position"], atol=1e-9)
    assert not ran["pin/violation"][101:].any()  # released, so there is no violation
    assert ran.event("release pin") == (1, pytest.approx(0.1), 0)
    np.testing.assert_allclose(ran["pin/force_x"][101:], 0, atol=1e-12)
    assert ran.fault == ""


@pytest.mark.parametrize(("effort_a", "effort_c", "moves"), [(0.1, 0.1, True), (0.1, 60, False), (60, 0.1, False)])
def test_two_brakes_in_a_loop(run_of, effort_a, effort_c, moves):
    """From standstill under gravity: a strong one holds the loop, two weak ones resist its fall."""
    events = [f"do: brake, of: A, effort: {effort_a}, at: 0", f"do: brake, of: C, effort: {effort_c}, at: 0"]
    ran = run_of(events, FOUR_BAR, "duration: 0.3")
    assert (np.abs(ran["A/velocity"]).max() > 1e-12) == moves
    stored, lost = ran["energy/stored"], ran["energy/dissipated"]
    np.testing.assert_allclose(stored + lost, stored[0], atol=1e-5)
    work = sum(e * np.abs(np.diff(ran[f"{name}/position"])).sum() for name, e in (("A", effort_a), ("C", effort_c)))
    assert lost[-1] == pytest.approx(work if moves else 0.0, rel=1e-3, abs=1e-12)
    assert ran.fault == ""


def test_a_weak_brake_of_a_rocker_passes_its_dead_points(run_of):
    """The rocker reverses while the loop moves on: its brake must neither hold the loop there nor push it."""
    ran = run_of(["do: brake, of: C, effort: 0.1, at: 0"], FOUR_BAR, "duration: 1 s")
    velocity, lost = ran["C/velocity"], ran["energy/dissipated"]
    assert (np.diff(np.sign(velocity[1:])) != 0).sum() >= 2
    assert np.all(np.diff(lost) >= -1e-12)
    assert lost[-1] == pytest.approx(0.1 * np.abs(np.diff(ran["C/position"])).sum(), rel=1e-3)
    np.testing.assert_allclose(ran["energy/stored"] + lost, ran["energy/stored"][0], atol=1e-4)
