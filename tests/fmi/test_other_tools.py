"""FMUs that other tools have made."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from cosim.core.types import Signal
from cosim.simulation.fmi import FmuPart
from tests.kit.given import beside

GIVEN = beside(__file__)

SLAVES = GIVEN["slaves"]
BODY = GIVEN["body"]


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
