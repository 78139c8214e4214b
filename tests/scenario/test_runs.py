"""Scenarios in processes: the same results each time, sequences, conditions, overrides, recordings, crashes."""

from __future__ import annotations

import dataclasses
import os

import pytest

from cosim import open_recording
from cosim.errors import InputErrors
from cosim.scenario import walk
from cosim.scenario.runs import ScenarioFiles, run_scenarios
from tests.scenario.helpers import CAN, SIM, fault, file_of, results_of, scenario

NOISE = {
    "noise": scenario("elbow/position_error at most 0.1 deg", fault("encoder_noise", joint="elbow", size=0.002)),
    "lost": scenario("elbow/position_error at most 0.01 deg", fault("drop", fraction=0.3)),
    "bits": scenario("completed", fault("corrupt", fraction=0.2)),
}


def plain(results):
    """Without what differs from run to run."""
    return {name: dataclasses.replace(result, seconds=0.0) for name, result in results.items()}


def test_results_are_the_same_to_the_bit_alone_or_together(tmp_path):
    """Random faults included: their failures state numbers with all digits of the run."""
    first, second = (plain(results_of(CAN, tmp_path, NOISE)) for _ in range(2))
    assert first == second
    assert all(result.failures for result in first.values())
    for name in NOISE:
        assert plain(results_of(CAN, tmp_path, NOISE, only=[name])) == {name: first[name]}


def test_the_recorded_signals_are_the_same_to_the_bit(tmp_path):
    values = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        results_of(CAN, tmp_path, NOISE, record=tmp_path / folder)
        run = open_recording(tmp_path / folder / "noise.mcap")
        values.append({name: run[name].tobytes() for name in run.signals})
    assert values[0] == values[1] and "elbow/position" in values[0]


@pytest.mark.parametrize("rig", [CAN, SIM], ids=lambda path: path.stem)
def test_a_fault_follows_the_one_before_it(tmp_path, rig):
    first = {"kind": "encoder_noise", "joint": "base", "size": 1e-5}
    first["when"] = {"signal": "elbow/velocity", "below": "-5 deg/s"}
    second = {"kind": "encoder_nan", "joint": "elbow", "after": 0.05}
    found = results_of(rig, tmp_path, {"both": scenario("stopped within 3 ticks by not_finite", first, second)})["both"]
    assert found.ok
    (begun, what), (then, then_what) = found.events
    assert (what, then_what) == ("encoder noise at base begins", "encoder nan at elbow begins")
    assert then - begun == pytest.approx(0.05) and 0.5 < begun < 0.7


def test_a_condition_and_its_scenario_from_the_start_are_one_run(tmp_path):
    """A scenario that is forked from the undisturbed run is the one that runs on its own."""
    late = {"kind": "drop", "fraction": 0.5, "when": {"signal": "elbow/velocity", "below": "-5 deg/s"}}
    alone = {"late": scenario("elbow/position_error at most 0.001 deg", late)}
    beside = alone | {"early": scenario("stopped", {"kind": "bus_off", "at": 0.3})}
    assert plain(results_of(CAN, tmp_path, alone))["late"] == plain(results_of(CAN, tmp_path, beside))["late"]


def test_a_fault_that_never_triggers_is_a_failure(tmp_path):
    never = {"signal": "elbow/velocity", "above": "500 deg/s"}
    later = {"kind": "drop", "after": 0.1}
    scenarios = {
        "never": scenario("completed", {"kind": "drop", "when": never}),
        "second": scenario("completed", fault("duplicate"), {"kind": "drop", "when": never}, later),
        "stopped": scenario("stopped", fault("bus_off"), {"kind": "drop", "after": 0.1}),
    }
    found = results_of(CAN, tmp_path, scenarios)
    assert found["never"].failures == ("never triggered: drop",)
    assert found["second"].failures == ("never triggered: fault 2, drop",)
    assert found["stopped"].failures == ("never triggered: fault 2, drop; the run was stopped by bus_off before",)


def test_a_scenario_has_values_of_its_own(tmp_path):
    jump = fault("encoder_jump", joint="elbow", size=0.1)
    limit = {"joints.elbow.limits.tracking": "3 deg"}
    scenarios = {"without": scenario("completed", jump), "with": scenario("stopped by tracking", jump, set=limit)}
    found = results_of(SIM, tmp_path, scenarios)
    assert found["without"].ok and found["with"].ok


def test_the_values_of_a_file_replace_those_of_the_rig(tmp_path):
    jump = scenario("stopped by tracking", fault("encoder_jump", joint="elbow", size=0.1))
    path = file_of(tmp_path, {"jump": jump}, **{"joints.elbow.limits.tracking": "3 deg"})
    (result,) = run_scenarios(ScenarioFiles(SIM, (path,)))
    assert result.ok


def test_a_failed_scenario_is_recorded_with_its_faults(tmp_path):
    brown_out = fault("brown_out", joint="elbow", supply=0.1)
    scenarios = {"bad one/2": scenario("stopped", brown_out), "good": scenario("completed", brown_out)}
    found = results_of(SIM, tmp_path, scenarios, record=tmp_path)
    assert found["bad one/2"].recording == str(tmp_path / "bad_one_2.mcap") and not found["good"].recording
    assert not (tmp_path / "good.mcap").exists()
    run = open_recording(tmp_path / "bad_one_2.mcap")
    assert run.t[-1] == pytest.approx(1.1)
    # 24 V, 10 % of which are left from 0.7 s on
    assert abs(run["elbow/voltage"][701:]).max() <= 2.4 + 1e-9


def test_a_rig_that_stops_by_itself_triggers_no_later_fault(tmp_path):
    scenarios = {"late": scenario("stopped", fault("encoder_nan", joint="elbow"))}
    found = results_of(SIM, tmp_path, scenarios, "joints.elbow.limits.velocity=1 deg/s")["late"]
    assert found.failures == ("never triggered: encoder_nan; the run was stopped by velocity of elbow before",)


def test_a_rig_that_cannot_start_fails_its_scenarios(tmp_path):
    scenarios = {"start": scenario("completed", fault("drop"))}
    found = results_of(CAN, tmp_path, scenarios, "emulator.ambient=100 degC")
    (failure,) = found["start"].failures
    assert failure.startswith("could not start: joint 'base': fault: over temperature"), failure


def test_a_process_that_is_killed_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(walk, "run_with_faults", lambda *_: os._exit(9))
    found = results_of(SIM, tmp_path, {"one": scenario("completed", fault("encoder_nan", joint="elbow"))})["one"]
    assert found.failures == ("crashed: its process ended without a result",)


def test_a_mistake_of_the_program_is_shown(tmp_path, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("what")

    monkeypatch.setattr(walk, "run_with_faults", fail)
    found = results_of(SIM, tmp_path, {"one": scenario("completed", fault("encoder_nan", joint="elbow"))})["one"]
    assert found.failures == ("crashed: ZeroDivisionError: what",)


@pytest.mark.parametrize(
    ("expect", "injected", "message"),
    [
        (
            "elbow/positon at most 2 deg",
            fault("encoder_nan", joint="elbow"),
            ":8 scenario.one.expect[0]: no signal 'elbow/positon'; did you mean 'elbow/position'?",
        ),
        (
            "elbow/position at most 2 m",
            fault("encoder_nan", joint="elbow"),
            ":8 scenario.one.expect[0]: unit 'm' does not fit signal 'elbow/position'; use rad, mrad, deg, turn",
        ),
        (
            "completed",
            {"kind": "encoder_nan", "joint": "elbow", "when": {"signal": "elbow/sped", "above": 1}},
            ".faults[0].when.signal: no signal 'elbow/sped'",
        ),
        (
            "completed",
            {"kind": "encoder_nan", "joint": "elbow", "when": {"signal": "elbow/velocity", "above": "1 V"}},
            ".faults[0].when.above: unit 'V' does not fit signal 'elbow/velocity'; use rad/s, mrad/s, deg/s, rpm,"
            " turn/s",
        ),
    ],
)
def test_signals_and_units_are_those_of_the_rig(tmp_path, expect, injected, message):
    with pytest.raises(InputErrors) as error:
        results_of(SIM, tmp_path, {"one": scenario([expect], injected)})
    assert message in str(error.value), str(error.value)


def test_a_motor_without_a_voltage_limit_has_no_brown_out(tmp_path):
    injected = fault("brown_out", joint="hinge", supply=0.5)
    rig = tmp_path / "rig.yaml"
    rig.write_text(
        "mechanism:\n  bodies:\n    - {name: link, joint: hinge, axis: [0, 1, 0], mass: 1, inertia: [1, 1, 1]}\n"
        "controllers: [{type: pid, kp: 5, ki: 0, kd: 1, trajectory: {type: sine, amplitude: 0.1, frequency: 1}}]\n"
    )
    with pytest.raises(InputErrors) as error:
        results_of(rig, tmp_path, {"one": scenario("completed", injected)})
    what = "the actuator of joint 'hinge' has no voltage_limit; give it one, or use motor_fault"
    assert str(error.value) == f"{tmp_path}/scenarios.yaml:6 scenario.one.faults[0].joint: {what}"
