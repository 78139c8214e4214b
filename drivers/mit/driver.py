"""Drives with the Mini Cheetah protocol behind the driver contract.

A command has position, velocity, both gains and effort, whatever the mode: in `effort` mode the gains come from the
command, in the others from the rig. Drives keep an effort field around 0: its codes are ± half a step there.

Every frame to a drive that answers as a Mini Cheetah feeds its watchdog, if it has one, and none only requests its
state. While it is on, a read repeats the last command for at most half of `watchdog`; a read after `watchdog` without a
command switches it off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from cosim.core.driver_contract import DriverContext
from cosim.core.errors import CosimError
from cosim.core.types import Array
from cosim.plugins.drivers.common.cycle import CycleLayout, Transmission
from cosim.plugins.drivers.common.frame_layout import ReceivedFrame
from cosim.plugins.drivers.common.interpreted_cycle import InterpretedCycle
from cosim.plugins.drivers.common.node_driver import ANSWER_TIME, OFF, SWITCHED_OFF, NodeDriver, Request
from cosim.plugins.drivers.mit import codec, cycle, models
from cosim.plugins.drivers.mit.params import JointParams
from cosim.plugins.drivers.transport import CanFrame, Connection

REGISTER_TOLERANCE = 1e-4  # relative, of ranges stored as 32-bit floats


class MitDriver(NodeDriver[CanFrame, JointParams]):
    faults = codec.FAULTS

    def __init__(self, context: DriverContext, link: Connection[CanFrame], watchdog: float) -> None:
        """Raises InputError for limits beyond the ranges of the models."""
        super().__init__(context, link, watchdog)
        n, own = len(self._wiring), context.wiring
        self._damiao = [joint.damiao for joint in own]
        self._ranges: list[codec.Ranges] = [joint.ranges for joint in own]
        self._sizes = [8] * n  # bytes of what the drives send
        self._on = [False] * n  # drives that do not report it: whether they were switched on last
        self._cycle = self.interpreted = InterpretedCycle(cycle.reception(self._drives), self._own_settings())
        table = np.array(self._ranges)
        self._max_effort = table[:, 2]
        self.feedforward.resolution[:] = 2 * self._max_effort / codec.MAX_U12 * np.abs(self.units.scale)
        for k, range_ in enumerate(self._ranges):
            limits = {"effort": range_.effort, "velocity": range_.velocity}
            limits |= {"upper position": range_.position, "lower position": -range_.position}
            self._check_limits(k, [(name, limit, "range of the model") for name, limit in limits.items()])

    @property
    def _drives(self) -> list[cycle.CycledNode]:
        rows = zip(self._wiring, self._damiao, self._sizes, strict=True)
        return [cycle.CycledNode(joint.id, joint.master, damiao, size) for joint, damiao, size in rows]

    def _own_settings(self) -> list[list[float]]:
        """Of `cycle`."""
        limits = [self._guard_limits(k)["effort"] for k in range(len(self._wiring))]
        rows = zip(self._ranges, limits, self._wiring, self._damiao, strict=True)
        return [[*ranges, limit, joint.kp, joint.kd, float(damiao)] for ranges, limit, joint, damiao in rows]

    # --- opening, switching on -----------------------------------------------------------------------

    def _check_identity(self, k: int, identity: tuple[float, ...]) -> None:
        if self._damiao[k]:
            self._check_ranges(k, tuple(self._register(k, number) for number in codec.LIMITS))
            self._register(k, codec.TIMEOUT, round(self.watchdog / codec.TIMEOUT_UNIT))
            self._register(k, codec.CONTROL_MODE, codec.MIT_MODE)
        elif self._fault[k] > codec.LAST_ERROR:  # where a Damiao drive has a temperature
            raise self._drive_error(k, f"{self._drive_name(k)} answers as a Damiao drive; correct its 'model'")

    def _no_answer(self, k: int) -> CosimError:
        joint = self._wiring[k]
        what = f"no answer from node {joint.id} with the master id {joint.master} on {self.link.name}"
        return self._silent(k, f"{what}; check its power, both ids, its model and the bit rate")

    def _check_ranges(self, k: int, found: tuple[float, ...]) -> None:
        own = self._ranges[k][:3]
        if np.isinf(self.limits.effort[k]):  # a session for settings, which may be there to correct them
            return
        if not np.allclose(found, own, rtol=REGISTER_TOLERANCE, atol=0.0):
            exact = tuple(float(f"{value:.5g}") for value in found)
            what = f"{self._drive_name(k)} has the ranges {models.named(exact)}, not {models.named(own)}"
            raise self._drive_error(k, f"{what}; correct its 'model', or PMAX, VMAX and TMAX of the drive")

    def _register(self, k: int, number: int, value: float | None = None) -> float:
        """Read a register, or write it and read it back; it is lost when the power is switched off."""
        what = codec.READ if value is None else codec.WRITE
        item = codec.register(codec.REGISTERS, self._wiring[k].id, what, number, value or 0.0)
        send = partial(self.link.send, item, self._now() + int(1e9 * ANSWER_TIME))
        found = self._reply(k, number, send, lambda found: value in (None, found))
        if found is None and (kept := self._replies.get((k, number))) is not None:
            what = f"{self._drive_name(k)} keeps {kept:g} in register {number} instead of {value:g}"
            raise self._drive_error(k, f"{what}; set it with the tool of its manufacturer")
        return self._required(k, found, f"did not report register {number}")

    def _largest_effort(self, mode: str) -> Array:
        return self._max_effort

    def _request(self, k: int, request: Request) -> CanFrame:
        id = self._wiring[k].id
        if request == "state" and self._repeats(k):
            return self._cycle.last[k]
        self._on[k] = request == "enable" and not self._damiao[k]
        if request == "enable":
            return codec.special(id, codec.ENTER)
        if not self._damiao[k]:
            return codec.special(id, codec.EXIT)
        if request == "clear":
            return codec.special(id, codec.CLEAR)
        if request == "identity":
            return codec.register(codec.REGISTERS, id, codec.READ, codec.CONTROL_MODE)
        return codec.register(codec.REGISTERS, id, codec.REFRESH)

    def _off(self, k: int) -> CanFrame:
        return codec.special(self._wiring[k].id, codec.EXIT)

    def _send_stop(self) -> None:
        self._on = [False] * len(self._on)
        super()._send_stop()

    # --- the cycle -----------------------------------------------------------------------------------

    def _transmission(self, mode: str) -> Transmission:
        return cycle.transmission(mode, self._drives)

    def _send_filled(self, deadline_ns: int) -> None:
        self._expire()
        super()._send_filled(deadline_ns)
        self._cycle.sent_ns = self._now()

    def _poll(self, deadline_ns: int) -> None:
        self._drain()
        self._expire()
        silent = self._is_on and self._now() - self._cycle.sent_ns > self._repeated_ns
        asked = [damiao or bool(self._tripped[k]) or not silent for k, damiao in enumerate(self._damiao)]
        self._cycle.wait_for(asked)
        # what only requests first, as machine code does
        for k in sorted([k for k, each in enumerate(asked) if each], key=self._repeats):
            self.link.send(self._request(k, "state"), deadline_ns)

    def _repeats(self, k: int) -> bool:
        """Whether a request for the state of a drive repeats its last command."""
        return self._is_on and self._on[k] and not self._tripped[k]

    @property
    def _repeated_ns(self) -> int:
        return round(self.watchdog * 0.5e9)

    def _polls(self) -> list[CanFrame]:
        return [self._request(k, "state") for k, damiao in enumerate(self._damiao) if damiao]

    def _cycle_layout(self) -> CycleLayout:
        layout, last = super()._cycle_layout(), self._cycle.last
        # what is repeated before the first command: the last one of this driver
        frames = [sent._replace(frame=last.get(sent.joint, sent.frame)) for sent in layout.transmission.frames]
        silent = 0 if all(self._damiao) else round(self.watchdog * 1e9)  # see `_expire`
        return layout._replace(
            transmission=layout.transmission._replace(frames=frames),
            repeated_ns=self._repeated_ns,
            longest_pause_ns=silent,
        )

    def take_back(self, came: Iterable[ReceivedFrame], waiting: Sequence[bool]) -> None:
        super().take_back(came, waiting)
        self._expire()

    def _expire(self) -> None:
        """Drives that do not report that their watchdog tripped are taken for off."""
        if self._is_on and self._now() - self._cycle.sent_ns > self.watchdog * 1e9:
            for k, damiao in enumerate(self._damiao):
                self._tripped[k] = self._tripped[k] or (0 if damiao else SWITCHED_OFF)

    def _take(self, item: CanFrame) -> None:
        if self._is_on or not self._take_other(item):
            super()._take(item)

    def _judge(self, received: ReceivedFrame, t_ns: int) -> None:
        k, numbers = received.joint, self._cycle.numbers[received.joint]
        if self._damiao[k]:
            state = int(numbers[cycle.STATE])
            mode, fault = self._mode if state == 1 else OFF, state if state > 1 else 0
        else:
            mode, fault, self._identity[k] = self._mode if self._on[k] else OFF, int(numbers[cycle.SECOND]), ()
        self._answered(k, mode, fault, t_ns)

    def _take_other(self, item: CanFrame) -> bool:
        """Whether it was an answer outside of the cycle. The first state of a drive shows how many bytes it sends."""
        for k, joint in enumerate(self._wiring):
            if item.id != joint.master:
                continue
            if self._damiao[k]:
                if (answer := codec.decode_register(item)) and answer[0] == joint.id:
                    self._replies[k, answer[2]], self._identity[k] = answer[3], ()
                    return True
            elif len(item.data) in (6, 8) and item.data[0] == joint.id and len(item.data) != self._sizes[k]:
                self._sizes[k] = len(item.data)
                self._cycle.receive_as(cycle.reception(self._drives))
        return False
