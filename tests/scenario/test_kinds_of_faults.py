"""Every kind of fault has an effect: an expectation that holds with it, and one that fails."""

from __future__ import annotations

import pytest

from cosim.hardware.emulation.fault_kinds import KINDS
from tests.scenario.helpers import CAN, SIM, fault, results_of, scenario

# kind -> (its keys, what holds, what fails, and why)
DRIVES = {
    "drop": (
        {},
        ["stopped within 60 ms by stale", "elbow/age at most 52 ms"],
        "stopped within 20 ms by stale",
        "stopped after 0.051 s, not within 0.02 s",
    ),
    "delay": ({"delay": 0.004}, ["completed", "elbow/age at most 10 ms"], "elbow/age at most 3 ms", "elbow/age was "),
    "late_answers": ({"delay": 0.1}, "stopped by stale", "completed", "stopped by stale of base, not completed"),
    "duplicate": ({}, "completed", "stopped", "not stopped"),
    "corrupt": ({}, "stopped within 20 ticks by jump", "completed", "stopped by jump of elbow"),
    "reorder": ({}, "completed", "stopped by stale", "not stopped"),
    "bus_off": ({}, "stopped within 2 ticks by bus_off", "stopped by stale", "stopped by bus_off, not by stale"),
    "stale_heartbeat": ({}, "completed", "stopped", "not stopped"),
    "brown_out": (
        {"supply": 0.3},
        ["stopped within 3 ticks by drive_fault", "motors off within 5 ticks"],
        "completed",
        "stopped by drive_fault of base, not completed",
    ),
    "power_loss": (
        {},
        ["stopped within 60 ms by stale", "motors off within 60 ms"],
        "stopped by bus_off",
        "stopped by stale of base, not by bus_off",
    ),
    "encoder_jump": (
        {"joint": "elbow", "size": 0.2},
        "stopped within 2 ticks by jump of elbow",
        "stopped within 2 ticks by jump of base",
        "stopped by jump of elbow, not by jump of base",
    ),
    "encoder_drift": (
        {"joint": "elbow", "rate": 30.0},
        "stopped by velocity of elbow",
        "completed",
        "stopped by velocity of elbow, not completed",
    ),
    "encoder_noise": (
        {"joint": "elbow", "size": 0.02},
        "stopped within 20 ticks by jump of elbow",
        "completed",
        "stopped by jump of elbow, not completed",
    ),
    "encoder_freeze": (
        {"joint": "elbow"},
        ["completed", "elbow/velocity below 0.1 deg/s after 50 ms"],
        "stopped within 20 ms",
        "not stopped",
    ),
    "encoder_nan": (
        {"joint": "elbow"},
        "stopped within 3 ticks by not_finite of elbow",
        "completed",
        "stopped by not_finite of elbow, not completed",
    ),
    "coupling_slip": (
        {"joint": "elbow", "rate": 30.0},
        "stopped by velocity of elbow",
        "completed",
        "stopped by velocity of elbow, not completed",
    ),
    "hot_winding": (
        {"joint": "elbow", "temperature": 130.0},
        "stopped within 3 ticks by drive_fault of elbow",
        "elbow/temperature at most 30 degC",
        "stopped by drive_fault of elbow, not completed",
    ),
    "motor_fault": (
        {"joint": "elbow", "cause": "overcurrent"},
        ["stopped within 3 ticks by drive_fault of elbow", "motors off within 3 ticks"],
        "motors off within 1 tick",
        "the motors were off after 2 ticks, not within 1",
    ),
    "position_unit": (
        {"joint": "elbow", "scale": 0.05, "at": 0.0},
        "stopped by units of elbow",
        "completed",
        "stopped by units of elbow, not completed",
    ),
    "velocity_unit": (
        {"joint": "elbow", "scale": 0.1047, "at": 0.0},
        "stopped by units of elbow",
        "stopped by velocity of elbow",
        "stopped by units of elbow, not by velocity",
    ),
    "effort_unit": (
        {"joint": "elbow", "scale": 1000.0, "at": 0.0},
        "stopped by units of elbow",
        "completed",
        "stopped by units of elbow, not completed",
    ),
}
SIMULATED = {
    "brown_out": (
        {"joint": "elbow", "supply": 0.0},
        "stopped by tracking of elbow",
        "completed",
        "stopped by tracking of elbow, not completed",
    ),
    "power_loss": (
        {"joint": "elbow", "duration": 0.005},
        ["completed", "elbow/position_error above -5 deg"],
        "elbow/position_error at most 0.01 deg",
        "elbow/position_error was ",
    ),
    "encoder_jump": (
        {"joint": "elbow", "size": 0.2},
        "stopped within 1 tick by tracking of elbow",
        "stopped within 1 tick by tracking of base",
        "stopped by tracking of elbow, not by tracking of base",
    ),
    "encoder_drift": (
        {"joint": "elbow", "rate": 0.05},
        ["completed", "elbow/position_error above 0.003 rad after 150 ms"],
        "elbow/position_error at most 0.003 rad",
        "elbow/position_error was ",
    ),
    "encoder_noise": (
        {"joint": "elbow", "size": 0.001},
        ["completed", "elbow/position_error at most 2 deg"],
        "stopped",
        "not stopped",
    ),
    "encoder_freeze": (
        {"joint": "elbow"},
        "stopped within 400 ms by tracking of elbow",
        "completed",
        "stopped by tracking of elbow, not completed",
    ),
    "encoder_nan": (
        {"joint": "elbow"},
        "stopped within 1 tick by not_finite of elbow",
        "stopped by tracking",
        "stopped by not_finite of elbow, not by tracking",
    ),
    "coupling_slip": (
        {"joint": "elbow", "rate": 0.5},
        ["completed", "elbow/position_error above 0.01 rad after 150 ms"],
        "elbow/position_error at most 0.01 rad",
        "elbow/position_error was ",
    ),
    "hot_winding": (
        {"joint": "elbow", "temperature": 130.0},
        "stopped within 1 tick by temperature of elbow",
        "completed",
        "stopped by temperature of elbow, not completed",
    ),
    "motor_fault": (
        {"joint": "elbow"},
        "stopped within 150 ms by tracking of elbow",
        "completed",
        "stopped by tracking of elbow, not completed",
    ),
}
LIMITS = ("joints.all.limits.tracking=5 deg", "joints.all.limits.temperature=100 degC")


def _run(rig, folder, table, *overrides):
    given = {}
    for kind, (keys, holds, fails, _) in table.items():
        injected = fault(kind, **keys)
        given |= {f"{kind} holds": scenario(holds, injected), f"{kind} fails": scenario(fails, injected)}
    return results_of(rig, folder, given, *overrides)


@pytest.fixture(scope="module")
def of_drives(tmp_path_factory):
    return _run(CAN, tmp_path_factory.mktemp("drives"), DRIVES)


@pytest.fixture(scope="module")
def of_simulated_joints(tmp_path_factory):
    return _run(SIM, tmp_path_factory.mktemp("simulated"), SIMULATED, *LIMITS)


def test_the_tables_are_complete():
    assert DRIVES.keys() == KINDS.keys()
    assert SIMULATED.keys() == {kind for kind, row in KINDS.items() if row.simulated}


def _check(results, kind, failure):
    assert results[f"{kind} holds"].failures == (), results[f"{kind} holds"]
    (why,) = results[f"{kind} fails"].failures
    assert why.startswith(failure), why


@pytest.mark.parametrize("kind", DRIVES)
def test_a_fault_of_drives_has_its_reaction_and_no_other(of_drives, kind):
    _check(of_drives, kind, DRIVES[kind][3])


@pytest.mark.parametrize("kind", SIMULATED)
def test_a_fault_of_simulated_joints_has_its_reaction_and_no_other(of_simulated_joints, kind):
    _check(of_simulated_joints, kind, SIMULATED[kind][3])
