"""Scenarios of the sample arm, run as the command does."""

from pathlib import Path
from typing import Any

import yaml

from cosim.apps.scenario.command import ScenarioFiles, run_scenarios
from cosim.apps.scenario.result import ScenarioResult

RIGS = Path(__file__).parents[2] / "rigs"
CAN, SIM = RIGS / "arm_can.yaml", RIGS / "arm_sim.yaml"
AT, LASTS = 0.3, 0.5  # s, when the arm moves; the duration
SOON = {"controllers.arm.trajectory.delay": "0.1 s"}  # it begins to move


def fault(kind: str, **keys: Any) -> dict[str, Any]:
    return {"kind": kind, "at": AT, **keys}


def scenario(expect: str | list[str], *faults: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return {"faults": list(faults), "expect": expect, "duration": LASTS, **keys}


def file_of(folder: Path, scenarios: dict[str, dict], name: str = "scenarios.yaml", **values: Any) -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump({"scenario": scenarios, **values}, sort_keys=False))
    return path


def results_of(
    rig: Path, folder: Path, scenarios: dict[str, dict], *overrides: str, **keys: Any
) -> dict[str, ScenarioResult]:
    soon = [f"{key}={value}" for key, value in SOON.items() if rig in (CAN, SIM)]
    files = ScenarioFiles(rig, (file_of(folder, scenarios),), (*soon, *overrides))
    return {result.name: result for result in run_scenarios(files, jobs=2, **keys)}
