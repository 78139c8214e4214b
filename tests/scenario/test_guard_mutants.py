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
OWN = {"joints.elbow.limits.temperature": "70 degC"}
SIMULATED = {
    "jump": scenario("stopped within 1 tick by tracking of elbow", fault("encoder_jump", joint="elbow", size=0.1)),
    "off": scenario("stopped within 90 ms by tracking of elbow", fault("motor_fault", joint="elbow")),
}
TRACKING = {"joints.elbow.limits.tracking": "5 deg"}
# what is weaker -> the scenarios that fail for it
MUTANTS = {
    CAN: [
        ({"guard.stale": "100 ms"}, {"silence"}),
        ({"joints.elbow.limits.velocity": "1000 rad/s"}, {"jump"}),
        ({"joints.elbow.limits.actions.temperature": "warn"}, {"hot"}),
    ],
    SIM: [
        ({"joints.elbow.limits.tracking": "10 deg"}, {"jump", "off"}),
        ({"joints.elbow.limits.actions.tracking": "warn"}, {"jump", "off"}),
    ],
}


@pytest.mark.parametrize(("rig", "table", "own"), [(CAN, DRIVES, OWN), (SIM, SIMULATED, TRACKING)], ids=["can", "sim"])
def test_weaker_limits_fail_the_scenarios(tmp_path, rig, table, own):
    """All scenarios hold with the limits of the rig; each mutant has those that fail."""
    given, failed = {name: each | {"set": own} for name, each in table.items()}, set()
    for k, (weaker, fails) in enumerate(MUTANTS[rig]):
        given |= {f"{k} {name}": table[name] | {"set": own | weaker} for name in fails}
        failed |= {f"{k} {name}" for name in fails}
    results = results_of(rig, tmp_path, given)
    assert {name for name, result in results.items() if not result.ok} == failed
