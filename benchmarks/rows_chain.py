"""Cost per body in chains of different lengths: the algorithm is linear, so the times must be too."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise

import numpy as np

from benchmarks import paired_timing
from benchmarks.paired_timing import Budget
from benchmarks.peers import Pinocchio, relative_difference
from benchmarks.robots import random_state, repeated_call
from benchmarks.rows import BenchCase, Measurement, Target
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, Mechanism, Pose

SHORT, LONG, LONGEST = 50, 1000, 10_000
AGAINST_PINOCCHIO = (10, 50, 200)  # Pinocchio runs out of memory for longer chains


def mechanism(n: int) -> Mechanism:
    """n slender bodies of 0.5 m in series, with axes y and z alternately."""
    body = Inertial(1.0, np.array([0.25, 0.0, 0.0]), np.diag([1e-3, 2e-2, 2e-2]))
    names = ["ground", *(f"body{k}" for k in range(n))]
    joints = [
        Joint(
            f"joint{k}",
            "revolute",
            parent,
            child,
            Pose(np.eye(3), np.array([0.5 if k else 0.0, 0.0, 0.0])),
            np.array([0.0, 1.0 - k % 2, float(k % 2)]),
        )
        for k, (parent, child) in enumerate(pairwise(names))
    ]
    links = [Link(name, body if k else None) for k, name in enumerate(names)]
    return Mechanism(f"chain of {n}", "ground", tuple(links), tuple(joints))


@dataclass(frozen=True)
class Chain:
    """A chain with compiled forward dynamics; compilation took `seconds`."""

    model: Model
    seconds: float

    @property
    def note(self) -> str:
        return f"compiled in {self.seconds:.1f} s"

    def block(self) -> paired_timing.RepeatedCall:
        return repeated_call(self.model.forward_dynamics, *random_state(self.model))


@cache
def chain(n: int) -> Chain:
    begun = time.perf_counter()
    model = Model(mechanism(n))
    model.compiled("forward_dynamics")
    seconds = time.perf_counter() - begun
    model.forward_dynamics(*random_state(model))
    return Chain(model, seconds)


def against_pinocchio(n: int, budget: Budget) -> Measurement:
    built = chain(n)
    model, (q, v, tau) = built.model, random_state(built.model)
    pinocchio = Pinocchio.from_mechanism(model.mechanism, model)
    difference = relative_difference(model.forward_dynamics(q, v, tau), pinocchio.forward(q, v, tau))
    samples = paired_timing.time_pairs(built.block(), pinocchio.block("aba", q, v, tau), budget).per(n, n)
    return Measurement(samples, difference, built.note)


def growth(of: int, budget: Budget) -> Measurement:
    """Checked by the inverse dynamics in Python: the error of its efforts relative to the bias efforts, which are the
    terms that cancel."""
    sizes = budget.of(of), budget.of(SHORT)
    long, short = map(chain, sizes)
    model, (q, v, tau) = long.model, random_state(long.model)
    error = model.equations.inverse_dynamics(q, v, model.forward_dynamics(q, v, tau)) - tau
    bias = model.equations.inverse_dynamics(q, v, np.zeros_like(v))
    difference = float(np.abs(error).max() / np.abs(bias).max())
    samples = paired_timing.time_pairs(long.block(), short.block(), budget).per(*sizes)
    return Measurement(samples, difference, long.note, growth=True)


CASES = (
    *(
        BenchCase(
            f"chain {n}", f"chain of {n} bodies, per body", partial(against_pinocchio, n), "pinocchio aba, per body"
        )
        for n in AGAINST_PINOCCHIO
    ),
    BenchCase(
        "chain growth",
        f"chain of {LONG} bodies, per body",
        partial(growth, LONG),
        f"chain of {SHORT} bodies, per body",
        target=Target("ratio", 1.5, at_most=True),
    ),
    # the state of so many bodies exceeds the caches of a core
    BenchCase(
        "chain longest",
        f"chain of {LONGEST} bodies, per body",
        partial(growth, LONGEST),
        f"chain of {SHORT} bodies, per body",
        target=Target("ratio", 5, at_most=True),
    ),
)
