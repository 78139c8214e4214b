"""Derivatives of the impulses of contacts: adjoints against central differences."""

from functools import cache

import numpy as np
import pytest

from cosim.core.compile import Routine, compile
from cosim.core.compile.adjoint import Differentiation
from cosim.mechanics.multibody.contact.contact_solver import ContactSolver
from tests.compile.calls import ports
from tests.multibody.contact.contact_problems import every_kind, kinds_of, of_robot, regular

STEP = 1e-6
NAMES = ("W", "c", "friction", "before")


@cache
def derived(contacts, rows=3):
    """(Λ, its adjoint) as machine code, in a routine that scales what it gets and what it returns."""
    solver = ContactSolver(contacts, 500, 1e-12, rows)

    def fn(W, c, friction, before):
        return 2.0 * solver(3.0 * W, c, friction, before)[0]

    routine, differentiation = Routine(fn, solver.shapes, "twice"), Differentiation()
    taped, adjoint = differentiation.taped(routine), differentiation.adjoint(routine, (0, 1, 2, 3), (0,))
    named = [ports(**{f"x{k}": shape for k, shape in enumerate(each.shapes)}) for each in (routine, taped, adjoint)]
    solve, record, pull = map(compile, (routine, taped, adjoint), named)

    def pulled(arrays, seed):
        flat = [np.ravel(array) for array in arrays]
        return pull(*flat, *record(*(a.reshape(s) for a, s in zip(flat, taped.shapes, strict=True)))[1:], seed)

    return solve, pulled


@pytest.mark.parametrize(("contacts", "rows"), [(1, 3), (4, 3), (2, 4), (2, 6)])
def test_the_adjoint_is_the_derivative(contacts, rows):
    rng, seen = np.random.default_rng(contacts), set()
    solve, pulled = derived(contacts, rows)
    for problem in regular(contacts, rng, 60, rows):
        impulses, seed = solve(*problem.arrays), rng.normal(size=problem.c.size)
        seen |= kinds_of(problem, impulses)
        found = pulled(problem.arrays, seed)
        assert (found[3] == 0.0).all()  # the warm start
        turned = rng.normal(size=problem.W.shape)
        for k, along in enumerate(([turned + turned.T], np.eye(problem.c.size), np.eye(problem.friction.size))):
            for direction in along:
                ends = []
                for part in (STEP, -STEP):
                    given = [*problem.arrays[:3], 0.5 * impulses]
                    given[k] = given[k] + part * direction.reshape(given[k].shape)
                    ends.append(seed @ solve(*given))
                difference = (ends[0] - ends[1]) / (2.0 * STEP)
                assert abs(found[k] @ direction.ravel() - difference) <= 1e-7 * max(1.0, np.abs(found[k]).max()), NAMES[
                    k
                ]
    assert seen == every_kind(rows)


def test_redundant_contacts_at_rest_have_derivatives_of_their_velocities():
    """Impulses of a standing humanoid are not unique, what they do is: the adjoint of W Λ is finite and right."""
    rng, compared = np.random.default_rng(3), 0
    solve, pulled = derived(8)
    for problem in of_robot("talos")[::4]:
        impulses = 0.5 * solve(*problem.arrays)
        W = problem.W / 3.0
        given = (W, *problem.arrays[1:])
        impulses = 0.5 * solve(*given)
        if kinds_of(problem, impulses) != {"sticks 0"}:
            continue
        along, seed = problem.W @ rng.normal(size=24), problem.W @ rng.normal(size=24)
        _, by_c, _, _ = pulled(given, seed)
        ends = [seed @ solve(W, problem.c + part * along, *problem.arrays[2:]) for part in (STEP, -STEP)]
        assert abs(by_c @ along - (ends[0] - ends[1]) / (2.0 * STEP)) <= 1e-6 * max(1.0, np.abs(seed).max())
        compared += 1
    assert compared
