"""Mistakes in calls from Python: one line with the fix, as on the command line."""

from __future__ import annotations

import numpy as np
import pytest

from cosim import compare, load_rig
from cosim.errors import InputError
from cosim.rig import Rig
from tests.rig.test_run_forms import MOVING


@pytest.fixture(scope="module")
def rig():
    return Rig.from_dict(MOVING)


@pytest.fixture(scope="module")
def run(rig):
    return rig.run("10 ms")


MISTAKES = {
    "parameters": (
        lambda rig: rig.run("0.1 s", parameters=["hold.kp"]),
        "parameters: expected a mapping such as {'hold.kp': 3}, got a list",
    ),
    "duration": (lambda rig: rig.run([1]), "duration: expected s or text such as '2 s', got a list"),
    "truth": (lambda rig: rig.run(True), "duration: expected s or text such as '2 s', got true"),
    "load_rig": (
        lambda rig: load_rig({}),
        "load_rig: expected the name of a file, got a mapping; use Rig.from_dict for the sections of a rig",
    ),
    "from_dict": (lambda rig: Rig.from_dict([]), "from_dict: expected a mapping of the sections of a rig, got a list"),
    "shape": (
        lambda rig: rig.set("hold.kp", np.full((2, 1), 3.0)),
        "parameter 'hold.kp': expected one number, or a list with one per joint, got a list of lists",
    ),
    "override": (
        lambda rig: rig.set("controllers.hold.kp", 3),
        "parameter 'controllers.hold.kp': there is no such parameter; did you mean 'hold.kp'?",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line(rig, name):
    call, message = MISTAKES[name]
    with pytest.raises(InputError) as caught:
        call(rig)
    assert str(caught.value) == message


def test_one_name_is_a_list_of_it(run):
    joint = run.joints[0]
    with pytest.raises(InputError) as caught:
        run.plot(joints="elbo")
    assert str(caught.value).startswith("plot: there is no joint 'elbo'")
    by_name, by_list = run.plot(signals=f"{joint}/position"), run.plot(signals=[f"{joint}/position"])
    assert [axes.get_ylabel() for axes in by_name.axes] == [axes.get_ylabel() for axes in by_list.axes] == ["rad"]


def test_a_run_is_iterated_by_the_names_of_its_signals(run):
    assert tuple(run) == run.signals
    with pytest.raises(KeyError, match="no signal '0'; known: "):
        run[0]


def test_a_signal_cannot_be_changed_by_accident(run):
    with pytest.raises(ValueError, match="read-only"):
        run[run.signals[0]][0] = 5.0


def test_saved_runs_are_compared_by_their_names(run, tmp_path):
    run.save(tmp_path / "a.npz")
    assert compare(str(tmp_path / "a.npz"), run).identical
    assert compare(run, tmp_path / "a.npz").identical
