"""The contracts of drivers: what the loop calls, what passes on a bus, the device end of an emulation, and what a
family of drivers receives when it is loaded.

Arrays are preallocated `(n,)` in joint order, SI. Time is integer nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypedDict, TypeVar

from cosim.core.errors import SourceLocation
from cosim.core.types import Array, JointCommand, JointState, Limits

Item = TypeVar("Item")  # of a connection: CAN frames or bytes


class Driver(Protocol):
    """A group of joints behind one piece of hardware, or behind its simulation."""

    joints: tuple[str, ...]
    modes: frozenset[str]
    limits: Limits

    def open(self) -> None:
        """Connect; may block; motors stay off."""
        ...

    def enable(self, mode: str) -> None:
        """Switch the motors on in one of `modes`."""
        ...

    def read(self, out: JointState, deadline_ns: int) -> None:
        """Fill `out`; when late, keep the old values and the old `out.t_ns`; never block past the deadline."""
        ...

    def write(self, cmd: JointCommand, deadline_ns: int) -> None:
        """Send one command; never block past the deadline."""
        ...

    def stop(self) -> None:
        """Motors off, from any state; idempotent; never raises."""
        ...

    def close(self) -> None:
        """Release the hardware, motors off."""
        ...


BusItem: TypeAlias = Any  # a CAN frame, or bytes of a serial link


class BusTraffic(Protocol):
    """Items that a connection sent and received, and errors on it."""

    items_out: int
    items_in: int
    errors: int

    def load(self, seconds: float, bitrate: float) -> float:
        """The fraction of the bit rate [bit/s] that was used in this time, both directions together."""
        ...


class Connection(Protocol[Item]):
    """One end of a connection. Items are CAN frames, or bytes (chunks without framing) on a serial link.

    One thread receives; any thread may send; no thread uses it while it is closed. `open`, `close` and `reopen` may
    block, the others may not.
    """

    name: str  # "udp_multicast 239.74.163.2", "/dev/ttyUSB0"

    @property
    def meter(self) -> BusTraffic: ...

    @property
    def lost(self) -> bool:
        """Whether it failed and was not reopened."""
        ...

    @property
    def why_not_compiled(self) -> str:
        """Why machine code cannot use it; empty if it can."""
        ...

    def now(self) -> int:
        """The time [ns] of the clock of its deadlines."""
        ...

    def open(self) -> None:
        """Raises InputError: no such port, interface or channel, or it is busy."""
        ...

    def close(self) -> None:
        """Idempotent; never raises."""
        ...

    def reopen(self) -> bool:
        """Try to open the connection again if it was lost; whether it is open."""
        ...

    def bus_off(self) -> None:
        """Signal bus off to the host; for the device's end, and only on a bus that can signal it."""
        ...

    def reserve(self, items: Iterable[Item]) -> None:
        """Items that only this program may send: on a bus that others can reach, `open` first listens for them and
        raises InputError if another program sends one."""
        ...

    def send(self, item: Item, deadline_ns: int) -> None:
        """Raises RunError when the connection is lost or the item cannot be sent by the deadline."""
        ...

    def receive(self, deadline_ns: int) -> Item | None:
        """The next item, None if there is none by the deadline; with a deadline in the past: what has been received
        already, without waiting. Raises RunError when the connection is lost."""
        ...


class FeedforwardReport(TypedDict):
    """Feedforward efforts of a joint in the field of its drive's command."""

    joint: str
    saturated: int  # commands that were clipped
    limit: float | None  # N·m or N; None where there is none
    resolution: float  # N·m or N; 0 where there is none


class CycleOutcome(IntEnum):
    """How a read or a write in machine code ended. SUSPECT: there is something that the driver in Python has to judge;
    EXPIRED: the command was too late and was not sent."""

    NOMINAL, EXPIRED, SUSPECT, NOT_SENT, LOST, BUS_OFF, STOPPED = range(7)


class CompiledCycle(Protocol):
    """`read` and `write` of a driver of n joints in machine code: functions int64(int64, int64, int64, int64) of
    (context, deadline_ns, valid_until_ns, 0) at addresses, whose results are a CycleOutcome.

    Between `take_over` and `hand_back` nobody else may use the driver, except to stop it.
    """

    read: int
    write: int
    stop: int  # switches the motors off, without waiting for an answer
    context: int
    commands: Array  # (n, 5 or more) of `write`, in the order of COMMAND
    states: Array  # (n, 4 or more) of `read`: FEEDBACK, then the temperature
    t_ns: Array  # (1,) integer time of the measurement

    def take_over(self, deadline_ns: int) -> bool:
        """Request feedback and wait for it until the deadline; whether all drives have answered. Raises RunError."""
        ...

    def hand_back(self) -> None:
        """Give the driver in Python what was received last, and the counts."""
        ...

    def check(self, outcome: CycleOutcome) -> None:
        """Raises the error of the connection, or of a stop, with which a read or a write ended; none for others."""
        ...


class AddedTurns(NamedTuple):
    """Whole turns of a drive that are added to what it reports, and how far they are at its joint [rad or m]."""

    turns: int = 0
    shift: float = 0.0


class HardwareDriver(Driver, Protocol):
    """A driver whose motors are real: what the loop needs to know of its connection and of the faults of its drives."""

    link: Connection
    watchdog: float  # s without a command after which the drives stop by themselves
    lost: int  # replies that never came
    latched: bool  # `enable` was refused for a fault that `clear` may clear

    @property
    def faults_outlast_stop(self) -> bool:
        """Whether a reported fault stays after `stop`, until `clear`."""
        ...

    @property
    def why_not_compiled(self) -> str:
        """Why its cycle cannot run in machine code; empty if it can."""
        ...

    def load_cycle(self) -> None:
        """Make the machine code of its cycle, which may take seconds; only if it can be compiled."""
        ...

    def compile(self) -> CompiledCycle:
        """Its cycle in machine code, in the mode in which the motors are on; after `load_cycle`."""
        ...

    def clear(self) -> None:
        """Clear reported faults; motors stay off. Raises RunError for a fault that persists."""
        ...

    def describe_fault(self, joint_index: int, code: int) -> str:
        """A fault code of the joint at this index in words, with the fix."""
        ...

    def report(self) -> list[FeedforwardReport]:
        """Of each joint."""
        ...

    def added_turns(self) -> list[AddedTurns]:
        """Of each joint, since the first measurement of this connection; see `DriverContext.turns`."""
        ...


class DeviceEmulator(Protocol):
    """The device side of a protocol: emulated drives on one connection. It reads no clock and does no I/O; times are
    in ns and do not decrease.

    An attribute `unknown` (`cosim.plugins.drivers.common.unknown_requests`) may collect the requests that it does not
    have.
    """

    def handle(self, item: BusItem, t_ns: int) -> Sequence[BusItem]:
        """The answers to an item of any content; never raises."""
        ...

    def process(self, t_ns: int) -> Sequence[BusItem]:
        """What the drives send unrequested; called after every step of the motors, at least every 1 ms."""
        ...

    def reset(self, t_ns: int) -> None:
        """Switch the power on: motors off, settings as stored."""
        ...


# What is known of the turn on which a drive is after power-on: which one it is; that it is the one within the limits of
# the joint; nothing, because the limits have room for several
Turns = Literal["known", "folded", "ambiguous"]


@dataclass(frozen=True)
class DriverContext:
    """The part of the rig that a family of drivers receives when it is loaded."""

    joints: tuple[str, ...]  # the n joints behind it
    wiring: tuple[Any, ...]  # of each, an instance of the family's JointParams
    limits: Limits  # (n,) of the guard
    period: float  # s from command to command
    mode: str  # of the drives: effort, velocity or position
    place: Callable[..., SourceLocation]  # place(*keys): location of a key of the driver's section, for errors
    ends: tuple[Any, Any] | None = None  # both Connections, of the host and of the device, where they exist already
    tap: Callable[[Any], Any] | None = None  # the host's Connection -> one that records what passes
    # of the motors of the joints, as seen at the joints [N·m/A or N/A]; NaN where the rig says none, () for none known
    torque_constants: tuple[float, ...] = ()
    emulated: tuple[Any, ...] = ()  # of each joint, an instance of the family's EmulatedParams; only in an emulation
    turns: tuple[Turns, ...] = ()  # of each joint; (): known

    @property
    def ambiguous(self) -> tuple[str, ...]:
        """The joints whose drives may be on several turns."""
        return tuple(name for name, known in zip(self.joints, self.turns, strict=False) if known == "ambiguous")

    def tapped(self, link: Any) -> Any:
        """The host's end of a new connection as the driver is to use it."""
        return link if self.tap is None else self.tap(link)
