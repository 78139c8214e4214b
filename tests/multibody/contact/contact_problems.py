"""Problems of contacts for the tests of their solver, and what the law says of a solution, in numpy."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

from cosim.core.compile import compile
from cosim.mechanics.multibody.contact.contact_solver import ContactSolver
from tests.compile.calls import ports

FOLDER = Path(__file__).parent / "problems"
ROBOTS = ("solo12", "talos")  # landing: a quadruped on 4 spheres, a humanoid on 8 points, of which half are redundant


DISKS = {3: [[0, 1]], 4: [[0, 1], [3]], 6: [[0, 1], [3], [4, 5]]}  # rows of sliding, spinning and rolling


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

    def by_contact(self, impulses):
        """(Λ, u, disks with their μ, its block of W) of each contact."""
        u, rows = self.W @ impulses + self.c, self.c.size // self.contacts
        for j, mu in enumerate(self.friction):
            at = slice(rows * j, rows * (j + 1))
            yield impulses[at], u[at], list(zip(DISKS[rows], np.atleast_1d(mu), strict=True)), self.W[at, at]


def of_robot(name):
    with np.load(FOLDER / f"problems_{name}.npz") as data:
        return [Problem(W, c, data["mu"], warm) for W, c, warm in zip(data["W"], data["c"], data["warm"], strict=True)]


def compiled(contacts, most=500, tolerance=1e-10, rows=3):
    routine = ContactSolver(contacts, most, tolerance, rows)
    return compile(routine, ports(**dict(zip(("W", "c", "friction", "before"), routine.shapes, strict=True))))


def friction_of(contacts, rows, rng, most=0.8):
    """(contacts,), or with less of it for spinning and rolling (contacts, disks)."""
    drawn = rng.uniform(0.2, most, (contacts, len(DISKS[rows]))) * [1.0, 0.3, 0.2][: len(DISKS[rows])]
    return drawn[:, 0] if rows == 3 else drawn


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


def regular(contacts, rng, count, rows=3):
    """Problems with one solution: W is not singular, friction not great."""
    n = rows * contacts
    for _ in range(count):
        J = rng.normal(size=(n, n + 3))
        yield Problem(J @ J.T / n, rng.normal(size=n), friction_of(contacts, rows, rng), np.zeros(n))


def nearest(x, disks):
    """The point of the cone that is nearest to x: its normal component by bisection."""
    if x[2] + sum(mu * np.linalg.norm(x[disk]) for disk, mu in disks) <= 0.0:
        return 0.0 * x

    def excess(n):
        return n - x[2] - sum(mu * max(np.linalg.norm(x[disk]) - mu * n, 0.0) for disk, mu in disks)

    found = x.copy()
    found[2] = brentq(excess, 0.0, 2.0 * np.abs(x).sum() * len(x), xtol=1e-300, rtol=8.9e-16)
    for disk, mu in disks:
        size = np.linalg.norm(x[disk])
        if size > mu * found[2]:
            found[disk] *= mu * found[2] / size
    return found


def natural_map(problem, impulses):
    """The largest component: how far from its place each row's impulse is, times its mobility."""
    worst = 0.0
    for impulse, u, disks, block in problem.by_contact(impulses):
        w = np.full(len(u), np.trace(block[:3, :3]) / 3.0)
        for disk, _ in disks[1:]:
            w[disk] = np.mean(np.diag(block)[disk])
        w = np.maximum(w, 1e-12)
        unit, slipping = np.sqrt(w / w[2]), u.copy()
        slipping[2] += sum(mu * np.linalg.norm(u[disk]) for disk, mu in disks)
        scaled = [(disk, mu * unit[disk[0]]) for disk, mu in disks]
        place = nearest((impulse - slipping / w) * unit, scaled) / unit
        worst = max(worst, np.abs(w * (impulse - place)).max())
    return worst


def violation(problem, impulses):
    """What the law forbids: penetration [m/s], pull and friction beyond the cone, relative to the impulses, and the
    power of an open contact and of friction against its direction, per impulse [m/s]."""
    size, found = max(np.abs(impulses).max(), 1e-9), []
    for impulse, u, disks, _ in problem.by_contact(impulses):
        found += [-u[2], -impulse[2] / size, abs(u[2] * impulse[2]) / size]
        for disk, mu in disks:
            across, speed = impulse[disk], np.linalg.norm(u[disk])
            found.append((np.linalg.norm(across) - mu * impulse[2]) / size)
            found.append(np.linalg.norm(mu * impulse[2] * u[disk] + speed * across) / size)
    return max(found)


def kinds_of(problem, impulses):
    """What contacts do: open, and of each disk of friction: sticks, moves."""
    found = set()
    for impulse, _, disks, _ in problem.by_contact(impulses):
        if impulse[2] < 1e-9:
            found.add("open")
            continue
        for number, (disk, mu) in enumerate(disks):
            sticks = np.linalg.norm(impulse[disk]) < mu * impulse[2] - 1e-7
            found.add(f"{'sticks' if sticks else 'moves'} {number}")
    return found


def every_kind(rows):
    return {"open"} | {f"{kind} {number}" for kind in ("sticks", "moves") for number in range(len(DISKS[rows]))}
