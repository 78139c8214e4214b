"""Constrained motion: reactions, energy, machine code, kept and cut loops, rows that repeat others, springs.

An acceleration belongs to the constrained mechanism when G q̈ + γ = 0 and M q̈ + h − τ = Gᵀ λ for some λ.
"""

import dataclasses

import casadi
import numpy as np
import pytest

from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.assembly import find_redundant
from cosim.mechanics.multibody.differentiate import Derived, along
from cosim.mechanics.multibody.joints import REVOLUTE, GeneralMotion, kind_of
from cosim.mechanics.multibody.mechanism import Joint, Link, LoopJoint, Mechanism, Pose, Spring
from tests.multibody.random_frames import at, close, heavy, turn

X, Y, Z = np.eye(3)
WAYS = "direct", "nested"


def ladder(random, rungs, tilt, base="free"):
    """Parallel cranks on a trunk, each four-bar on the coupler of the one before; all in one tilted plane.

    Every four-bar is cut at a hinge: three of the five rows repeat what the other hinges say.
    """
    joints = [Joint("trunk", base, "ground", "b0", Pose(tilt, np.zeros(3)))]
    links, loops = [Link("ground"), heavy("b0", random)], []
    for k in range(rungs):
        here, tip = f"b{k}", at(0.0, random.uniform(0.4, 0.8), 0.1)
        links += [heavy(f"{side}{k + 1}", random) for side in "pqb"]
        joints += [
            Joint(f"left{k}", "revolute", here, f"p{k + 1}", at(0.0, 0.0, 0.0), Z),
            Joint(f"right{k}", "revolute", here, f"q{k + 1}", at(0.5, 0.0, 0.0), Z),
            Joint(f"top{k}", "revolute", f"p{k + 1}", f"b{k + 1}", tip, Z),
        ]
        loops.append(LoopJoint(Joint(f"close{k}", "revolute", f"q{k + 1}", f"b{k + 1}", tip, Z), at(0.5, 0.0, 0.0)))
    return Mechanism("ladder", "ground", tuple(links), tuple(joints), loops=tuple(loops))


def leaning(mechanism, random):
    """(q, v) of a ladder: each rung leans and moves, its coupler stays parallel."""
    model = Model(mechanism)
    q, v = model.random_configuration(random), random.uniform(-1, 1, model.nv)
    for k in range(len({loop.joint.child for loop in mechanism.loops})):
        lean, rate = random.uniform(-0.8, 0.8), random.uniform(-2, 2)
        for name, sign in ((f"left{k}", 1), (f"right{k}", 1), (f"middle{k}", 1), (f"top{k}", -1)):
            if name in model.joint_names:
                q[model.coordinate_names.index(name)] = sign * lean
                v[model.dof_index(name)] = sign * rate
    return q, v


def third_crank(mechanism, random):
    """Another crank beside the first rung's, parallel to them: its loop adds nothing new."""
    pose = mechanism.joints[1].pose @ at(0.2, 0.0, 0.0)
    crank = dataclasses.replace(mechanism.joints[1], name="middle0", child="m", pose=pose)
    closing = dataclasses.replace(mechanism.loops[0].joint, name="third", parent="m")
    links, joints = (*mechanism.links, heavy("m", random)), (*mechanism.joints, crank)
    loops = *mechanism.loops, LoopJoint(closing, at(0.2, 0.0, 0.0))
    return dataclasses.replace(mechanism, links=links, joints=joints, loops=loops)


def tripod(random, **more):
    """A floating plate on three struts that slide in ball joints: no rows repeat each other."""
    links, joints = [Link("ground"), heavy("plate", random)], [Joint("plate", "free", "ground", "plate", at(0, 0, 0))]
    loops = []
    for k in range(3):
        links += [heavy(f"foot{k}", random), heavy(f"rod{k}", random)]
        joints.append(Joint(f"ankle{k}", "universal", "ground", f"foot{k}", Pose(turn(random), Z * k), Z, X))
        joints.append(Joint(f"slide{k}", "prismatic", f"foot{k}", f"rod{k}", at(0.1, 0.2, 0.3), Z))
        loops.append(LoopJoint(Joint(f"ball{k}", "spherical", f"rod{k}", "plate", at(0, 0, 0.5)), at(k, 1 - k, 0.2)))
    return Mechanism("tripod", "ground", tuple(links), tuple(joints), loops=tuple(loops), **more)


def project_onto_constraints(model, random):
    """(q, v) with closed loops near random coordinates, by Newton's method."""
    equations, q, v = model.equations, model.random_configuration(random), random.uniform(-1, 1, model.nv)
    for _ in range(60):
        if np.abs(f := equations.constraint_violation(q, v)[0]).max() < 1e-12:
            break
        step = -np.linalg.pinv(equations.constraint_jacobian(q)[np.array(equations.constraints.holonomic)], 1e-9) @ f
        q = equations.integrate(q, step / max(1.0, np.abs(step).max()))
    return q, v - np.linalg.pinv(equations.constraint_jacobian(q), 1e-9) @ equations.constraint_violation(q, v)[1]


def gamma(model, q, v):
    """The derivative of the rates along q̇ at constant v."""

    def make(columns, arrays):
        rate, q_rate = (
            casadi.vertcat(*x)
            for x in (model.equations.constraint_violation(*arrays)[1], model.equations.rate(*arrays))
        )
        return [(along(rate, [(columns[0], q_rate)]), (rate.numel(),))]

    return Derived("gamma", [(model.nq,), (model.nv,)], make)(q, v)[0]


def check_motion(model, q, v, tau, bias):
    equations, still = model.equations, np.zeros(model.nv)
    G, acceleration = equations.constraint_jacobian(q), equations.forward_dynamics(q, v, tau)
    close(G @ acceleration, -bias)
    missing = equations.mass_matrix(q) @ acceleration + equations.inverse_dynamics(q, v, still) - tau
    reaction = np.linalg.pinv(G.T, 1e-10) @ missing
    close(G.T @ reaction, missing)
    found = equations.reactions(q, v, tau)
    close(G.T @ found, missing)
    if equations.constraints.redundant:  # shared by least norm
        close(found, reaction, 1e-8)
    return acceleration


def check_both_ways(mechanism, q, v, random, repeated, given=True):
    """Direct and nested elimination; rows that repeat others are given to the model or found on the way."""
    first = Model(mechanism)
    redundant = find_redundant(first, q, np.zeros(first.nv, bool))
    assert len(redundant) == repeated
    tau, bias = random.uniform(-5, 5, first.nv), gamma(first, q, v)
    models = [Model(mechanism, elimination=way, redundant=redundant if given else ()) for way in WAYS]
    direct, nested = (check_motion(model, q, v, tau, bias) for model in models)
    close(nested, direct)


@pytest.mark.parametrize(
    ("rungs", "base", "tilted", "given"),
    [(1, "fixed", True, False), (2, "free", False, True), (4, "free", True, False), ("third", "fixed", True, True)],
)
def test_ladders_of_planar_loops(rungs, base, tilted, given):
    """With a third parallel crank there is one degree of freedom where counting leaves none."""
    random = np.random.default_rng(5)
    third = rungs == "third"
    mechanism = ladder(random, 1 if third else rungs, turn(random) if tilted else np.eye(3), base)
    mechanism = third_crank(mechanism, random) if third else mechanism
    check_both_ways(mechanism, *leaning(mechanism, random), random, 7 if third else 3 * rungs, given)


@pytest.mark.parametrize("drift", [1e-9, 1e-5, 1e-3])
def test_cranks_that_drifted_off_parallel_still_move(drift):
    """Told which rows repeat others, the model does not mistake what integration leaves over for a constraint."""
    random = np.random.default_rng(6)
    mechanism = third_crank(ladder(random, 1, turn(random), "fixed"), random)
    q, v = leaning(mechanism, random)
    redundant = find_redundant(Model(mechanism), q, np.zeros(len(v), bool))
    tau = random.uniform(-5, 5, len(v))
    for way in WAYS:
        model = Model(mechanism, elimination=way, redundant=redundant)
        exact = model.equations.forward_dynamics(q, v, tau)
        found = model.equations.forward_dynamics(q + drift * random.uniform(-1, 1, len(q)), v, tau)
        close(found, exact, 1e-9 + 300.0 * drift)


def chain(random):
    """Six hinges in a row from the ground."""
    names = ["ground", *(f"l{k}" for k in range(6))]
    joints = [
        Joint(f"j{k}", "revolute", names[k], names[k + 1], Pose(turn(random), random.uniform(-1, 1, 3)))
        for k in range(6)
    ]
    links = (Link("ground"), *(heavy(name, random) for name in names[1:]))
    return Mechanism("chain", "ground", links, tuple(joints))


def tied_at(mechanism, q, kind, random):
    """(loop between the ground and the tip that is closed at q, coordinates of its joint)"""
    joint = Joint("closing", kind, "ground", "l5", at(0, 0, 0), Z, X if kind == "universal" else None, pitch=0.2)
    row, on_child = kind_of(joint), Pose(turn(random), random.uniform(-0.3, 0.3, 3))
    own = row.space.integrate(row.space.neutral, random.uniform(-1, 1, row.nv))
    tip = Model(mechanism).code.definition("frame_pose", "l5")[0](q)
    pose = Pose(tip[:3, :3], tip[:3, 3]) @ on_child @ Pose(*row.place(own, 0.0)).inverse()
    return LoopJoint(dataclasses.replace(joint, pose=pose), on_child), own


KINDS = "revolute", "prismatic", "cylindrical", "universal", "spherical", "planar", "screw"


@pytest.mark.parametrize(("kind", "way"), [(kind, WAYS[k % 2]) for k, kind in enumerate(KINDS)])
def test_a_kept_loop_moves_as_the_cut_one(kind, way):
    """The joint that closes the loop has coordinates of its own, or equations: the bodies do the same."""
    random = np.random.default_rng(len(kind))
    mechanism = chain(random)
    q = random.uniform(-1, 1, 6)
    loop, own = tied_at(mechanism, q, kind, random)
    kept = dataclasses.replace(loop, coordinates=True)
    cut, whole = (Model(dataclasses.replace(mechanism, loops=(x,)), elimination=way) for x in (loop, kept))
    q_whole = np.concatenate([q, own])
    G, v = whole.equations.constraint_jacobian(q_whole), random.uniform(-1, 1, whole.nv)
    v -= np.linalg.pinv(G, 1e-9) @ (G @ v)
    assert (len(whole.constraint_rows), len(cut.constraint_rows)) == (6, 6 - whole.kinds[-1].nv)
    for model, state in ((whole, (q_whole, v)), (cut, (q, v[:6]))):
        assert max(np.abs(part).max() for part in model.equations.constraint_violation(*state)) < 1e-10
    tau = np.concatenate([random.uniform(-5, 5, 6), np.zeros(whole.nv - 6)])
    close(whole.equations.forward_dynamics(q_whole, v, tau)[:6], cut.equations.forward_dynamics(q, v[:6], tau[:6]))
    # the parts of the link that was cut through weigh what it weighed
    energies = (
        (e.kinetic_energy(*x), e.potential_energy(x[0]))
        for e, x in zip((whole.equations, cut.equations), ((q_whole, v), (q, v[:6])), strict=True)
    )
    assert next(energies) == pytest.approx(next(energies), rel=1e-12)


def test_a_loop_on_a_joint_that_depends_on_time():
    """A hinge at q + ½ t²: the same motion as a plain hinge there, whose acceleration is larger by 1."""
    random = np.random.default_rng(15)
    plain = chain(random)
    driven = GeneralMotion(("angle",), ("rad",), lambda q, t: REVOLUTE.place(q + 0.5 * t * t, t), True)
    first = dataclasses.replace(plain.joints[0], kind="general", motion=driven)
    timed = dataclasses.replace(plain, joints=(first, *plain.joints[1:]))
    q, t = random.uniform(-1, 1, 6), 0.8
    loop, _ = tied_at(plain, q, "spherical", random)
    plain, timed = (Model(dataclasses.replace(m, loops=(loop,))) for m in (plain, timed))
    (v, tau), shift = random.uniform(-1, 1, (2, 6)), np.eye(6)[0]
    expected = plain.forward_dynamics(q, v, tau)
    close(timed.forward_dynamics(q - 0.5 * t * t * shift, v - t * shift, tau, t) + shift, expected)
    close(timed.reactions(q - 0.5 * t * t * shift, v - t * shift, tau, t), plain.reactions(q, v, tau))
    # what drives the hinge puts in its effort times the speed t that is not the coordinate's
    found = timed.equations.constrained_dynamics(q - 0.5 * t * t * shift, v - t * shift, tau, tau, np.zeros(6, bool), t)
    assert found.power == pytest.approx(tau[0] * t, rel=1e-9)


@pytest.mark.parametrize("way", WAYS)
def test_impulses_balance(way):
    """G Δv = −demand and M Δv = Gᵀ Λ + impulse, with jumps of held dofs; one step brings a state onto the rows."""
    random = np.random.default_rng(16)
    model = Model(tripod(random), elimination=way)
    q, v = project_onto_constraints(model, random)
    held = np.zeros(model.nv, bool)
    held[[model.dof_index("slide0"), model.dof_index("slide2")]] = True
    demand, jump = random.uniform(-1, 1, 9), random.uniform(-1, 1, model.nv)
    change, impulse, factors, _ = model.equations.impulse(q, demand, jump, held)
    G = model.equations.constraint_jacobian(q)
    close(G @ change, -demand)
    close(model.equations.mass_matrix(q) @ change, G.T @ factors + impulse)
    np.testing.assert_array_equal(change[held], jump[held])
    np.testing.assert_array_equal(impulse[~held], 0.0)
    by, more = 1e-4 * random.uniform(-1, 1, (2, model.nv))
    off = model.equations.integrate(q, by), v + more
    once = model.equations.project_onto_constraints(*off, held)
    residual, rate = model.equations.constraint_violation(*once)
    assert np.abs(residual).max() < 1e-6  # of 1e-4: a step of Newton's method
    assert np.abs(rate).max() < 1e-12
    np.testing.assert_array_equal(once[1][held], off[1][held])


FUNCTIONS = "hybrid_dynamics", "reactions", "inverse_dynamics", "constraint_violation", "constraint_jacobian"


@pytest.mark.parametrize(("name", "way"), [*zip(FUNCTIONS, (*WAYS, *WAYS, "direct"), strict=True)])
def test_machine_code_is_the_python(name, way, monkeypatch):
    """Compiled and interpreted functions; each row of a batch to the bit. Some rows repeat others, springs act."""
    random = np.random.default_rng(17)
    mechanism = ladder(random, 2, turn(random))
    spring = Spring("spring", (("ground", 3.0 * X), ("b2", Y)), 100.0, 3.0, 0.5)
    mechanism = dataclasses.replace(mechanism, springs=(spring,))
    states = [leaning(mechanism, random) for _ in range(5)]
    redundant = find_redundant(Model(mechanism), states[0][0], np.zeros(len(states[0][1]), bool))
    model = Model(mechanism, elimination=way, redundant=redundant)
    q, v = (np.array(x) for x in zip(*states, strict=True))
    held = np.zeros(v.shape, bool)
    held[::2, model.dof_index("left1")] = True
    named = {name: random.uniform(-3, 3, v.shape) for name in ("tau", "qdd")}
    named |= {"q": q, "v": v, "prescribed": held}
    given = [named[port.name] for port in model.compiled(name).inputs]
    monkeypatch.setenv("COSIM_INTERPRET", "1")
    interpreted = Model(mechanism, elimination=way, redundant=redundant).compiled(name).native
    monkeypatch.delenv("COSIM_INTERPRET")

    def parts(result):
        return result if isinstance(result, tuple) else (result,)

    together, as_read = parts(model.compiled(name).native(*given)), parts(interpreted(*given))
    for k in range(5):
        row = [value[k] for value in given]
        alone, plain = parts(model.compiled(name).native(*row)), parts(getattr(model.equations, name)(*row))
        for batch, one, other, reference in zip(together, alone, as_read, plain, strict=True):
            np.testing.assert_array_equal(batch[k], one)
            close(one, reference)
            close(other[k], reference)
