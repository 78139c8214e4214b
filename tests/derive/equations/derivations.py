"""Derived equations of the sample rigs, random states, and what the model computes in them."""

from pathlib import Path

import numpy as np

from cosim.derive.equations.command import read_model
from cosim.derive.equations.components import derived
from cosim.derive.equations.parameters import with_symbols

RIGS = Path(__file__).parents[3] / "rigs"

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
}


def derivation(name, symbols=False, **more):
    path = RIGS / (name if name.endswith(".urdf") else f"{name}.yaml")
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
    m, e = d.model, d.model.equations
    q, v, a, tau = (state[key] for key in ("q", "v", "a", "tau"))
    t = [float(state["t"][0])] if "t" in state else []
    load = m.frame_jacobian(q, d.load, *t).T @ state["f"] if d.load else np.zeros(m.nv)
    losses = m.friction_effort(v) + e.spring_effort(q) - load
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
        residual, _ = m.constraint_violation(q, v, *t)
        found |= {"constraint_residual": residual, "constraint_jacobian": m.constraint_jacobian(q, *t)}
    for name in names:
        kind, _, frame = name.partition("_")
        if kind == "pose":
            found[name] = m.frame_pose(q, frame, *t)[:3]
        elif kind == "jacobian":
            found[name] = m.frame_jacobian(q, frame, *t)
    return found


FORCES = ("coriolis", "gravity", "viscous_friction", "dry_friction", "springs", "applied_forces")


def assert_equal(d, found, state, tolerance, but=()):
    """found: by component, flat arrays. Of each component that the model knows, and of the sum of the forces."""
    found = {name: np.asarray(value, dtype=float).ravel() for name, value in found.items()}
    found["forces"] = np.sum([found[name] for name in FORCES if name in found], axis=0)
    for name, expected in model_values(d, state).items():
        if name not in but:
            expected = np.asarray(expected).ravel()
            scale = max(1.0, np.abs(expected).max(initial=0.0))
            assert np.abs(found[name] - expected).max(initial=0.0) <= tolerance * scale, name
