"""Controllers of users that return anything else than they must: the error names their function, not ours."""

from pathlib import Path

import pytest

from cosim import load_rig
from cosim.errors import CosimError
from tests.kit.levels import one_of_each
from tests.kit.rigs import PUSH, controller

RIG = """
mechanism: {bodies: [{name: link, joint: hinge, mass: 1, com: [1, 0, 0], inertia: [1, 1, 1]}]}
controllers: [{name: hold, type: push.py}]
schedule: {duration: 5 ms}
"""
UPDATE, INITIAL = "{}/push.py:20 Push.update", "{}/push.py:17 Push.initial"
RETURN = 'return {"n": n + 1.0}, command'


def source(lines="effort = ops.zeros(1)", result=RETURN, initial="np.zeros(1)", declared="COMMAND"):
    text = controller(lines).replace("joint_signals(COMMAND", f"joint_signals({declared}")
    text = text.replace(RETURN, result).replace('"n": np.zeros(1)', f'"n": {initial}')
    assert PUSH.count("def update") == 1
    return text


@pytest.fixture
def message_of(tmp_path: Path):
    """The message of the run of a controller, with the folder of the rig as {}."""

    def message_of(text: str, interpret: bool) -> str:
        (tmp_path / "rig.yaml").write_text(RIG)
        (tmp_path / "push.py").write_text(text)
        with pytest.raises(CosimError) as caught:
            load_rig(tmp_path / "rig.yaml", (), interpret).run()
        return str(caught.value).replace(str(tmp_path), "{}")

    return message_of


BOTH = "update returns {}; return the next state and the outputs, two mappings"


@one_of_each
@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"lines": "effort = ops.zeros(2)"}, "the output 'effort' has shape (2,); it must be (1,)"),
        ({"lines": "effort = ops.zeros((1, 1))"}, "the output 'effort' has shape (1, 1); it must be (1,)"),
        ({"lines": "effort = 1.0"}, "the output 'effort' has shape (); it must be (1,)"),
        ({"lines": "effort = 'a'"}, "the output 'effort' must be real numbers of shape (1,), is 'a' (str)"),
        ({"lines": "effort = None"}, "the output 'effort' must be real numbers of shape (1,), is None (NoneType)"),
        ({"lines": "effort = {}"}, "the output 'effort' must be real numbers of shape (1,), is {} (dict)"),
        (
            {"lines": "effort = np.array([1j])"},
            "the output 'effort' must be real numbers of shape (1,), is array([0.+1.j]) (complex)",
        ),
        (
            {"lines": "effort = [1.0 + 2.0j]"},
            "the output 'effort' must be real numbers of shape (1,), is [(1+2j)] (complex)",
        ),
        ({"result": "return x, {'effort': effort}"}, "the output 'position' is missing"),
        (
            {"result": "return x, command | {'torque': rest}"},
            "the output 'torque' does not exist; known: position, velocity, effort, kp, kd",
        ),
        ({"declared": "['effort']"}, "the output 'position' is not declared; add it to the outputs"),
        ({"result": "return None"}, BOTH.format("nothing")),
        ({"result": "return command"}, BOTH.format("a dict")),
        ({"result": "return x, command, 3"}, BOTH.format("a dict, a dict, a int")),
        ({"result": "return None, command"}, BOTH.format("nothing, a dict")),
        ({"result": "return {}, command"}, "the keys of the state differ from the initial ones: n"),
        ({"result": "return {'n': ops.zeros(3)}, command"}, "n has shape (3,); its initial shape is (1,)"),
    ],
)
def test_a_wrong_result_names_the_function_of_the_user(message_of, changes, what, interpret):
    failed = "{}/rig.yaml: stopped at tick 0 (t = 0 s): controller 'hold' failed"
    assert message_of(source(**changes), interpret) == f"{failed}: {what} ({UPDATE})"


@pytest.mark.parametrize(
    ("initial", "what"),
    [
        ("'x'", "initial returns 'n' as a str; return an array of numbers"),
        ("None", "initial returns 'n' as a NoneType; return an array of numbers"),
        ("np.array([0.0, np.nan])", "initial returns 'n' with an element that is no number (NaN); return numbers"),
    ],
)
def test_an_initial_state_is_arrays_of_numbers(message_of, initial, what):
    assert message_of(source(initial=initial), False) == f"{{}}/rig.yaml:3 controllers[0]: {what} ({INITIAL})"


@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
def test_an_exit_of_a_controller_is_a_failure(message_of, interpret):
    message = message_of(source("import sys; sys.exit(3)"), interpret)
    assert message.endswith("controller 'hold' failed: SystemExit: 3 ({}/push.py:22)")
