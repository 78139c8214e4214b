"""Every worked problem of rigs/mechanisms: it describes itself, runs to its end, balances its energy, and is the
same in every engine."""

import numpy as np
import pytest

from tests.kit.samples import few_samples

# rig -> bound of its relative energy residual
RESIDUALS = {
    "arm_on_moving_base": 1e-9,
    "floating_chain": 1e-9,
    "four_bar": 1e-5,
    "hoist": 1e-12,
    "parallelogram": 1e-8,
    "release": 1e-9,
    "rolling_wheel": 1e-9,
    "skate": 1e-9,
    "slider_crank": 1e-9,
    "solar_array_fixed": 1e-9,
    "solar_array_free": 1e-9,
    "solar_linkage": 1e-9,
    "stick_slip": 1e-6,
    "suspension": 1e-6,
    "swinging_cylinder": 1e-8,
    "triple_pendulum": 1e-11,
}


@pytest.mark.parametrize("name", RESIDUALS)
def test_it_describes_itself_and_ends_with_balanced_energy(sample, name):
    rig = sample(f"mechanisms/{name}")
    assert rig.spec.name == name and rig.spec.source.text.startswith("# ")
    assert len(rig.spec.description) > 30 and rig.spec.description.endswith(".")
    run = rig.run()
    assert run.summary["outcome"] == "finished" and np.isfinite(run.values).all()
    assert set(run.summary["engine"].values()) == {"compiled"}
    assert run.summary["energy"]["residual_relative"] < RESIDUALS[name]
    assert np.ptp(run["energy/kinetic"]) > 1e-2 or name in ("floating_chain", "rolling_wheel")
    for constraint in run.summary["constraints"].values():
        assert constraint.get("violation_max", 0.0) < 1e-11


@pytest.mark.parametrize("name", few_samples(f"mechanisms/{name}" for name in RESIDUALS))
def test_interpreted_equals_compiled(sample, name):
    native = sample(name)
    seconds = 3 * native.tick_model.step
    compiled, slow = native.run(seconds), sample(name, interpret=True).run(seconds)
    scale = np.maximum(np.abs(compiled.values).max(axis=0), 1e-3)
    np.testing.assert_allclose(slow.values / scale, compiled.values / scale, rtol=0, atol=1e-9)
