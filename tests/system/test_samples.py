"""Every rig of the folder `rigs` without real motors: it describes itself, runs repeatably to its end,
balances its energy, and is the same in every engine."""

import numpy as np
import pytest

from cosim.rig.reading.yaml_source import load_yaml
from tests.kit.engines import python_rows
from tests.kit.samples import FOLDER, few_samples, without_drivers

NAMES = [file.stem for file in without_drivers("*.yaml")]
TICKS = 30  # several periods of every controller
INTERPRETED = 5  # of them, which take a hundred times as long


def assert_close(got, expected, names):
    """Equal to rounding, relative to the largest value of each signal."""
    assert got.shape == expected.shape
    scale = np.maximum(np.abs(expected).max(axis=0), 1e-6)
    worst = (np.abs(got - expected).max(axis=0) / scale).argmax()
    np.testing.assert_allclose(got / scale, expected / scale, rtol=0, atol=1e-9, err_msg=names[worst])


def at_once(name):
    """Overrides after which all motion begins with the first tick."""
    data = load_yaml(FOLDER / f"{name}.yaml").data
    moves = {
        f"controllers.{controller.get('name', k)}.trajectory": controller.get("trajectory") or {}
        for k, controller in enumerate(data.get("controllers", []))
    }
    moves |= {f"joints.{key}.prescribed": joint.get("prescribed") or {} for key, joint in data["joints"].items()}
    return [f"{place}.delay=0" for place, move in moves.items() if "delay" in move]


def test_samples_are_found():
    assert {"ur5_sim", "two_link", "prescribed_wrist", "pendulum_chain", "user_controller"} <= set(NAMES)


@pytest.mark.parametrize("name", few_samples(NAMES))
def test_python_engine_and_interpreter_equal_the_compiled_engine(name, sample):
    # A chain of pendulums is chaotic: rounding errors grow by e every few tenths of a second, so that after
    # some seconds nothing but the energy would agree. These ticks are before that.
    overrides = ["schedule.realtime=no", *at_once(name)]
    rig = sample(name, *overrides)
    seconds = (TICKS - 1) * rig.tick_model.step
    native = rig.run(seconds)
    assert_close(python_rows(rig, TICKS), native.values, native.signals)
    interpreted = sample(name, *overrides, interpret=True).run((INTERPRETED - 1) * rig.tick_model.step)
    assert interpreted.summary["engine"] == {"everything": "Python, as requested"}
    assert_close(interpreted.values, native.values[:INTERPRETED], native.signals)


# worked problem of rigs/mechanisms -> bound of its relative energy residual
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
WORKED = [f"mechanisms/{name}" for name in RESIDUALS]


@pytest.mark.parametrize("name", [*few_samples(NAMES), *WORKED])
def test_it_describes_itself_and_ends_with_balanced_energy(sample, name):
    rig, statuses = sample(name, "schedule.realtime=no"), []
    spec = rig.spec
    assert spec.name == spec.path.stem and spec.source.text.startswith("# ")
    assert len(spec.description) > 30 and spec.description.endswith(".")
    run = rig.run(progress=statuses.append)
    assert len(run.t) == spec.schedule.duration_ns // spec.schedule.step_ns + 1
    assert run.t[-1] == pytest.approx(spec.schedule.duration_ns * 1e-9, rel=1e-12)
    assert run.summary["outcome"] == "finished" and np.isfinite(run.values).all()
    assert set(run.summary["engine"].values()) == {"compiled"}
    assert run.summary["energy"]["residual_relative"] < RESIDUALS.get(spec.name, 1e-4)
    fractions = [status.fraction for status in statuses]
    assert fractions == sorted(fractions) and fractions[0] > 0.0 and fractions[-1] == 1.0
    again = rig.run(TICKS * rig.tick_model.step)
    np.testing.assert_array_equal(again.values, run.values[: len(again.t)])
    if name in WORKED:
        assert np.ptp(run["energy/kinetic"]) > 1e-2 or spec.name in ("floating_chain", "rolling_wheel")
        assert all(each.get("violation_max", 0.0) < 1e-11 for each in run.summary["constraints"].values())


@pytest.mark.parametrize("name", few_samples(WORKED))
def test_interpreted_equals_compiled(sample, name):
    native = sample(name)
    seconds = 3 * native.tick_model.step
    compiled, slow = native.run(seconds), sample(name, interpret=True).run(seconds)
    scale = np.maximum(np.abs(compiled.values).max(axis=0), 1e-3)
    np.testing.assert_allclose(slow.values / scale, compiled.values / scale, rtol=0, atol=1e-9)
