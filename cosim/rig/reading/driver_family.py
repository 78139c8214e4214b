"""The contract of a package of drivers, which a rig names as the `type` of a driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from cosim.types import Connection, DeviceEmulator, DriverContext, HardwareDriver


class CycleTraffic(Protocol):
    """The items that a driver sends and receives in one cycle."""

    @property
    def out(self) -> Sequence[Any]: ...

    @property
    def back(self) -> Sequence[Any]: ...

    def load(self, params: Any, period: float) -> float:
        """The fraction of the bus that a cycle every `period` [s] uses in the worst case. params: of the connection."""
        ...


class DriverFamily(Protocol):
    """A package of drivers. `params` is an instance of its Params, wiring of its JointParams."""

    __name__: str
    MODES: frozenset[str]

    @property
    def Params(self) -> type[Any]:
        """Dataclass of the keys of a driver; has `bus`, `port` or both for its connection."""
        ...

    @property
    def JointParams(self) -> type[Any]:
        """Dataclass of the keys of a joint, with the properties `address` and `key`."""
        ...

    def load(self, params: Any, context: DriverContext, /) -> HardwareDriver:
        """The driver, not yet open. Raises InputError for parameters that do not fit the rig."""
        ...

    def connection_name(self, params: Any, /) -> str:
        """The name of the bus or serial link in messages."""
        ...

    def host(self, params: Any, context: DriverContext, /) -> Connection:
        """The program's end of the connection, not yet open."""
        ...

    def device(self, params: Any, context: DriverContext, /) -> Connection:
        """The drives' end of the connection, not yet open."""
        ...

    def emulate(self, params: Any, context: DriverContext, motors: Sequence[Any], /) -> DeviceEmulator:
        """Emulated drives with these motors, one for each joint."""
        ...

    def traffic(self, params: Any, context: DriverContext, /) -> CycleTraffic:
        """The items of one cycle, from which the bus load is estimated."""
        ...
