"""Scenarios in processes: the same results each time, sequences, conditions, overrides, recordings, crashes."""

import dataclasses
import os
import shutil

import pytest

from cosim import open_recording
from cosim.apps.scenario import scenario_batch
from cosim.apps.scenario.armed_rig import in_simulated_time
from cosim.apps.scenario.command import ScenarioFiles, run_scenarios
from cosim.apps.scenario.faulty_ticks import SimulatedFaults
from cosim.core.errors import InputError, InputErrors
from cosim.rig.rig import Rig
from tests.scenario.helpers import AT, CAN, LASTS, RIGS, SIM, fault, file_of, results_of, scenario

MOVING = {"signal": "elbow/velocity", "below": "-5 deg/s"}
NEVER = {"kind": "drop", "when": {"signal": "elbow/velocity", "above": "500 deg/s"}}
AFTER = {"kind": "drop", "after": 0.1}
SEQUENCE = scenario(
    "stopped within 3 ticks by not_finite",
    {"kind": "encoder_noise", "joint": "base", "size": 1e-5, "when": MOVING},
    {"kind": "encoder_nan", "joint": "elbow", "after": 0.05},
)
# their failures state numbers with all digits of the run, of random faults too
RANDOM = {
    "noise": scenario("elbow/position_error at most 0.1 deg", fault("encoder_noise", joint="elbow", size=0.002)),
    "lost": scenario("elbow/position_error at most 0.01 deg", fault("drop", fraction=0.3)),
    "bits": scenario("completed", fault("corrupt", fraction=0.2)),
    "late": scenario("elbow/position_error at most 0.001 deg", {"kind": "drop", "fraction": 0.5, "when": MOVING}),
}
DRIVES = RANDOM | {
    "early": scenario("stopped", {"kind": "bus_off", "at": 0.1}),
    "sequence": SEQUENCE,
    "never": scenario("completed", NEVER),
    "second never": scenario("completed", fault("duplicate"), NEVER, AFTER),
    "stopped before": scenario("stopped", fault("bus_off"), AFTER),
}
JUMP = {"kind": "encoder_jump", "at": 0.05, "joint": "elbow", "size": 0.1}
# the motion exceeds the limit of velocity after the jump, and before AT
OWN = {"joints.elbow.limits.tracking": "3 deg", "joints.elbow.limits.velocity": "1 deg/s"}
BROWN_OUT = fault("brown_out", joint="elbow", supply=0.1)
NAN = {"kind": "encoder_nan", "joint": "elbow"}
BLIND = NAN | {"at": AT}
SIMULATED = {
    "sequence": SEQUENCE,
    "without": scenario("completed", JUMP),
    "with": scenario("stopped by tracking", JUMP, set=OWN),
    "bad one/2": scenario("stopped", BROWN_OUT),
    "good": scenario("completed", BROWN_OUT),
    "slow": scenario("stopped", BLIND, set=OWN),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("recordings")


@pytest.fixture(scope="module")
def of_drives(folder):
    return results_of(CAN, folder, DRIVES, record=folder)


@pytest.fixture(scope="module")
def of_simulated(folder):
    return results_of(SIM, folder, SIMULATED, record=folder)


def plain(result):
    """Without what differs from run to run."""
    return dataclasses.replace(result, seconds=0.0, recording="")


def test_results_and_recordings_are_the_same_to_the_bit_alone_or_together(tmp_path, folder, of_drives):
    """Also of a scenario that is forked from the undisturbed run late, and beside an earlier one."""
    alone = {}
    for names in (["noise"], ["late", "bits"]):
        alone |= results_of(CAN, tmp_path, RANDOM, only=names, record=tmp_path)
    assert {name: plain(each) for name, each in alone.items()} == {name: plain(of_drives[name]) for name in alone}
    assert all(of_drives[name].failures for name in RANDOM)
    one, other = (open_recording(where / "noise.mcap") for where in (tmp_path, folder))
    assert "elbow/position" in one.signals and list(one.signals) == list(other.signals)
    assert all(one[name].tobytes() == other[name].tobytes() for name in one.signals)


@pytest.mark.parametrize("rig", ["of_drives", "of_simulated"])
def test_a_fault_follows_the_one_before_it(rig, request):
    found = request.getfixturevalue(rig)["sequence"]
    assert found.ok
    (begun, what), (then, then_what) = found.events
    assert (what, then_what) == ("encoder noise at base begins", "encoder nan at elbow begins")
    assert then - begun == pytest.approx(0.05) and 0.1 < begun < AT


def test_a_fault_that_never_triggers_is_a_failure(of_drives, of_simulated, said):
    for found in (of_drives["never"], of_drives["second never"], of_drives["stopped before"], of_simulated["slow"]):
        said(found.failures)


def test_a_scenario_has_values_of_its_own(of_simulated):
    assert of_simulated["without"].ok and of_simulated["with"].ok


def test_a_failed_scenario_is_recorded_with_its_faults(folder, of_simulated):
    bad, good = of_simulated["bad one/2"], of_simulated["good"]
    assert bad.recording == str(folder / "bad_one_2.mcap") and not good.recording
    assert not (folder / "good.mcap").exists()
    run = open_recording(folder / "bad_one_2.mcap")
    assert run.t[-1] == pytest.approx(LASTS)
    # 24 V, 10 % of which are left
    assert abs(run["elbow/voltage"][round(1e3 * AT) + 1 :]).max() <= 2.4 + 1e-9


def test_a_rig_that_cannot_start_fails_its_scenarios(tmp_path):
    found = results_of(CAN, tmp_path, {"start": scenario("completed", fault("drop"))}, "emulator.ambient=100 degC")
    (failure,) = found["start"].failures
    assert failure.startswith("could not start: joint 'base': fault: over temperature"), failure


def test_a_process_that_ends_without_a_result_is_a_failure(tmp_path, monkeypatch, said):
    def ending(armed, timeline, rows, ticks, off):
        return os._exit(9) if ticks < 450 else 1 / 0

    monkeypatch.setattr(scenario_batch, "run_with_faults", ending)
    killed, mistake = scenario("completed", BLIND, duration=0.4), scenario("completed", BLIND)
    found = results_of(SIM, tmp_path, {"killed": killed, "mistake": mistake})
    said(found["killed"].failures + found["mistake"].failures)


def test_signals_and_units_are_those_of_the_rig(tmp_path, said):
    when = {"signal": "elbow/velocity", "above": "1 V"}
    wrong = {
        "signal": scenario(["elbow/positon at most 2 deg"], BLIND),
        "unit": scenario(["elbow/position at most 2 m"], BLIND),
        "signal of when": scenario("completed", NAN | {"when": {"signal": "elbow/sped", "above": 1}}),
        "unit of when": scenario("completed", NAN | {"when": when}),
    }
    with pytest.raises(InputErrors) as error:
        results_of(SIM, tmp_path, wrong)
    assert len(error.value.errors) == len(wrong)
    said(error.value)


def test_a_motor_without_a_voltage_limit_has_no_brown_out(tmp_path, said):
    rig = tmp_path / "rig.yaml"
    rig.write_text(
        "mechanism:\n  bodies:\n    - {name: link, joint: hinge, axis: [0, 1, 0], mass: 1, inertia: [1, 1, 1]}\n"
        "controllers: [{type: pid, kp: 5, ki: 0, kd: 1, trajectory: {type: sine, amplitude: 0.1, frequency: 1}}]\n"
    )
    with pytest.raises(InputErrors) as error:
        results_of(rig, tmp_path, {"one": scenario("completed", fault("brown_out", joint="hinge", supply=0.5))})
    said(error.value)


# --- the sample scenarios hold ---


@pytest.mark.parametrize("name", ["arm_can", "arm_sim", "arm_twin"])
def test_the_sample_scenarios_hold(name):
    results = run_scenarios(ScenarioFiles(RIGS / f"{name}.yaml", (RIGS / "scenarios" / f"{name}.yaml",)), jobs=2)
    assert len(results) >= 4 and {result.name: result.failures for result in results if not result.ok} == {}


# --- scenarios of rigs with parts: compiled ones only, and the faults that their joints can have ---


@pytest.fixture
def winch(tmp_path):
    for name in ("winch.yaml", "hoisted_load.py"):
        shutil.copy(RIGS / "cosimulation" / name, tmp_path)
    return tmp_path / "winch.yaml"


def test_an_encoder_that_jumps(winch, tmp_path):
    jump, hot = fault("encoder_jump", joint="winch", size=1.0), fault("hot_winding", joint="winch")
    scenarios = {
        "jump": scenario("stopped within 1 tick by tracking of winch", jump),
        "hot": scenario("stopped within 1 tick by temperature of winch", hot),
    }
    limits = "joints.winch.limits.tracking=0.5 rad", "joints.winch.limits.temperature=100 degC"
    assert {name: each.failures for name, each in results_of(winch, tmp_path, scenarios, *limits).items()} == {
        "jump": (),
        "hot": (),
    }


def test_faults_that_a_rig_with_parts_cannot_have(winch, tmp_path, said):
    kinds = "brown_out", "power_loss", "motor_fault"
    file = file_of(tmp_path, {kind: scenario("completed", fault(kind, joint="winch")) for kind in kinds})
    spec, scenarios = ScenarioFiles(winch, (file,)).read()
    rig = Rig(in_simulated_time(spec))
    for each in scenarios:
        (wrong,) = each.faults
        with pytest.raises(InputError) as error:
            SimulatedFaults(rig, [(wrong.spec, each.place((*wrong.key, "joint")))])
        said(error.value)


def test_a_part_in_python(winch, tmp_path, said):
    """Forked processes would share what it holds."""
    file = tmp_path / "hoisted_load.py"
    text = file.read_text()
    assert 'x["stretch"]' in text
    file.write_text(text.replace('x["stretch"]', 'float(x["stretch"])'))
    with pytest.raises(InputErrors) as error:
        results_of(winch, tmp_path, {"one": scenario("completed", fault("encoder_nan", joint="winch"))})
    said(error.value)
