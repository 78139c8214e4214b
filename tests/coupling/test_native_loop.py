"""The step of a compiled master as a routine of the native loop: the same numbers as step by step."""

import numpy as np
import pytest

from cosim.bench.rows_coupling import STEP, MassParams, MassWithSpring, PulledMass, native_steps
from cosim.coupling import BlockPart, CoupledParts, EnergyCorrection, PowerBond
from cosim.coupling.coupled_parts import MASTERS


@pytest.mark.parametrize("master", MASTERS)
@pytest.mark.parametrize("correction", [None, EnergyCorrection()])
def test_steps_in_one_loop_are_the_steps_of_a_run(master, correction):
    parts = {
        "left": BlockPart(MassWithSpring(MassParams()), STEP / 4),
        "right": BlockPart(PulledMass(MassParams()), STEP / 3),
    }
    bond = PowerBond(("left.force", "right.force"), ("right.velocity", "left.velocity"))
    coupled = CoupledParts(parts, [bond], master, 0, STEP, correction=correction)
    compiled = coupled.compiled_master
    assert compiled is not None
    memory = compiled.initial(0.0, STEP)
    native_steps(lambda m: compiled.step(m, STEP), memory)(300)
    run, found = coupled.run(300 * STEP), compiled.layout.unpack(memory)
    assert found["t"] == pytest.approx(run.t[-1])
    assert found["values"][0] == pytest.approx(np.array([run["left.force"][-1], run["right.velocity"][-1]]), rel=1e-12)
    assert found["energy"] == pytest.approx(run.residuals["left-right"][-1:], rel=1e-9)
