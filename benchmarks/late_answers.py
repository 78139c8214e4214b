"""Emulated drives that answer later than a drive promises, and the deadlines that a run missed because of them.

The emulation is a program in Python on the same machine as the run: where it computes or waits for too long, a frame
comes later than from any drive. It writes down each such answer, on the clock of the run.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from cosim.core.driver_contract import BusItem
from cosim.execution.posix_signals import raise_on_termination
from cosim.execution.timing.deadlines import DeadlineRecord, task_index
from cosim.rig.emulate import emulation_of, serve_rig
from cosim.rig.sections.rig_spec import read_rig

PROMISED_NS = 500_000  # from the arrival of a frame at a drive to its answer


def serve_timed(path: str, *keys: str) -> None:
    """Emulate the drives of a rig on CAN buses until SIGTERM; then print when late answers were due and sent [ns]."""
    raise_on_termination()
    spec = read_rig(Path(path), keys)
    emulation, late = emulation_of(spec), []
    for connection in emulation.connections:
        connection.take = partial(_taken, connection.take, late)
    serve_rig(emulation, spec, None, print)
    for due, sent in late:
        print(f"late answer {due} {sent}")


def _taken(take: Callable[[BusItem, int], None], late: list[tuple[int, int]], item: BusItem, t_ns: int) -> None:
    take(item, t_ns)
    sent, due = time.monotonic_ns(), item.t_ns + PROMISED_NS
    if sent > due:
        late.append((due, sent))


def printed_times(printed: str) -> np.ndarray:
    """(k, 2) when late answers were due and when they were sent [ns], from the output of `serve_timed`."""
    return np.array(re.findall(r"^late answer (\d+) (\d+)$", printed, re.MULTILINE), dtype=np.int64).reshape(-1, 2)


def misses_by_late_answers(timing: DeadlineRecord, late: np.ndarray) -> int:
    """How many deadlines would have been met if no answer had been late: the tick in which the delay began waited in
    `read` for an answer that was overdue for at least as long as the tick was late."""
    missed, count = timing.missed, 0
    if not len(late):
        return count
    read = task_index(timing.tasks, "read")
    for root in np.unique(missed.root):
        begun, ended = timing.stamps[root, 1 + read], timing.stamps[root, 2 + read]
        overdue = np.minimum(late[:, 1], ended) - np.maximum(late[:, 0], begun)
        delayed = missed.root == root
        if overdue.max() >= missed.late[delayed][0]:
            count += int(np.count_nonzero(delayed))
    return count
