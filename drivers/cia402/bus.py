"""The host on a bus of n drives: NMT, SYNC, heartbeat and process data out, whatever comes into the feedback."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from cosim.drivers.cia402 import codec, profile
from cosim.drivers.cia402.client import Client, request_write
from cosim.drivers.cia402.feedback import FeedbackStore
from cosim.drivers.transport import CanFrame, Connection

SEND_NS = 20_000_000  # for what is sent outside of the cycle
BURST = 32  # frames per drive that are taken at once, so that a babbling node cannot hold the cycle up
CONTROLWORD = 0x604000


def command_frames(
    mode: str, node: int, control: int, position: float, velocity: float, effort: float, step: codec.Step
) -> tuple[CanFrame, ...]:
    """What one drive is sent in a cycle, in the drive's SI. Raises ValueError for what is not a number."""
    if mode == "effort":
        return (codec.effort_command(node, control, effort, step),)
    if mode == "velocity":
        return (codec.velocity_command(node, control, velocity, effort, step),)
    return (
        codec.position_command(node, control, position, effort, step),
        codec.velocity_offset(node, velocity, step),
    )


class Bus:
    """Drives by their place on it; `master` is the id whose heartbeat they watch. All but `halt` raise LinkError."""

    def __init__(self, nodes: Sequence[int], link: Connection[CanFrame], master: int) -> None:
        self.nodes, self.link = tuple(nodes), link
        self.heard = FeedbackStore(self.nodes)
        self.client = Client(link, self.heard.take)
        self.beat = codec.heartbeat(master, codec.RUNNING)
        self.asked = False  # SYNC was sent since the last `listen`

    def send(self, frames: Iterable[CanFrame], deadline_ns: int | None = None) -> None:
        deadline = self.link.now() + SEND_NS if deadline_ns is None else deadline_ns
        for frame in frames:
            self.link.send(frame, deadline)

    def prepare(self) -> None:
        """All drives pre-operational; others on the bus are not spoken to."""
        self.heard.run(False)
        self.send(codec.nmt(codec.PRE_OPERATIONAL, node) for node in self.nodes)

    def start(self) -> None:
        """All drives operational."""
        self.send(codec.nmt(codec.START, node) for node in self.nodes)
        self.heard.run(True)

    def synchronise(self, deadline_ns: int) -> None:
        """SYNC: commands take effect, and every drive answers; late answers to the one before are no answers to it."""
        if self.heard.waiting:
            self.drain()
        self.heard.expect()
        self.link.send(codec.SYNC, deadline_ns)
        self.asked = True

    def listen(self, deadline_ns: int) -> None:
        """Wait until all drives have answered SYNC, at most until the deadline; without one since, ask first."""
        if not self.asked:
            self.synchronise(deadline_ns)
        heard, receive = self.heard, self.link.receive
        for _ in range(BURST * heard.n):
            if not heard.waiting or (frame := receive(deadline_ns)) is None:
                break
            heard.take(frame)
        self.drain()
        self.asked = False

    def drain(self) -> None:
        """Take what has come already."""
        for _ in range(BURST * self.heard.n):
            if (frame := self.link.receive(0)) is None:
                return
            self.heard.take(frame)

    def collect(self, span_ns: int) -> None:
        """Take everything that comes within this time."""
        until = self.link.now() + span_ns
        while (frame := self.link.receive(until)) is not None:
            self.heard.take(frame)
            if self.link.now() > until:
                return

    def hold(self, mode: str, controls: Iterable[int]) -> list[CanFrame]:
        """Commands that hold where the motors are, with no effort; one controlword per drive."""
        frames: list[CanFrame] = []
        heard = self.heard
        for control, node, position, step in zip(controls, self.nodes, heard.position, heard.steps, strict=True):
            frames += command_frames(mode, node, control, position, 0.0, 0.0, step)
        return frames

    def halt_frames(self, mode: str, controls: Sequence[int] = ()) -> list[CanFrame]:
        """One controlword per drive, disable voltage by default; by PDO, and by SDO for a drive that takes no PDOs."""
        words = controls or [profile.DISABLE_VOLTAGE] * len(self.nodes)
        frames = [*self.hold(mode, words), codec.SYNC] if self.heard.running else []
        return frames + [request_write(node, CONTROLWORD, "H", w) for node, w in zip(self.nodes, words, strict=True)]

    def halt(self, mode: str) -> None:
        """Disable voltage; waits for no answer, never raises."""
        deadline = self.link.now() + SEND_NS
        for frame in self.halt_frames(mode):
            with suppress(Exception):
                self.link.send(frame, deadline)
