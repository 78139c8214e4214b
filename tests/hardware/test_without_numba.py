"""Without Numba, which is an extra, the compiled loop calls all real drives in Python."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
sys.modules["numba"] = None
from cosim import load_rig
rig = load_rig("rigs/arm_can.yaml")
print(rig.engine().kind, *rig.called.items(), rig.why_python_loop)
"""


def test_the_loop_of_a_rig_with_real_drives_calls_them_and_says_why():
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "compiled ('moteus', \"Numba is not installed; pip install 'cosim[buses]'\") \n", done.stderr
