"""The host on a bus of n drives: sends NMT, SYNC, heartbeat and controlwords, takes what comes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from cosim.plugins.drivers.cia402 import codec, profile
from cosim.plugins.drivers.cia402.client import Client, request_write
from cosim.plugins.drivers.cia402.network import NetworkStates
from cosim.plugins.drivers.cia402.process_data import CommandCoder
from cosim.plugins.drivers.transport import CanFrame, Connection

SEND_NS = 20_000_000  # for frames sent outside of the cycle
CONTROLWORD = 0x604000


class Bus:
    """n drives by index; master: the id whose heartbeat they monitor; take: takes the frames of the drives; coders: of
    their process data. All but `disable_voltage` raise ConnectionLost."""

    def __init__(
        self, nodes: Sequence[int], link: Connection[CanFrame], master: int, take: Callable[[CanFrame], None]
    ) -> None:
        self.nodes, self.link, self._take = tuple(nodes), link, take
        self.network = NetworkStates(len(nodes))
        self.client = Client(link, take)
        self.started_ns = 0  # when the drives were set to operational last
        self.coders: list[CommandCoder] = []
        self.heartbeat_frame = codec.heartbeat(master, codec.RUNNING)

    def send(self, frames: Iterable[CanFrame], deadline_ns: int | None = None) -> None:
        deadline = self.link.now() + SEND_NS if deadline_ns is None else deadline_ns
        for frame in frames:
            self.link.send(frame, deadline)

    def prepare(self) -> None:
        """Set all drives to pre-operational; other nodes on the bus are not addressed."""
        self.network.set_operational(False)
        self.send(codec.nmt(codec.PRE_OPERATIONAL, node) for node in self.nodes)

    def start(self) -> None:
        """Set all drives to operational."""
        self.send(codec.nmt(codec.START, node) for node in self.nodes)
        self.network.set_operational(True)
        self.started_ns = self.link.now()

    def receive_for(self, span_ns: int) -> None:
        """Take the frames of this time."""
        until = self.link.now() + span_ns
        while (frame := self.link.receive(until)) is not None:
            self._take(frame)
            if self.link.now() > until:
                return

    def hold_frames(self, controls: Iterable[int], places: Iterable[float]) -> Iterator[CanFrame]:
        """Commands to stay at these places [counts] without effort; one controlword per drive."""
        for node, coder, control, place in zip(self.nodes, self.coders, controls, places, strict=True):
            target = int(place) if coder.mode == "position" else 0
            for number, data in coder.data(control, (target, 0, 0)):
                yield CanFrame(codec.RPDO + number * codec.PDO_STRIDE + node, data)

    def stop_frames(self, places: Iterable[float], controls: Sequence[int] = ()) -> list[CanFrame]:
        """One controlword per drive, disable voltage by default; by PDO, and by SDO for drives not in operation."""
        words = controls or [profile.DISABLE_VOLTAGE] * len(self.nodes)
        frames = [*self.hold_frames(words, places), codec.SYNC] if self.network.operational else []
        return frames + [request_write(node, CONTROLWORD, "H", w) for node, w in zip(self.nodes, words, strict=True)]

    def disable_voltage(self, places: Iterable[float]) -> None:
        """Disable the voltage of all drives, without waiting for answers; never raises."""
        deadline = self.link.now() + SEND_NS
        for frame in self.stop_frames(places):
            with suppress(Exception):
                self.link.send(frame, deadline)
