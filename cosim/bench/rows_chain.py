"""What a body costs in chains of different lengths: the method is linear, and so must the times be."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise

import numpy as np

from cosim.bench import paired_timing
from cosim.bench.paired_timing import Budget
from cosim.bench.peers import Pinocchio, relative_difference
from cosim.bench.robots import random_state, repeated_call
from cosim.bench.rows import BenchCase, Measurement, Target
from cosim.multibody import Model
from cosim.multibody.mechanism import Inertial, Joint, Link, Mechanism, Pose

SHORT, LONG = 50, 1000
WITNESSED = (10, 50, 200)  # the data of longer chains do not fit into Pinocchio's memory


def mechanism(n: int) -> Mechanism:
    """n slender bodies of 0.5 m in a row, turning about y and z by turns."""
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
    """A chain with its forward dynamics compiled, which took `seconds`."""

    model: Model
    seconds: float

    @property
    def note(self) -> str:
        return f"compiled in {self.seconds:.1f} s"

    def block(self) -> paired_timing.RepeatedCall:
        return repeated_call(self.model.forward_dynamics, *random_state(self.model), np.empty(self.model.nv))


@cache
def chain(n: int) -> Chain:
    begun = time.perf_counter()
    model = Model(mechanism(n))
    model.compiled("forward_dynamics")
    seconds = time.perf_counter() - begun
    model.forward_dynamics(*random_state(model))
    return Chain(model, seconds)


def witnessed(n: int, budget: Budget) -> Measurement:
    built = chain(n)
    model, (q, v, tau) = built.model, random_state(built.model)
    pinocchio = Pinocchio.from_mechanism(model.mechanism, model)
    difference = relative_difference(model.forward_dynamics(q, v, tau), pinocchio.forward(q, v, tau))
    samples = paired_timing.time_pairs(built.block(), pinocchio.block("aba", q, v, tau), budget).per(n, n)
    return Measurement(samples, difference, built.note)


def growth(budget: Budget) -> Measurement:
    """Checked by the inverse dynamics in Python: what its efforts miss, as a share of those that the posture
    and the speed alone demand, which are the terms that cancel."""
    long, short = chain(LONG), chain(SHORT)
    model, (q, v, tau) = long.model, random_state(long.model)
    missed = model.equations.inverse_dynamics(q, v, model.forward_dynamics(q, v, tau)) - tau
    held = model.equations.inverse_dynamics(q, v, np.zeros_like(v))
    difference = float(np.abs(missed).max() / np.abs(held).max())
    samples = paired_timing.time_pairs(long.block(), short.block(), budget).per(LONG, SHORT)
    return Measurement(samples, difference, long.note, growth=True)


CASES = (
    *(
        BenchCase(f"chain {n}", f"chain of {n} bodies, per body", partial(witnessed, n), "pinocchio aba, per body")
        for n in WITNESSED
    ),
    BenchCase(
        "chain growth",
        f"chain of {LONG} bodies, per body",
        growth,
        f"chain of {SHORT} bodies, per body",
        target=Target("ratio", 1.5, most=True),
    ),
)
