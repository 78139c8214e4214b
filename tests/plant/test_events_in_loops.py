"""Events in mechanisms with closed loops."""

import numpy as np
import pytest

from tests.plant.event_runs import FOUR_BAR, EventRun, with_events

# --- loops --------------------------------------------------------------------------------------------------


def test_a_latch_in_a_loop(rig_of):
    """The rates of the constraints are met after the impulse: everything stands still with one joint."""
    ran = EventRun(rig_of(with_events(["do: latch, of: B, at: 0.1234"], FOUR_BAR, "duration: 0.3")))
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


def test_a_released_loop_is_an_open_chain(rig_of):
    """From then on as the same tree without a loop does from that state."""
    ran = EventRun(rig_of(with_events(["do: release, of: pin, at: 0.1"], FOUR_BAR, "duration: 0.3")))
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
