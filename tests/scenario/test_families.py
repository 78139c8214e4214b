"""Families of drives in simulated time: a driver and its emulated drives on a line in memory.

How a run with every family ends after each fault is in tests/conformance/test_faults.py.
"""

import pytest

from cosim.rig.sections.rig_spec import read_rig
from cosim.scenario.stand import Stand
from tests.conformance.families import Case, addresses, rig, section, stepped_cases, write_rig
from tests.scenario.helpers import results_of, scenario

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
        stand = Stand(spec, [])
        stand.begin()
        found, fault = stand.run(40)
        stand.close()
        assert fault == "" and len(found) == 40
        rows.append(found.tobytes())
    assert rows[0] == rows[1]
