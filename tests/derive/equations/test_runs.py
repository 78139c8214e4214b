"""Derived Python files give the accelerations of the runs for the recorded efforts of the drives: with rotors of geared
drives, springs in joints and between bodies, laws of friction, loops, and prescribed joints."""

import numpy as np
import pytest

from cosim import load_rig
from cosim.apps.derive.equations.components import derived
from cosim.apps.derive.equations.header import description
from cosim.apps.derive.plant_model import model_of
from tests.derive.equations.derivations import OWN, RIGS, derivation, evaluated, python_code

SAMPLES = ("ur5_sim", "prescribed_wrist", "drives/industrial_arm", "mechanisms/solar_array_fixed")
LOOPS = ("mechanisms/parallelogram", "mechanisms/suspension")
FILES = {name: RIGS / f"{name}.yaml" for name in (*SAMPLES, *LOOPS)} | {"sprung_arm": OWN / "sprung_arm.yaml"}
RECORDED = ("position", "velocity", "effort", "acceleration")


def recorded(run, model, what):
    """(nv, samples); effort: of the drives, with what their rotors take."""
    measured = {f"{dof}/effort": f"{dof}/measured_effort" for dof in model.dof_names}
    names = [f"{dof}/{what}" for dof in model.dof_names]
    return np.array([run[measured[name] if measured.get(name) in run.signals else name] for name in names])


@pytest.mark.parametrize("symbols", [False, True], ids=["numbers", "symbols"])
@pytest.mark.parametrize("name", FILES)
def test_accelerations_of_a_run(name, symbols, tmp_path):
    rig = load_rig(FILES[name], ["schedule.duration=20 ms"])
    model = rig.plant.model
    run, d = rig.run(), derivation(FILES[name], symbols=symbols)
    code = python_code(d, tmp_path)
    values = [recorded(run, model, what) for what in RECORDED]
    for k in (1, len(run.t) // 2, len(run.t) - 1):
        position, velocity, effort, acceleration = (value[:, k] for value in values)
        state = {"q": model.coordinates(position), "v": velocity, "tau": effort, "a": acceleration, "t": [run.t[k]]}
        state["p"] = [p.value for p in d.parameters]
        found = code({key: np.asarray(state[key], dtype=float) for key in d.inputs})["forward_dynamics"]
        assert np.abs(found - acceleration).max() < 1e-10 * max(1.0, np.abs(acceleration).max())


def test_friction_of_a_run_is_that_of_the_model_and_of_the_derived_file(tmp_path):
    """Of every law without bristles; the part that grows with the load is of the run alone, and the header names it."""
    overrides = ["schedule.duration=20 ms", "joints.elbow.friction.load_friction=0.2"]
    rig = load_rig(FILES["sprung_arm"], overrides)
    model, run = rig.plant.model, rig.run()
    assert [law.model for law in model.equations.friction_laws.values()] == ["stribeck", "smooth"]
    d = derived(model_of(rig.spec))
    (row,) = (line for line in description(d) if line.split()[:2] == ["elbow", "smooth"])
    assert row.endswith("the part of the load")
    for k in range(1, len(run.t), 5):
        velocity, effort = (recorded(run, model, what)[:, k] for what in RECORDED[1:3])
        friction = model.friction_effort(velocity)
        by_terms = sum(evaluated(d, f"{kind}_friction", v=velocity) for kind in ("viscous", "dry"))
        assert by_terms == pytest.approx(friction, rel=1e-12)
        friction[1] += 0.2 * abs(effort[1]) * velocity[1] / np.hypot(velocity[1], 0.01)
        of_run = [-run[f"{dof}/friction_effort"][k] for dof in model.dof_names[:2]]
        assert of_run == pytest.approx(friction[:2], rel=1e-12)
