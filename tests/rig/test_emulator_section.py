"""Errors in the section `emulator` of a rig."""

from __future__ import annotations

import pytest

from cosim.rig.sections.rig_spec import read_rig
from tests.rig.drivers_mistakes_helpers import KINDS, RIG, TWO


@pytest.mark.parametrize(
    ("section", "messages"),
    [
        ("5", ["emulator: expected a mapping, got 5"]),
        ("{volts: 5}", ["emulator: unknown key 'volts'; did you mean 'voltage'?"]),
        ("{voltage: 0}", ["emulator.voltage: must be above 0 V, is 0 V"]),
        ("{ambient: 25 K}", ["emulator.ambient: unit 'K' does not fit here; use degC, °C"]),
        ("{ambient: -274}", ["emulator.ambient: must be at least -273.15 degC, is -274 degC"]),
        ("{joints: [a]}", ["emulator.joints: expected a mapping, got a list"]),
        (
            "{joints: {elbo: {}, shoulder: {}}}",
            [
                "emulator.joints.elbo: joint 'elbo' has no drive; did you mean 'elbow'?",
                "emulator.joints.shoulder: joint 'shoulder' has no drive; known: elbow, lift",
            ],
        ),
        ("{joints: {all: 5}}", ["emulator.joints.all: expected a mapping, got 5"]),
        ("{joints: {all: {temperature_rise: -1}, elbow: {}}}",
        ["emulator.joints.all.temperature_rise: must be at least 0 K, is -1 K"]),
        ("{joints: {all: {temperature_rise: -1}, elbow: {temperature_rise: -2}}}", [
            "emulator.joints.elbow.temperature_rise: must be at least 0 K, is -2 K",
            "emulator.joints.all.temperature_rise: must be at least 0 K, is -1 K",
        ]),
        (
            "{joints: {lift: {max_effort: 5 N*m}}}",
            ["emulator.joints.lift.max_effort: unit 'N*m' does not fit linear joint 'lift'; use N, kN"],
        ),
        ("{faults: {a: b}}", ["emulator.faults: expected a list of values, got a mapping"]),
    ],
)  # fmt: skip
def test_an_error_in_the_emulated_drives(mistakes, section, messages):
    assert mistakes(f"{TWO}emulator: {section}\n") == [f"16 {message}" for message in messages]


@pytest.mark.parametrize(
    ("joints", "message"),
    [
        ("{elbo: {}}", "emulator.joints.elbo: unknown joint 'elbo'; did you mean 'elbow'?"),
        ("{shoulder: {}, tool: {}}", "emulator.joints.tool: joint 'tool' is fixed; it has no drive of its own"),
        ("{thumb: {}}", "emulator.joints.thumb: joint 'thumb' follows 'elbow'; it has no drive of its own"),
        ("{lift: 5}", "emulator.joints.lift: expected a mapping, got 5"),
        (
            "{lift: {max_effort: 5 N*m}}",
            "emulator.joints.lift.max_effort: unit 'N*m' does not fit linear joint 'lift'; use N, kN",
        ),
    ],
)
def test_an_error_in_the_emulated_drives_of_a_rig_without_drivers(mistakes, joints, message):
    """The section may stay when the drivers are taken out; its joints are still checked."""
    assert mistakes(f"emulator: {{joints: {joints}}}\n") == [f"13 {message}"]


FAULTS = {
    "5": ": expected a mapping, got 5",
    "{}": ": missing key 'kind'",
    "{kind: explode}": f".kind: no kind of fault 'explode'; known: {KINDS}",
    "{kind: encoder_jmp, joint: elbow}": ".kind: no kind of fault 'encoder_jmp'; did you mean 'encoder_jump'?",
    "{kind: drop, joint: elbow}": [
        ".joint: 'drop' affects a whole bus; give its 'driver' instead",
        ": give the 'driver' whose bus has the fault, one of odrive, b",
    ],
    "{kind: drop}": ": give the 'driver' whose bus has the fault, one of odrive, b",
    "{kind: drop, driver: odriv}": ".driver: there is no driver 'odriv'; did you mean 'odrive'?",
    "{kind: encoder_jump}": ": give its 'joint'",
    "{kind: encoder_jump, joint: elbo}": ".joint: joint 'elbo' has no drive; did you mean 'elbow'?",
    "{kind: motor_fault, joint: shoulder}": ".joint: joint 'shoulder' has no drive; known: elbow, lift",
    "{kind: motor_fault, joint: elbow, driver: b}": ".driver: 'motor_fault' is at a joint; take 'driver' out",
    "{kind: motor_fault, joint: elbow, cause: bad}": (
        ".cause: expected one of overtemperature, overcurrent, undervoltage, encoder; got 'bad'"
    ),
    "{kind: motor_fault, joint: elbow, fraction: 0.1}": ".fraction: 'motor_fault' has no 'fraction'; take it out",
    "{kind: encoder_jump, joint: lift, size: 3 deg}": (
        ".size: unit 'deg' does not fit linear joint 'lift'; use m, cm, mm, um"
    ),
    "{kind: encoder_jump, joint: elbow, cause: encoder}": ".cause: 'encoder_jump' has no 'cause'; take it out",
    "{kind: delay, driver: b, fraction: 0.1}": ".fraction: 'delay' has no 'fraction'; take it out",
    "{kind: drop, driver: b, delay: 1 ms}": ".delay: 'drop' has no 'delay'; take it out",
    "{kind: bus_off, driver: b, size: 3}": ".size: 'bus_off' has no 'size'; take it out",
    "{kind: delay, driver: b, delay: 0}": ".delay: must be above 0 s, is 0 s",
    "{kind: brown_out, driver: b, supply: 2}": ".supply: must be at most 1, is 2",
    "{kind: encoder_drift, joint: elbow, size: 3}": ".size: 'encoder_drift' has no 'size'; take it out",
    "{kind: drop, driver: b, fraction: 2}": ".fraction: must be at most 1, is 2",
    "{kind: drop, driver: b, at: -1}": ".at: must be at least 0 s, is -1 s",
    "{kind: drop, driver: b, duration: 0}": ".duration: must be above 0 s, is 0 s",
    "{kind: drop, driver: b, when: 5}": ".when: expected a mapping, got 5",
    "{kind: drop, driver: b, when: {}}": ".when: missing key 'signal'",
    "{kind: drop, driver: b, when: {signal: elbow/position}}": ".when: give 'above' or 'below', one of them",
    "{kind: drop, driver: b, when: {signal: elbow/position, above: 1, below: 0}}": (
        ".when: give 'above' or 'below', one of them"
    ),
    "{kind: drop, driver: b, when: {signal: elbow/positon, above: 1}}": (
        ".when.signal: no signal 'elbow/positon'; did you mean 'elbow/position'?"
    ),
    "{kind: drop, driver: b, when: {signal: shoulder/velocity, above: 1}}": (
        ".when.signal: no signal 'shoulder/velocity'; did you mean 'lift/velocity'?"
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_error_in_the_injected_faults(mistakes, fault):
    said = FAULTS[fault]
    found = mistakes(f"{TWO}emulator:\n  faults:\n    - {fault}\n")
    assert found == [f"18 emulator.faults[0]{what}" for what in ([said] if isinstance(said, str) else said)]


def test_an_emulator_of_joints_that_are_simulated_is_left_alone(tmp_path):
    """The same file goes on when its drivers are taken out."""
    text = f"{RIG}{TWO}emulator: {{joints: {{elbow: {{temperature_rise: 3}}}}, faults: [{{kind: drop, driver: b}}]}}\n"
    (tmp_path / "rig.yaml").write_text(text)
    assert read_rig(tmp_path / "rig.yaml", ["drivers=[]"]).emulator.faults == ()
    assert len(read_rig(tmp_path / "rig.yaml").emulator.faults) == 1
