"""A batch of states in one call, in SIMD lanes, against the same states one by one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks import paired_timing
from benchmarks.paired_timing import Budget
from benchmarks.peers import relative_difference
from benchmarks.robots import TALOS, UR5, load_robot, random_state, repeated_call
from benchmarks.rows import BenchCase, Measurement, Target
from cosim.core.compile import Compiled, array_entry, emit, mathlib, python_call
from cosim.core.compile.jit import Library, vector_lanes
from cosim.core.compile.routine import with_callees

STATES = 256


class OneByOne:
    """A compiled function over the rows of a batch in scalar machine code: one state at a time."""

    def __init__(self, function: Compiled) -> None:
        routine = function.routine
        symbol, ports = routine.symbol, (function.inputs, function.outputs)
        parts = [emit.declarations({1}), python_call.declarations(), mathlib.sincos(1)]
        parts += [item.definition(1) for item in with_callees(routine)]
        parts.append(array_entry.batch(symbol, *ports, lanes=1))
        self.library = Library("\n".join(parts), [f"{symbol}.batch"], python_call.symbol_addresses())
        pointers = [ctypes.c_void_p] * sum(map(len, ports))
        self._run = ctypes.CFUNCTYPE(None, *pointers, ctypes.c_int64)(self.library[f"{symbol}.batch"])

    def __call__(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, out: np.ndarray) -> None:
        self._run(*(a.ctypes.data for a in (q, v, tau, out)), len(q))


def singly(f: Callable[..., object], *arrays: np.ndarray) -> paired_timing.RepeatedCall:
    """n times f(a, b, c, out=out) for every row of four arrays."""
    rows = list(zip(*arrays, strict=True))

    def block(n: int) -> None:
        call = f
        for _ in range(n):
            for a, b, c, out in rows:
                call(a, b, c, out=out)

    return block


def batch(name: str, native: bool, budget: Budget) -> Measurement:
    model = load_robot(name).model
    function = model.compiled("forward_dynamics")
    assert isinstance(function, Compiled)
    q, v, tau = random_state(model, (STATES,))
    out, single = np.empty_like(q), np.empty_like(q)
    f = model.forward_dynamics
    f(q, v, tau, out=out)
    other = repeated_call(OneByOne(function), q, v, tau, single) if native else singly(f, q, v, tau, single)
    other(1)
    samples = paired_timing.time_pairs(repeated_call(f, q, v, tau, out), other, budget).per(STATES, STATES)
    return Measurement(samples, relative_difference(out, single), f"{vector_lanes()} SIMD lanes")


TWICE = Target("ratio", 2.0)
PYTHON, NATIVE = "one call from Python per state", "one state at a time, loop in machine code"

CASES = tuple(
    BenchCase(
        f"batch {short} {how}",
        f"{robot}: {STATES} states in one call, per state",
        partial(batch, file, how == "native"),
        NATIVE if how == "native" else PYTHON,
        target=TWICE,
    )
    for short, robot, file in (("ur5", "UR5", UR5), ("talos", "TALOS", TALOS))
    for how in ("python", "native")
)
