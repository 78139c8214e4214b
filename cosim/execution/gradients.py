"""Exact derivatives of many runs of one rig with respect to their memories at t = 0, in SIMD lanes and threads."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from cosim.core.types import Array
from cosim.simulation.loop.reverse_loop import ReverseLoop


@dataclass
class GradientArrays:
    """What k runs leave: accumulators (k, nm) at their ends, the derivatives (k, size) of their objectives with respect
    to their memories at t = 0, and which of them had a fault (k,)."""

    accumulators: Array
    derivatives: Array
    faulty: Array


@dataclass
class Gradients:
    """Runs `count` ticks of a loop from the memories that `first` gives for a range of runs, (n, size), and back.

    seed: accumulators (nm,) at the end of a run -> derivatives of its objective with respect to them (nm,). tape: most
    bytes of all tapes together. A run that does not fit is cut into segments: the memory at the beginning of each is
    kept, and the segment is run again, with a tape, before its way back.
    """

    loop: ReverseLoop
    first: Callable[[slice], Array]
    accumulators: Array  # (nm,) before the first tick
    count: int
    seed: Callable[[Array], Array]
    tape: float

    def run(self, k: int, threads: int | None = None) -> GradientArrays:
        """k runs in so many threads (default: one per core)."""
        size, program = len(self.first(slice(0, 1))[0]), self.loop.program
        arrays = GradientArrays(
            accumulators=np.empty((k, self.accumulators.size)),
            derivatives=np.empty((k, size)),
            faulty=np.zeros(k, dtype=bool),
        )
        chunks = [slice(a, min(a + self.loop.lanes, k)) for a in range(0, k, self.loop.lanes)]
        workers = min(threads or len(os.sched_getaffinity(0)), len(chunks))
        length = segment_length(self.count, program.tape, program.size, self.tape / (8 * self.loop.lanes * workers))
        with ThreadPoolExecutor(workers) as pool:
            for done in [pool.submit(self._run_chunk, chunk, length, arrays) for chunk in chunks]:
                done.result()
        return arrays

    def _run_chunk(self, chunk: slice, length: int, arrays: GradientArrays) -> None:
        """The runs of a chunk side by side; SIMD lanes without one repeat the first."""
        loop, program = self.loop, self.loop.program
        first, n = self.first(chunk), chunk.stop - chunk.start
        memory = np.zeros((program.size, loop.lanes))
        memory[: first.shape[1]] = np.concatenate([first, np.repeat(first[:1], loop.lanes - n, axis=0)]).T
        memory[program.accumulators] = self.accumulators[:, None]
        begins = range(0, self.count, length)
        tape = np.empty((min(length, self.count), program.tape, loop.lanes))
        kept = []
        for begin in begins[:-1]:
            kept.append(memory.copy())
            loop.forward(memory, tape[:1], begin, length)
        adjoint = np.zeros_like(memory)
        for begin in reversed(begins):
            ticks = min(length, self.count - begin)
            if begin != begins[-1]:
                memory = kept.pop()
            # of one tick, whatever the length of the tape
            loop.forward(memory, tape[:ticks], begin, ticks)
            if begin == begins[-1]:
                self._seed(memory, adjoint, chunk, arrays)
            loop.backward(memory, adjoint, tape, begin, ticks)
        arrays.derivatives[chunk] = adjoint[: first.shape[1], :n].T

    def _seed(self, memory: Array, adjoint: Array, chunk: slice, arrays: GradientArrays) -> None:
        """Save the ends of the runs, and begin their way back."""
        program, n = self.loop.program, chunk.stop - chunk.start
        arrays.accumulators[chunk] = memory[program.accumulators, :n].T
        arrays.faulty[chunk] = memory[program.faulty, :n] != 0.0
        for lane, k in enumerate(range(chunk.start, chunk.stop)):
            adjoint[program.accumulators, lane] = self.seed(arrays.accumulators[k])


def segment_length(count: int, tape: int, memory: int, room: float) -> int:
    """Ticks per segment of a run of `count` ticks that leave `tape` numbers each, with so many numbers of memory kept
    per segment; room: numbers. At least as many as √count suggests, which take the least memory."""
    least = math.isqrt(max(count * memory // max(tape, 1), 1)) + 1
    return min(count, max(least, int(room) // max(tape, 1)))
