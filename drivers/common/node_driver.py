"""The driver of families with a simple protocol: a drive answers every item that it is sent with its state.

A family supplies the items and decodes the answers; opening, switching on and off, clearing and the cycle are here.
A drive that reports a fault, or that it is off, while it is to be on gets no further command until it is switched on
again: some clear their faults by themselves, and would run again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from cosim.core.driver_contract import DeviceEmulator, DriverContext
from cosim.core.types import Array
from cosim.plugins.drivers.common.drive_checks import ENABLE_NS, Item, Joint
from cosim.plugins.drivers.common.driver import STOP_NS, MotorDriver
from cosim.plugins.drivers.transport import Connection, Traffic

Request = Literal["state", "identity", "enable", "clear"]

OFF = ""  # in place of a mode: the drive is off
ANSWER_TIME = 0.5  # s
SWITCHED_OFF = -1  # fault code of the driver: a drive that is off without a fault


class NodeDriver(MotorDriver[Item, Joint]):
    """One node per joint."""

    answers_commands: ClassVar[bool] = True  # False: a request for the state follows each command
    faults: Mapping[int, tuple[str, str]]  # the drives' fault codes: name, fix

    def __init__(self, context: DriverContext, link: Connection[Item], watchdog: float) -> None:
        super().__init__(context, link, watchdog)
        self._nodes = {joint.address: k for k, joint in enumerate(self._wiring)}
        n = len(self._wiring)
        self._drive_mode, self._fault = [OFF] * n, [0] * n  # as reported
        self._tripped = [0] * n  # the fault with which a drive left its mode while it was on; until `clear`
        self._identity: dict[int, tuple[float, ...]] = {}  # joint -> what its drive reported
        self._replies: dict[tuple[int, int], Any] = {}  # (joint, key of the family) -> other answers, put by `_take`

    def cycle(self, emulator: DeviceEmulator) -> Traffic:
        """What one cycle sends to these emulated drives and receives from them."""
        # values with many digits: in a protocol of text they are the longest
        drives = range(len(self._wiring))
        if self.interpreted is not None:
            out = [self._item(sent.frame) for sent in self._transmission(self._mode).frames]
            return Traffic(out, [answer for item in out for answer in emulator.handle(item, 0)])
        out = [self._command(k, -1 / 3, -1 / 3, -1 / 3) for k in drives]
        if not self.answers_commands:
            out += [self._request(k, "state") for k in drives]
        return Traffic(out, [answer for item in out for answer in emulator.handle(item, 0)])

    # --- opening, switching on and off ---------------------------------------------------------------

    def _connect(self) -> None:
        self._identity.clear()
        self._tripped = [0] * len(self._wiring)
        self.stop()  # a program that was killed may have left the drives on
        for k in range(len(self._wiring)):
            self._await(k, lambda k=k: k in self._identity, "identity")
            self._check_identity(k, self._identity[k])
            self._await_answer(k, "state")

    def _fault_before_enable(self, k: int) -> int:
        self._await_answer(k, "state")
        return self._fault[k] or max(self._tripped[k], 0)

    def _switch_on(self, mode: str) -> None:
        self.feedforward.limit[:] = self._largest_effort(mode) * np.abs(self.units.scale)
        self._tripped = [0] * len(self._wiring)

        def enable_and_hold() -> None:
            with self._gate:
                for k in range(len(self._wiring)):
                    self.check_not_stopped()
                    self._send(k, "enable")
                self._send_hold(self._now() + STOP_NS)

        if not self._wait(lambda: set(self._drive_mode) == {mode}, ENABLE_NS * 1e-9, enable_and_hold):
            off = next(k for k, reported in enumerate(self._drive_mode) if reported != mode)
            raise self._not_on(off, self.describe_fault(off, self._fault[off] or SWITCHED_OFF))

    def _stop_items(self) -> Iterator[Item]:
        return (self._off(k) for k in range(len(self._wiring)))

    def _clear_faults(self) -> None:
        for k in range(len(self._wiring)):
            self._await_answer(k, "clear")
            if not self._wait(lambda k=k: not self._fault[k], ANSWER_TIME, lambda k=k: self._send(k, "clear")):
                raise self._fault_persists(k, self._fault[k])
            self._tripped[k] = 0

    def _await_answer(self, k: int, request: Request) -> None:
        self._drain()
        self._pending.add(k)
        self._await(k, lambda: k not in self._pending, request)

    def _reply(self, k: int, key: int, again: Callable[[], object], accept: Callable[[Any], bool] | None = None) -> Any:
        """What `_take` puts into `_replies` for this key after `again`; None if nothing that is accepted comes."""
        replies = self._replies
        replies.pop((k, key), None)
        done = self._wait(
            lambda: (k, key) in replies and (accept is None or accept(replies[k, key])), ANSWER_TIME, again
        )
        return replies[k, key] if done else None

    def _required(self, k: int, reply: Any, lacking: str) -> Any:
        """A reply. Raises the error of the drive if there is none; lacking: what the drive did not do."""
        if reply is None:
            raise self._drive_error(k, f"{self._drive_name(k)} {lacking}; {self._loses_answers}")
        return reply

    def _await(self, k: int, done: Callable[[], bool], request: Request) -> None:
        if not self._wait(done, ANSWER_TIME, lambda: self._send(k, request)):
            raise self._no_answer(k)

    def _send(self, k: int, request: Request) -> None:
        self.link.send(self._request(k, request), self._now() + STOP_NS)

    # --- the cycle -----------------------------------------------------------------------------------

    def _send_commands(
        self, position: list[float], velocity: list[float], effort: list[float], deadline_ns: int
    ) -> None:
        self._drain()
        self._pending.update(range(len(self._wiring)))
        for k, row in enumerate(zip(position, velocity, effort, strict=True)):
            self.check_not_stopped()  # by a thread that waited no longer: some drives would run again
            self.link.send(self._request(k, "state") if self._tripped[k] else self._command(k, *row), deadline_ns)
        if not self.answers_commands:
            for k in range(len(self._wiring)):
                if not self._tripped[k]:
                    self.link.send(self._request(k, "state"), deadline_ns)

    def _instead(self) -> dict[int, Sequence[Item]]:
        tripped = [k for k, fault in enumerate(self._tripped) if fault]
        return {k: (self._request(k, "state"),) if self.answers_commands else () for k in tripped}

    def _poll(self, deadline_ns: int) -> None:
        self._drain()
        if self.interpreted is None:
            self._pending.update(range(len(self._wiring)))
        else:
            self.interpreted.expect(after_command=False)
        for k in range(len(self._wiring)):
            self.link.send(self._request(k, "state"), deadline_ns)

    def _answered(self, k: int, mode: str, fault: int, t_ns: int) -> None:
        """The last item of an answer has come at t_ns; mode: one of `modes` or OFF, fault: a code, 0 for none."""
        self._drive_mode[k], self._fault[k], self._feedback.t_ns[k] = mode, fault, t_ns
        self._pending.discard(k)
        if self._is_on and not self._tripped[k]:
            self._tripped[k] = fault or (0 if mode else SWITCHED_OFF)

    def _target(self, position: float, velocity: float, effort: float) -> float:
        """For commands with one target: the mode's."""
        return {"position": position, "velocity": velocity, "effort": effort}[self._mode]

    def _fault_codes(self) -> list[int]:
        on, states = self._is_on, zip(self._fault, self._tripped, strict=True)
        return [fault or (tripped if on or tripped > 0 else 0) for fault, tripped in states]

    def describe_fault(self, joint_index: int, code: int) -> str:
        if code == SWITCHED_OFF:
            return "switched off by itself; check its supply, then stop and enable"
        name, fix = self._fault_table(joint_index).get(code, ("unknown fault", "see the drive's manual"))
        return f"{name} (drive error {code}); {fix}"

    # --- what a family may replace ----------------------------------------------------------------

    def _largest_effort(self, mode: str) -> Array | float:
        """That a command carries in a mode [N·m at the drive], of all drives or (n,)."""
        return np.inf if mode == "effort" else 0.0

    def _fault_table(self, k: int) -> Mapping[int, tuple[str, str]]:
        """Of the drive of joint k: code -> name, fix."""
        return self.faults

    # --- what a family supplies ----------------------------------------------------------------------

    @abstractmethod
    def _check_identity(self, k: int, identity: tuple[float, ...]) -> None:
        """Check what the drive reported. Raise `_drive_error(k, what)`; call `_check_limits`."""

    @abstractmethod
    def _request(self, k: int, request: Request) -> Item:
        """An item that the drive answers with its state (`identity`: with its identity) and that does not feed its
        watchdog; `enable` switches the drive on without effort."""

    def _command(self, k: int, position: float, velocity: float, effort: float) -> Item:
        """A command in the mode `_mode`, in the drive's units; it feeds the watchdog, and switches nothing on. Not
        needed where frames are declared."""
        raise NotImplementedError

    @abstractmethod
    def _off(self, k: int) -> Item:
        """What switches the drive off, in any state."""
