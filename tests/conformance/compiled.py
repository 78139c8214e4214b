"""A driver that reads and writes in machine code, one call at a time, behind the contract of a driver in Python."""

import ctypes
import threading
from typing import Any

from cosim.core.driver_contract import CycleOutcome
from cosim.core.types import COMMAND, FEEDBACK, JointCommand, JointState

_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)


class InMachineCode:
    """Everything but `read` and `write` of motors that are on is the driver's own."""

    def __init__(self, driver: Any) -> None:
        self._own, self._cycle, self._enabled = driver, None, False
        self._owner = threading.get_ident()  # reads and writes
        driver.load_cycle()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._own, name, value)

    def enable(self, mode: str) -> None:
        self._leave()
        self._own.enable(mode)
        self._enabled = True

    def read(self, out: JointState, deadline_ns: int) -> None:
        if not self._enter(deadline_ns):
            return self._own.read(out, deadline_ns)
        outcome = CycleOutcome(_CALL(self._cycle.read)(self._cycle.context, deadline_ns, 0, 0))
        if outcome is not CycleOutcome.NOMINAL:
            return self._judge(outcome, lambda: self._own.read(out, deadline_ns))
        for k, name in enumerate((*FEEDBACK, "temperature")):
            getattr(out, name)[:] = self._cycle.states[:, k]
        out.fault[:] = 0
        out.t_ns = int(self._cycle.t_ns[0])

    def write(self, cmd: JointCommand, deadline_ns: int) -> None:
        if not self._enter(deadline_ns):
            return self._own.write(cmd, deadline_ns)
        for k, name in enumerate(COMMAND):
            self._cycle.commands[:, k] = getattr(cmd, name)
        outcome = CycleOutcome(_CALL(self._cycle.write)(self._cycle.context, deadline_ns, cmd.valid_until_ns, 0))
        if outcome is not CycleOutcome.NOMINAL:
            self._judge(outcome, lambda: self._own.write(cmd, deadline_ns))

    def stop(self) -> None:
        self._own.stop()
        if threading.get_ident() == self._owner:  # another thread may be reading
            self._leave()

    def clear(self) -> None:
        self._leave()
        self._own.clear()

    def close(self) -> None:
        self._own.close()
        self._leave()

    @property
    def lost(self) -> int:
        self._leave()
        return self._own.lost

    def report(self) -> Any:
        self._leave()
        return self._own.report()

    # --- between Python and machine code ---

    def _enter(self, deadline_ns: int) -> bool:
        """Whether the cycle is in machine code now."""
        if self._cycle is not None:
            return True
        if not self._enabled or not self._own._is_on or min(self._own._feedback.t_ns) == 0:
            return False
        cycle = self._own.compile()
        if cycle.take_over(deadline_ns):
            self._cycle = cycle
            return True
        cycle.hand_back()
        return False

    def _leave(self) -> None:
        cycle, self._cycle, self._enabled = self._cycle, None, False
        if cycle is not None:
            cycle.hand_back()

    def _judge(self, outcome: CycleOutcome, again: Any) -> None:
        """What the driver in Python says of it."""
        cycle, self._cycle = self._cycle, None
        cycle.hand_back()
        cycle.check(outcome)
        again()
