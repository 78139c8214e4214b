"""A guard that is weaker than it should be fails the scenarios: a limit switched off, a threshold doubled."""

from tests.scenario.helpers import CAN, SIM, fault, results_of, scenario

DRIVES = {
    "silence": scenario("stopped within 60 ms by stale", fault("drop")),
    "jump": scenario("stopped within 2 ticks by jump of elbow", fault("encoder_jump", joint="elbow", size=0.5)),
    "hot": scenario(
        "stopped within 3 ticks by temperature of elbow", fault("hot_winding", joint="elbow", temperature=75.0)
    ),
}
OWN = {"joints.elbow.limits.temperature": "70 degC"}
WEAKER = {
    "guard.stale": "100 ms",
    "joints.elbow.limits.velocity": "1000 rad/s",
    "joints.elbow.limits.actions.temperature": "warn",
}
SIMULATED = {
    "jump": scenario("stopped within 1 tick by tracking of elbow", fault("encoder_jump", joint="elbow", size=0.1)),
    "off": scenario("stopped within 90 ms by tracking of elbow", fault("motor_fault", joint="elbow")),
}


def test_weaker_limits_fail_the_scenarios(tmp_path):
    """All scenarios hold with the limits of the rig; each fails with its own one weaker."""
    given = {name: each | {"set": OWN} for name, each in DRIVES.items()}
    given |= {f"weaker {name}": each | {"set": OWN | WEAKER} for name, each in DRIVES.items()}
    results = results_of(CAN, tmp_path, given)
    assert {name for name, result in results.items() if not result.ok} == {f"weaker {name}" for name in DRIVES}


def test_a_limit_that_only_warns_fails_the_scenarios_of_simulated_joints(tmp_path):
    """They hold with the limit: test_kinds_of_faults.py."""
    warns = "joints.elbow.limits.tracking=5 deg", "joints.elbow.limits.actions.tracking=warn"
    assert not any(result.ok for result in results_of(SIM, tmp_path, SIMULATED, *warns).values())
