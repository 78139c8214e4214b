"""A user's folder with modules and packages of the same names: the program starts there, and a rig runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RIG = """\
mechanism: {bodies: [{name: link, joint: hinge, axis: [0, 1, 0], mass: 1, com: [0, 0, -1]}]}
controllers:
  - {type: pid, kp: 10, ki: 0, kd: 1, trajectory: {type: quintic, goal: 0.1, duration: 0.05}}
schedule: {duration: 0.02}
"""
PACKAGES = ("controllers", "drivers", "actuators", "rig", "tests")
MODULES = ("types", "errors", "units", "ops", "layout")


@pytest.fixture
def python(tmp_path):
    """python(*arguments) in a folder whose modules and packages fail when they are imported."""
    for name in PACKAGES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('of the user')\n")
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text("raise ImportError('of the user')\n")
    (tmp_path / "rig.yaml").write_text(RIG)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        more = {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=os.environ | more,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


def test_it_is_imported_and_a_rig_runs(python):
    done = python("-c", "import cosim; print(cosim.load_rig('rig.yaml').run().summary['outcome'])")
    assert (done.returncode, done.stdout, done.stderr) == (0, "finished\n", "")


def test_the_command_runs_a_rig(python):
    done = python("-m", "cosim", "run", "rig.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert "engine   plant, controller pid, loop: compiled" in done.stdout
