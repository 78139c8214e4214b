"""Commands that run a rig: they have all that they read, whatever the rig keeps, and pass on what it warns of."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

# an inverter whose link gives 60 V / √3 as amplitude of a phase
RIG = """
name: axis
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: load, joint: hinge, type: continuous, axis: [0, 0, 1], mass: 5 kg, inertia: [0.1, 0.1, 0.2]}
joints:
  hinge:
    limits: {effort: 60 N*m}
    actuator:
      type: drive
      motor:
        {type: pmsm, pole_pairs: 4, resistance: 0.5, inductance_d: 1 mH, inductance_q: 1 mH, flux: 0.03, inertia: 1e-4,
         viscous: 0.02}
      control:
        bandwidth: 20 Hz
        voltage_limit: 60 V
        inverter: {dead_time: 0, switching_frequency: 16 kHz, supply_voltage: 60 V}
      gears: [{ratio: 10}]
controllers:
  - {name: hold, type: feedforward_pd, kp: 200, kd: 10, trajectory: {type: quintic, goal: 30 deg, duration: 0.2 s}}
schedule: {step: 1 ms, duration: 0.3 s, integrator: rodas4, substeps: auto}
scenario:
  a jump: {faults: [{kind: encoder_jump, joint: hinge, at: 0.1 s, size: 0.001}], expect: hinge/position at most 90 deg}
"""
WARNING = "warning: joint 'hinge': control.voltage_limit of 60 V is above the 34.64 V"
# name -> (its words, the file that it writes)
COMMANDS: dict[str, tuple[str, str]] = {
    "loops by experiments": ("analyze rig.yaml --measure multisine --json found.json", "found.json"),
    "a relay": ("analyze rig.yaml --measure relay --json found.json", "found.json"),
    "a feedforward": ("tune feedforward rig.yaml --save found.csv --iterations 1", "found.csv"),
    "gains": ("tune gains rig.yaml --trials 2 --session found --parameter hold.kp=x0.5..x2", "found/gains.yaml"),
    "postures of a run": ("derive rig.yaml --picture found.svg --times 0,0.1", "found.svg"),
    "scenarios": ("scenario rig.yaml --json found.json", "found.json"),
    "another step": ("run rig.yaml --step 2ms", ""),
    "a reference": ("run rig.yaml --reference", ""),
}
KEPT = ["{every: 50}", "final", "{last: 0.05 s}", "{signals: [hinge/effort]}", "{file: kept.run}"]
TIMES = re.compile(r"[\d.,]+(?:e\+\d+)? (?:us per tick|ticks/s|× real time|× the time of the run)|\"seconds\": \S+")


def result_of(command: Any, name: str, keep: str = "") -> tuple[str, str, list[str]]:
    """(what it prints, its file, its warnings)"""
    Path("rig.yaml").write_text(RIG + (f"keep: {keep}\n" if keep else ""))
    shutil.rmtree("found", ignore_errors=True)
    words, file = COMMANDS[name]
    code, out, err = command(*words.split())
    assert code == 0, err
    return TIMES.sub("", out), TIMES.sub("", Path(file).read_text()) if file else "", err


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_rig_keeps_changes_no_result(name: str, command: Any) -> None:
    given = result_of(command, name)
    for keep in KEPT:
        assert result_of(command, name, keep)[:2] == given[:2], keep


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_run_warns_of_is_said_once(name: str, command: Any) -> None:
    out, _, err = result_of(command, name)
    assert sum(line.startswith(WARNING) for line in (*err, *out.splitlines())) == 1


def test_the_results_of_scenarios_have_the_warnings(command: Any) -> None:
    _, file, _ = result_of(command, "scenarios")
    (scenario,) = json.loads(file)
    assert [f"warning: {line}".startswith(WARNING) for line in scenario["warnings"]] == [True]
