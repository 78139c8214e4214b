"""A driver, its emulated drives in front of rotors, and the connection between them in memory, on a fake clock."""

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any, Self

import numpy as np
import pytest

from cosim.core.driver_contract import DriverContext
from cosim.core.errors import InputError, RunError, SourceLocation
from cosim.core.types import JointCommand, JointState, Limits
from cosim.plugins.drivers.common.motor import Rotor
from cosim.plugins.drivers.transport import CanFrame, ConnectionLost
from tests.kit.clock import MS
from tests.kit.connection import FakeConnection


class DriverBench(FakeConnection):
    """Joints j0, j1, … of a family of drives. Only waiting lets the time pass, in steps of `step_ns` at most.

    hears: whether the drives get an item of the driver; spoil: what arrives of an item of the drives, after delay_ns.
    """

    step_ns = MS

    def __init__(
        self,
        module: ModuleType,
        params: Any,
        wiring: Sequence[Any],
        mode: str = "effort",
        *,
        limits: Sequence[float] = (-math.inf, math.inf, math.inf, math.inf),
        motors: Sequence[Rotor] = (),
        **context: Any,
    ) -> None:
        """limits: lower, upper, velocity and effort of each joint; context: more of the DriverContext."""
        super().__init__()
        n = len(wiring)
        self.name = module.connection_name(params)
        self.motors = list(motors) or [Rotor() for _ in wiring]
        self.params = params
        self.context = DriverContext(
            joints=tuple(f"j{k}" for k in range(n)),
            wiring=tuple(wiring),
            limits=Limits(*(np.full(n, bound) for bound in limits)),
            mode=mode,
            place=lambda *keys: SourceLocation("rig.yaml", 7, ".".join(map(str, keys))),
            ends=(self, self),
            **{"period": 1e-3, **context},
        )
        self.queue: deque[tuple[int, Any]] = deque()  # what is on its way to the driver, and when it arrives
        self.sent: list[Any] = []
        self.broken, self.delay_ns = False, 0
        self.hears: Callable[[Any], bool] = lambda item: True
        self.spoil: Callable[[Any], Iterable[Any]] = lambda item: (item,)
        self.emulator: Any = module.emulate(params, self.context, self.motors)
        self.emulator.reset(self.t_ns)
        self.driver: Any = module.load(params, self.context)
        self.out, self.cmd = JointState.zeros(n), JointCommand.zeros(n)
        self.wait(MS)

    # --- the connection ---------------------------------------------------------------------------------

    def accept(self, ids: object) -> None:
        """All frames are received."""

    def send(self, item: Any, deadline_ns: int) -> None:
        self._require_open()
        self.sent.append(item)
        if self.hears(item):
            self.arrive(self.emulator.handle(item, self.t_ns))

    def receive(self, deadline_ns: int) -> Any:
        self._require_open()
        while not self.queue or self.queue[0][0] > self.t_ns:
            if self.t_ns >= deadline_ns:
                return None
            due_ns = self.queue[0][0] if self.queue else deadline_ns
            self.wait(min(due_ns, deadline_ns, self.t_ns + self.step_ns))
        return self.queue.popleft()[1]

    def _require_open(self) -> None:
        if self.broken or not self.is_open:
            raise ConnectionLost("the connection is lost", self.name)

    def arrive(self, items: Iterable[Any]) -> None:
        """Items of the drives, or of others on the bus."""
        due_ns = self.t_ns + self.delay_ns
        for item in (one for each in items for one in self.spoil(each)):
            self.queue.append((due_ns, item._replace(t_ns=due_ns) if isinstance(item, CanFrame) else item))

    def wait(self, until_ns: int) -> None:
        while self.t_ns < until_ns:
            step = min(self.step_ns, until_ns - self.t_ns)
            self.t_ns += step
            for motor in self.motors:
                motor.advance(step * 1e-9)
            self.arrive(self.emulator.process(self.t_ns))

    def run(self, ms: float) -> None:
        self.wait(self.t_ns + round(ms * MS))

    # --- the program ------------------------------------------------------------------------------------

    def start(self, mode: str = "") -> Self:
        self.driver.open()
        self.driver.enable(mode or self.context.mode)
        return self

    def write(self, **goals: Any) -> None:
        for name, value in goals.items():
            getattr(self.cmd, name)[:] = value
        self.cmd.valid_until_ns = self.t_ns + 10 * MS
        self.driver.write(self.cmd, self.t_ns + MS)

    def read(self, within: float = 1.0) -> JointState:
        """within [ms]: the deadline"""
        self.driver.read(self.out, self.t_ns + round(within * MS))
        return self.out

    def cycle(self, times: int = 1, **goals: Any) -> JointState:
        """Commands, and what is measured 1 ms later."""
        for _ in range(times):
            due_ns = self.t_ns + MS
            self.write(**goals)
            self.wait(due_ns)
            self.read()
        return self.out

    @property
    def faults(self) -> list[int]:
        return self.out.fault.tolist()

    @property
    def efforts(self) -> list[float]:
        """Of the motors."""
        return [motor.effort for motor in self.motors]


def refused(action: Callable[..., object], *arguments: Any) -> str:
    """Why an action is refused."""
    with pytest.raises((InputError, RunError)) as error:
        action(*arguments)
    return str(error.value)
