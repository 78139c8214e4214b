"""Rigs with drivers in simulated time against the same rigs without drivers, and several drivers at once."""

import numpy as np
import pytest

from cosim.apps.scenario.armed_rig import ArmedRig
from cosim.apps.scenario.stepped_engine import SteppedEngine
from cosim.rig.sections.rig_spec import read_rig
from tests.conformance.families import Case, addresses, rig, section, stepped_cases, write_rig
from tests.scenario.helpers import CAN, RIGS, SIM, results_of, scenario


def run_of(path, ticks, *overrides):
    armed = ArmedRig(read_rig(path, overrides), [])
    armed.begin()
    rows, fault = armed.run(ticks)
    assert fault == "" and len(rows) == ticks
    return armed, armed.signals(rows)


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
    armed = ArmedRig(read_rig(RIGS / "bench" / "two_can_buses.yaml"), [])
    engine = armed.engine
    assert isinstance(engine, SteppedEngine)
    first, second = (group for group in engine.hardware_manager.groups if group.real)
    enable, watchdog = second.driver.enable, first.hardware.watchdog

    def slowly(mode):
        engine.time.wait_until(engine.time.now() + round(3e9 * watchdog))
        enable(mode)

    monkeypatch.setattr(second.driver, "enable", slowly)
    armed.begin()
    rows, fault = armed.run(20)
    assert fault == "" and len(rows) == 20


def test_ticks_are_due_at_their_times_and_the_physics_is_in_step():
    armed, _ = run_of(CAN, 10)
    engine = armed.engine
    assert isinstance(engine, SteppedEngine)
    steps, now = engine.server.steps, engine.time.now()
    armed.run(7)
    assert (engine.server.steps - steps, engine.time.now() - now) == (7, 7_000_000)


def test_motors_that_stay_on_are_reported(monkeypatch):
    armed, _ = run_of(CAN, 10)
    engine = armed.engine
    assert isinstance(engine, SteppedEngine)
    assert engine.time_until_off(0.01) is None  # they are commanded
    engine.stop()
    assert engine.time_until_off(0.5) == pytest.approx(0.0, abs=2e-3)


# --- families of drives in simulated time: a driver and its emulated drives on a line in memory ---

# the cycle of Modbus does not fit into a step of 5 ms
CASES = [case for case in stepped_cases() if case.family != "modbus"]
lines = pytest.mark.parametrize("case", list({case.line: case for case in reversed(CASES)}.values()), ids=str)
AT, STALE = 0.2, 0.03  # s


def file_of_rig(case: Case, folder):
    """Two joints that follow a sine, at 200 Hz."""
    data = rig(section(case, folder, watchdog=0.1), addresses(case))
    sine = {"type": "sine", "amplitude": 0.15, "frequency": 0.8}
    gains = {"kp": [0.05, 0.0125], "ki": 0.0, "kd": [0.02, 0.005]}
    data |= {
        "controllers": [{"name": "arm", "type": "pid", **gains, "trajectory": sine}],
        "guard": {"stale": STALE},
        "schedule": {"step": 0.005, "duration": 0.6, "blend": 0.1},
    }
    for name in data["joints"]:
        data["joints"][name]["limits"] |= {"tracking": 10.0, "frozen": 10.0}
    return write_rig(folder / "rig.yaml", data)


def test_faults_pass_through_the_codec_the_driver_and_the_emulated_drive(tmp_path):
    """On a serial port; on a bus in test_kinds_of_faults.py."""
    case = next(case for case in CASES if case.line == "pty")

    def at(kind, **keys):
        return {"kind": kind, "at": AT, **keys}

    scenarios = {
        "undisturbed": scenario("completed", at("duplicate", fraction=0.0)),
        "silence": scenario(f"stopped within {STALE + 0.01:g} s by stale", at("drop")),
        "jump": scenario("stopped within 5 ticks by jump of a", at("encoder_jump", joint="a", size=0.5)),
        "fault": scenario("stopped within 25 ticks by drive_fault of b", at("motor_fault", joint="b")),
        "hot": scenario("stopped within 200 ms by drive_fault of b", at("hot_winding", joint="b", temperature=150.0)),
        "power": scenario(["stopped within 150 ms", "motors off within 150 ms"], at("power_loss", duration=0.015)),
    }
    for each in scenarios.values():
        each["duration"] = 0.6
    results = results_of(file_of_rig(case, tmp_path), tmp_path, scenarios)
    assert {name: result.failures for name, result in results.items() if not result.ok} == {}


@lines
def test_the_same_run_to_the_bit(case, tmp_path):
    spec, rows = read_rig(file_of_rig(case, tmp_path)), []
    for _ in range(2):
        armed = ArmedRig(spec, [])
        armed.begin()
        found, fault = armed.run(40)
        armed.close()
        assert fault == "" and len(found) == 40
        rows.append(found.tobytes())
    assert rows[0] == rows[1]
