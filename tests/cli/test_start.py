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
    "rich",
    "cuda",
}


def test_a_run_without_outputs_imports_no_package_that_it_does_not_use(monkeypatch, tmp_path):
    command = [sys.executable, "-c", SCRIPT, str(FOLDER / "ur5_sim.yaml")]
    monkeypatch.setenv("COSIM_CACHE_DIR", str(tmp_path))
    first, second = (
        set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()) for _ in range(2)
    )
    assert {"numpy", "casadi", "llvmlite"} <= first
    assert {"numpy", "llvmlite"} <= second
    assert not HEAVY & first and not (HEAVY | {"casadi", "yaml"}) & second
