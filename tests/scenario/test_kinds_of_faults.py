"""Every kind of fault has an effect: how the run ends with it, an expectation that holds, and ones that fail."""

import pytest

from cosim.hardware.emulation.fault_kinds import KINDS
from tests.scenario.helpers import CAN, SIM, fault, results_of, scenario

E = {"joint": "elbow"}
# kind -> (its keys, what is expected, how what happened begins, and how the only failure)
DRIVES = {
    "drop": ({}, ["stopped within 60 ms by stale", "elbow/age at most 52 ms"], "stopped by stale", ""),
    "delay": (
        {"delay": 0.004},
        ["completed", "elbow/age at most 10 ms", "elbow/age at most 3 ms"],
        "completed",
        "elbow/age was ",
    ),
    "late_answers": ({"delay": 0.1}, ["stopped by stale"], "stopped by stale of base", ""),
    "duplicate": ({}, ["completed"], "completed", ""),
    "corrupt": ({}, ["stopped within 20 ticks by jump"], "stopped by jump of elbow", ""),
    "reorder": ({}, ["completed"], "completed", ""),
    "bus_off": ({}, ["stopped within 2 ticks by bus_off"], "stopped by bus_off", ""),
    "stale_heartbeat": ({}, ["completed"], "completed", ""),
    "brown_out": (
        {"supply": 0.3},
        ["stopped within 3 ticks by drive_fault", "motors off within 5 ticks"],
        "stopped by drive_fault of base",
        "",
    ),
    "power_loss": ({}, ["stopped within 60 ms by stale", "motors off within 60 ms"], "stopped by stale of base", ""),
    "encoder_jump": (E | {"size": 0.2}, ["stopped within 2 ticks by jump of elbow"], "stopped by jump of elbow", ""),
    "encoder_drift": (E | {"rate": 30.0}, ["stopped by velocity of elbow"], "stopped by velocity of elbow", ""),
    "encoder_noise": (E | {"size": 0.02}, ["stopped within 20 ticks by jump of elbow"], "stopped by jump of elbow", ""),
    "encoder_freeze": (E, ["completed", "elbow/velocity below 0.1 deg/s after 50 ms"], "completed", ""),
    "encoder_nan": (E, ["stopped within 3 ticks by not_finite of elbow"], "stopped by not_finite of elbow", ""),
    "coupling_slip": (E | {"rate": 30.0}, ["stopped by velocity of elbow"], "stopped by velocity of elbow", ""),
    "hot_winding": (
        E | {"temperature": 130.0},
        ["stopped within 3 ticks by drive_fault of elbow"],
        "stopped by drive_fault of elbow",
        "",
    ),
    "motor_fault": (
        E | {"cause": "overcurrent"},
        ["stopped within 3 ticks by drive_fault of elbow", "motors off within 3 ticks", "motors off within 1 tick"],
        "stopped by drive_fault of elbow",
        "the motors were off after 2 ticks, not within 1",
    ),
    "position_unit": (E | {"scale": 0.05, "at": 0.0}, ["stopped by units of elbow"], "stopped by units of elbow", ""),
    "velocity_unit": (E | {"scale": 0.1047, "at": 0.0}, ["stopped by units of elbow"], "stopped by units of elbow", ""),
    "effort_unit": (E | {"scale": 1000.0, "at": 0.0}, ["stopped by units of elbow"], "stopped by units of elbow", ""),
}
# a kind with another expectation of its end, and the failure
OTHER_ENDS = [
    ("drop", "stopped within 20 ms by stale", "stopped after 0.051 s, not within 0.02 s"),
    ("late_answers", "completed", "stopped by stale of base, not completed"),
    ("duplicate", "stopped", "not stopped"),
    ("bus_off", "stopped by stale", "stopped by bus_off, not by stale"),
    ("encoder_jump", "stopped by jump of base", "stopped by jump of elbow, not by jump of base"),
    ("encoder_jump", "elbow/position at most 3 rad", "stopped by jump of elbow, not completed"),  # the end is implied
]
SIMULATED = {
    "brown_out": (E | {"supply": 0.0}, ["stopped by tracking of elbow"], "stopped by tracking of elbow", ""),
    "power_loss": (
        E | {"duration": 0.005},
        ["completed", "elbow/position_error above -5 deg", "elbow/position_error at most 0.01 deg"],
        "completed",
        "elbow/position_error was ",
    ),
    "encoder_jump": (
        E | {"size": 0.2},
        ["stopped within 1 tick by tracking of elbow"],
        "stopped by tracking of elbow",
        "",
    ),
    "encoder_drift": (
        E | {"rate": 0.05},
        ["completed", "elbow/position_error above 0.003 rad after 150 ms", "elbow/position_error at most 0.003 rad"],
        "completed",
        "elbow/position_error was ",
    ),
    "encoder_noise": (E | {"size": 0.001}, ["completed", "elbow/position_error at most 2 deg"], "completed", ""),
    "encoder_freeze": (E, ["stopped within 400 ms by tracking of elbow"], "stopped by tracking of elbow", ""),
    "encoder_nan": (E, ["stopped within 1 tick by not_finite of elbow"], "stopped by not_finite of elbow", ""),
    "coupling_slip": (
        E | {"rate": 0.5},
        ["completed", "elbow/position_error above 0.01 rad after 150 ms", "elbow/position_error at most 0.01 rad"],
        "completed",
        "elbow/position_error was ",
    ),
    "hot_winding": (
        E | {"temperature": 130.0},
        ["stopped within 1 tick by temperature of elbow"],
        "stopped by temperature of elbow",
        "",
    ),
    "motor_fault": (E, ["stopped within 150 ms by tracking of elbow"], "stopped by tracking of elbow", ""),
}
LIMITS = ("joints.all.limits.tracking=5 deg", "joints.all.limits.temperature=100 degC")


def _given(table, **keys):
    return {kind: scenario(expect, fault(kind, **how), **keys) for kind, (how, expect, *_) in table.items()}


@pytest.fixture(scope="module")
def of_drives(tmp_path_factory):
    others = {f"{kind} {expect}": scenario(expect, fault(kind, **DRIVES[kind][0])) for kind, expect, _ in OTHER_ENDS}
    return results_of(CAN, tmp_path_factory.mktemp("drives"), _given(DRIVES) | others)


@pytest.fixture(scope="module")
def of_simulated_joints(tmp_path_factory):
    return results_of(SIM, tmp_path_factory.mktemp("simulated"), _given(SIMULATED, duration=0.7), *LIMITS)


def test_the_tables_are_complete():
    assert DRIVES.keys() == KINDS.keys()
    assert SIMULATED.keys() == {kind for kind, row in KINDS.items() if row.simulated}


def _check(result, happened, failure):
    assert result.happened.startswith(happened), result
    assert [each[: len(failure)] for each in result.failures] == [failure] * bool(failure), result


@pytest.mark.parametrize("kind", DRIVES)
def test_a_fault_of_drives_has_its_reaction_and_no_other(of_drives, kind):
    _check(of_drives[kind], *DRIVES[kind][2:])


@pytest.mark.parametrize(("kind", "expect", "failure"), OTHER_ENDS)
def test_another_end_than_the_expected_one_is_a_failure(of_drives, kind, expect, failure):
    _check(of_drives[f"{kind} {expect}"], "", failure)


@pytest.mark.parametrize("kind", SIMULATED)
def test_a_fault_of_simulated_joints_has_its_reaction_and_no_other(of_simulated_joints, kind):
    _check(of_simulated_joints[kind], *SIMULATED[kind][2:])
