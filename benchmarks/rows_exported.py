"""Exported C beside our own machine code: what `cosim derive RIG --equations --to c` writes, compiled by the user."""

from __future__ import annotations

import ctypes
from functools import partial

from benchmarks.paired_timing import Budget, RepeatedCall
from benchmarks.peers import relative_difference
from benchmarks.peers_generated_c import compiled_c, native_loop
from benchmarks.robots import random_state, rig_path
from benchmarks.rows import BenchCase, Measurement, Target, beside
from cosim.apps.derive.equations.command import read_model
from cosim.apps.derive.equations.components import derived
from cosim.apps.derive.equations.files import c_function, file_lines
from cosim.core.compile import Compiled

ROBOT = "rigs/robots/ur5.urdf"
NOT_SLOWER = Target("ratio", 1.0)


def exported(function: str, budget: Budget) -> Measurement:
    """A loop in machine code around ours, and the same loop around the exported function."""
    model = read_model(rig_path(ROBOT))
    compiled, (q, v, x) = model.compiled(function), random_state(model)
    assert isinstance(compiled, Compiled)
    ours, found = native_loop(compiled.library[f"{compiled.routine.symbol}.one"], q, v, x)

    def peer() -> tuple[RepeatedCall, float]:
        d = derived(model)
        library = compiled_c("\n".join(file_lines(d, "c", None)))
        address = ctypes.cast(library[c_function(d, function)], ctypes.c_void_p).value or 0
        other, expected = native_loop(address, q, v, x)
        return other, relative_difference(found, expected)

    return beside(ours, peer, budget)


CASES = tuple(
    BenchCase(
        f"exported {function.removesuffix('_dynamics')} ur5",
        f"UR5, 6 dof, {what}, called by a loop in machine code",
        partial(exported, function),
        "`cosim derive ur5.urdf --equations --to c`, gcc -O3 -march=native",
        target=NOT_SLOWER,
    )
    for function, what in (("forward_dynamics", "forward dynamics"), ("inverse_dynamics", "inverse dynamics"))
)
