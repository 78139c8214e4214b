"""Tunable parameters of a rig: set by name without building anything anew, checked as in the file."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import cosim
from cosim.errors import InputError, InputErrors
from cosim.rig import Rig
from cosim.rig.parameters import set_values

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


ELEMENT_MISTAKES = {
    "unknown joint": (
        {"hold.kp/elbo": 1},
        "parameter 'hold.kp/elbo': it has no element for 'elbo'; did you mean 'elbow'?",
    ),
    "also whole": (
        {"hold.kp/elbow": 1, "hold.kp": 2},
        "parameter 'hold.kp/elbow': 'hold.kp' is given as a whole too; give one of the two",
    ),
    "a list": ({"hold.kp/elbow": [1, 2]}, "parameter 'hold.kp/elbow': expected one number, got a list"),
    "unknown parameter": (
        {"hold.kq/elbow": 1},
        "parameter 'hold.kq/elbow': there is no such parameter; did you mean 'hold.kp'?",
    ),
    "negative": ({"hold.kp/elbow": -1}, "parameter 'hold.kp': must be at least 0 N*m/rad, is -1 N*m/rad"),
}


@pytest.mark.parametrize("mistake", ELEMENT_MISTAKES)
def test_mistakes_with_elements_are_named_and_nothing_is_set(rig, mistake):
    values, message = ELEMENT_MISTAKES[mistake]
    with pytest.raises(InputErrors) as raised:
        set_values(rig, values)
    assert str(raised.value) == message
    assert rig.parameters == {"hold.kp": [100.0, 100.0], "hold.kd": [5.0, 3.0]}


def test_interpreted_runs_have_the_same_parameters(rig):
    interpreted = Rig.from_dict(ARM, interpret=True)
    interpreted.set("hold.kp", 40)
    rig.set("hold.kp", 40)
    np.testing.assert_allclose(interpreted.run(0.02).values, rig.run(0.02).values, rtol=0, atol=1e-12)


def test_a_further_run_traces_and_compiles_nothing(rig, monkeypatch):
    rig.run(0.01)
    monkeypatch.setattr("cosim.compile.trace.trace", None)
    monkeypatch.setattr("cosim.compile.jit.Library.__init__", None)
    rig.run(0.01, parameters={"hold.kp": 1.0})


@pytest.mark.parametrize(
    ("values", "messages"),
    [
        ({"hold.kpp": 3}, ["parameter 'hold.kpp': there is no such parameter; did you mean 'hold.kp'?"]),
        ({"hold.kp": -1}, ["parameter 'hold.kp': must be at least 0 N*m/rad, is -1 N*m/rad"]),
        ({"hold.kp": [1, 2, 3]}, ["parameter 'hold.kp': expected 2 numbers (one per joint), got 3"]),
        ({"hold.kp": "3 kg"}, ["parameter 'hold.kp': unit 'kg' does not fit here; use N*m/rad"]),
        ({"hold.kp": float("nan")}, ["parameter 'hold.kp': must be a finite number, is nan"]),
        (
            {"hold.kp": -1, "hold.x": 1},
            [
                "parameter 'hold.kp': must be at least 0 N*m/rad, is -1 N*m/rad",
                "parameter 'hold.x': there is no such parameter; did you mean 'hold.kp'?",
            ],
        ),
    ],
)
def test_wrong_parameters_are_refused_and_none_is_set(rig, values, messages):
    with pytest.raises(InputErrors) as caught:
        rig.run(0.01, parameters={"hold.kd": 1.0, **values})
    assert [str(error) for error in caught.value.errors] == messages
    assert rig.parameters == {"hold.kp": [100.0, 100.0], "hold.kd": [5.0, 3.0]}


def test_a_parameter_that_is_no_number_is_part_of_the_code():
    rig = Rig.from_dict({**ARM, "controllers": [{"name": "ff", "type": "feedforward_pd", "kp": 1, "kd": 1}]})
    with pytest.raises(InputErrors) as caught:
        rig.set("ff.friction", False)
    what = "is a part of the machine code; load the rig with the override 'controllers.ff.friction=…'"
    assert str(caught.value.errors[0]) == f"parameter 'ff.friction': {what}"


def test_a_duration_that_is_no_time_is_refused(rig):
    with pytest.raises(InputError) as caught:
        rig.run("2 kg")
    assert str(caught.value) == "duration: unit 'kg' does not fit here; use s, ms, us, min, h"


# --- rigs in Python ---------------------------------------------------------------------------------


def test_a_rig_is_pickled_with_its_parameters(rig):
    rig.set("hold.kp", 33)
    copy = pickle.loads(pickle.dumps(rig))
    assert copy.parameters == rig.parameters
    np.testing.assert_array_equal(copy.run(0.05).values, rig.run(0.05).values)


def test_a_rig_shows_itself_in_one_line(rig):
    assert repr(rig) == "<Rig arm: 2 dofs, hold>"


def test_mistakes_of_a_dict_name_their_keys(tmp_path):
    with pytest.raises(InputErrors) as caught:
        Rig.from_dict({**ARM, "joints": {"elbo": {}}, "schedule": {"step": -1}}, folder=tmp_path)
    messages = [str(error) for error in caught.value.errors]
    assert all(message.startswith(f"{tmp_path}/<dict> ") for message in messages)
    assert any("unknown joint 'elbo'" in message for message in messages)


def test_a_dict_with_what_no_file_can_have_is_refused():
    with pytest.raises(InputError) as caught:
        Rig.from_dict({**ARM, "description": object()})
    assert str(caught.value).startswith("<dict>: cannot be written as YAML: cannot represent an object <object object")


def test_the_public_names_are_listed():
    assert {"Model", "Rig", "Run", "compare", "load_rig", "load_run", "__version__"} <= set(dir(cosim))
    for name in dir(cosim):
        assert getattr(cosim, name) is not None
    assert cosim.__version__.count(".") == 2
