"""A block of finished ticks, as a scheduler hands it to the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class TickBlock:
    """Finished ticks: numbers (k,), rows (k, nr), stamps (k, 3 + tasks) or (k, 0) without a clock, and the flat
    `BumplessStart` of their run; failures: of the control loops when the block was read, empty where there are none.

    Rows and stamps may be views of the ring of a loop, which writes there again; `owned` are not."""

    numbers: np.ndarray
    rows: np.ndarray
    stamps: np.ndarray
    bumpless_start: np.ndarray
    failures: tuple[str, ...] = ()

    def owned(self) -> TickBlock:
        """The block with rows and stamps of its own."""
        if self.rows.base is None and self.stamps.base is None:
            return self
        return replace(self, rows=self.rows.copy(), stamps=self.stamps.copy())

    def continues(self, other: TickBlock) -> bool:
        """Whether this and the block before it could be one."""
        return self.failures == other.failures and np.array_equal(self.bumpless_start, other.bumpless_start)


def joined(blocks: Sequence[TickBlock]) -> list[TickBlock]:
    """The same ticks in as few blocks as possible."""
    groups: list[list[TickBlock]] = []
    for block in blocks:
        if groups and block.continues(groups[-1][-1]):
            groups[-1].append(block)
        else:
            groups.append([block])
    return [group[0] if len(group) == 1 else _one(group) for group in groups]


def _one(group: Sequence[TickBlock]) -> TickBlock:
    arrays = {name: np.concatenate([getattr(block, name) for block in group]) for name in ("numbers", "rows", "stamps")}
    return replace(group[0], **arrays)
