"""Joints and laws in Python files of the user: what is taken, and the one line that says what is wrong with one."""

from pathlib import Path

import numpy as np
import pytest

from cosim.core.errors import InputErrors
from cosim.rig.sections.rig_spec import read_rig
from tests.kit.given import beside
from tests.kit.refusals import raised

GIVEN = beside(__file__)

# line 10 has `place`, line 11 is the first in it
JOINT = GIVEN["joint"]
TURN = "np.eye(3), ops.array([params.reach * q[0], 0.0, 0.0])"
MADE = "GeneralMotion(('way',), ('m',), place)"

# line 10 has `f`, line 11 is the first in it
LAW = GIVEN["law"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def read(text):
    Path("rig.yaml").write_text(text)
    return read_rig("rig.yaml").mechanism.description


def mistake(text):
    (line,) = str(raised(InputErrors, read, text)).splitlines()
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


MISFITS = [
    *(
        (f"return {TURN}", made)
        for made in (
            "None",
            "place",
            "1 / 0",
            "GeneralMotion(('way',), (), place)",
            "GeneralMotion(('way',), ('deg',), place)",
            "GeneralMotion(('way', 'way'), ('m', 'm'), place)",
        )
    ),
    ("return np.eye(3), ops.array([q[0] + 2.0 * q[1], 0.0, 0.0])", "GeneralMotion(('a', 'b'), ('m', 'm'), place)"),
    *(
        (f"return {body}", MADE)
        for body in (
            "np.eye(3), ops.array([0.0 * q[0], 0.0, 0.0])",
            "np.eye(3), q",
            "np.eye(3)",
            "2 * np.eye(3), np.zeros(3)",
            "q[3]",
            "7",
            "np.eye(3), np.array([math.sin(q[0]), 0.0, 0.0])",
            "np.eye(3), ops.array([q[0] if q[0] > 0 else 0.0, 0.0, 0.0])",
            "np.eye(3), ops.array([q[0] + t, 0.0, 0.0])",
            "np.eye(3), ops.array([ops.abs(q[0]), 0.0, 0.0])",
            "np.eye(3), ops.array([ops.floor(10.0 * q[0]), 0.0, 0.0])",
            "np.eye(3), ops.array([ops.sqrt(q[0]), 0.0, 0.0])",
        )
    ),
]


@pytest.mark.parametrize(("body", "made"), MISFITS)
def test_a_joint_that_does_not_fit(said, body, made):
    line = mistake(joint(body, made))
    assert line.startswith("rig.yaml:3 mechanism.bodies[0].type: ")
    said(line)


@pytest.mark.parametrize("name", ["absolute", "total", "with_elements", "nothing"])
def test_a_function_that_ops_does_not_have(said, name):
    """Of those that had another name, the line has the new one."""
    line = mistake(joint(f"return np.eye(3), ops.array([ops.{name}(q), 0.0, 0.0])"))
    assert line.startswith("rig.yaml:3 mechanism.bodies[0].type: ") and line.endswith("(/mine.py:11)")
    said(line)


@pytest.mark.parametrize("keys", ["params: {reach: 0}", "params: {raech: 1}", "para: {}", "damping: 1 N*m*s/rad"])
def test_keys_of_a_joint(said, keys):
    said(mistake(joint(keys=f"mass: 1, {keys}")))


@pytest.mark.parametrize("source", ["\n1 / 0\n", "x = 1\n"])
def test_a_joint_that_cannot_be_imported(said, source):
    text = joint()
    Path("mine.py").write_text(source)
    said(mistake(text))


def test_a_law():
    found = read(law(keys="params: {ratio: 3}, points: [[1, 0, 0], [0, 1, 0]]")).constraints[0]
    assert [(link, pose.position.tolist()) for link, pose in found.frames] == [("a", [1, 0, 0]), ("b", [0, 1, 0])]
    assert (found.joints, len(found.law.rows)) == (("b",), 1)


def test_a_law_of_velocities():
    made = "ConstraintLaw((row, ReactionSpec('push', 'N', 'm/s')), f, a)"
    found = read(law(made=made, rate="return [v[0] + frames[1].angular[2]]")).constraints[0]
    assert len(found.law.rows) == 2


PUSH = "ReactionSpec('push', 'N', 'm/s')"
MISFITS = [
    {"made": "f"},
    {"made": "ConstraintLaw((), f)"},
    {"made": "ConstraintLaw(('force',), f)"},
    {"made": "ConstraintLaw((row,))"},
    {"made": "ConstraintLaw((row, row), f)"},
    {"made": "ConstraintLaw((row,), f, a)", "rate": "return [v[0]]"},
    {"body": "return q[0]"},
    {"body": "return [frames[2].position[0]]"},
    {"body": "return [frames[0].angular[0]]"},
    {"body": "return [math.sin(q[0])]"},
    {"body": "return [ops.abs(q[0] - 0.1)]"},
    {"made": "ConstraintLaw((ReactionSpec('force', 3, 'm'),), f)"},
    *(
        {"made": f"ConstraintLaw((ReactionSpec('force', '{unit}', '{of}'),), f)"}
        for unit, of in (("N", "rad"), ("N*m", "m"), ("N*cm", "rad"), ("newton", "m"), ("N", "1"))
    ),
    {"made": "ConstraintLaw((row, row), f)", "body": "return [q[0], frames[0].position[0]]"},
    {"made": "ConstraintLaw((ReactionSpec('slip', 'N', 'm'),), f)"},
    {"made": "ConstraintLaw((row, row), f, a)", "rate": "return [v[0]]"},
    {"made": f"ConstraintLaw(({PUSH}, row), f, a)", "rate": "return [v[0]]"},
    {"made": "ConstraintLaw((ReactionSpec('push', 'N*m', 'm/s'),), None, a)", "rate": "return [v[0]]"},
    *(
        {"made": f"ConstraintLaw(({PUSH},), None, a)", "rate": f"return [{rate}]"}
        for rate in ("v[0] * v[0]", "v[0] * frames[1].angular[2]", "ops.sin(frames[0].linear[0])")
    ),
    {"body": "return [q[0] - t]"},
]


@pytest.mark.parametrize("changes", MISFITS, ids=str)
def test_a_law_that_does_not_fit(said, changes):
    line = mistake(law(**changes))
    assert line.startswith("rig.yaml:4 mechanism.constraints[0].type: ")
    said(line)


@pytest.mark.parametrize("keys", ["points: [[0, 0, 0]]", "params: {rato: 1}", "length: 1"])
def test_keys_of_a_law(said, keys):
    said(mistake(law(keys=keys)))


def test_a_law_of_time():
    assert read(law(body="return [q[0] - t]", made="ConstraintLaw((row,), f, timed=True)")).constraints[0].law.timed


# line 9 has `f`, line 10 is the first in it
FORCE = GIVEN["force"]


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


@pytest.mark.parametrize("parts", GIVEN["mistakes_of_a_force_law"], ids=str)
def test_mistakes_of_a_force_law(said, parts):
    line = mistake(force(**parts))
    assert line.startswith("rig.yaml:4 mechanism.forces[0].")
    said(line)


def test_parts_of_a_force_law_that_are_not_there(said):
    for old, new in (("between: [a, b]", "between: [a, d]"), ("joints: [b]", "joints: [d]"), ("name: c", "name: a")):
        said(mistake(force().replace(old, new)))
