"""Code in C, Python and MATLAB computes what the model computes, to rounding."""

import math
import shutil
import subprocess
import sys
from itertools import product

import casadi
import numpy as np
import pytest

from cosim.apps.derive.equations.code import instructions, operations_of, written
from cosim.apps.derive.equations.components import EquationTerm
from cosim.apps.derive.equations.files import function_names
from cosim.apps.derive.equations.languages import MATLAB, PYTHON, C
from cosim.core import ops
from cosim.core.compile.trace import column, symbols
from tests.derive.equations.derivations import (
    GCC,
    OWN,
    SAMPLES,
    assert_equal,
    c_code,
    derivation,
    python_code,
    states,
    written_file,
)
from tests.kit.levels import chosen
from tests.kit.refusals import refusal
from tests.kit.samples import kinds_of, size_of

TOLERANCE = 1e-12
OCTAVE = shutil.which("octave-cli") or ""
needs_octave = pytest.mark.skipif(not OCTAVE, reason="no octave-cli: MATLAB's files are not run")
CODES = {"c": c_code, "python": python_code}


EACH = chosen(product(SAMPLES, CODES), lambda case: {*kinds_of(case[0]), case[1]}, lambda case: size_of(case[0]))


@pytest.mark.parametrize(("name", "code"), EACH)
def test_c_and_python(name, code, tmp_path):
    if code == "c" and not GCC:
        pytest.skip("no gcc: C is not compiled")
    d = derivation(name, **SAMPLES[name])
    evaluated = CODES[code](d, tmp_path)
    for state in states(d):
        assert_equal(d, evaluated(state), state, TOLERANCE)


def test_python_needs_only_its_standard_library(tmp_path):
    d = derivation("two_link", symbols=True)
    file = written_file(d, "python", tmp_path / "two_link.py")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import two_link; print(two_link.gravity([0.0, 0.0])[1])"
    )
    said = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
    assert float(said.stdout) == pytest.approx(1.2 * 0.15 * 9.81, rel=1e-15)
    assert "import math" in file.read_text()


@needs_octave
def test_matlab(tmp_path):
    """In one process, which takes a while to start."""
    names = ("two_link", "mechanisms/car_axis", "mechanisms/floating_chain", "mechanisms/stick_slip")
    derivations = {name: derivation(name, **SAMPLES[name]) for name in names}
    program, expected = [], []
    for k, (name, d) in enumerate(derivations.items()):
        written_file(d, "matlab", tmp_path / f"equations_{k}.m")
        program.append(f"model = equations_{k}();")
        functions = function_names(d)
        for state in states(d, 2):
            program += [f"{key} = [{'; '.join(repr(float(x)) for x in value)}];" for key, value in state.items()]
            for c in d.everything:  # by rows
                call = f"model.{functions[c.name]}({', '.join(c.arguments)})"
                program.append(f"x = {call}'; printf('%.17g ', x); printf('\\n');")
            expected.append((name, state))
    lines = iter(run_octave("\n".join(program), tmp_path).splitlines())
    for name, state in expected:
        d = derivations[name]
        found = {c.name: [float(word) for word in next(lines).split()] for c in d.everything}
        assert_equal(d, found, state, TOLERANCE)


@needs_octave
def test_parameters_of_matlab_have_defaults(tmp_path):
    d = derivation("two_link", symbols=True, load="forearm")
    said = written_file(d, "matlab", tmp_path / "arm.m").read_text().splitlines()
    assert said[1:3] == [
        "  % model = arm() has a function for each component: model.inverse_dynamics(q, v, a, f, p)",
        "  % p is model.parameters where it is left out.",
    ]
    state = "q = [0.3; -1]; p = model.parameters;"
    program = (
        f"model = arm(); {state} printf('%.17g ', model.gravity(q) - model.gravity(q, p), model.gravity(q, 2 * p))"
    )
    *same, first, second = map(float, run_octave(program, tmp_path).split())
    assert same == [0, 0]
    gravity = d.model.gravity_effort([0.3, -1])
    assert [first, second] == pytest.approx(8 * gravity)  # a product of three parameters


def run_octave(program, folder):
    (folder / "run.m").write_text(program)
    run = subprocess.run([OCTAVE, "--norc", "run.m"], cwd=folder, capture_output=True, text=True, check=True)
    return run.stdout


OF_TWO = {
    "where": lambda x, y: ops.where(x < y, x, y * y),
    "and_not": lambda x, y: ops.where(ops.logical_and(x < y, ops.logical_not(x <= -0.5)), 3.0, x),
    "or": lambda x, y: ops.where(ops.logical_or(x < y, y < 0.0), x, 2.0),
    "least": lambda x, y: ops.minimum(x, y) - ops.maximum(x * x, y),
    "abs": lambda x, y: ops.abs(x) - ops.sign(y) * ops.sign(-x),
    "copysign": lambda x, y: ops.reciprocal(x) + y,
    "atan2": lambda x, y: ops.atan2(x, y) + ops.sqrt(x * x + y * y),
    "exponential": lambda x, y: ops.exp(x) - ops.tanh(y) * ops.tan(x),
    "signs": lambda x, y: -(x - (y - x)) - (-(-x * y)) / (x / (y / 3.0)) - (x - y) * -(x + y),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_TWO)
def test_operations_in_python(name):
    inputs, entries = traced(OF_TWO[name])
    lines, helpers = written(inputs, entries, "out", PYTHON)
    code = "\n".join([*(PYTHON.helpers[h] for h in helpers), *lines])
    for x, y in ((0.3, 0.7), (0.7, -0.3), (-0.9, -0.2), (-0.4, 0.1)):
        space = {"math": math, "x": [x], "y": [y], "out": [None]}
        exec(code, space)
        assert float(space["out"][0]) == pytest.approx(float(OF_TWO[name](np.float64(x), np.float64(y))), rel=1e-14)


@needs_octave
def test_operations_in_matlab(tmp_path):
    program, expected = ["1;"], []
    for function in OF_TWO.values():
        inputs, entries = traced(function)
        lines, helpers = written(inputs, entries, "out", MATLAB)
        program += [MATLAB.helpers[h] for h in helpers]
        for x, y in ((0.3, 0.7), (0.7, -0.3), (-0.9, -0.2), (-0.4, 0.1)):
            expected.append(float(function(np.float64(x), np.float64(y))))
            program += [f"x = {x}; y = {y};", *lines, "printf('%.17g\\n', out(1));"]
    assert [float(line) for line in run_octave("\n".join(program), tmp_path).split()] == pytest.approx(
        expected, rel=1e-14
    )


def traced(function):
    (x, at_x), (y, at_y) = symbols("x", (1,)), symbols("y", (1,))
    return {"x": x, "y": y}, casadi.SX(column(function(at_x[0], at_y[0])))


def test_an_operation_that_a_language_lacks():
    x = casadi.SX.sym("x")
    words = refusal(written, {"x": x}, casadi.remainder(x, 2.0), "out", MATLAB)
    assert words == "--to: the operation remainder does not exist in this language; choose another one"


@pytest.mark.parametrize(("to", "first"), [("c", "q[0]"), ("python", "q[0]"), ("matlab", "q(1)"), ("text", "q1")])
def test_what_moves_together_is_in_every_header(to, first, command):
    code, out, _ = command("derive", OWN / "hand.yaml", "--equations", "--to", to)
    assert code == 0
    lines = [line.lstrip("*% ") for line in out.splitlines()]
    assert f"{first}{' ' * 2}wrist       rad" in lines
    k = lines.index("Joints that follow others:")
    assert lines[k : k + 7] == [
        "Joints that follow others:",
        "finger_2  = -1 * finger_1 + 0.003 m",
        "",
        "link   fixed to, and part of",
        "plate  palm",
        "",
        "Coulomb friction d of a joint: d v / sqrt(v^2 + s^2) with s = 0.01 rad/s or m/s",
    ]


def test_places_of_parameters_by_name(tmp_path):
    d = derivation("two_link", symbols=True)
    names = [p.name for p in d.parameters]
    code = {}
    exec(written_file(d, "python", tmp_path / "arm.py").read_text(), code)
    assert [code["PARAMETERS"][code["INDEX"][name]] for name in names] == [p.value for p in d.parameters]
    said = written_file(d, "c", tmp_path / "arm.c").read_text()
    assert f"enum {{{', '.join(f'two_link_p_{name}' for name in names)}}};" in said.splitlines()
    said = written_file(d, "matlab", tmp_path / "arm.m").read_text()
    for k, name in enumerate(names, 1):
        assert f"  model.index.{name} = {k};" in said.splitlines()


def test_operations_are_counted():
    x = casadi.SX.sym("x", 3)
    y = casadi.sin(x[0]) * x[1] + x[2] / x[1] - x[0] ** 2
    counted = operations_of([x], casadi.vertcat(y, -y, y + 1))
    assert str(counted) == "3 additions, 2 multiplications, 1 division, 1 function"
    assert counted.total == 7
    assert str(operations_of([x], x[0])) == "no additions, no multiplications"


def test_a_term_that_is_used_twice_is_computed_once():
    x = casadi.SX.sym("x", 2)
    product = casadi.sin(x[0]) * x[1]
    lines, _ = written({"q": x}, casadi.vertcat(product + 1, product - 1), "out", C)
    assert lines == ["const double x1 = sin(q[0]) * q[1];", "out[0] = x1 + 1.0;", "out[1] = x1 - 1.0;"] or lines == [
        "const double x1 = sin(q[0]) * q[1];",
        "out[0] = 1.0 + x1;",
        "out[1] = x1 - 1.0;",
    ]


def test_nothing_is_multiplied_by_zero_or_one():
    d = derivation("robots/ur5.urdf")
    for c in d.everything:
        assert isinstance(c, EquationTerm)
        for step in instructions([d.inputs[a] for a in c.arguments], c.entries):
            assert not (step.name == "CONST" and step.value in (0.0, 1.0) and c.name.endswith("dynamics"))
