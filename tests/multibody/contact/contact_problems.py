"""Problems of contacts for the tests of their solver, and what the law says of a solution, in numpy."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cosim.core.compile import compile
from cosim.mechanics.multibody.contact.contact_solver import ContactSolver
from tests.compile.calls import ports

FOLDER = Path(__file__).parent / "problems"
ROBOTS = ("solo12", "talos")  # landing: a quadruped on 4 spheres, a humanoid on 8 points, of which half are redundant


@dataclass(frozen=True)
class Problem:
    W: np.ndarray
    c: np.ndarray
    friction: np.ndarray
    before: np.ndarray

    @property
    def contacts(self):
        return len(self.friction)

    @property
    def arrays(self):
        return self.W, self.c, self.friction, self.before


def of_robot(name):
    with np.load(FOLDER / f"problems_{name}.npz") as data:
        return [Problem(W, c, data["mu"], warm) for W, c, warm in zip(data["W"], data["c"], data["warm"], strict=True)]


def compiled(contacts, *arguments, **named):
    n = 3 * contacts
    routine = ContactSolver(contacts, *arguments, **named)
    return compile(routine, ports(W=(n, n), c=(n,), friction=(contacts,), before=(n,)))


def drawn(contacts, rng, count):
    """Pressed contacts: regular, of ranks down to 1, with rows twice, of unlike masses, hardly moving, without
    friction."""
    n = 3 * contacts
    for number in range(count):
        rank = (n + 3, n, n // 2, 6, 3, 1)[number % 6]
        J = rng.normal(size=(n, rank))
        if number % 4 == 1:
            J *= 10.0 ** rng.uniform(-1.5, 1.5, rank)
        if number % 4 == 2:
            J[3::3] = J[:-3:3]
        speed = (1.0, 1e-6, 1e-3)[number % 3]
        W = J @ J.T
        c = speed * (J @ rng.normal(size=rank)) - W @ np.tile([0.0, 0.0, 0.3], contacts)
        friction = np.where(rng.uniform(size=contacts) < 0.1, 0.0, rng.uniform(0.0, 1.2, contacts))
        yield Problem(W, c, friction, np.zeros(n))


def regular(contacts, rng, count):
    """Problems with one solution: W is not singular, friction not great."""
    n = 3 * contacts
    for _ in range(count):
        J = rng.normal(size=(n, n + 3))
        yield Problem(J @ J.T / n, rng.normal(size=n), rng.uniform(0.2, 0.8, contacts), np.zeros(n))


def natural_map(problem, impulses):
    """The largest component, by the point of the cone that is nearest: on its axis, its edge or at its tip."""
    u, worst = problem.W @ impulses + problem.c, 0.0
    for j, mu in enumerate(problem.friction):
        at = slice(3 * j, 3 * j + 3)
        w = max(np.trace(problem.W[at, at]) / 3.0, 1e-12)
        slip = u[at] + [0.0, 0.0, mu * np.linalg.norm(u[at][:2])]
        x = impulses[at] - slip / w
        across = np.linalg.norm(x[:2])
        if across > mu * x[2]:  # to the ray of the edge, or its end
            edge = np.array([*(x[:2] / max(across, 1e-300) * mu), 1.0]) / np.hypot(mu, 1.0)
            x = max(edge @ x, 0.0) * edge
        worst = max(worst, np.abs(w * (impulses[at] - x)).max())
    return worst


def violation(problem, impulses):
    """What the law forbids: penetration [m/s], pull and friction beyond the cone, relative to the impulses, and the
    power of an open contact and of friction against its direction, per impulse [m/s]."""
    u, size, found = problem.W @ impulses + problem.c, max(np.abs(impulses).max(), 1e-9), []
    for j, mu in enumerate(problem.friction):
        (rx, ry, rn), (ux, uy, un) = impulses[3 * j : 3 * j + 3], u[3 * j : 3 * j + 3]
        found += [-un, -rn / size, abs(un * rn) / size, (np.hypot(rx, ry) - mu * rn) / size]
        found.append(np.hypot(mu * rn * ux + np.hypot(ux, uy) * rx, mu * rn * uy + np.hypot(ux, uy) * ry) / size)
    return max(found)
