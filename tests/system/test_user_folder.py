"""A user's folder with modules and packages of the same names: the program starts there, and a rig runs."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RIG = """\
mechanism: {bodies: [{name: link, joint: hinge, axis: [0, 1, 0], mass: 1, com: [0, 0, -1]}]}
controllers:
  - {type: pid, kp: 10, ki: 0, kd: 1, trajectory: {type: quintic, goal: 0.1, duration: 0.05}}
schedule: {duration: 0.02}
"""
PACKAGES = ("controllers", "drivers", "actuators", "rig", "tests")
MODULES = ("types", "errors", "units", "ops", "layout")


def test_the_command_runs_a_rig_there(tmp_path):
    for name in PACKAGES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('of the user')\n")
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text("raise ImportError('of the user')\n")
    (tmp_path / "rig.yaml").write_text(RIG)
    more = {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    command = [sys.executable, "-m", "cosim", "run", "rig.yaml"]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | more, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "engine   plant, controller pid, loop: compiled" in done.stdout
