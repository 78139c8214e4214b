"""Rigs with drivers in simulated time against the same rigs without drivers, and several drivers at once."""

import numpy as np
import pytest

from cosim.rig.sections.rig_spec import read_rig
from cosim.scenario.stand import Stand
from cosim.scenario.stepped_engine import SteppedEngine
from tests.scenario.helpers import CAN, RIGS, SIM


def run_of(path, ticks, *overrides):
    stand = Stand(read_rig(path, overrides), [])
    stand.begin()
    rows, fault = stand.run(ticks)
    assert fault == "" and len(rows) == ticks
    return stand, stand.signals(rows)


def test_an_arm_behind_its_drives_moves_as_the_simulated_one():
    """One is compiled and has actuators, the other goes through frames, drivers and emulated drives; after the blend
    from where the arm sank to before its drives were on."""
    real, with_drives = run_of(CAN, 1200)
    simulated, compiled = run_of(SIM, 1200)
    assert isinstance(real.engine, SteppedEngine) and simulated.engine.kind == "compiled"
    for joint in ("base", "shoulder", "elbow"):
        motion = compiled[:, simulated.names[f"{joint}/position"]]
        difference = with_drives[:, real.names[f"{joint}/position"]] - motion
        assert np.ptp(motion[700:]) > 0.1 and np.abs(difference[700:]).max() < 0.002


def test_drivers_that_are_enabled_first_get_commands_until_the_others_are(monkeypatch):
    """Else their watchdog trips: the second driver takes longer than that."""
    stand = Stand(read_rig(RIGS / "bench" / "two_can_buses.yaml"), [])
    engine = stand.engine
    assert isinstance(engine, SteppedEngine)
    first, second = (group for group in engine.hardware_manager.groups if group.real)
    enable, watchdog = second.driver.enable, first.hardware.watchdog

    def slowly(mode):
        engine.time.wait_until(engine.time.now() + round(3e9 * watchdog))
        enable(mode)

    monkeypatch.setattr(second.driver, "enable", slowly)
    stand.begin()
    rows, fault = stand.run(20)
    assert fault == "" and len(rows) == 20


def test_ticks_are_due_at_their_times_and_the_physics_is_in_step():
    stand, _ = run_of(CAN, 10)
    engine = stand.engine
    assert isinstance(engine, SteppedEngine)
    steps, now = engine.server.steps, engine.time.now()
    stand.run(7)
    assert (engine.server.steps - steps, engine.time.now() - now) == (7, 7_000_000)


def test_motors_that_stay_on_are_reported(monkeypatch):
    stand, _ = run_of(CAN, 10)
    engine = stand.engine
    assert isinstance(engine, SteppedEngine)
    assert engine.time_until_off(0.01) is None  # they are commanded
    engine.stop()
    assert engine.time_until_off(0.5) == pytest.approx(0.0, abs=2e-3)
