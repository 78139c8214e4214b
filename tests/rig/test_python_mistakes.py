"""Mistakes in calls from Python: one line with the fix, as on the command line."""

from __future__ import annotations

import numpy as np
import pytest

from cosim import compare, load_rig
from cosim.rig.rig import Rig
from tests.kit.refusals import refusal
from tests.rig.test_run_forms import MOVING


@pytest.fixture(scope="module")
def rig():
    return Rig.from_dict(MOVING)


@pytest.fixture(scope="module")
def run(rig):
    return rig.run("10 ms")


MISTAKES = {
    "parameters": lambda rig: rig.run("0.1 s", parameters=["hold.kp"]),
    "duration": lambda rig: rig.run([1]),
    "truth": lambda rig: rig.run(True),
    "load_rig": lambda rig: load_rig({}),
    "from_dict": lambda rig: Rig.from_dict([]),
    "shape": lambda rig: rig.set("hold.kp", np.full((2, 1), 3.0)),
    "override": lambda rig: rig.set("controllers.hold.kp", 3),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line(rig, said, name):
    said(refusal(MISTAKES[name], rig))


def test_one_name_is_a_list_of_it(run):
    joint = run.joints[0]
    assert refusal(run.plot, joints="elbo").startswith("plot: there is no joint 'elbo'")
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
