"""The contract of trajectories, for every file of the folder: keys, shapes, consistent derivatives, end, tracing."""

from __future__ import annotations

import math
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from cosim.core.compile import ArrayPort, compile
from cosim.core.types import Trajectory, TrajectoryContext
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.urdf import parse_urdf
from cosim.plugins.trajectories import arc, line
from tests.kit.plugins import cases

JOINTS = ("shoulder", "elbow")
START = np.array([0.2, -0.4])
KEYS = ("position", "velocity", "acceleration", "effort")
FILE = "points.csv"  # required text parameters are paths of CSV files
CSV = "t,shoulder,elbow\n0.3,0.2,-0.4\n0.8,0.6,0.1\n1.4,-0.3,0.5\n2.0,0.1,0\n"
TASK: dict[str, Any] = {"frame": "tip", "orientation": "free"}
TASK_PATHS = [  # drawn at random they would leave the reach of the arm
    pytest.param(line, line.Params(**TASK, displacement=(-0.03, 0.0, 0.05), duration=1.3, delay=0.2), id="line"),
    pytest.param(
        arc,
        arc.Params(**TASK, center=(0.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0), angle=1.0, max_velocity=1, max_acceleration=3),
        id="arc",
    ),
]
DRAWN = [case for case in cases("cosim.plugins.trajectories", len(JOINTS), FILE) if case.values[0] not in (line, arc)]
CASES = pytest.mark.parametrize(("module", "params"), [*DRAWN, *TASK_PATHS])


ARM = Model(
    parse_urdf(
        '<robot name="arm"><link name="base"/>'
        + "".join(
            f'<link name="l{k}"><inertial><origin xyz="0.3 0 0"/><mass value="1"/>'
            '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="{joint}" type="revolute"><parent link="{"base" if k == 0 else f"l{k - 1}"}"/>'
            f'<child link="l{k}"/><origin xyz="{0.5 * k} 0 0"/><axis xyz="0 1 0"/><dynamics damping="0.3"/>'
            '<limit lower="-3" upper="3" effort="60" velocity="5"/></joint>'
            for k, joint in enumerate(JOINTS)
        )
        + '<link name="tip"/><joint name="end" type="fixed"><parent link="l1"/><child link="tip"/>'
        '<origin xyz="0.4 0 0"/>'
        "</joint></robot>"
    )
)
CONTEXT = TrajectoryContext(np.arange(2), ARM, START.copy(), ARM.limits)


LOADED: dict[int, tuple[Trajectory, Any]] = {}  # by parameters


@pytest.fixture
def trajectory(module: ModuleType, params: Any, tmp_path: Path) -> Trajectory:
    """Loaded and compiled once, see `compiled`."""
    if id(params) not in LOADED:
        (tmp_path / FILE).write_text(CSV)
        planning = (CONTEXT,) if getattr(module, "NEEDS_MODEL", False) else ()
        made = module.load(params, JOINTS, tmp_path, START.copy(), *planning)
        sample = compile(lambda t: tuple(made.sample(t)[key] for key in KEYS), [ArrayPort("t", ())], "sample")
        LOADED[id(params)] = made, sample
    return LOADED[id(params)][0]


@pytest.fixture
def compiled(trajectory: Trajectory, params: Any) -> Any:
    return LOADED[id(params)][1]


def horizon(trajectory: Trajectory) -> float:
    return min(trajectory.end, 6.0)


@CASES
def test_keys_shapes_and_finite_values(trajectory: Trajectory) -> None:
    assert trajectory.end >= 0.0
    for t in (0.0, 0.37, horizon(trajectory), 50.0):
        sample = trajectory.sample(t)
        assert sample.keys() == set(KEYS)
        for value in sample.values():
            assert np.shape(value) == (len(JOINTS),) and np.isfinite(np.asarray(value, dtype=float)).all()


@CASES
def test_velocity_and_acceleration_are_the_derivatives(trajectory: Trajectory, compiled: Any) -> None:
    """In integral form, so that steps are allowed: position = ∫ velocity, velocity = ∫ acceleration up to `end`."""
    t = np.linspace(0.0, horizon(trajectory), 20001)[:-1]  # at `end` the velocity may step to 0
    if t[-1] == 0.0:
        pytest.skip("the motion ends immediately")
    samples = dict(zip(KEYS, compiled(t), strict=True))
    dt = t[1] - t[0]
    for value, rate in (("position", "velocity"), ("velocity", "acceleration")):
        slope = samples[rate]
        steps = 0.5 * (slope[1:] + slope[:-1]) * dt
        change = samples[value] - samples[value][0]
        bound = 1e-5 + 10.0 * np.abs(slope).max() * dt  # some ten steps of the rate, half a sample each
        np.testing.assert_allclose(change[1:], np.cumsum(steps, axis=0), rtol=0, atol=bound)


@CASES
def test_it_is_at_rest_from_its_end_on(trajectory: Trajectory) -> None:
    if math.isinf(trajectory.end):
        pytest.skip("a periodic trajectory has no end")
    last = trajectory.sample(trajectory.end)
    for later in (1e-9, 0.1, 100.0):
        sample = trajectory.sample(trajectory.end + later)
        np.testing.assert_allclose(sample["position"], last["position"], rtol=1e-9, atol=1e-9)
        for key in ("velocity", "acceleration"):
            np.testing.assert_allclose(sample[key], np.zeros(len(JOINTS)), atol=1e-9)


@CASES
def test_samples_depend_on_time_alone_and_traced_results_equal_numeric_results(
    trajectory: Trajectory, compiled: Any
) -> None:
    times = np.concatenate([np.random.default_rng(0).uniform(0.0, 1.2 * horizon(trajectory) + 0.1, 40), [0.0, 50.0]])
    expected = [[np.array(trajectory.sample(t)[key], dtype=float) for key in KEYS] for t in times]
    again = [[np.array(trajectory.sample(t)[key], dtype=float) for key in KEYS] for t in times[::-1]][::-1]
    np.testing.assert_array_equal(expected, again)
    got = compiled(times)
    for k in range(len(KEYS)):
        np.testing.assert_allclose(got[k], [row[k] for row in expected], rtol=1e-10, atol=1e-10)
