"""A controller that stays in Python: the reason names the line of the user's file, whatever part fails."""

import pytest

from tests.kit.rigs import controller, rig_in

RIG = """
mechanism:
  bodies: [{name: link, joint: hinge, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}]
controllers: [{type: push.py}]
"""
FLOAT = "TypeError: a traced value is not a number yet; use cosim.ops instead of float, math and numpy"
# what the user wrote -> (the reason, whether it names the line; else the function)
LINES = {
    "an if": (
        "effort = ops.array([1.0 if q[0] > 0 else 0.0])",
        "a Python `if`, `and`, `min` or comparison chain on a traced value; use cosim.ops.where",
        True,
    ),
    "math": ("effort = ops.array([math.sin(q[0])])", f"cannot be traced: {FLOAT}", True),
    "float": ("effort = ops.array([float(q[0])])", f"cannot be traced: {FLOAT}", True),
    "a library": ("effort = np.linalg.inv(np.array([[q[0]]]))[0]", None, True),
    "the model": (
        "effort = self.model.frame_pose(q, 'hand')[:1, 3]",
        "cannot be traced: InputError: link 'hand' does not exist; known: base, link",
        True,
    ),
    "shapes in the model": (
        "effort = self.model.nonlinear_effects(q, v[:0])",
        None,
        True,
    ),
    "any error": ("effort = ops.array([{}['a']])", "cannot be traced: KeyError: 'a'", True),
    "hidden state": (
        "self.seen.append(0); effort = ops.array([1.0 * len(self.seen)])",
        "does not compute the same at every call: it keeps hidden state, reads a clock or draws random numbers;"
        " keep its"
        " state in x and take the time from t",
        False,
    ),
    "symbols of an earlier call": (
        "self.kept = getattr(self, 'kept', q); effort = self.kept * 1.0",
        None,
        False,
    ),
    "a wrong output": (
        "effort = 'text'",
        "cannot be traced: WrongResult: the output 'effort' must be real numbers of shape (1,), is 'text' (str)",
        False,
    ),
}


@pytest.mark.parametrize("case", LINES)
def test_the_reason_names_the_users_line(tmp_path, case):
    line, what, has_line = LINES[case]
    source = controller(line).replace("params, []", "params, []; self.model = context.model")
    rig = rig_in(tmp_path, RIG, push=source)
    lines = source.splitlines()
    number = 1 + next(k for k, text in enumerate(lines) if (line if has_line else "def update") in text)
    place = f"{tmp_path}/push.py:{number}" + ("" if has_line else " Push.update")
    told = rig.tick_model.untraceable["push"]
    assert told.startswith(f"{place}: ")
    if what is not None:
        assert told == f"{place}: {what}"
