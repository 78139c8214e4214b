"""Many runs of one rig from different memories on a GPU, a thread per run.

The runs go in chunks that fit the memory of the GPU, the ticks in launches of a fraction of a second. Experimental: no
GPU has run it so far.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cosim.core.errors import CompileError, InputError
from cosim.core.types import Array
from cosim.execution.cuda_device import ON_CPU, PLACE, CudaKernel, PtxCode, cuda_kernel
from cosim.execution.rollouts import RolloutArrays
from cosim.simulation.loop.gpu_loop import KERNEL, GpuLoop

# ticks of the first launch and of the longest one, whose samples wait in the memory of the GPU
FIRST_TICKS, MOST_TICKS = 8, 256
# seconds that a launch should take: screens freeze meanwhile, and systems end launches of some seconds
LAUNCH_TIME = 0.2


@dataclass
class GpuRollouts:
    """Runs `count` ticks of a loop from the memories that `first` gives for a range of rollouts, (n, size)."""

    loop: GpuLoop
    first: Callable[[slice], Array]
    accumulators: Array  # (nm,) before the first tick
    count: int
    every: int = 1  # ticks per sample

    def run(self, k: int, threads: int | None = None) -> RolloutArrays:
        """k rollouts, each in a thread of the GPU, whatever `threads` of the CPU. Raises InputError without a GPU that
        can run them."""
        arrays = RolloutArrays.of(self.loop.program, k, self.accumulators.size, self.count, self.every)
        with cuda_kernel(self._code) as kernel:
            width = min(k, self._fitting(kernel.free))
            for start in range(0, k, width):
                self._run_chunk(kernel, slice(start, min(start + width, k)), arrays)
        return arrays

    def _code(self) -> PtxCode:
        try:
            return PtxCode(self.loop.ptx, KERNEL.name, self.loop.local)
        except CompileError as error:
            raise InputError(error.what, PLACE) from None

    def _doubles(self) -> tuple[int, ...]:
        """Of a run in each of the arrays of KERNEL."""
        samples = self.loop.program.sampled * self._places(0, min(self.count, MOST_TICKS))
        return self.loop.program.size, self.accumulators.size, samples, *self.loop.program.signals.output_sizes, 1

    def _places(self, first: int, until: int) -> int:
        """Samples of these ticks."""
        if not self.loop.program.sampled:
            return 0
        return -(-until // self.every) - -(-first // self.every)

    def _fitting(self, free: int) -> int:
        """Runs whose arrays take so many bytes."""
        each = 8 * sum(self._doubles())
        if free < each:
            what = f"a run needs {each / 1e6:,.2f} MB of the GPU, {max(free, 0) / 1e6:,.2f} MB are free"
            raise InputError(f"{what}; end other programs that use it, {ON_CPU}", PLACE)
        return free // each

    def _run_chunk(self, kernel: CudaKernel, chunk: slice, arrays: RolloutArrays) -> None:
        n, program = chunk.stop - chunk.start, self.loop.program
        memory = np.ascontiguousarray(self.first(chunk).T)
        accumulators = np.repeat(self.accumulators[:, None], n, axis=1)
        final, ran = np.empty((*program.signals.output_sizes, n)), np.zeros(n, dtype=np.int64)
        with kernel.arrays([8 * n * doubles for doubles in self._doubles()]) as pointers:
            memories, accumulated, kept, last, ticks_ran = pointers
            for array, pointer in ((memory, memories), (accumulators, accumulated), (ran, ticks_ran)):
                kernel.put(array, pointer)
            number, ticks = 0, FIRST_TICKS
            while number < self.count and (ran == number).any():
                until, began = min(number + ticks, self.count), time.perf_counter()
                kernel.launch(n, pointers, (n, number, until, self.every))
                ticks = next_ticks(ticks, time.perf_counter() - began)
                samples = np.empty((self._places(number, until), program.sampled, n))
                kernel.take(kept, samples)
                place = self._places(0, number)
                arrays.samples[chunk, place : place + len(samples)] = samples.transpose(2, 0, 1)
                kernel.take(ticks_ran, ran)
                number = until
            for pointer, array in ((memories, memory), (accumulated, accumulators), (last, final)):
                kernel.take(pointer, array)
        arrays.ticks[chunk], arrays.final[chunk], arrays.accumulators[chunk] = ran, final.T, accumulators.T
        arrays.faulty[chunk] = memory[program.ticks.fault] != 0.0
        taken = np.arange(arrays.samples.shape[1]) * self.every < ran[:, None]
        arrays.samples[chunk][~taken] = np.nan


def next_ticks(ticks: int, took: float) -> int:
    """Ticks of the next launch, after one of so many ticks took so many seconds."""
    return max(1, min(MOST_TICKS, 4 * ticks, int(ticks * LAUNCH_TIME / max(took, 1e-9))))
