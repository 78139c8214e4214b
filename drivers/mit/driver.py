"""Drives with the Mini Cheetah protocol behind the driver contract.

A command has position, velocity, both gains and effort, whatever the mode: in `effort` mode the gains come from the
command, in the others from the rig. Drives keep an effort field around 0: its codes are ± half a step there.

Every frame to a drive that answers as a Mini Cheetah feeds its watchdog, if it has one, and none only requests its
state. While it is on, a read repeats the last command for at most half of `watchdog`; a read after `watchdog` without a
command switches it off.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from cosim.core.driver_contract import DriverContext
from cosim.core.errors import CosimError
from cosim.core.types import Array, closed_loop_effort
from cosim.plugins.drivers.common.driver import ListedCommand
from cosim.plugins.drivers.common.node_driver import ANSWER_TIME, OFF, SWITCHED_OFF, NodeDriver, Request
from cosim.plugins.drivers.mit import codec, models
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
        self._senders = {(joint.master, head): k for k, joint in enumerate(own) for head in joint.heads}
        self._on = [False] * n  # drives that do not report it: whether they were switched on last
        self._gains = self._gains_of(self._mode)
        self._effort_limits = [self._guard_limits(k)["effort"] for k in range(n)]
        self._sent = [codec.special(joint.id, codec.EXIT) for joint in own]  # commands, as sent last
        self._commanded_ns = 0
        table = np.array(self._ranges)
        self._max_effort, self._gain_steps = table[:, 2], table[:, 3:].T / codec.FULL
        self.feedforward.resolution[:] = 2 * self._max_effort / codec.FULL * np.abs(self.units.scale)
        for k, range_ in enumerate(self._ranges):
            limits = {"effort": range_.effort, "velocity": range_.velocity}
            limits |= {"upper position": range_.position, "lower position": -range_.position}
            self._check_limits(k, [(name, limit, "range of the model") for name, limit in limits.items()])

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

    def _switch_on(self, mode: str) -> None:
        self._gains = self._gains_of(mode)
        super()._switch_on(mode)

    def _largest_effort(self, mode: str) -> Array:
        return self._max_effort

    def _gains_of(self, mode: str) -> list[tuple[float, float]]:
        """(kp, kd) of the rig, as far as the mode uses them."""
        kp, kd = {"effort": (0.0, 0.0), "velocity": (0.0, 1.0), "position": (1.0, 1.0)}[mode]
        return [(kp * joint.kp, kd * joint.kd) for joint in self._wiring]

    def _request(self, k: int, request: Request) -> CanFrame:
        id = self._wiring[k].id
        if request == "state" and self._is_on and self._on[k] and not self._tripped[k]:
            return self._sent[k]
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
        self._on[k] = False
        return codec.special(self._wiring[k].id, codec.EXIT)

    # --- the cycle -----------------------------------------------------------------------------------

    def _requested_effort(self, cmd: ListedCommand, position: list[float], velocity: list[float]) -> list[float]:
        """In effort mode the gains go to the drive, rounded to its steps; the rest of them is closed here."""
        if self._mode != "effort":
            return cmd.effort
        units, feedback = self.units, self._feedback
        asked = np.array([units.drive_gain(cmd.kp), units.drive_gain(cmd.kd)])
        sent = self._gain_steps * np.clip(np.rint(asked / self._gain_steps), 0.0, codec.FULL)
        self._gains = list(zip(*sent.tolist(), strict=True))
        rest = (asked - sent).tolist()
        loops = map(closed_loop_effort, *rest, position, velocity, feedback.position, feedback.velocity)
        return [effort + loop for effort, loop in zip(cmd.effort, units.joint_effort(loops), strict=True)]

    def _command(self, k: int, position: float, velocity: float, effort: float) -> CanFrame:
        """In the modes of the drive's own loop, targets are no farther than the effort limit reaches with its gain."""
        kp, kd = self._gains[k]
        if self._mode == "velocity":
            velocity = self._within_reach(k, kd, velocity, float(self._feedback.velocity[k]))
        elif self._mode == "position":
            position = self._within_reach(k, kp, position, float(self._feedback.position[k]))
        self._sent[k] = codec.command(self._wiring[k].id, self._ranges[k], position, velocity, kp, kd, effort)
        return self._sent[k]

    def _within_reach(self, k: int, gain: float, target: float, measured: float) -> float:
        reach = self._effort_limits[k] / gain if gain else np.inf
        return min(max(target, measured - reach), measured + reach)

    def _send_commands(
        self, position: list[float], velocity: list[float], effort: list[float], deadline_ns: int
    ) -> None:
        self._expire()
        super()._send_commands(position, velocity, effort, deadline_ns)
        self._commanded_ns = self._now()

    def _poll(self, deadline_ns: int) -> None:
        self._drain()
        self._expire()
        silent = self._is_on and self._now() - self._commanded_ns > self.watchdog * 0.5e9
        asked = [k for k, damiao in enumerate(self._damiao) if damiao or self._tripped[k] or not silent]
        self._pending.update(asked)
        for k in asked:
            self.link.send(self._request(k, "state"), deadline_ns)

    def _expire(self) -> None:
        """Drives that do not report that their watchdog tripped are taken for off."""
        if self._is_on and self._now() - self._commanded_ns > self.watchdog * 1e9:
            for k, damiao in enumerate(self._damiao):
                self._tripped[k] = self._tripped[k] or (0 if damiao else SWITCHED_OFF)

    def _take(self, item: CanFrame) -> None:
        k = self._senders.get((item.id, item.data[0])) if item.data else None
        if k is None:  # of another drive, or without content
            self._lost += not item.data
            return
        if self._damiao[k] and (answer := codec.decode_register(item)) and answer[0] == self._wiring[k].id:
            self._replies[k, answer[2]] = answer[3]
            self._identity[k] = ()
            return
        state, feedback = codec.decode_state(item, self._ranges[k], self._damiao[k]), self._feedback
        if state is None:
            self._lost += 1
            return
        feedback.position[k], feedback.velocity[k], feedback.effort[k], feedback.temperature[k], code = state
        if self._damiao[k]:
            mode, fault = self._mode if code == 1 else OFF, code if code > 1 else 0
        else:
            mode, fault, self._identity[k] = self._mode if self._on[k] else OFF, code, ()
        self._answered(k, mode, fault, item.t_ns)
