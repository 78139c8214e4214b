"""Finished ticks whose signals are computed later: the rows of a real-time run, in little memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cosim.core.growing_table import SpillingTable, run_folder
from cosim.simulation.tick.tick_block import TickBlock

MEMORY = 1 << 26  # bytes, beyond which they are on the disk
BLOCK = 4096  # ticks that are handed out together


class WaitingTicks:
    """Blocks in order; neighbours with the same start and failures become one."""

    def __init__(self, memory: int = MEMORY) -> None:
        self._memory = memory
        self._table: SpillingTable | None = None
        self._kinds: list[tuple[int, TickBlock]] = []  # (first row, an empty block with the same start and failures)

    def add(self, block: TickBlock) -> None:
        """The block is copied."""
        parts = block.numbers[:, None], block.stamps, block.rows.view(np.int64)
        if self._table is None:
            self._table = SpillingTable(sum(part.shape[1] for part in parts), np.int64, self._memory, run_folder)
        if not self._kinds or not block.continues(self._kinds[-1][1]):
            none = replace(block, numbers=block.numbers[:0], rows=block.rows[:0], stamps=block.stamps[:0]).owned()
            self._kinds.append((len(self._table), none))
        self._table.append(np.hstack(parts))

    def take(self) -> Iterator[TickBlock]:
        """All blocks so far, which do not wait any more."""
        table, kinds, self._table, self._kinds = self._table, self._kinds, None, []
        if table is None:
            return
        rows, ends = table.rows(), [first for first, _ in kinds[1:]] + [len(table)]
        for (first, kind), last in zip(kinds, ends, strict=True):
            stamps = kind.stamps.shape[1]
            for begin in range(first, last, BLOCK):
                part = np.array(rows[begin : min(begin + BLOCK, last)])
                yield replace(
                    kind,
                    numbers=part[:, 0],
                    stamps=part[:, 1 : 1 + stamps],
                    rows=np.ascontiguousarray(part[:, 1 + stamps :]).view(float),
                )
        table.close()
