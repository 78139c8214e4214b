"""A real drive without faults that does nothing, for test doubles."""

from types import SimpleNamespace
from typing import Any

from cosim.core.driver_contract import AddedTurns, FeedforwardReport


class HardwareStub:
    link = SimpleNamespace(name="stub", lost=False)
    watchdog = 0.1  # s
    lost = 0
    latched = False
    faults_outlast_stop = True
    modes = frozenset({"effort"})
    limits: Any = None

    def open(self) -> None:
        return None

    def enable(self, mode: str) -> None:
        return None

    def clear(self) -> None:
        return None

    def stop(self) -> None:
        return None

    def close(self) -> None:
        return None

    def describe_fault(self, joint_index: int, code: int) -> str:
        return f"fault {code}"

    def report(self) -> list[FeedforwardReport]:
        return []

    def added_turns(self) -> list[AddedTurns]:
        return []
