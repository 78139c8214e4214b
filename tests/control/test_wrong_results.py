"""Controllers of users that return anything else than they must: the error names their function, not ours."""

from pathlib import Path

import numpy as np
import pytest

from cosim.control.controller_result import accepted
from cosim.core import ops
from cosim.core.errors import CosimError, WrongResult
from cosim.core.layout import Layout
from cosim.core.types import COMMAND, joint_signals
from tests.kit.refusals import raised
from tests.kit.rigs import controller, rig_in

RIG = """
mechanism: {bodies: [{name: link, joint: hinge, mass: 1, com: [1, 0, 0], inertia: [1, 1, 1]}]}
controllers: [{name: hold, type: push.py}]
schedule: {duration: 5 ms}
"""
both = pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])


class Block:
    """Of one joint and one state."""

    inputs = joint_signals((), 1)

    def __init__(self, declared=COMMAND):
        self.outputs = joint_signals(declared, 1)

    def update(self, t, p, x, u): ...


X, Y = {"n": ops.zeros(1)}, {name: ops.zeros(1) for name in COMMAND}
EFFORTS = [ops.zeros(2), ops.zeros((1, 1)), 1.0, "a", None, {}, np.array([1j]), [1.0 + 2.0j]]
RESULTS = [*((X, Y | {"effort": effort}) for effort in EFFORTS), (X, {"effort": Y["effort"]}), (X, Y | {"torque": 0.0})]
RESULTS += [None, Y, (X, Y, 3), (None, Y), ({}, Y), ({"n": ops.zeros(3)}, Y)]


def test_each_mistake_in_a_result_has_its_message(said):
    for block, result in [*((Block(), result) for result in RESULTS), (Block(("effort",)), (X, Y))]:
        said(raised(WrongResult, accepted, result, block, Layout(X), 1))
    assert accepted((X, Y), Block(), Layout(X), 1) == (X, Y)


@pytest.fixture
def message_of(tmp_path: Path):
    """The message of the run of a controller, with the folder of the rig as {}."""

    def message_of(text: str, interpret: bool = False) -> str:
        with pytest.raises(CosimError) as caught:
            rig_in(tmp_path, RIG, interpret=interpret, push=text).run()
        return str(caught.value).replace(str(tmp_path), "{}")

    return message_of


@both
def test_a_wrong_result_names_the_function_of_the_user(message_of, interpret):
    what = "controller 'hold' failed: the output 'effort' has shape (2,); it must be (1,) ({}/push.py:20 Push.update)"
    assert message_of(controller("effort = ops.zeros(2)"), interpret).endswith(what)


@both
def test_an_exit_of_a_controller_is_a_failure(message_of, interpret):
    message = message_of(controller("import sys; sys.exit(3)"), interpret)
    assert message.endswith("controller 'hold' failed: SystemExit: 3 ({}/push.py:22)")


@pytest.mark.parametrize("initial", ["'x'", "None", "np.array([0.0, np.nan])"])
def test_an_initial_state_is_arrays_of_numbers(message_of, initial, said):
    text = controller("effort = ops.zeros(1)").replace('"n": np.zeros(1)', f'"n": {initial}')
    said(message_of(text))
