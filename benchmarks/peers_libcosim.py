"""Two FMUs that are connected to each other in libcosim, a peer of masters of FMUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers import import_peer

NS = 1e9  # per s


class CoupledPeer(NamedTuple):
    """steps(n): make n steps; last(): the output of the second FMU."""

    steps: Callable[[int], None]
    last: Callable[[], float]


def coupled_by_libcosim(paths: Sequence[Path], output: int, given: int, h: float) -> CoupledPeer:
    """Two FMUs in its process with its fixed-step algorithm, Jacobi of order 0 with steps of h [s]: the output of each
    is the input of the other. output, given: the value references of both. Raises MissingPeer."""
    logging = import_peer("libcosimpy.CosimLogging")
    logging.log_output_level(logging.CosimLogLevel.ERROR)
    execution = import_peer("libcosimpy.CosimExecution").CosimExecution.from_step_size(h * NS)
    slave = import_peer("libcosimpy.CosimSlave").CosimLocalSlave
    a, b = (execution.add_local_slave(slave(str(path), name)) for path, name in zip(paths, "ab", strict=True))
    execution.connect_real_variables(a, output, b, given)
    execution.connect_real_variables(b, output, a, given)
    observer = import_peer("libcosimpy.CosimObserver").CosimObserver.create_last_value()
    execution.add_observer(observer)

    def steps(n: int) -> None:
        if not execution.step(n):
            raise RuntimeError("libcosim has failed")

    def last() -> float:
        return observer.last_real_values(slave_index=b, variable_references=[output])[0]

    return CoupledPeer(steps, last)
