"""FMUs that other tools have made."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from cosim.fmi import FmuPart
from cosim.types import Signal

SLAVES = {
    "pythonfmu": """
from pythonfmu import Fmi2Causality as Causality, Fmi2Slave, Fmi2Variability as Variability, Real as Number

class Summing(Fmi2Slave):
    def __init__(self, **options):
        super().__init__(**options)
        self.declare()
""",
    "pythonfmu3": """
from pythonfmu3 import Fmi3Causality as Causality, Fmi3Slave, Fmi3Variability as Variability, Float64 as Number

class Summing(Fmi3Slave):
    def __init__(self, **options):
        super().__init__(**options)
        self.time = 0.0
        self.register_variable(Number("time", causality=Causality.independent, variability=Variability.continuous))
        self.declare()
""",
}
BODY = """
    def declare(self):
        self.u, self.y, self.k = 0.0, 0.0, 2.0
        self.register_variable(Number("u", causality=Causality.input))
        self.register_variable(Number("y", causality=Causality.output))
        self.register_variable(Number("k", causality=Causality.parameter, variability=Variability.tunable))

    def do_step(self, time, step):
        self.y += step * self.k * self.u
        return True
"""


@pytest.mark.parametrize("tool", SLAVES)
def test_an_fmu_in_python_is_stepped(tmp_path, tool):
    pytest.importorskip(tool, reason=f"{tool} is not installed: pip install -e '.[test]'")
    source = tmp_path / "summing.py"
    source.write_text(SLAVES[tool] + BODY)
    command = [sys.executable, "-m", tool, "build", "-f", str(source), "-d", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    part = FmuPart(tmp_path / "Summing.fmu", parameters={"k": 3.0})
    assert (part.inputs, part.outputs) == ({"u": Signal((), "1")}, {"y": Signal((), "1")})
    part.start(0.0, {"u": np.array(1.0)})
    for i in range(4):
        y = part.step(0.25 * i, 0.25, {"u": np.array([float(i)])})
    part.close()
    assert y["y"] == pytest.approx(3.0 * 0.25 * (0 + 1 + 2 + 3))
