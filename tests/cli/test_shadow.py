"""The option --shadow of a run."""

from __future__ import annotations

from cosim.cli.run_overrides import shadow_of

SIMULATED = """
mechanism: {bodies: [{name: a, joint: hinge, axis: [0, 1, 0], mass: 1, com: [0.1, 0, 0], inertia: [1, 1, 1]}]}
schedule: {duration: 0.1}
"""


def test_settings_of_the_rig_stay(tmp_path):
    rig = tmp_path / "rig.yaml"
    rig.write_text(SIMULATED)
    assert shadow_of(rig, []) == [("guard.shadow={}", "--shadow")]
    assert shadow_of(rig, ["guard.shadow.bandwidth=5"]) == []
    assert shadow_of(rig, [("guard.shadow={window: 1}", "overlay")]) == []
    rig.write_text(f"{SIMULATED}guard: {{shadow: {{bandwidth: 5}}}}\n")
    assert shadow_of(rig, []) == []
