"""Motions with contacts from event to event: a reference that shares no code with the product.

Between events a system of few coordinates has accelerations that follow from the modes of its contacts; scipy
integrates them until an indicator is 0. After an impact, and where sliding ends, every combination of modes is tried
until one fits the laws of Newton (impacts) and Coulomb (friction), see Glocker, Set-Valued Force Laws (2001).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

from tests.kit.lagrange import Lagrange

OPEN, STICKS = "open", "sticks"
FORWARD, BACKWARD = "pushed along its tangent", "pushed against its tangent"  # by friction: it slides the other way
SIGNS = {STICKS: 0.0, FORWARD: 1.0, BACKWARD: -1.0}
SLOW = 1e-9  # of the largest velocity


@dataclass
class Event:
    """After it; impact: whether velocities have changed."""

    t: float
    q: np.ndarray
    v: np.ndarray
    modes: tuple[str, ...]
    impact: bool


class ImpactsByEvents:
    """`contacts(q)` returns (gap, place along the tangent) of each contact, of casadi symbols. The tangent does not
    turn. friction, restitution: of each contact."""

    def __init__(
        self, system: Lagrange, contacts: Callable, friction: Sequence[float], restitution: Sequence[float]
    ) -> None:
        self.system, self.n = system, system.n
        self.friction, self.restitution = np.array(friction), np.array(restitution)
        q, v = ca.SX.sym("q", self.n), ca.SX.sym("v", self.n)
        gaps, places = (ca.vertcat(*each) for each in zip(*contacts(q), strict=True))
        rows = []
        for place in (gaps, places):
            J = ca.jacobian(place, q)
            rows += [J, ca.mtimes(ca.jacobian(ca.mtimes(J, v), q), v)]
        self._gaps = ca.Function("gaps", [q], [gaps])
        self._rows = ca.Function("rows", [q, v], rows)

    def gaps(self, q) -> np.ndarray:
        return np.array(self._gaps(q)).ravel()

    def rows(self, q, v) -> tuple[np.ndarray, ...]:
        """N, Ṅ v, T, Ṫ v"""
        N, Nv, T, Tv = map(np.array, self._rows(q, v))
        return N, Nv.ravel(), T, Tv.ravel()

    def _ruled(self, modes, N, T, wanted_n, wanted_t) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(rows of what is ruled, what they shall be, directions of the forces that rule them)"""
        ruled, wanted, pushed = [np.zeros((0, self.n))], [], [np.zeros((0, self.n))]
        for j, mode in enumerate(modes):
            if mode == OPEN:
                continue
            ruled.append(N[j : j + 1])
            wanted.append(wanted_n[j])
            pushed.append(N[j : j + 1] + SIGNS[mode] * self.friction[j] * T[j : j + 1])
            if mode == STICKS:
                ruled.append(T[j : j + 1])
                wanted.append(wanted_t[j])
                pushed.append(T[j : j + 1])
        return np.concatenate(ruled), np.array(wanted), np.concatenate(pushed)

    def _forces(self, modes, values) -> Iterator[tuple[float, float]]:
        """(normal, tangential) of each contact."""
        values = iter(values)
        for j, mode in enumerate(modes):
            normal = 0.0 if mode == OPEN else next(values)
            yield normal, next(values) if mode == STICKS else SIGNS.get(mode, 0.0) * self.friction[j] * normal

    def _change(self, modes, M, free, N, T, wanted_n, wanted_t):
        """(velocities or accelerations with contacts, forces, whether they are what they shall be)"""
        ruled, wanted, pushed = self._ruled(modes, N, T, wanted_n, wanted_t)
        if not len(ruled):
            return free, [(0.0, 0.0)] * len(modes), True
        given = np.linalg.solve(M, pushed.T)
        values = np.linalg.lstsq(ruled @ given, wanted - ruled @ free, rcond=1e-10)[0]
        found = free + given @ values
        fits = np.abs(ruled @ found - wanted).max() <= 1e-9 * max(np.abs(free).max(), np.abs(found).max(), 1e-9)
        return found, list(self._forces(modes, values)), fits

    def _moving(self, modes, t, q, v):
        """(accelerations, forces, whether the modes can be)"""
        M, rest = self.system.equations(q, v, t)
        N, Nv, T, Tv = self.rows(q, v)
        return self._change(modes, M, np.linalg.solve(M, -rest), N, T, -Nv, -Tv)

    def _goes_on(self, closed, t, q, v) -> tuple[str, ...]:
        """The modes after t of the contacts that are closed and do not hit."""
        N, Nv, T, Tv = self.rows(q, v)
        slow, slip = SLOW * max(np.abs(v).max(), SLOW), T @ v
        slides = np.abs(slip) > slow

        def choices(j: int) -> list[str]:
            if not closed[j] or N[j] @ v > slow:
                return [OPEN]
            if slides[j]:
                return [BACKWARD if slip[j] > 0.0 else FORWARD, OPEN]
            return [STICKS, FORWARD, BACKWARD, OPEN]

        for modes in product(*map(choices, range(len(closed)))):
            a, forces, fits = self._moving(modes, t, q, v)
            apart, across = N @ a + Nv, T @ a + Tv

            def lawful(j: int, modes=modes, forces=forces, apart=apart, across=across) -> bool:
                (normal, tangential), mode = forces[j], modes[j]
                if mode == OPEN:
                    return len(choices(j)) == 1 or apart[j] > 0.0
                if mode == STICKS:
                    return normal > 0.0 and abs(tangential) <= self.friction[j] * normal
                return normal > 0.0 and (slides[j] or SIGNS[mode] * across[j] < 0.0)

            if fits and all(map(lawful, range(len(closed)))):
                return modes
        raise ArithmeticError(f"no mode of the contacts at {t} s")

    def _hit(self, closed, q, v) -> np.ndarray:
        """Velocities after an impact by Newton's law, with Coulomb's law between the impulses."""
        M, _ = self.system.equations(q, v)
        N, _, T, _ = self.rows(q, v)
        target, still = -self.restitution * np.minimum(N @ v, 0.0), np.zeros(len(closed))
        slow = SLOW * np.abs(v).max()
        for modes in product(*([OPEN, STICKS, FORWARD, BACKWARD] if each else [OPEN] for each in closed)):
            after, impulses, fits = self._change(modes, M, v, N, T, target, still)

            def lawful(j: int, modes=modes, impulses=impulses, after=after) -> bool:
                (normal, tangential), mode = impulses[j], modes[j]
                if mode == OPEN:
                    return not closed[j] or (N @ after)[j] >= target[j] - slow
                if mode == STICKS:
                    return normal >= 0.0 and abs(tangential) <= self.friction[j] * normal
                return normal >= 0.0 and SIGNS[mode] * (T @ after)[j] <= slow

            if fits and all(map(lawful, range(len(closed)))):
                return after
        raise ArithmeticError("no impact fits the laws")

    def _indicators(self, modes) -> list[tuple[int, str, Callable]]:
        """(contact, the mode that it has when the indicator falls to 0, indicator)"""
        found = []

        def add(j: int, after: str, measure: Callable) -> None:
            def indicator(t, y):
                return measure(t, y[: self.n], y[self.n :])

            indicator.terminal, indicator.direction = True, -1.0
            found.append((j, after, indicator))

        def force(j: int, of_normal: float, of_tangential: float) -> Callable:
            def measure(t, q, v):
                normal, tangential = self._moving(modes, t, q, v)[1][j]
                return of_normal * normal + of_tangential * tangential

            return measure

        for j, mode in enumerate(modes):
            if mode == OPEN:
                add(j, "hits", lambda t, q, v, j=j: self.gaps(q)[j])
                continue
            add(j, OPEN, force(j, 1.0, 0.0))
            if mode == STICKS:
                add(j, FORWARD, force(j, self.friction[j], -1.0))
                add(j, BACKWARD, force(j, self.friction[j], 1.0))
            else:
                add(j, STICKS, lambda t, q, v, j=j, s=SIGNS[mode]: -s * (self.rows(q, v)[2] @ v)[j])
        return found

    def solve(self, end, q, v, closed: Sequence[bool], most: int = 100) -> list[tuple[Event, Callable]]:
        """(event, motion (2 n,) as a function of time until the next one) from time 0 on; closed: whether each contact
        touches at the start, without hitting. It ends before the event of the number `most`."""
        q, v = np.array(q, float), np.array(v, float)
        at = Event(0.0, q, v, self._goes_on(closed, 0.0, q, v), False)
        found = []
        while at.t < end and len(found) < most:
            indicators = self._indicators(at.modes)

            def flow(t, y, modes=at.modes):
                q, v = y[: self.n], y[self.n :]
                return np.concatenate([v, self._moving(modes, t, q, v)[0]])

            piece = solve_ivp(
                flow,
                (at.t, end),
                np.concatenate([at.q, at.v]),
                "DOP853",
                rtol=1e-10,
                atol=1e-13,
                events=[each[2] for each in indicators] or None,
                dense_output=True,
            )
            found.append((at, piece.sol))
            if piece.status == 0:
                break
            which = next(k for k, times in enumerate(piece.t_events) if len(times))
            j, after, _ = indicators[which]
            at = self._after(j, after, at.modes, piece.t_events[which][0], piece.y_events[which][0])
        return found

    def _after(self, j: int, after: str, modes, t: float, y) -> Event:
        q, v = y[: self.n], y[self.n :]
        changed = (*modes[:j], after, *modes[j + 1 :])
        if after not in ("hits", STICKS):
            return Event(t, q, v, changed, False)  # accelerations do not jump
        closed = [mode != OPEN for mode in changed]
        if after == "hits":
            v = self._hit(closed, q, v)
        return Event(t, q, v, self._goes_on(closed, t, q, v), after == "hits")

    def at(self, found, times) -> np.ndarray:
        """(2 n, times) of what `solve` returned."""
        starts = np.array([event.t for event, _ in found])
        return np.transpose([found[np.searchsorted(starts, t, "right") - 1][1](t) for t in times])
