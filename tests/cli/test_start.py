"""What a short run imports: every package costs each start."""

import subprocess
import sys

from tests.kit.samples import FOLDER

SCRIPT = """
import sys
from cosim import load_rig
load_rig(sys.argv[1]).run(0.01)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""
HEAVY = {
    "scipy",
    "matplotlib",
    "pandas",
    "xarray",
    "can",
    "serial",
    "zmq",
    "mcap",
    "mujoco",
    "pinocchio",
    "typer",
    "rich",
}


def test_a_run_without_outputs_imports_no_package_that_it_does_not_use():
    command = [sys.executable, "-c", SCRIPT, str(FOLDER / "ur5_sim.yaml")]
    imported = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert {"numpy", "casadi", "llvmlite"} <= set(imported)
    assert not HEAVY & set(imported)
