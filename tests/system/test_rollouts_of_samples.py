"""Rollouts of compiled sample rigs of every kind equal their single runs to the bit."""

import numpy as np
import pytest

from cosim import load_rig
from cosim.rig.parameter_arrays import read_arrays
from cosim.rig.rollouts import read_starts
from tests.kit.samples import COVERED, FOLDER, few_samples, without_drivers

NAMES = [str(file.relative_to(FOLDER).with_suffix("")) for file in without_drivers("**/*.yaml")]
K, TICKS = 3, 30


@pytest.mark.parametrize("name", few_samples(name for name in NAMES if name not in COVERED))
def test_rollouts_equal_single_runs(name):
    rig = load_rig(FOLDER / f"{name}.yaml", "schedule.realtime=no")
    rng = np.random.default_rng(0)
    parameters = {key: np.outer(rng.uniform(0.7, 1.2, K), value) for key, value in rig.parameters.items()}
    free = [joint for joint in rig.joints if joint not in rig.plant.prescribed]
    initial = {}
    if not rig.plant.model.constraint_rows and not rig.plant.modes.latched:
        initial = {f"{joint}/velocity": rng.normal(0.0, 0.2, K) for joint in free}
    batch = rig.rollouts(parameters, initial, TICKS * rig.tick_model.step, keep="all")
    starts = read_starts(rig, rig.tick_model, initial)
    for k in range(len(batch)):
        engine = rig.engine()
        if starts is not None:
            engine.memory[:] = starts(k)
        if parameters:
            engine.view("parameters")[:] = read_arrays(rig, parameters).gains[k]
        rows, why = engine.run(TICKS + 1)
        values = rig.observe(engine.view("bumpless_start"), rows)
        assert (batch.ticks[k], batch.faults[k]) == (len(rows) - 1, why)
        np.testing.assert_array_equal(np.stack([batch[name][k] for name in batch.samples], axis=1)[: len(rows)], values)
