"""Force laws in the equations of motion: the efforts Jᵀ F of their frames and their own efforts, in every algorithm."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.constraint_laws import ForceLaw
from cosim.mechanics.multibody.mechanism import (
    AppliedForce,
    Frame,
    Inertial,
    Joint,
    Link,
    Mechanism,
    Mimic,
)
from tests.multibody.random_frames import random_pose

FORCE, MOMENT, EFFORT = np.array([3.0, -2.0, 5.0]), np.array([0.4, 0.7, -0.2]), np.array([1.5])


def law(with_moment=True, with_efforts=True):
    """On two frames opposite forces that depend on a position, and an effort that depends on a velocity."""

    def wrenches(frames, q, v, t):
        size = frames[0].position[0] + 2.0
        one = [*(size * FORCE), *MOMENT] if with_moment else size * FORCE
        return [one, -np.array(one)]

    return ForceLaw(wrenches, (lambda frames, q, v, t: [EFFORT[0] - 0.3 * v[0] + q[0]]) if with_efforts else None)


def mechanism(rng, *forces):
    links = [Link("base")] + [Link(f"l{k}", Inertial(1.0 + k, rng.normal(size=3), np.eye(3))) for k in range(4)]
    kinds = ("revolute", "free", "prismatic", "revolute")
    parents = ("base", "l0", "l1", "l1")
    joints = [
        Joint(f"j{k}", kinds[k], parents[k], f"l{k}", random_pose(rng), mimic=Mimic("j0", 0.7) if k == 3 else None)
        for k in range(4)
    ]
    at = {name: random_pose(rng) for name in ("first", "second")}
    frames = (Frame("first", "l2", at["first"]), Frame("second", "l3", at["second"]))
    made = Mechanism("m", "base", tuple(links), tuple(joints), frames=frames)
    ends = (("l2", at["first"]), ("l3", at["second"]))
    return replace(made, forces=tuple(AppliedForce(f"f{k}", item, ends, ("j2",)) for k, item in enumerate(forces)))


@pytest.mark.parametrize("laws", [[law()], [law(False)], [law(True, False)], [law(), law(False)]])
def test_the_laws_add_their_generalised_forces(laws):
    rng = np.random.default_rng(0)
    plain = Model(mechanism(rng))
    model = Model(mechanism(np.random.default_rng(0), *laws))
    q = plain.random_configuration(rng)
    v, a = rng.normal(size=(2, model.nv))
    k = model.dof_index("j2")
    start = plain.equations.frame_pose(q, *plain._tree.frames["first"])[0, 3]
    J = [plain.equations.frame_jacobian(q, *plain._tree.frames[name]) for name in ("first", "second")]
    expected, powers = np.zeros(model.nv), {}
    for i, item in enumerate(laws):
        frame = type("F", (), {"position": np.array([start, 0.0, 0.0])})
        rows = np.array(item.wrenches([frame], None, None, 0.0))
        rows = np.hstack([rows, np.zeros((2, 6 - rows.shape[1]))])
        own = sum(jacobian.T @ row for jacobian, row in zip(J, rows, strict=True))
        if item.efforts is not None:
            own[k] += item.efforts(None, q[-1:], v[k : k + 1], 0.0)[0]
        powers[f"f{i}"] = own @ v
        expected = expected + own
    equations, without = model.equations, plain.equations
    np.testing.assert_allclose(
        equations.inverse_dynamics(q, v, a), without.inverse_dynamics(q, v, a) - expected, atol=1e-10
    )
    np.testing.assert_allclose(
        equations.forward_dynamics(q, v, a), without.forward_dynamics(q, v, a + expected), atol=1e-10
    )
    held = rng.random(model.nv) < 0.5
    accelerations, efforts = equations.hybrid_dynamics(q, v, a, 2.0 * a, held)
    expected_accelerations, required = without.hybrid_dynamics(q, v, a, 2.0 * a + expected, held)
    np.testing.assert_allclose(accelerations, expected_accelerations, atol=1e-10)
    np.testing.assert_allclose(efforts, np.where(held, required - expected, 2.0 * a), atol=1e-10)
    for name, power in equations.force_powers(q, v).items():
        assert power == pytest.approx(powers[name], abs=1e-10)
    assert not equations.rolled and not equations.is_plain_tree and model.as_known is model


def test_gravity_effort_has_no_forces_and_the_known_model_none_that_are_unknown():
    rng = np.random.default_rng(1)
    plain = Model(mechanism(rng))
    given = mechanism(np.random.default_rng(1), law())
    model = Model(replace(given, forces=tuple(replace(force, known=False) for force in given.forces)))
    q = plain.random_configuration(rng)
    np.testing.assert_allclose(model.gravity_effort(q), plain.gravity_effort(q), atol=1e-13)
    v = rng.normal(size=model.nv)
    assert np.abs(model.equations.nonlinear_effects(q, v) - plain.equations.nonlinear_effects(q, v)).max() > 0.1
    known = model.as_known.equations.nonlinear_effects(q, v)
    np.testing.assert_allclose(known, plain.equations.nonlinear_effects(q, v), atol=1e-13)
