"""Tunable parameters of a rig: set by name without building anything anew, checked as in the file."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import cosim
from cosim.rig.parameters import set_values
from cosim.rig.rig import Rig
from tests.kit.refusals import refusal

BODY = {"mass": 1.0, "com": [0.2, 0, 0], "inertia": [0.01, 0.02, 0.02], "axis": [0, 1, 0]}
ARM = {
    "name": "arm",
    "mechanism": {
        "bodies": [
            {"name": "upper", "joint": "shoulder", **BODY},
            {"name": "fore", "parent": "upper", "joint": "elbow", "origin": {"xyz": [0.4, 0, 0]}, **BODY},
        ]
    },
    "joints": {"all": {"actuator": {"type": "ideal"}}},
    "controllers": [{"name": "hold", "type": "pd_gravity", "kp": 100, "kd": [5, 3]}],
    "schedule": {"step": "1 ms", "duration": 0.2},
}


@pytest.fixture(scope="module")
def shared():
    return Rig.from_dict(ARM)


@pytest.fixture
def rig(shared):
    before = shared.tick_model.parameters.copy()
    yield shared
    shared.tick_model.parameters[:] = before


def fresh(**values):
    """A rig with these parameters in its file."""
    controller = {**ARM["controllers"][0], **values}
    return Rig.from_dict({**ARM, "controllers": [controller]})


def test_parameters_are_listed_with_their_values(rig):
    assert rig.parameters == {"hold.kp": [100.0, 100.0], "hold.kd": [5.0, 3.0]}
    assert repr(rig) == "<Rig arm: 2 dofs, hold>"


def test_a_parameter_that_is_set_gives_the_run_of_a_file_with_it(rig):
    rig.set("hold.kp", 40)
    rig.set("hold.kd", np.array([2.0, 1.0]))
    assert rig.parameters == {"hold.kp": [40.0, 40.0], "hold.kd": [2.0, 1.0]}
    np.testing.assert_array_equal(rig.run().values, fresh(kp=40, kd=[2, 1]).run().values)


def test_parameters_of_a_run_count_for_that_run_only(rig):
    before = rig.run()
    softer = rig.run("100 ms", parameters={"hold.kp": "20 N*m/rad"})
    assert softer.t[-1] == pytest.approx(0.1) and softer.rig.parameters["hold.kp"] == [20.0, 20.0]
    np.testing.assert_array_equal(softer.values, fresh(kp=20).run(0.1).values)
    assert rig.parameters["hold.kp"] == [100.0, 100.0]
    np.testing.assert_array_equal(rig.run().values, before.values)


def test_elements_are_set_by_the_names_of_their_joints(rig):
    rig.set("hold.kp/elbow", "40 N*m/rad")
    assert rig.parameters == {"hold.kp": [100.0, 40.0], "hold.kd": [5.0, 3.0]}
    set_values(rig, {"hold.kp/shoulder": 1, "hold.kp/elbow": 2, "hold.kd": 4})
    assert rig.parameters == {"hold.kp": [1.0, 2.0], "hold.kd": [4.0, 4.0]}


def test_interpreted_runs_have_the_same_parameters(rig):
    interpreted = Rig.from_dict(ARM, interpret=True)
    interpreted.set("hold.kp", 40)
    rig.set("hold.kp", 40)
    np.testing.assert_allclose(interpreted.run(0.02).values, rig.run(0.02).values, rtol=0, atol=1e-12)


def test_a_further_run_traces_and_compiles_nothing(rig, monkeypatch):
    rig.run(0.01)
    monkeypatch.setattr("cosim.core.compile.trace.trace", None)
    monkeypatch.setattr("cosim.core.compile.jit.Library.__init__", None)
    rig.run(0.01, parameters={"hold.kp": 1.0})


@pytest.mark.parametrize(
    "values",
    [
        {"hold.kpp": 3},
        {"hold.kp": -1},
        {"hold.kp": [1, 2, 3]},
        {"hold.kp": "3 kg"},
        {"hold.kp": float("nan")},
        {"hold.kp": -1, "hold.x": 1},
        {"hold.kp/elbo": 1},
        {"hold.kp/elbow": 1, "hold.kp": 2},
        {"hold.kp/elbow": [1, 2]},
        {"hold.kq/elbow": 1},
        {"hold.kp/elbow": -1},
    ],
    ids=str,
)
def test_wrong_parameters_are_refused_and_none_is_set(rig, said, values):
    words = refusal(set_values, rig, {"hold.kd": 1.0, **values})
    assert refusal(rig.run, 0.01, parameters={"hold.kd": 1.0, **values}) == words
    said(words)
    assert rig.parameters == {"hold.kp": [100.0, 100.0], "hold.kd": [5.0, 3.0]}


def test_a_parameter_that_is_no_number_is_part_of_the_code(said):
    rig = Rig.from_dict({**ARM, "controllers": [{"name": "ff", "type": "feedforward_pd", "kp": 1, "kd": 1}]})
    said(refusal(rig.set, "ff.friction", False))


def test_a_duration_that_is_no_time_is_refused(rig):
    assert refusal(rig.run, "2 kg") == "duration: unit 'kg' does not fit here; use s, ms, us, ns, min, h"


def test_a_rig_is_pickled_with_its_parameters(rig):
    rig.set("hold.kp", 33)
    copy = pickle.loads(pickle.dumps(rig))
    assert copy.parameters == rig.parameters
    np.testing.assert_array_equal(copy.run(0.05).values, rig.run(0.05).values)


def test_mistakes_of_a_dict_name_their_keys(tmp_path, said):
    said(refusal(Rig.from_dict, {**ARM, "joints": {"elbo": {}}, "schedule": {"step": -1}}, folder=tmp_path))


def test_a_dict_with_what_no_file_can_have_is_refused(said):
    said(refusal(Rig.from_dict, {**ARM, "description": object()}), r"at 0x\w+")


def test_the_public_names_are_listed():
    assert {"Model", "Rig", "Run", "compare", "load_rig", "load_run", "__version__"} <= set(dir(cosim))
    for name in dir(cosim):
        assert getattr(cosim, name) is not None
    assert cosim.__version__.count(".") == 2
