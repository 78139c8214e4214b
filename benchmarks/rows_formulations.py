"""Cartesian coordinates with multipliers, sparse LDLᵀ without fill-in, in chains of different lengths: linear time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from benchmarks import paired_timing, rows_chain
from benchmarks.paired_timing import Budget, Samples
from benchmarks.peers import relative_difference
from benchmarks.robots import random_state, repeated_call
from benchmarks.rows import BenchCase, Measurement, Target
from cosim.core.compile import ArrayPort, Compiled, compile
from cosim.mechanics.formulations import load_formulation
from cosim.mechanics.formulations.cartesian.system import Cartesian
from cosim.mechanics.multibody import Model

LENGTHS = (10, 50, 200, 1000)
LOOPS = (20, 50, 200, 1000)  # lengths whose code is the same loops


@dataclass(frozen=True)
class CartesianChain:
    """A chain of bodies in Cartesian coordinates, compiled in `seconds`."""

    model: Model
    formulation: Cartesian
    code: Compiled
    seconds: float

    @property
    def note(self) -> str:
        coordinates, rows = self.formulation.size
        filled = self.formulation.filled_blocks
        return f"{coordinates} + {rows} equations, {filled} filled blocks, compiled in {self.seconds:.1f} s"

    def calls(self) -> paired_timing.RepeatedCall:
        return repeated_call(self.code.native, *random_state(self.model), np.empty(self.model.nv))


@cache
def chain(n: int) -> CartesianChain:
    begun = time.perf_counter()
    model = Model(rows_chain.mechanism(n))
    formulation = load_formulation("cartesian", model.equations)
    assert isinstance(formulation, Cartesian)
    ports = [ArrayPort(name, (n,)) for name in ("q", "v", "tau")]
    code = compile(lambda q, v, tau: formulation.forward_dynamics(q, v, tau), ports, "cartesian")
    assert isinstance(code, Compiled)
    return CartesianChain(model, formulation, code, time.perf_counter() - begun)


def against_separate_bodies(n: int, budget: Budget) -> Measurement:
    n = budget.of(n)
    ours, other = chain(n), rows_chain.chain(n)
    state = random_state(ours.model)
    difference = relative_difference(ours.code(*state), other.model.forward_dynamics(*state))
    samples = paired_timing.time_pairs(ours.calls(), other.block(), budget).per(n, n)
    return Measurement(samples, difference, ours.note, growth=True)


def exponent(budget: Budget) -> Measurement:
    """The slope of log(time) over log(bodies), fitted to all lengths, once for every block of each."""
    times, lengths = [], [budget.of(n, 2) for n in LOOPS]
    with paired_timing.undisturbed():
        blocks = [(chain(n).calls(), budget.block) for n in lengths]
        counts = [paired_timing.repetitions(calls, block, time.perf_counter) for calls, block in blocks]
        for _ in range(budget.pairs):
            times.append([_seconds(calls, count) for (calls, _), count in zip(blocks, counts, strict=True)])
    slopes = np.polyfit(np.log(lengths), np.log(np.array(times)).T, 1)[0]
    spread = np.median(np.array(times), axis=0) / np.array(lengths) * 1e6
    per_body = ", ".join(f"{n}: {each:.2f}" for n, each in zip(lengths, spread, strict=True))
    return Measurement(Samples(slopes), _difference(max(lengths)), f"µs per body of {per_body}")


def _seconds(calls: paired_timing.RepeatedCall, count: int) -> float:
    begun = time.perf_counter()
    calls(count)
    return (time.perf_counter() - begun) / count


def _difference(n: int) -> float:
    """The efforts that inverse dynamics requires for the accelerations found, beside those that were given, relative
    to the largest."""
    built = chain(n)
    q, v, tau = random_state(built.model)
    equations = built.model.equations
    required = equations.inverse_dynamics(q, v, built.code(q, v, tau))
    scale = np.abs(equations.inverse_dynamics(q, v, np.zeros(n))).max()
    return float(np.abs(required - tau).max() / scale)


CASES = (
    *(
        BenchCase(
            f"cartesian {n}",
            f"chain of {n} bodies in Cartesian coordinates, sparse LDLᵀ, per body",
            partial(against_separate_bodies, n),
            "separate bodies, per body",
        )
        for n in LENGTHS
    ),
    BenchCase(
        "cartesian exponent",
        f"time of the sparse Cartesian solver over the number of bodies, {min(LOOPS)} to {max(LOOPS)}: its exponent",
        exponent,
        unit="",
        target=Target("ours", 1.1, at_most=True),
    ),
)
