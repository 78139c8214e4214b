"""Errors in the section `scenario` of a rig."""

from __future__ import annotations

import pytest

from cosim.rig.sections.rig_spec import read_rig
from tests.rig.drivers_mistakes_helpers import RIG, TWO


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
