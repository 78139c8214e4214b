"""A beam that slides through a guide: closed forms, another formulation of the same modes, balance and energy."""

import numpy as np
import pytest
from scipy.linalg import eigh, null_space
from scipy.optimize import brentq

from cosim.apps.derive.plant_model import read_model
from cosim.mechanics.formulations import load_formulation
from cosim.rig.rig import load_rig
from tests.kit.refusals import refusal
from tests.kit.samples import FOLDER

SAMPLE = (FOLDER / "elastic" / "sliding_beam.yaml").read_text(encoding="utf-8")
LENGTH, WIDTH, HEIGHT, DENSITY, MODULUS, GRAVITY = 0.5, 0.03, 0.002, 7850.0, 210e9, 9.81
EI, MASS = MODULUS * WIDTH * HEIGHT**3 / 12.0, DENSITY * WIDTH * HEIGHT  # N m², kg/m
GUIDE = 0.45

SPATIAL = """
name: swept
mechanism:
  gravity: [0.3, -1, -9.81]
  bodies:
    - {name: strip, joint: feed, type: prismatic, axis: [1, 0, 0], origin: {rpy: [0.2, 0.1, -0.3]}}
    - {name: arm, parent: base, mass: 1 kg, com: [0.3, 0, 0], inertia: [0.01, 0.1, 0.1]}
  elastic:
    - link: strip
      beam:
        length: 0.5 m
        section: {shape: rectangle, width: 3 mm, height: 2 mm}
        density: 7850 kg/m^3
        youngs_modulus: 210 GPa
        modes: {bend_y: 2, bend_z: 3, stretch: 1}
        damping_ratio: 0.01
  constraints:
    - {name: sleeve, type: beam_guide, beam: strip, on: arm, along: ALONG, origin: {xyz: [0.3, 0, 0], rpy: [0, 0.1, 0]}}
schedule: {step: 1 ms, duration: 1 s}
"""


def sample(tmp_path, modes=6, along=True):
    """The model of the sample rig with other modes, in small deflections."""
    text = SAMPLE.replace("bend_z: 6", f"bend_z: {modes}").replace("along: true", f"along: {str(along).lower()}")
    text = text.replace("damping_ratio: 0.01", "stiffening: false")
    (tmp_path / "rig.yaml").write_text(text, encoding="utf-8")
    return read_model(tmp_path / "rig.yaml").without([0, 3] if along else [0])


def spatial(tmp_path, along=True):
    (tmp_path / "rig.yaml").write_text(SPATIAL.replace("ALONG", str(along).lower()), encoding="utf-8")
    return read_model(tmp_path / "rig.yaml")


def rows(model):
    return [k for k in range(len(model.constraint_rows)) if k not in model.equations.constraints.redundant]


def at_rest(model, feed):
    """(q, λ, effort of the feed, stiffness and G of the modes) in equilibrium; small deflections, so one step of
    Newton from differences is exact but for the second order."""
    n, own = model.nv, rows(model)
    q, still = np.zeros(n), np.zeros(n)
    q[0] = feed

    def state(x):
        whole = np.concatenate([[feed], x])
        force = model.inverse_dynamics(whole, still, still)
        f, _ = model.constraint_violation(whole, still)
        return force, model.constraint_jacobian(whole)[own], f[own]

    for _ in range(5):
        force, G, f = state(q[1:])
        K = np.column_stack([(state(q[1:] + d)[0] - state(q[1:] - d)[0])[1:] / 2e-6 for d in 1e-6 * np.eye(n - 1)])
        system = np.block([[K, -G[:, 1:].T], [G[:, 1:], np.zeros((len(own), len(own)))]])
        found = np.linalg.solve(system, -np.concatenate([force[1:], f]))
        q[1:] += found[: n - 1]
    force, G, _ = state(q[1:])
    multipliers = found[n - 1 :]
    return q, multipliers, (force - G.T @ multipliers)[0], K, G[:, 1:]


def frequencies(model, feed):
    """Of the beam held by the guide [rad/s]."""
    q, _, _, K, G = at_rest(model, feed)
    M, free = model.mass_matrix(q)[1:, 1:], null_space(G)
    return np.sqrt(eigh(free.T @ K @ free, free.T @ M @ free, eigvals_only=True))


def figures(model, feed):
    """(deflection of the tip, effort of the feed, first frequency of the overhang) beside their closed forms:
    ρA g L⁴ / (8 EI); the configurational force (M₊² − M₋²) / (2 EI) of the moments on both sides of a sleeve (Bigoni,
    Dal Corso, Bosi and Misseroni, Eshelby-like forces acting on elastic structures, 2015); 1.875104² √(EI/ρA) / L²."""
    overhang, inside, weight = feed + LENGTH - GUIDE, GUIDE - feed, MASS * GRAVITY
    q, _, effort, _, _ = at_rest(model, feed)
    outer, inner = weight * overhang**2 / 2.0, weight * inside**2 / 12.0
    return np.array([
        model.frame_pose(q, "tip")[2, 3] / (-weight * overhang**4 / (8.0 * EI)),
        effort / (-(outer**2 - inner**2) / (2.0 * EI)),
        frequencies(model, feed)[0] / (1.875104**2 * np.sqrt(EI / MASS) / overhang**2),
    ]) - 1.0  # fmt: skip


@pytest.mark.parametrize("feed", [0.25, 0.3])
def test_the_overhang_converges_to_a_cantilever(tmp_path, feed):
    """The curvature jumps at the sleeve, which smooth modes follow slowly: the errors fall as 1 over their number, and
    what is left of them after extrapolation is small."""
    few, more = (figures(sample(tmp_path, modes), feed) for modes in (6, 14))
    assert (np.abs(more) < 0.5 * np.abs(few))[[0, 2]].all() and (np.abs(more) < 0.1).all()
    tip, _, frequency = (14.0 * more - 6.0 * few) / 8.0
    assert abs(tip) < 0.02 and abs(frequency) < 0.015


def test_the_frequencies_change_as_the_overhang_does(tmp_path):
    """As 1 over the square of its length, within the convergence of ten modes."""
    model = sample(tmp_path, 10)
    feeds = np.array([0.2, 0.25, 0.3, 0.35])
    found = np.array([frequencies(model, feed)[0] for feed in feeds])
    assert found * (feeds + 0.05) ** 2 == pytest.approx(1.875104**2 * np.sqrt(EI / MASS), rel=0.05)


def cantilever_shape(beta):
    """Of Euler and Bernoulli, 1 at the tip, with its slope; x from 0 to 1."""
    sigma = (np.cosh(beta) + np.cos(beta)) / (np.sinh(beta) + np.sin(beta))
    size = np.cosh(beta) - np.cos(beta) - sigma * (np.sinh(beta) - np.sin(beta))

    def value(x):
        z = beta * x
        return (np.cosh(z) - np.cos(z) - sigma * (np.sinh(z) - np.sin(z))) / size

    def slope(x):
        z = beta * x
        return beta * (np.sinh(z) + np.sin(z) - sigma * (np.cosh(z) - np.cos(z))) / size

    return value, slope


@pytest.mark.parametrize("along", [False, True])
@pytest.mark.parametrize("feed", [0.05, 0.2, 0.3])
def test_frequencies_of_the_modes_of_euler_and_bernoulli(tmp_path, along, feed):
    """The same number of exact modes, K and M diagonal, held at the guide by their exact values there."""
    n = 5
    betas = [
        brentq(lambda b: np.cosh(b) * np.cos(b) + 1.0, (k + 0.5) * np.pi - 0.6, (k + 0.5) * np.pi + 0.6)
        for k in range(n)
    ]
    shapes = [cantilever_shape(beta) for beta in betas]
    s = (GUIDE - feed) / LENGTH
    G = np.array([[shape[k](s) for shape in shapes] for k in range(1 + along)])
    # the modes have the modal mass ρA L / 4
    free = null_space(G)
    K = EI / MASS / LENGTH**4 * np.diag(betas) ** 4
    expected = np.sqrt(eigh(free.T @ K @ free, free.T @ free, eigvals_only=True))
    found = frequencies(sample(tmp_path, n, along), feed)
    assert found == pytest.approx(expected, rel=2e-4)


# --- the rows ---


def consistent(model):
    """A state with the guide on the axis of the bent beam, and velocities that keep it there."""
    from cosim.mechanics.multibody import assembly

    free = np.zeros(model.nv, dtype=bool)
    q = np.array([0.05, 0.01, -0.004, 0.008, 0.003, -0.002, 1e-5, 0.1])
    q = assembly.close_loops(model, q, free)
    v = assembly.consistent_velocities(model, q, np.random.default_rng(1).uniform(-1, 1, model.nv), free)
    return q, v


@pytest.mark.parametrize("along", [False, True])
def test_the_jacobian_and_the_bias_are_derivatives_of_the_residual(tmp_path, along):
    model = spatial(tmp_path, along)
    rng, h = np.random.default_rng(0), 1e-5
    for _ in range(3):
        q = np.concatenate([rng.uniform(-0.05, 0.05, 2), rng.uniform(-0.02, 0.02, model.nv - 2)])
        v = rng.uniform(-1, 1, model.nv)

        def rate(k, q=q, v=v):
            return model.constraint_violation(q + k * h * v, v)

        slope = (rate(-2)[0] - 8 * rate(-1)[0] + 8 * rate(1)[0] - rate(2)[0]) / (12 * h)
        assert slope == pytest.approx(model.constraint_jacobian(q) @ v, rel=1e-7, abs=1e-8)
        assert rate(0)[1] == pytest.approx(model.constraint_jacobian(q) @ v, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("along", [False, True])
def test_the_accelerations_keep_the_guide_on_the_axis(tmp_path, along):
    """d/dt of the rates along the motion vanishes, and both other formulations of elastic mechanisms move the same."""
    model = spatial(tmp_path, along)
    q, v = consistent(model)
    tau = np.random.default_rng(2).uniform(-1, 1, model.nv)
    assert np.abs(model.constraint_violation(q, v)).max() < 1e-9
    a = model.forward_dynamics(q, v, tau)
    h = 1e-2 / np.abs(a).max()

    def rate(k):
        return model.constraint_violation(q + k * h * v + 0.5 * (k * h) ** 2 * a, v + k * h * a)[1]

    change = (rate(-2) - 8 * rate(-1) + 8 * rate(1) - rate(2)) / (12 * h)
    assert np.abs(change).max() < 1e-6 * np.abs(a).max()
    for name in ("lagrange", "elastic_kane"):
        other = load_formulation(name, model.equations).forward_dynamics(q, v, tau)
        assert np.asarray(other, dtype=float) == pytest.approx(a, rel=1e-9, abs=1e-9 * np.abs(a).max())


@pytest.mark.parametrize("along", [False, True])
def test_the_reactions_balance_the_beam(tmp_path, along):
    """Force of the feed on the beam + force of the guide on it = d/dt of its momentum − its weight: at rest, where this
    is m J a of the centre of mass."""
    model = spatial(tmp_path, along)
    q, _ = consistent(model)
    still, tau = np.zeros(model.nv), np.random.default_rng(2).uniform(-1, 1, model.nv)
    a = model.forward_dynamics(q, still, tau)
    joints, tree = list(model.tree_joint_names), model.equations.tree
    frames = {joint.name: body.rotation for joint, body in zip(tree.joints, tree.bodies, strict=True)}
    wrenches = model.joint_wrenches(q, still, tau)
    total = sum(frames[name] @ wrenches[joints.index(name), :3] for name in ("feed", "arm"))
    mass = sum(float(body.mass) for body in tree.bodies)
    # the guide acts between the beam and the arm, so the ground sees the two joints alone
    momentum = mass * (model.center_of_mass_jacobian(q) @ a)
    weight = mass * np.asarray(model.gravity)
    assert total == pytest.approx(momentum - weight, rel=1e-10, abs=1e-10 * np.abs(momentum).max())


@pytest.mark.parametrize("along", [False, True])
def test_the_feed_and_the_fixed_guide_carry_the_beam(tmp_path, along):
    """Likewise, with a guide on the ground: its recorded force is what is missing."""
    model = sample(tmp_path, 3, along)
    q, multipliers, _, _, _ = at_rest(model, 0.2)
    wrenches = model.joint_wrenches(q, np.zeros(model.nv), _holding(model, q, multipliers))
    guide = model.constraint_wrenches(q, np.zeros(model.nv), _holding(model, q, multipliers))
    body = next(
        b for j, b in zip(model.equations.tree.joints, model.equations.tree.bodies, strict=True) if j.name == "feed"
    )
    feed = body.rotation @ wrenches[list(model.tree_joint_names).index("feed"), :3]
    frames = list(model.constraint_frames)
    assert len(frames) == len(guide) == 2
    on_beam = guide[0][:3]  # the first frame is the one of the beam, whose axes are the ground's here
    assert feed + on_beam == pytest.approx([0.0, 0.0, MASS * LENGTH * GRAVITY], rel=1e-10, abs=1e-10)


def _holding(model, q, multipliers):
    """The efforts that hold the beam at rest: of the feed alone."""
    still = np.zeros(model.nv)
    force = model.inverse_dynamics(q, still, still) - model.constraint_jacobian(q)[rows(model)].T @ multipliers
    assert np.abs(force[1:]).max() < 1e-9
    return force


def test_a_run_closes_its_energy_balance(tmp_path):
    text = SAMPLE.replace("step: 0.05 ms, duration: 2 s", "step: 0.02 ms, duration: 0.1 s").replace("1.5 s", "0.1 s")
    (tmp_path / "rig.yaml").write_text(text, encoding="utf-8")
    run = load_rig(tmp_path / "rig.yaml").run()
    assert abs(run.summary["energy"]["residual_relative"]) < 1e-9
    assert np.abs(run["sleeve/violation"]).max() < 1e-12
    assert run["sleeve/force_z"][-1] != 0.0


def test_what_is_refused(tmp_path, said):
    """An unknown beam, a guide beyond the ends, and a beam that leaves its guide during the run."""

    def outcome(old, new):
        assert old in SAMPLE
        (tmp_path / "rig.yaml").write_text(SAMPLE.replace(old, new), encoding="utf-8")
        return refusal(lambda: load_rig(tmp_path / "rig.yaml").run())

    said(outcome("beam: strip, along", "beam: strop, along"))
    said(outcome("xyz: [0.45, 0, 0]", "xyz: [0.55, 0, 0]"))


def test_a_beam_that_leaves_its_guide_stops_the_run(tmp_path):
    text = SAMPLE.replace("goal: 25 cm, duration: 1.5 s", "goal: -10 cm, duration: 0.2 s").replace(
        "duration: 2 s}", "duration: 0.2 s}"
    )
    (tmp_path / "rig.yaml").write_text(text.replace("step: 0.05 ms", "step: 0.2 ms"), encoding="utf-8")
    with pytest.raises(Exception, match="constraint 'sleeve' is violated"):
        load_rig(tmp_path / "rig.yaml").run()
