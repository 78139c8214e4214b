"""Errors in the section `scenario` of a rig."""

from __future__ import annotations

import pytest

from cosim.rig.sections.expectations import SAMPLES
from cosim.rig.sections.rig_spec import read_rig
from tests.rig.drivers_mistakes_helpers import KINDS, RIG, TWO

SIMULATED = (
    "brown_out, power_loss, encoder_jump, encoder_drift, encoder_noise, encoder_freeze, encoder_nan, coupling_slip,"
    " hot_winding, motor_fault"
)
NAMED = "elbow, lift, shoulder, ball.rx, ball.ry, ball.rz, odrive, b"

# line 18 is the one of the fault, of the scenario `s` in line 17
FAULTS = {
    "5": ": expected a mapping, got 5",
    "{}": ": missing key 'kind'",
    "{kind: encoder_jmp, joint: elbow}": ".kind: no kind of fault 'encoder_jmp'; did you mean 'encoder_jump'?",
    "{kind: explode}": f".kind: no kind of fault 'explode'; known: {KINDS}",
    "{kind: encoder_jump, joint: elbo}": ".joint: unknown joint 'elbo'; did you mean 'elbow'?",
    "{kind: encoder_jump}": ": give its 'joint'",
    "{kind: drop, driver: odriv}": ".driver: there is no driver 'odriv'; did you mean 'odrive'?",
    "{kind: drop}": ": give the 'driver' whose bus has the fault, one of odrive, b",
    "{kind: drop, joint: shoulder}": (
        f".joint: 'drop' is a fault of a bus, and joint 'shoulder' has none; use one of {SIMULATED}"
    ),
    "{kind: drop, driver: b, joint: elbow}": ".joint: 'drop' affects a whole bus; give its 'driver' instead",
    "{kind: power_loss, driver: b, joint: shoulder}": (
        ".driver: joint 'shoulder' has no drive on a bus; take 'driver' out"
    ),
    "{kind: motor_fault, joint: shoulder, at: 6 s}": (
        ".at: begins after 6 s, and the scenario lasts 5 s; give it a longer 'duration'"
    ),
    "{kind: motor_fault, joint: shoulder, at: -1 s}": ".at: must be at least 0 s, is -1 s",
    "{kind: motor_fault, joint: shoulder, after: 1 s}": ".after: there is no fault before it; use 'at'",
    "{kind: motor_fault, joint: shoulder, size: 3}": ".size: 'motor_fault' has no 'size'; take it out",
    "{kind: motor_fault, joint: shoulder, when: {signal: elbow/velocity}}": (
        ".when: give 'above' or 'below', one of them"
    ),
    "{kind: motor_fault, joint: shoulder, when: {above: 3}}": ".when: missing key 'signal'",
    "{kind: motor_fault, joint: shoulder, when: 3}": ".when: expected a mapping, got 3",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_error_in_a_fault(mistakes, fault):
    found = mistakes(f"{TWO}scenario:\n  s:\n    faults:\n    - {fault}\n    expect: completed\n")
    assert found == [f"19 scenario.s.faults[0]{FAULTS[fault]}"]


def test_a_fault_follows_or_has_a_time_or_a_condition_of_its_own(mistakes):
    first, second = "{kind: duplicate, driver: b}", "{kind: drop, driver: b, after: 1 s, at: 2 s}"
    found = mistakes(f"{TWO}scenario:\n  s: {{faults: [{first}, {second}], expect: completed}}\n")
    assert found == ["17 scenario.s.faults[1].at: give 'after' or 'at', one of them"]


EXPECT = {
    "stoped": f"cannot read 'stoped'; write {SAMPLES}",
    "stopped within 2": "'within 2' is no time; write e.g. 'within 2 ticks' or 'within 20 ms'",
    "stopped within 0 ms": "'within 0 ms' must be above 0 s",
    "stopped within 3 V": "unit 'V' does not fit here; use s, ms, us, min, h",
    "stopped by jmp": "there is no cause 'jmp'; did you mean 'jump'?",
    "stopped by jump of elbo": "there is no 'elbo'; did you mean 'elbow'?",
    "stopped by jump of arm": f"there is no 'arm'; known: {NAMED}",
    "completed within 2 ticks": "'completed' has no 'within'; take it out",
    "degraded by stale": "'degraded' has no 'by'; take it out",
    "motors off of elbow": "'motors off' has no 'of'; take it out",
    "elbow/velocity at most 2 deg/s after 3 m": "unit 'm' does not fit here; use s, ms, us, min, h",
    "elbow/velocity under 3": f"cannot read 'elbow/velocity under 3'; write {SAMPLES}",
    "3": f"expected a sentence, got 3; write {SAMPLES}",
}


@pytest.mark.parametrize("sentence", EXPECT)
def test_a_sentence_that_cannot_be_read(mistakes, sentence):
    fault = "{kind: motor_fault, joint: shoulder}"
    found = mistakes(f"{TWO}scenario:\n  s: {{faults: [{fault}], expect: [{sentence}]}}\n")
    assert found == [f"17 scenario.s.expect[0]: {EXPECT[sentence]}"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("5", "17 scenario.s: expected a mapping, got 5"),
        ("{expect: completed}", "17 scenario.s: missing key 'faults'"),
        ("{faults: [], expect: completed}", "17 scenario.s.faults: a scenario needs a fault"),
        ("{faults: [FAULT], expects: completed, expect: completed}",
         "17 scenario.s: unknown key 'expects'; did you mean 'expect'?"),
        ("{faults: [FAULT]}", "17 scenario.s: missing key 'expect'"),
        ("{faults: [FAULT], expect: []}", f"17 scenario.s.expect: expects nothing; write {SAMPLES}"),
        ("{faults: [FAULT], expect: [stopped, completed]}",
         "17 scenario.s.expect[1]: 'completed' beside 'stopped'; a run ends in one way"),
        ("{faults: [FAULT], expect: completed, duration: 0 s}", "17 scenario.s.duration: must be above 0 s, is 0 s"),
        ("{faults: [FAULT], expect: completed, duration: 1 s}",
         "17 scenario.s.faults[0].at: begins after 2 s, and the scenario lasts 1 s; give it a longer 'duration'"),
    ],
)  # fmt: skip
def test_an_error_in_a_scenario(mistakes, keys, message):
    keys = keys.replace("FAULT", "{kind: motor_fault, joint: shoulder, at: 2 s}")
    found = mistakes(f"{TWO}scenario:\n  s: {keys}\n")
    assert [line for line in found if "expected a mapping" in line] or found == [message], found
    assert message in found


def test_a_fault_of_a_bus_in_a_rig_without_drivers(mistakes):
    found = mistakes("scenario: {s: {faults: [{kind: drop}], expect: completed}}\n")
    assert found == [
        f"13 scenario.s.faults[0]: 'drop' is a fault of a bus, and the rig has no drivers; use one of {SIMULATED}"
    ]
    found = mistakes("scenario: {s: {faults: [{kind: power_loss}], expect: completed}}\n")
    assert found == [
        "13 scenario.s.faults[0]: 'power_loss' is a fault of a bus, and the rig has no drivers; give its 'joint'"
    ]


def test_two_scenarios_of_one_name(tmp_path):
    one = "  s: {faults: [{kind: motor_fault, joint: shoulder}], expect: completed}\n"
    (tmp_path / "rig.yaml").write_text(f"{RIG}scenario:\n{one}{one}")
    with pytest.raises(Exception, match="key 's' is given twice") as error:
        read_rig(tmp_path / "rig.yaml")
    assert "rig.yaml:15" in str(error.value)


def test_what_a_scenario_has(tmp_path):
    fault = "{kind: encoder_jump, joint: lift, size: 3 mm, when: {signal: lift/position, above: 1 cm}, duration: 20 ms}"
    (tmp_path / "rig.yaml").write_text(
        f"{RIG}{TWO}scenario:\n  s:\n    faults: [{fault}, {{kind: drop, driver: b, after: 5 ms}}]\n"
        "    expect: motors off within 150 ms\n    set: {joints.elbow.limits.effort: 3, schedule.duration: 2 s}\n"
    )
    (scenario,) = read_rig(tmp_path / "rig.yaml").scenarios
    first, second = scenario.faults
    assert (first.spec.size, first.spec.duration, first.when.bound, first.follows) == (0.003, 0.02, "1 cm", False)
    assert (second.spec.driver, second.spec.at, second.follows, second.when) == ("b", 0.005, True, None)
    (off,) = scenario.expect
    assert (off.what, off.within) == ("motors off", 0.15)
    place = f"{tmp_path}/rig.yaml:20 scenario.s.set."
    assert scenario.overrides == (
        ("joints.elbow.limits.effort=3", f"{place}joints.elbow.limits.effort"),
        ("schedule.duration=2 s", f"{place}schedule.duration"),
    )
