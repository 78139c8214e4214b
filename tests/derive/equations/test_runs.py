"""Derived Python files give the accelerations of the runs for the recorded efforts of the drives: with rotors of geared
drives, springs in joints and between bodies, laws of friction, loops, and prescribed joints."""

import numpy as np
import pytest

from cosim import load_rig
from tests.derive.equations.derivations import OWN, RIGS, derivation, python_code

SAMPLES = ("ur5_sim", "prescribed_wrist", "drives/industrial_arm", "mechanisms/solar_array_fixed")
LOOPS = ("mechanisms/parallelogram", "mechanisms/suspension")
FILES = {name: RIGS / f"{name}.yaml" for name in (*SAMPLES, *LOOPS)} | {"sprung_arm": OWN / "sprung_arm.yaml"}
RECORDED = ("position", "velocity", "effort", "acceleration")


@pytest.mark.parametrize("symbols", [False, True], ids=["numbers", "symbols"])
@pytest.mark.parametrize("name", FILES)
def test_accelerations_of_a_run(name, symbols, tmp_path):
    rig = load_rig(FILES[name], ["schedule.duration=20 ms"])
    model = rig.plant.model
    run, d = rig.run(), derivation(FILES[name], symbols=symbols)
    code = python_code(d, tmp_path)
    values = [np.array([run[f"{dof}/{what}"] for dof in model.dof_names]) for what in RECORDED]
    for k in (1, len(run.t) // 2, len(run.t) - 1):
        position, velocity, effort, acceleration = (value[:, k] for value in values)
        state = {"q": model.coordinates(position), "v": velocity, "tau": effort, "a": acceleration, "t": [run.t[k]]}
        state["p"] = [p.value for p in d.parameters]
        found = code({key: np.asarray(state[key], dtype=float) for key in d.inputs})["forward_dynamics"]
        assert np.abs(found - acceleration).max() < 1e-10 * max(1.0, np.abs(acceleration).max())
