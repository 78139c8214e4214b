"""A guard that is weaker than it should be fails the scenarios: a limit switched off, a threshold doubled."""

from __future__ import annotations

import pytest

from tests.scenario.helpers import CAN, SIM, fault, results_of, scenario

DRIVES = {
    "silence": scenario("stopped within 60 ms by stale", fault("drop")),
    "jump": scenario("stopped within 2 ticks by jump of elbow", fault("encoder_jump", joint="elbow", size=0.5)),
    "hot": scenario(
        "stopped within 3 ticks by temperature of elbow", fault("hot_winding", joint="elbow", temperature=75.0)
    ),
}
OWN = "joints.elbow.limits.temperature=70 degC"
SIMULATED = {
    "jump": scenario("stopped within 1 tick by tracking of elbow", fault("encoder_jump", joint="elbow", size=0.1)),
    "off": scenario("stopped within 90 ms by tracking of elbow", fault("motor_fault", joint="elbow")),
}
TRACKING = "joints.elbow.limits.tracking=5 deg"


@pytest.mark.parametrize(
    ("mutant", "failed"),
    [
        ((), set()),
        (("guard.stale=100 ms",), {"silence"}),
        (("joints.elbow.limits.velocity=1000 rad/s",), {"jump"}),
        (("joints.elbow.limits.temperature=140 degC",), {"hot"}),
        (("joints.elbow.limits.actions.temperature=warn",), {"hot"}),
    ],
)
def test_weaker_limits_of_a_rig_with_drives(tmp_path, mutant, failed):
    results = results_of(CAN, tmp_path, DRIVES, OWN, *mutant)
    assert {name for name, result in results.items() if not result.ok} == failed


@pytest.mark.parametrize(
    ("mutant", "failed"),
    [
        ((), set()),
        (("joints.elbow.limits.tracking=10 deg",), {"jump", "off"}),
        (("joints.elbow.limits.actions.tracking=warn",), {"jump", "off"}),
        (("joints.elbow.limits.actions.temperature=warn",), set()),
    ],
)
def test_weaker_limits_of_a_simulated_rig(tmp_path, mutant, failed):
    results = results_of(SIM, tmp_path, SIMULATED, TRACKING, *mutant)
    assert {name for name, result in results.items() if not result.ok} == failed
