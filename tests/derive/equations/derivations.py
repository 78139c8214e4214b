"""Derived equations of the sample rigs, random states, what the model computes in them, and what code does."""

import ctypes
import math
import shutil
import subprocess
from pathlib import Path

import casadi
import numpy as np

from cosim.apps.derive.equations.components import derived
from cosim.apps.derive.equations.files import c_function, file_lines, function_names
from cosim.apps.derive.equations.parameters import with_symbols
from cosim.apps.derive.plant_model import read_model

GCC = shutil.which("gcc") or ""
STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1", "-ffp-contract=off"]
RIGS = Path(__file__).parents[3] / "rigs"
OWN = Path(__file__).parents[1] / "rigs"  # of these tests

# together they have all kinds of terms and inputs
SAMPLES = {
    "two_link": {"symbols": True, "load": "forearm"},
    "robots/ur5.urdf": {"frames": ["tool0"]},
    "mechanisms/double_pendulum": {"symbols": True},
    "mechanisms/slider_crank": {},
    "mechanisms/car_axis": {},  # time, springs, constraints
    "mechanisms/arm_on_moving_base": {},
    "mechanisms/floating_chain": {"symbols": True},  # a quaternion
    "mechanisms/stick_slip": {},  # a law of friction
    "mechanisms/suspension": {"symbols": True},
    "elastic/cantilever": {"symbols": True},
    "mechanisms/coupled_wrist": {"symbols": True},  # a rotor on two joints
}


def derivation(name, symbols=False, **more):
    """name: a path, or of a sample."""
    path = name if isinstance(name, Path) else RIGS / (name if name.endswith(".urdf") else f"{name}.yaml")
    model = read_model(path)
    equations, parameters = with_symbols(model.equations) if symbols else (None, [])
    return derived(model, equations, parameters=parameters, **more)


def states(d, count=3):
    """Values of the inputs."""
    rng = np.random.default_rng(1)
    for _ in range(count):
        q = d.model.neutral() + rng.uniform(-0.5, 0.5, d.model.nq)
        values = {"q": d.model.equations.normalised(q)}
        values |= {key: rng.uniform(-1, 1, d.model.nv) for key in ("v", "a", "tau")}
        values |= {"f": rng.uniform(-1, 1, 6), "t": np.array([0.3]), "p": np.array([p.value for p in d.parameters])}
        yield {key: np.asarray(values[key], dtype=float) for key in d.inputs}


def model_values(d, state):
    """By component, or by the sum of those that the model has in one: computed by the model's own functions."""
    m = d.model
    q, v, a, tau = (state[key] for key in ("q", "v", "a", "tau"))
    t = [float(state["t"][0])] if "t" in state else []
    load = m.frame_jacobian(q, d.load, *t).T @ state["f"] if d.load else np.zeros(m.nv)
    losses = m.friction_effort(v) - load
    names = {c.name for c in d.everything}
    found = {
        "mass_matrix": m.mass_matrix(q, *t),
        "forces": m.nonlinear_effects(q, v, *t) + losses + load,
        "inverse_dynamics": m.inverse_dynamics(q, v, a, *t) + losses,
        "forward_dynamics": m.forward_dynamics(q, v, tau - losses, *t),
    }
    if "gravity" in names:
        found["gravity"] = m.gravity_effort(q, *t)
    if d.load:
        found["load"] = load
    if m.constraint_rows:
        found["constraint_jacobian"] = m.constraint_jacobian(q, *t)
        if "constraint_residual" in names:
            found["constraint_residual"], _ = m.constraint_violation(q, v, *t)
        if "constraint_bias" in names:
            found["constraint_bias"] = bias_by_differences(m, q, v, *t)
    for name in names:
        kind, _, frame = name.partition("_")
        if kind == "pose":
            found[name] = m.frame_pose(q, frame, *t)[:3]
        elif kind == "jacobian":
            found[name] = m.frame_jacobian(q, frame, *t)
    return found


def bias_by_differences(m, q, v, t=0.0):
    """−d/dt of the rates of the constraints without accelerations, to 1e-10 of their size."""
    rate, h = np.asarray(m.equations.rate(q, v), dtype=float), 3e-4

    def at(k):
        _, found = m.constraint_violation(
            m.equations.normalised(q + k * h * rate), v, *([t + k * h] if m.timed else [])
        )
        return found

    return -(at(-2) - 8 * at(-1) + 8 * at(1) - at(2)) / (12 * h)


def evaluated(d, name, **state):
    """A component in a state."""
    c = d.component(name)
    f = casadi.Function("f", [d.inputs[a] for a in c.arguments], [c.entries])
    return np.asarray(f(*(state[a] for a in c.arguments))).ravel()


def values_of(d, state):
    """By component."""
    return {c.name: evaluated(d, c.name, **state) for c in d.everything}


FORCES = ("coriolis", "gravity", "viscous_friction", "dry_friction", "springs", "applied_forces")


def assert_equal(d, found, state, tolerance, but=()):
    """found: by component, flat arrays. Of each component that the model knows, and of the sum of the forces."""
    found = {name: np.asarray(value, dtype=float).ravel() for name, value in found.items()}
    found["forces"] = np.sum([found[name] for name in FORCES if name in found], axis=0)
    for name, expected in model_values(d, state).items():
        if name not in but:
            expected = np.asarray(expected).ravel()
            scale = max(1.0, np.abs(expected).max(initial=0.0))
            allowed = max(tolerance, 1e-9) if name == "constraint_bias" else tolerance
            assert np.abs(found[name] - expected).max(initial=0.0) <= allowed * scale, name


def written_file(d, to, path):
    path.write_text("\n".join(file_lines(d, to, path)) + "\n", encoding="utf-8")
    return path


def c_code(d, folder):
    source, library = written_file(d, "c", folder / "equations.c"), folder / "equations.so"
    subprocess.run([GCC, *STRICT, "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
    code = ctypes.CDLL(str(library))

    def given(key, value):
        return ctypes.c_double(value[0]) if key == "t" else value.ctypes.data_as(ctypes.c_void_p)

    def evaluated(state):
        found = {c.name: np.zeros(math.prod(c.shape)) for c in d.everything}
        for c in d.everything:
            arguments = [given(key, state[key]) for key in c.arguments]
            code[c_function(d, c.name)](*arguments, found[c.name].ctypes.data_as(ctypes.c_void_p))
        return found

    return evaluated


def python_code(d, folder):
    code = {}
    exec(compile(written_file(d, "python", folder / "equations.py").read_text(), "equations.py", "exec"), code)
    names = function_names(d)
    assert code["JOINTS"] == list(d.model.dof_names)

    def evaluated(state):
        given = {key: float(value[0]) if key == "t" else value.tolist() for key, value in state.items()}
        found = {c.name: np.array(code[names[c.name]](*(given[a] for a in c.arguments))) for c in d.everything}
        assert [found[c.name].shape for c in d.everything] == [c.shape for c in d.everything]
        return found

    return evaluated
