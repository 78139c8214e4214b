"""Many runs of one rig from different memories: in SIMD lanes and threads, equal to single runs to the bit."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

import numpy as np

from cosim.core.types import Array
from cosim.simulation.loop.rollout_program import RolloutProgram
from cosim.simulation.loop.simd_loop import SimdLoop, SimdMemory
from cosim.simulation.loop.tick_ring import LoopStatus

# of a run between two looks at whether the rollouts were cancelled
TICKS_PER_CALL = 20_000


@dataclass
class RolloutArrays:
    """What k rollouts leave: ticks (k,) that ran, all signals of the last one (k, n), accumulators (k, nm), samples
    (k, places, ns), NaN after a fault, and which of them had a fault (k,)."""

    ticks: Array
    final: Array
    accumulators: Array
    samples: Array
    faulty: Array

    @classmethod
    def of(cls, program: RolloutProgram, k: int, accumulators: int, count: int, every: int) -> RolloutArrays:
        """For k runs of `count` ticks with so many accumulators, sampled every so many ticks."""
        places = -(-count // every) if program.sampled else 0
        return cls(
            ticks=np.zeros(k, dtype=np.int64),
            final=np.empty((k, *program.signals.output_sizes)),
            accumulators=np.empty((k, accumulators)),
            samples=np.full((k, places, program.sampled), np.nan),
            faulty=np.zeros(k, dtype=bool),
        )


@dataclass
class Rollouts:
    """Runs `count` ticks of a loop from the memories that `first` gives for a range of rollouts, (n, size)."""

    loop: SimdLoop
    first: Callable[[slice], Array]
    accumulators: Array  # (nm,) before the first tick
    count: int
    every: int = 1  # ticks per sample

    def __post_init__(self) -> None:
        self._cancelled = Event()

    @property
    def program(self) -> RolloutProgram:
        return self.loop.program

    @property
    def width(self) -> int:
        """SIMD lanes."""
        return self.loop.lanes

    def run(self, k: int, threads: int | None = None) -> RolloutArrays:
        """k rollouts in so many threads (default: one per core)."""
        arrays = RolloutArrays.of(self.program, k, self.accumulators.size, self.count, self.every)
        chunks = [slice(a, min(a + self.width, k)) for a in range(0, k, self.width)]
        with ThreadPoolExecutor(threads or len(os.sched_getaffinity(0))) as pool:
            try:
                for done in [pool.submit(self._run_chunk, chunk, arrays) for chunk in chunks]:
                    done.result()
            except BaseException:
                self._cancelled.set()
                pool.shutdown(cancel_futures=True)
                raise
        return arrays

    def _run_chunk(self, chunk: slice, arrays: RolloutArrays) -> None:
        """Run the rollouts of a chunk side by side; SIMD lanes without one repeat the first."""
        first = self.first(chunk)
        of_lane: list[int | None] = [*range(chunk.start, chunk.stop), *[None] * (self.width - len(first))]
        memory = np.concatenate([first, np.repeat(first[:1], self.width - len(first), axis=0)])
        samples = arrays.samples.shape[1:]
        runs = SimdMemory(
            memory=np.ascontiguousarray(memory.T),
            accumulators=np.repeat(self.accumulators[:, None], self.width, axis=1),
            row=np.empty((self.program.ticks.row, self.width)),
            samples=np.empty((*samples, self.width)),
            every=self.every,
        )
        while any(k is not None for k in of_lane):
            if self._cancelled.is_set():
                return
            status = self.loop.run(runs, min(TICKS_PER_CALL, self.count - runs.number))
            if status is LoopStatus.FAULT:
                faults = runs.memory[self.program.ticks.fault] != 0.0
                ended = [lane for lane in range(self.width) if faults[lane]]
            elif runs.number == self.count:
                ended = list(range(self.width))
            else:
                continue
            final = self.loop.signals(runs)
            for lane in ended:
                if (k := of_lane[lane]) is not None:
                    arrays.final[k] = final[:, lane]
                    self._save(runs, lane, k, arrays)
                    arrays.faulty[k] = status is LoopStatus.FAULT
                of_lane[lane] = None
            # a SIMD lane whose run has ended repeats one that goes on
            going_on = next((lane for lane, k in enumerate(of_lane) if k is not None), None)
            if going_on is not None:
                runs.memory[:, ended] = runs.memory[:, going_on, None]

    def _save(self, runs: SimdMemory, lane: int, k: int, arrays: RolloutArrays) -> None:
        """Store what the run in a SIMD lane left as rollout k."""
        arrays.ticks[k] = runs.number
        arrays.accumulators[k] = runs.accumulators[:, lane]
        taken = -(-runs.number // self.every)
        arrays.samples[k, :taken] = runs.samples[:taken, :, lane]
