"""The contract of a package of drivers, which a rig names as the `type` of a driver."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, Literal, Protocol, TypeAlias, cast

from cosim.core.driver_contract import BusItem, Connection, DeviceEmulator, DriverContext, HardwareDriver
from cosim.core.errors import InputError
from cosim.core.plugin_loading import DRIVER, find, known_names, unknown

FamilyParams: TypeAlias = Any  # an instance of the Params of a family


class JointWiring(Protocol):
    """The keys of a joint that all families have."""

    direction: int
    ratio: float
    zero: float  # joint position at which the drive reports 0
    turns: Literal["kept"] | None  # declared of its whole turns at power-off

    @property
    def homed(self) -> bool:
        """Whether the drive is homed before it is enabled."""
        ...

    @property
    def address(self) -> int:
        """The number of the drive, unique on its connection."""
        ...

    @property
    def key(self) -> str:
        """The key of the address."""
        ...


class CycleTraffic(Protocol):
    """The items that a driver sends and receives in one cycle."""

    @property
    def out(self) -> Sequence[BusItem]: ...

    @property
    def back(self) -> Sequence[BusItem]: ...

    def load(self, params: Any, period: float) -> float:
        """The fraction of the bus that a cycle every `period` [s] uses in the worst case. params: of the connection."""
        ...


Turns = Literal["kept", "lost", "unknown"]


def turns_at_power_off(family: DriverFamily) -> Turns:
    """What becomes of the whole turns of a drive's position when its power is off, where its range is more than one."""
    return getattr(family, "TURNS_AT_POWER_OFF", "unknown")


class DriverFamily(Protocol):
    """A package of drivers. `params` is an instance of its Params, wiring of its JointParams; it may have
    TURNS_AT_POWER_OFF, see `turns_at_power_off`."""

    __name__: str
    MODES: frozenset[str]

    @property
    def Params(self) -> type:
        """Dataclass of the keys of a driver; has `bus`, `port` or both for its connection."""
        ...

    @property
    def JointParams(self) -> type:
        """Dataclass of the keys of a joint, with the properties `address` and `key`."""
        ...

    def load(self, params: FamilyParams, context: DriverContext, /) -> HardwareDriver:
        """The driver, not yet open. Raises InputError for parameters that do not fit the rig."""
        ...

    def connection_name(self, params: FamilyParams, /) -> str:
        """The name of the bus or serial link in messages."""
        ...

    def host(self, params: FamilyParams, context: DriverContext, /) -> Connection:
        """The program's end of the connection, not yet open."""
        ...

    def device(self, params: FamilyParams, context: DriverContext, /) -> Connection:
        """The drives' end of the connection, not yet open."""
        ...

    def emulate(self, params: FamilyParams, context: DriverContext, motors: Sequence[Any], /) -> DeviceEmulator:
        """Emulated drives with these motors, one for each joint."""
        ...

    def traffic(self, params: FamilyParams, context: DriverContext, /) -> CycleTraffic:
        """The items of one cycle, from which the bus load is estimated."""
        ...


def families(name: str | None = None) -> Iterator[tuple[str, DriverFamily]]:
    """(name, family) of all families that can be imported, or of one. Raises InputError for an unknown name."""
    known = known_names(DRIVER)
    if name is not None and name not in known:
        raise InputError(unknown(DRIVER, name), "--family")
    for each in known if name is None else [name]:
        try:
            yield each, cast(DriverFamily, find(DRIVER, each, place="--family"))
        except InputError:
            if name is not None:
                raise


def hook(family: DriverFamily, name: str) -> ModuleType | None:
    """The module `name` in the folder of a family; None where it has none."""
    target = f"{family.__name__}.{name}"
    return importlib.import_module(target) if _exists(target) else None


def _exists(target: str) -> bool:
    try:
        return importlib.util.find_spec(target) is not None
    except ModuleNotFoundError:  # the family is one file
        return False
