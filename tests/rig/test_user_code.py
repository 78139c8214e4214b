"""Joints and laws in Python files of the user: what is taken, and the one line that says what is wrong with one."""

from pathlib import Path

import numpy as np
import pytest

from cosim.errors import InputErrors
from cosim.rig.sections.rig_spec import read_rig

# line 10 is that of `place`, line 11 the first in it
JOINT = """\
import math
import numpy as np
from cosim import ops
from cosim.multibody.joints import GeneralMotion
from cosim.types import param, params
@params
class Params:
    reach: float = param(unit="m", above=0, default=1.0)
def load(params):
    def place(q, t):
        {body}
    return {made}
"""
TURN = "np.eye(3), ops.array([params.reach * q[0], 0.0, 0.0])"
MADE = "GeneralMotion(('way',), ('m',), place)"

# line 10 is that of `f`, line 11 the first in it
LAW = """\
import math
import numpy as np
from cosim import ops
from cosim.multibody.constraint_laws import ConstraintLaw, ReactionSpec
from cosim.types import param, params
@params
class Params:
    ratio: float = param(default=2.0)
def load(params):
    def f(frames, q, t):
        {body}
    def a(frames, q, v, t):
        {rate}
    row = ReactionSpec("force", "N", "m")
    return {made}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def read(text):
    Path("rig.yaml").write_text(text)
    return read_rig("rig.yaml").mechanism.description


def mistake(text):
    with pytest.raises(InputErrors) as caught:
        read(text)
    (line,) = str(caught.value).splitlines()
    return line.replace(str(Path.cwd()), "")


def joint(body=f"return {TURN}", made=MADE, keys="mass: 1"):
    Path("mine.py").write_text(JOINT.format(body=body, made=made))
    return f"mechanism:\n  bodies:\n    - {{name: a, type: mine.py, {keys}}}\n"


def law(
    body="return [frames[0].position[0] - params.ratio * q[0]]",
    made="ConstraintLaw((row,), f)",
    rate="return []",
    keys="",
):
    Path("mine.py").write_text(LAW.format(body=body, rate=rate, made=made))
    more = f", {keys}" if keys else ""
    return (
        "mechanism:\n  bodies: [{name: a, mass: 1}, {name: b, mass: 1}]\n"
        f"  constraints:\n    - {{name: c, type: mine.py, between: [a, b], joints: [b]{more}}}\n"
    )


# --- joints -----------------------------------------------------------------------------------------------


def test_a_joint():
    found = read(joint(keys="mass: 1, params: {reach: 20 cm}, damping: 3 N*s/m, limits: {upper: 5 mm}")).joints[0]
    assert (found.kind, found.motion.names, found.motion.units) == ("general", ("way",), ("m",))
    assert (found.damping, found.upper) == (3, 0.005)
    _, origin = found.motion.place(np.array([2.0]), 0.0)
    np.testing.assert_allclose(origin, [0.4, 0, 0])


def test_a_joint_that_depends_on_time():
    body = "return np.eye(3), ops.array([q[0], ops.sin(t), 0.0])"
    assert read(joint(body, "GeneralMotion(('way',), ('m',), place, timed=True)")).joints[0].motion.timed


def test_a_loop_of_such_a_joint_has_coordinates():
    text = joint().replace("type: mine.py, ", "") + "    - {name: b, mass: 1}\n"
    text += "  loops: [{name: C, parent: a, child: b, type: mine.py}]\n"
    assert read(text).loops[0].coordinates is True


WANTED = "return the child's axes (3, 3) and its origin (3,) (/mine.py:10 load.<locals>.place)"


@pytest.mark.parametrize(
    ("body", "made", "message"),
    [
        (
            f"return {TURN}",
            "None",
            "load returned nothing; return a GeneralMotion of cosim.multibody.joints (/mine.py:9 load)",
        ),
        (
            f"return {TURN}",
            "place",
            "load returned a function; return a GeneralMotion of cosim.multibody.joints (/mine.py:9 load)",
        ),
        (f"return {TURN}", "1 / 0", "cannot be set up: ZeroDivisionError: division by zero (/mine.py:12)"),
        (
            f"return {TURN}",
            "GeneralMotion(('way',), (), place)",
            "names the coordinates ('way',) with the units (); give each coordinate one of the units 'rad' and 'm'"
            " (/mine.py:10 load.<locals>.place)",
        ),
        (
            f"return {TURN}",
            "GeneralMotion(('way',), ('deg',), place)",
            "names the coordinates ('way',) with the units ('deg',); give each coordinate one of the units 'rad' and"
            " 'm' (/mine.py:10 load.<locals>.place)",
        ),
        (
            f"return {TURN}",
            "GeneralMotion(('way', 'way'), ('m', 'm'), place)",
            "names the coordinates ('way', 'way'); give each coordinate another name (/mine.py:10 load.<locals>.place)",
        ),
        (
            "return np.eye(3), ops.array([q[0] + 2.0 * q[1], 0.0, 0.0])",
            "GeneralMotion(('a', 'b'), ('m', 'm'), place)",
            "the 2 coordinates of place move the child in 1 direction at the coordinates (0.1, 0.2); let each have a"
            " direction of its own (/mine.py:10 load.<locals>.place)",
        ),
        (
            "return np.eye(3), ops.array([0.0 * q[0], 0.0, 0.0])",
            MADE,
            "the 1 coordinate of place moves the child in 0 directions at the coordinates (0.1); let each have a"
            " direction of its own (/mine.py:10 load.<locals>.place)",
        ),
        ("return np.eye(3), q", MADE, f"place returns arrays of shapes (3, 3), (1,); {WANTED}"),
        ("return np.eye(3)", MADE, f"place returns arrays of shapes (3,), (3,), (3,); {WANTED}"),
        ("return 2 * np.eye(3), np.zeros(3)", MADE, f"the axes that place returns are no rotation; {WANTED}"),
        (
            "return q[3]",
            MADE,
            "place fails on numbers: IndexError: index 3 is out of bounds for axis 0 with size 1 (/mine.py:11)",
        ),
        (
            "return 7",
            MADE,
            "place fails on numbers: TypeError: 'int' object is not iterable (/mine.py:10 load.<locals>.place)",
        ),
        (
            "return np.eye(3), np.array([math.sin(q[0]), 0.0, 0.0])",
            MADE,
            "place fails on symbols: cannot be traced: TypeError: a traced value is not a number yet; use cosim.ops"
            " instead of float, math and numpy (/mine.py:11)",
        ),
        (
            "return np.eye(3), ops.array([q[0] if q[0] > 0 else 0.0, 0.0, 0.0])",
            MADE,
            "place fails on symbols: a Python `if`, `and`, `min` or comparison chain on a traced value;"
            " use cosim.ops.where (/mine.py:11)",
        ),
        (
            "return np.eye(3), ops.array([q[0] + t, 0.0, 0.0])",
            MADE,
            "place depends on the time t; pass timed=True (/mine.py:10 load.<locals>.place)",
        ),
        *(
            (
                f"return np.eye(3), ops.array([{way}, 0.0, 0.0])",
                MADE,
                "place is not differentiable at the coordinates (0); use smooth functions"
                " (/mine.py:10 load.<locals>.place)",
            )
            for way in ("ops.absolute(q[0])", "ops.floor(10.0 * q[0])", "ops.sqrt(q[0])")
        ),
    ],
)
def test_a_joint_that_does_not_fit(body, made, message):
    assert mistake(joint(body, made)) == f"rig.yaml:3 mechanism.bodies[0].type: {message}"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("mass: 1, params: {reach: 0}", ".params.reach: must be above 0 m, is 0 m"),
        ("mass: 1, params: {raech: 1}", ".params: unknown key 'raech'; did you mean 'reach'?"),
        ("mass: 1, para: {}", ": unknown key 'para'; did you mean 'params'?"),
        ("mass: 1, damping: 1 N*m*s/rad", ".damping: unit 'N*m*s/rad' does not fit linear joints; use N*s/m"),
    ],
)
def test_keys_of_a_joint(keys, message):
    assert mistake(joint(keys=keys)) == f"rig.yaml:3 mechanism.bodies[0]{message}"


def test_a_joint_that_cannot_be_imported():
    text = joint()
    Path("mine.py").write_text("\n1 / 0\n")
    assert mistake(text) == "mine.py:2: the joint cannot be imported: ZeroDivisionError: division by zero"
    Path("mine.py").write_text("x = 1\n")
    assert (
        mistake(text) == "rig.yaml:3 mechanism.bodies[0].type: mine.py is no joint: it does not define Params and load"
    )


# --- laws -------------------------------------------------------------------------------------------------


def test_a_law():
    found = read(law(keys="params: {ratio: 3}, points: [[1, 0, 0], [0, 1, 0]]")).constraints[0]
    assert [(link, pose.position.tolist()) for link, pose in found.frames] == [("a", [1, 0, 0]), ("b", [0, 1, 0])]
    assert (found.joints, len(found.law.rows)) == (("b",), 1)


def test_a_law_of_velocities():
    made = "ConstraintLaw((row, ReactionSpec('push', 'N', 'm/s')), f, a)"
    found = read(law(made=made, rate="return [v[0] + frames[1].angular[2]]")).constraints[0]
    assert len(found.law.rows) == 2


AT = "(/mine.py:10 load.<locals>.f)"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"made": "f"},
            "load returned a function; return a ConstraintLaw of cosim.multibody.constraint_laws (/mine.py:9 load)",
        ),
        (
            {"made": "ConstraintLaw((), f)"},
            "the law has no rows; give it one ReactionSpec of cosim.multibody.constraint_laws per equation",
        ),
        (
            {"made": "ConstraintLaw(('force',), f)"},
            "the law has no rows; give it one ReactionSpec of cosim.multibody.constraint_laws per equation",
        ),
        ({"made": "ConstraintLaw((row,))"}, "the law has neither residual nor rate; give it one of them"),
        (
            {"made": "ConstraintLaw((row, row), f)"},
            f"the law has 2 rows, but residual {AT} returns 1 number; return one per row",
        ),
        (
            {"made": "ConstraintLaw((row,), f, a)", "rate": "return [v[0]]"},
            f"the law has 1 row, but residual {AT} and rate (/mine.py:12 load.<locals>.a) return together 2 numbers;"
            " return one per row",
        ),
        ({"body": "return q[0]"}, f"residual returns an array of shape (); return a list with one number per row {AT}"),
        (
            {"body": "return [frames[2].position[0]]"},
            "residual fails on numbers: IndexError: list index out of range (/mine.py:11)",
        ),
        (
            {"body": "return [frames[0].angular[0]]"},
            "residual fails on numbers: TypeError: 'NoneType' object is not subscriptable (/mine.py:11)",
        ),
        (
            {"body": "return [math.sin(q[0])]"},
            "residual fails on symbols: cannot be traced: TypeError: a traced value is not a number yet; use cosim.ops"
            " instead of float, math and numpy (/mine.py:11)",
        ),
        (
            {"body": "return [ops.absolute(q[0] - 0.1)]"},
            f"residual is not differentiable at the coordinates (0.1); use smooth functions {AT}",
        ),
        (
            {"made": "ConstraintLaw((ReactionSpec('force', 3, 'm'),), f)"},
            "row 1 is ('force', 3, 'm'); give its name and its units as text",
        ),
        (
            {"made": "ConstraintLaw((row, row), f, a)", "rate": "return [v[0]]"},
            "row 2, 'force', is one of rate, and what vanishes in it has the unit 'm'; units of rate must end in '/s',"
            " those of residual not (/mine.py:12 load.<locals>.a)",
        ),
        (
            {"made": "ConstraintLaw((ReactionSpec('push', 'N', 'm/s'), row), f, a)", "rate": "return [v[0]]"},
            "row 1, 'push', is one of residual, and what vanishes in it has the unit 'm/s'; units of residual must not"
            f" end in '/s', those of rate do {AT}",
        ),
        *(
            (
                {"made": "ConstraintLaw((ReactionSpec('push', 'N', 'm/s'),), None, a)", "rate": f"return [{rate}]"},
                "rate is not linear in the velocities; leave out squares and products of them"
                " (/mine.py:12 load.<locals>.a)",
            )
            for rate in ("v[0] * v[0]", "v[0] * frames[1].angular[2]", "ops.sin(frames[0].linear[0])")
        ),
        ({"body": "return [q[0] - t]"}, f"residual depends on the time t; pass timed=True {AT}"),
    ],
)
def test_a_law_that_does_not_fit(changes, message):
    assert mistake(law(**changes)) == f"rig.yaml:4 mechanism.constraints[0].type: {message}"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("points: [[0, 0, 0]]", ".points: expected 2 points (one per link), got 1"),
        ("params: {rato: 1}", ".params: unknown key 'rato'; did you mean 'ratio'?"),
        ("length: 1", ": unknown key 'length'; known: name, between, points, joints, params, type"),
    ],
)
def test_keys_of_a_law(keys, message):
    assert mistake(law(keys=keys)) == f"rig.yaml:4 mechanism.constraints[0]{message}"


def test_a_law_of_time():
    assert read(law(body="return [q[0] - t]", made="ConstraintLaw((row,), f, timed=True)")).constraints[0].law.timed


# --- force laws ---------------------------------------------------------------------------------------------

# line 9 is that of `f`, line 10 the first in it
FORCE = """\
import math
from cosim import ops
from cosim.multibody.force_laws import ForceLaw
from cosim.types import param, params
@params
class Params:
    size: float = param(default=2.0)
def load(params):
    def f(frames, q, v, t):
        {body}
    return {made}
"""


def force(body="return [frames[0].linear, -params.size * frames[0].linear]", made="ForceLaw(f)", keys=""):
    Path("mine.py").write_text(FORCE.format(body=body, made=made))
    more = f", {keys}" if keys else ""
    return (
        "mechanism:\n  bodies: [{name: a, mass: 1, inertia: [1, 1, 1]}, {name: b, mass: 1, inertia: [1, 1, 1]}]\n"
        f"  forces:\n    - {{name: c, type: mine.py, between: [a, b], joints: [b]{more}}}\n"
    )


def test_a_force_law():
    (found,) = read(force(keys="points: [[1, 0, 0], [0, 2, 0]], params: {size: 3}")).forces
    assert (found.name, found.joints, [link for link, _ in found.frames]) == ("c", ("b",), ["a", "b"])
    np.testing.assert_array_equal([pose.position for _, pose in found.frames], [[1, 0, 0], [0, 2, 0]])
    assert found.law.wrenches is not None and found.law.efforts is None


AT = "rig.yaml:4 mechanism.forces[0]"
OF_F = "(/mine.py:9 load.<locals>.f)"
PER_LINK = "return a force (3,), or force and moment (6,), for each link of 'between'"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"made": "None"},
            ".type: load returned nothing; return a ForceLaw of cosim.multibody.force_laws (/mine.py:8 load)",
        ),
        ({"made": "ForceLaw()"}, ".type: the law has neither wrenches nor efforts; give it one of them"),
        ({"body": "return [frames[0].linear]"}, f".type: wrenches returns an array of shape (1, 3); {PER_LINK} {OF_F}"),
        ({"body": "return 1.0"}, f".type: wrenches returns an array of shape (); {PER_LINK} {OF_F}"),
        (
            {"made": "ForceLaw(efforts=f)"},
            f".type: efforts returns an array of shape (2, 3); return one number for each dof of 'joints' {OF_F}",
        ),
        (
            {"body": "return q[7]"},
            ".type: wrenches fails on numbers: IndexError: index 7 is out of bounds for axis 0 with size 1"
            " (/mine.py:10)",
        ),
        (
            {"body": "return [math.sin(q[0]) * frame.linear for frame in frames]"},
            ".type: wrenches fails on symbols: cannot be traced: TypeError: a traced value is not a number yet;"
            " use cosim.ops"
            " instead of float, math and numpy (/mine.py:10)",
        ),
        (
            {"body": "return [t * frame.linear for frame in frames]"},
            f".type: wrenches depends on the time t; pass timed=True {OF_F}",
        ),
        ({"keys": "points: [[0, 0, 0]]"}, ".points: expected 2 points (one per link), got 1"),
        ({"keys": "params: {sise: 1}"}, ".params: unknown key 'sise'; did you mean 'size'?"),
    ],
)
def test_mistakes_of_a_force_law(parts, message):
    assert mistake(force(**parts)) == f"{AT}{message}"


def test_parts_of_a_force_law_that_are_not_there():
    ends = force().replace("between: [a, b]", "between: [a, d]")
    assert mistake(ends) == f"{AT}: link 'd' does not exist; known: base, a, b"
    joints = force().replace("joints: [b]", "joints: [d]")
    assert mistake(joints) == f"{AT}: names joint 'd', which does not exist; known: a, b"
    name = force().replace("name: c", "name: a")
    assert mistake(name) == f"{AT}: force 'a' has the name of a joint (line 2); names must be unique"
