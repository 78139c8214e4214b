"""The host on a bus of n drives: sends NMT, SYNC, heartbeat and process data, stores the feedback."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from cosim.plugins.drivers.cia402 import codec, profile
from cosim.plugins.drivers.cia402.client import Client, request_write
from cosim.plugins.drivers.cia402.feedback import FeedbackStore
from cosim.plugins.drivers.cia402.process_data import CommandCoder
from cosim.plugins.drivers.transport import CanFrame, Connection

SEND_NS = 20_000_000  # for frames sent outside of the cycle
MAX_FRAMES = 32  # frames per drive that are received in a row, so that a babbling node cannot block the cycle
CONTROLWORD = 0x604000


def command_frames(
    mode: str, node: int, control: int, position: float, velocity: float, effort: float, step: codec.Step
) -> tuple[CanFrame, ...]:
    """The frames of one cycle to one drive, in SI units at the drive. Raises ValueError for NaN."""
    if mode == "effort":
        return (codec.effort_command(node, control, effort, step),)
    if mode == "velocity":
        return (codec.velocity_command(node, control, velocity, effort, step),)
    return (
        codec.position_command(node, control, position, effort, step),
        codec.velocity_offset(node, velocity, step),
    )


def own_frames(
    coder: CommandCoder,
    mode: str,
    node: int,
    control: int,
    position: float,
    velocity: float,
    effort: float,
    step: codec.Step,
) -> Iterable[CanFrame]:
    """As `command_frames`, to a drive with its own process data."""
    numbers = codec.command_numbers(mode, position, velocity, effort, step)
    for number, data in coder.data(control, numbers):
        yield CanFrame(codec.RPDO + number * codec.PDO_STRIDE + node, data)


class Bus:
    """n drives by index; master: the id whose heartbeat they monitor. All but `disable_voltage` raise
    ConnectionLost."""

    def __init__(self, nodes: Sequence[int], link: Connection[CanFrame], master: int) -> None:
        self.nodes, self.link = tuple(nodes), link
        self.store = FeedbackStore(self.nodes)
        self.client = Client(link, self.store.take)
        self.coders: list[CommandCoder | None] = [None] * len(self.nodes)  # of drives with their own process data
        self.heartbeat_frame = codec.heartbeat(master, codec.RUNNING)
        self.sync_sent = False  # since the last `receive_answers`

    def send(self, frames: Iterable[CanFrame], deadline_ns: int | None = None) -> None:
        deadline = self.link.now() + SEND_NS if deadline_ns is None else deadline_ns
        for frame in frames:
            self.link.send(frame, deadline)

    def prepare(self) -> None:
        """Set all drives to pre-operational; other nodes on the bus are not addressed."""
        self.store.set_operational(False)
        self.send(codec.nmt(codec.PRE_OPERATIONAL, node) for node in self.nodes)

    def start(self) -> None:
        """Set all drives to operational."""
        self.send(codec.nmt(codec.START, node) for node in self.nodes)
        self.store.set_operational(True)

    def synchronise(self, deadline_ns: int) -> None:
        """Send SYNC: commands take effect, and every drive answers. Late answers to the last one are taken first."""
        if self.store.missing:
            self.drain()
        self.store.expect_answers()
        self.link.send(codec.SYNC, deadline_ns)
        self.sync_sent = True

    def receive_answers(self, deadline_ns: int) -> None:
        """Wait until all drives have answered SYNC, at most until the deadline; send SYNC first if none was sent."""
        if not self.sync_sent:
            self.synchronise(deadline_ns)
        store, receive = self.store, self.link.receive
        for _ in range(MAX_FRAMES * store.n):
            if not store.missing or (frame := receive(deadline_ns)) is None:
                break
            store.take(frame)
        self.drain()
        self.sync_sent = False

    def drain(self) -> None:
        """Take the frames that have been received already."""
        for _ in range(MAX_FRAMES * self.store.n):
            if (frame := self.link.receive(0)) is None:
                return
            self.store.take(frame)

    def receive_for(self, span_ns: int) -> None:
        """Take the frames of this time."""
        until = self.link.now() + span_ns
        while (frame := self.link.receive(until)) is not None:
            self.store.take(frame)
            if self.link.now() > until:
                return

    def hold_frames(self, mode: str, controls: Iterable[int]) -> list[CanFrame]:
        """Commands to hold the measured positions without effort; one controlword per drive."""
        frames: list[CanFrame] = []
        store = self.store
        for k, (control, position) in enumerate(zip(controls, store.position, strict=True)):
            frames += self.command(k, mode, control, position, 0.0, 0.0)
        return frames

    def command(
        self, k: int, mode: str, control: int, position: float, velocity: float, effort: float
    ) -> Iterable[CanFrame]:
        """The frames of one cycle to drive k, in SI units at the drive. Raises ValueError for NaN."""
        coder, node, step = self.coders[k], self.nodes[k], self.store.steps[k]
        if coder is None:
            return command_frames(mode, node, control, position, velocity, effort, step)
        return own_frames(coder, mode, node, control, position, velocity, effort, step)

    def stop_frames(self, mode: str, controls: Sequence[int] = ()) -> list[CanFrame]:
        """One controlword per drive, disable voltage by default; by PDO, and by SDO for drives not in operation."""
        words = controls or [profile.DISABLE_VOLTAGE] * len(self.nodes)
        frames = [*self.hold_frames(mode, words), codec.SYNC] if self.store.operational else []
        return frames + [request_write(node, CONTROLWORD, "H", w) for node, w in zip(self.nodes, words, strict=True)]

    def disable_voltage(self, mode: str) -> None:
        """Disable the voltage of all drives, without waiting for answers; never raises."""
        deadline = self.link.now() + SEND_NS
        for frame in self.stop_frames(mode):
            with suppress(Exception):
                self.link.send(frame, deadline)
