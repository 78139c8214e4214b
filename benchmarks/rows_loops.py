"""Mechanisms with closed loops: forward dynamics from Python, cost per loop, two methods of elimination."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, partial

import numpy as np

from benchmarks import linkages, paired_timing
from benchmarks.linkages import Linkage
from benchmarks.paired_timing import Budget
from benchmarks.peers import import_peer, relative_difference
from benchmarks.peers_loops import ClosedPinocchio, mujoco_linkage
from benchmarks.robots import repeated_call
from benchmarks.rows import BenchCase, Measurement, Target
from cosim.mechanics.multibody.mechanism import Mechanism

FEW, MANY = 20, 200
CROSSING = (2, 3, 5, 10)  # four-bars, where the two eliminations are compared


def calls(linkage: Linkage) -> paired_timing.RepeatedCall:
    return repeated_call(linkage.model.forward_dynamics, *linkage.state)


def against_pinocchio(make: Callable[[], Linkage], loops: int, budget: Budget) -> Measurement:
    """Times per loop, of which there are `loops`."""
    linkage = make()
    found = linkage.model.forward_dynamics(*linkage.state)
    rival, difference = ClosedPinocchio(linkage).fastest(found, budget)
    samples = paired_timing.time_pairs(calls(linkage), rival.block, budget).per(loops, loops)
    return Measurement(samples, difference, f"timed: {rival.method}, relative difference {rival.difference:.0e}")


def against_mujoco(make: Callable[[], Linkage], budget: Budget) -> Measurement:
    linkage, forward = make(), import_peer("mujoco").mj_forward
    model, data = mujoco_linkage(linkage)
    linkage.model.forward_dynamics(*linkage.state)

    def other(n: int) -> None:
        call = forward
        for _ in range(n):
            call(model, data)

    return Measurement(
        paired_timing.time_pairs(calls(linkage), other, budget), note="soft constraints, and more than accelerations"
    )


@cache
def row_of_bars(n: int) -> tuple[Linkage, float]:
    """n four-bars side by side, compiled, and the seconds that this took."""
    begun = time.perf_counter()
    linkage = linkages.parallelograms(linkages.side_by_side(n))
    linkage.model.compiled("forward_dynamics")
    seconds = time.perf_counter() - begun
    linkage.model.forward_dynamics(*linkage.state)
    return linkage, seconds


def exact(linkage: Linkage, n: int) -> np.ndarray:
    """q̈ of n four-bars side by side, which have one degree of freedom: [(n+1)/3 + n] θ̈ = Στ − [(n+1)/2 + n] g cos θ."""
    sign = np.where([name.startswith("up") for name in linkage.model.dof_names], 1.0, -1.0)
    gravity = 9.81 * np.cos(linkages.TILT)
    return sign * (linkage.tau @ sign - ((n + 1) / 2 + n) * gravity) / ((n + 1) / 3 + n)


def growth(budget: Budget) -> Measurement:
    sizes = budget.of(MANY), budget.of(FEW)
    (many, seconds), (few, _) = map(row_of_bars, sizes)
    found = many.model.forward_dynamics(*many.state)
    samples = paired_timing.time_pairs(calls(many), calls(few), budget).per(*sizes)
    note = f"agreement is with the exact solution; compiled in {seconds:.1f} s"
    return Measurement(samples, relative_difference(found, exact(many, sizes[0])), note, growth=True)


def nested(make: Callable[[int], Mechanism], n: int, budget: Budget) -> Measurement:
    n = budget.of(n, 2)
    ours, other = (linkages.parallelograms(make(n), method) for method in ("nested", "direct"))
    found, expected = (each.model.forward_dynamics(*each.state) for each in (ours, other))
    samples = paired_timing.time_pairs(calls(ours), calls(other), budget).per(n, n)
    return Measurement(samples, relative_difference(found, expected), f"{len(ours.model.constraint_rows)} rows")


TWICE = Target("ratio", 2.0)
PINOCCHIO, MUJOCO = "Pinocchio's constrained dynamics from Python", "mujoco mj_forward from Python"

ROBOTS = (
    ("four_bar", "four-bar, 1 loop", linkages.four_bar),
    ("andrews", "Andrews' mechanism, 7 bodies, 3 loops", linkages.andrews),
    ("two_arms", "two UR5 that hold one bar, 12 dof", linkages.two_arms),
    ("talos", "TALOS standing, 38 dof, both feet fixed", linkages.standing),
)

CASES = (
    *(
        BenchCase(f"loops {name}", words, partial(against_pinocchio, make, 1), PINOCCHIO, target=TWICE)
        for name, words, make in ROBOTS
    ),
    *(
        BenchCase(f"loops {name} mujoco", words, partial(against_mujoco, make), MUJOCO)
        for name, words, make in ROBOTS[:2]
    ),
    BenchCase(
        f"loops {FEW}",
        f"{FEW} four-bars side by side, per loop",
        partial(against_pinocchio, lambda: row_of_bars(FEW)[0], FEW),
        PINOCCHIO + ", per loop",
    ),
    BenchCase(
        "loops growth",
        f"{MANY} four-bars side by side, per loop",
        growth,
        f"{FEW} of them, per loop",
        target=Target("ratio", 1.5, at_most=True),
    ),
    *(
        BenchCase(
            f"elimination {name} {n}",
            f"{n} four-bars {words}, rows eliminated where loops close, per loop",
            partial(nested, make, n),
            "all eliminated at the ground",
        )
        for name, words, make in (
            ("ladder", "on top of each other", linkages.ladder),
            ("row", "side by side", linkages.side_by_side),
        )
        for n in CROSSING
    ),
)
