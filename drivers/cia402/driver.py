"""The host's side of a line of CiA 402 drives: opens, enables, commands and reads them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from cosim.errors import InputError, RunError
from cosim.types import Array, DriverContext, JointCommand, JointState, requested_effort
from drivers.cia402 import codec, faults, profile, sdo, setup
from drivers.cia402.client import Client, NoAnswer, request_write
from drivers.cia402.feedback import Feedback
from drivers.cia402.homing import home
from drivers.common.slot import EffortSlot
from drivers.common.wiring import Units
from drivers.transport import Frame, Link, now

if TYPE_CHECKING:
    from drivers.cia402 import Params

T = TypeVar("T")

BOOT_NS = 1_000_000_000  # in which a drive must answer when it is opened
ENABLE_NS = 1_000_000_000  # in which all drives must be on, or out of their faults
PASS_NS = 2_000_000  # between two steps of switching on
STOP_NS = 20_000_000  # for sending what stops the drives
GOODBYE_NS = 50_000_000  # for one answer when the line is closed
BURST = 32  # frames per joint that one read takes, so that a babbling node cannot hold it up
NOT_OPEN = "the drives are not open; open them first"


def command_frames(
    mode: str, node: int, control: int, position: float, velocity: float, effort: float, step: codec.Step
) -> tuple[Frame, ...]:
    """What one drive is sent in a cycle, in the drive's SI. Raises ValueError for what is not a number."""
    if mode == "effort":
        return (codec.effort_command(node, control, effort, step),)
    if mode == "velocity":
        return (codec.velocity_command(node, control, velocity, effort, step),)
    return (
        codec.position_command(node, control, position, effort, step),
        codec.velocity_offset(node, velocity, step),
    )


class Cia402Driver:
    """n drives on one CAN bus; see cosim.types.Driver. Torques go in steps of a thousandth of the rated torque.

    In position and velocity mode the drive's own loops run, with the effort (and in position mode the velocity) as an
    offset; kp and kd are for effort mode, where the host closes the loop with them.
    """

    modes = frozenset(profile.MODES)

    def __init__(self, params: Params, context: DriverContext, link: Link[Frame]) -> None:
        n = len(context.joints)
        self.joints, self.limits, self.link = context.joints, context.limits, link
        self.watchdog = params.watchdog
        self.slot = EffortSlot(self.joints, np.full(n, np.inf), np.zeros(n))
        self._context, self._wiring, self._master = context, context.wiring, params.master
        self._nodes = tuple(wired.id for wired in context.wiring)
        self._units = Units(context.wiring)
        self._heard = Feedback(self._nodes)
        self._client = Client(link, self._heard.take)
        self._beat = codec.heartbeat(params.master, codec.RUNNING)
        self._own_torque = [0] * n  # 6072h as it was found
        # the last measured state, in the joints' SI, for `requested_effort`
        self._measured = {"position": np.zeros(n), "velocity": np.zeros(n)}
        self._opened = self._on = self._asked = False
        self._mapped = context.mode  # the mode that the receive PDOs are mapped for

    @property
    def lost(self) -> int:
        """Frames of the drives that could not be understood."""
        return self._heard.lost

    # --- opening and closing ----------------------------------------------------------------------

    def open(self) -> None:
        """Raises InputError at the joint's `id`: nobody answers, another device, a limit beyond the drive's own."""
        self.link.open()
        try:
            self.stop()  # a drive that is still on would call it a fault to be taken out of operation
            self._tell_all(codec.PRE_OPERATIONAL)
            known = [self._at(k, self._look) for k in range(len(self._nodes))]
            for k, facts in enumerate(known):
                self._at(k, lambda k, facts=facts: self._prepare(k, facts))
            self._opened = True
            self._start()
        except BaseException:
            self.close()
            raise

    def _at(self, k: int, action: Callable[[int], T]) -> T:
        """Do something with drive k; what is wrong with it is told at the place of its id."""
        node, place = self._nodes[k], self._context.place("joints", self.joints[k], "id")
        try:
            return action(k)
        except NoAnswer:
            what = f"no answer from node {node} on {self.link.name}; check its power, the id and the bit rate"
            raise InputError(what, place) from None
        except setup.Unfit as error:
            raise InputError(error.what, place) from None
        except sdo.Aborted as error:
            raise InputError(f"node {node} refused its set-up: {error}; see the drive's manual", place) from None

    def _look(self, k: int) -> setup.Facts:
        """Meet one drive: motor off, of the right kind, able to keep the guard's limits. It may still be booting."""
        node, end = self._nodes[k], now() + BOOT_NS
        while True:
            try:
                self._client.write(node, setup.CONTROLWORD, "H", profile.DISABLE_VOLTAGE)
                break
            except NoAnswer:
                if now() >= end:
                    raise
        known = setup.facts(self._client, self._wiring[k], self._context.mode)
        setup.compare(node, known, *self._drive_limits(k))
        return known

    def _drive_limits(self, k: int) -> tuple[float, float]:
        """The guard's limits of effort and velocity on the drive's side of the gear."""
        scale = abs(float(self._units.scale[k]))
        return float(self.limits.effort[k]) / scale, float(self.limits.velocity[k]) * scale

    def _prepare(self, k: int, known: setup.Facts) -> None:
        client, node, wired = self._client, self._nodes[k], self._wiring[k]
        setup.lower(client, node, known, self._drive_limits(k)[0])
        setup.map_sent(client, node, wired.temperature)
        setup.map_received(client, node, self._mapped, self._context.period)
        heard, scale = self._heard, abs(float(self._units.scale[k]))
        heard.error[k] = client.find(node, setup.ERROR_CODE, "H") or 0
        heard.steps[k], self._own_torque[k] = known.step, known.own_max_torque
        self.slot.quantum[k] = known.step.effort * scale
        self.slot.limit[k] = min(known.max_torque, 32767 * known.step.effort) * scale

    def _start(self) -> None:
        self._tell_all(codec.START)
        self._heard.run(True)

    def close(self) -> None:
        """Motors off, the drives' watchdog and limits as they were found, the line closed."""
        self.stop()
        if self._opened:
            for k in range(len(self._nodes)):
                with suppress(Exception):
                    self._leave(k)
        self._opened = False
        self._heard.run(False)
        self.link.close()

    def _leave(self, k: int) -> None:
        """Only a drive that is off for certain is left without its watchdog."""
        node, client = self._nodes[k], self._client
        word = client.read(node, setup.STATUSWORD, "H", GOODBYE_NS)
        if profile.state_of(word) not in (profile.ENABLED, profile.QUICK_STOP, profile.REACTING):
            self.link.send(codec.nmt(codec.PRE_OPERATIONAL, node), now() + STOP_NS)
            client.write(node, setup.CONSUMER, "I", 0, GOODBYE_NS)
            client.write(node, setup.MAX_TORQUE, "H", self._own_torque[k], GOODBYE_NS)

    # --- switching on and off ---------------------------------------------------------------------

    def enable(self, mode: str) -> None:
        """Raises RunError: an unknown mode, a drive in fault, one that does not home or switch on; motors are off then.

        A fault is cleared by `clear` only, but for a missed heartbeat: that tells no more than that nobody commanded.
        """
        if mode not in self.modes:
            raise RunError(f"unknown mode '{mode}'; known: {', '.join(sorted(self.modes))}")
        if not self._opened:
            raise RunError(NOT_OPEN)
        try:
            self._enable(mode)
        except BaseException:
            self.stop()
            raise

    def _enable(self, mode: str) -> None:
        self.stop()
        self._heard.run(False)
        self._tell_all(codec.PRE_OPERATIONAL)
        self._each(lambda k: setup.watch(self._client, self._nodes[k], self._master, self.watchdog))
        if mode != self._mapped:
            period = self._context.period
            self._each(lambda k: setup.map_received(self._client, self._nodes[k], mode, period))
            self._mapped = mode
        self._each(self._refuse_fault)
        self._start()
        self._each(self._home)
        self._each(lambda k: self._client.write(self._nodes[k], setup.MODE, "b", profile.MODES[mode]))
        self._switch_on(mode)
        self._on = True

    def _each(self, action: Callable[[int], None]) -> None:
        """Do something with every drive; what is wrong with one is told with its joint's name."""
        for k, node in enumerate(self._nodes):
            try:
                action(k)
            except sdo.Aborted as error:
                raise RunError(f"joint '{self.joints[k]}': node {node} refused its set-up: {error}") from None
            except NoAnswer as error:
                raise RunError(f"joint '{self.joints[k]}': {error.what}; check its power and cable") from None
            except setup.Unfit as error:
                raise RunError(f"joint '{self.joints[k]}': {error.what}") from None

    def _refuse_fault(self, k: int) -> None:
        if not self._client.read(self._nodes[k], setup.STATUSWORD, "H") & profile.FAULTY:
            return
        code = self._fault_code(k)
        if code != faults.HEARTBEAT or not self._reset(k):
            raise setup.Unfit(f"{faults.describe(code)}, then clear the fault")

    def _fault_code(self, k: int) -> int:
        return self._client.find(self._nodes[k], setup.ERROR_CODE, "H") or faults.UNNAMED

    def clear(self) -> None:
        """Reset the faults of all drives; motors are off. Raises RunError where one stands."""
        if not self._opened:
            raise RunError(NOT_OPEN)
        self.stop()
        self._each(self._clear)

    def _clear(self, k: int) -> None:
        if not self._reset(k):
            raise setup.Unfit(f"the fault stands: {faults.describe(self._fault_code(k))}")

    def _reset(self, k: int) -> bool:
        """A rising edge of bit 7; whether the drive is out of its fault after it."""
        node, client, end = self._nodes[k], self._client, now() + ENABLE_NS
        client.write(node, setup.CONTROLWORD, "H", profile.DISABLE_VOLTAGE)
        if client.read(node, setup.STATUSWORD, "H") & profile.FAULTY:
            client.write(node, setup.CONTROLWORD, "H", profile.RESET)
        while client.read(node, setup.STATUSWORD, "H") & profile.FAULTY:
            if now() > end:
                return False
            self._collect(now() + PASS_NS)
        client.write(node, setup.CONTROLWORD, "H", profile.DISABLE_VOLTAGE)
        self._heard.error[k] = 0
        return True

    def _home(self, k: int) -> None:
        wired = self._wiring[k]
        if wired.homing is not None:
            home(self._client, wired.id, wired.homing, self._heard.steps[k], self._feed)

    def _feed(self) -> None:
        """Keep the drives' watchdogs quiet while one of them homes, and hear what they say meanwhile."""
        self._send((self._beat,), now() + STOP_NS)
        self._collect(now() + PASS_NS)

    def _switch_on(self, mode: str) -> None:
        """Step by step to operation enabled, holding where the motor is, with no effort."""
        heard, end, code = self._heard, now() + ENABLE_NS, profile.MODES[mode]
        pause = max(PASS_NS, int(1e9 * self._context.period))
        heard.times = [0] * len(heard.times)
        self._send((codec.SYNC,), end)
        while True:
            self._collect(now() + pause)
            states = [heard.state(k) for k in range(heard.n)]
            on = [s == profile.ENABLED and d == code for s, d in zip(states, heard.display, strict=True)]
            if all(on):
                return
            if now() > end:
                k = on.index(False)
                raise RunError(self._not_on(k, states[k]))
            controls = [profile.next_control(state) for state in states]
            self._send((*self._hold(controls), self._beat, codec.SYNC), now() + STOP_NS)

    def _hold(self, controls: Iterable[int]) -> list[Frame]:
        """Commands that hold where the motors are, with no effort; one controlword per drive."""
        frames: list[Frame] = []
        heard = self._heard
        for control, node, position, step in zip(controls, self._nodes, heard.position, heard.steps, strict=True):
            frames += command_frames(self._mapped, node, control, position, 0.0, 0.0, step)
        return frames

    def _not_on(self, k: int, state: int | None) -> str:
        if state in (profile.FAULT, profile.REACTING):
            fault = faults.describe(self._heard.error[k] or faults.UNNAMED)
            return f"joint '{self.joints[k]}' went into a fault: {fault}"
        shown = "silent" if state is None else f"'{profile.STATES[state]}'"
        return (
            f"joint '{self.joints[k]}' did not switch on within 1 s, node {self._nodes[k]} is {shown};"
            " check the supply of its power stage, its enable input and its safe-torque-off line"
        )

    def stop(self) -> None:
        """Disable voltage, by PDO at once and by SDO for a drive that takes no PDOs; nobody is waited for."""
        self._on = False
        deadline = now() + STOP_NS
        off = profile.DISABLE_VOLTAGE
        frames = [*self._hold([off] * len(self._nodes)), codec.SYNC] if self._heard.running else []
        frames += [request_write(node, setup.CONTROLWORD, "H", off) for node in self._nodes]
        for frame in frames:
            with suppress(Exception):
                self.link.send(frame, deadline)

    # --- the cycle --------------------------------------------------------------------------------

    def write(self, cmd: JointCommand, deadline_ns: int) -> None:
        """Raises RunError: before `enable`, for a command that is out of date or not a number; LinkError."""
        if not self._on:
            raise RunError("the motors are off; enable the drives before commanding them")
        late = now() - cmd.valid_until_ns
        if late > 0:
            raise RunError(f"the command was valid until {1e-6 * late:.3g} ms ago; it is not sent")
        mode, units = self._mapped, self._units
        effort = requested_effort(vars(cmd), self._measured) if mode == "effort" else cmd.effort
        if not math.isfinite(float((effort + cmd.position + cmd.velocity).sum())):
            raise RunError(f"the command of joint {self._not_finite(cmd, effort)} is not a number; it is not sent")
        efforts = units.drive_effort(self.slot.fit(effort)).tolist()
        positions = units.drive_position(cmd.position).tolist()
        velocities = units.drive_velocity(cmd.velocity).tolist()
        send = self.link.send
        for row in zip(self._nodes, positions, velocities, efforts, self._heard.steps, strict=True):
            for frame in command_frames(mode, row[0], profile.ENABLE, *row[1:]):
                send(frame, deadline_ns)
        send(self._beat, deadline_ns)
        self._synchronise(deadline_ns)

    def _not_finite(self, cmd: JointCommand, effort: Array) -> str:
        bad = ~np.isfinite(effort + cmd.position + cmd.velocity)
        return ", ".join(f"'{self.joints[k]}'" for k in np.flatnonzero(bad))

    def _synchronise(self, deadline_ns: int) -> None:
        """SYNC: commands take effect, and every drive answers; late answers to the one before are no answers to it."""
        if self._heard.waiting:
            self._drain()
        self._heard.expect()
        self.link.send(codec.SYNC, deadline_ns)
        self._asked = True

    def read(self, out: JointState, deadline_ns: int) -> None:
        """See cosim.types.Driver. Raises LinkError."""
        if not self._asked:
            self._synchronise(deadline_ns)
        heard, receive = self._heard, self.link.receive
        for _ in range(BURST * heard.n):
            if not heard.waiting or (frame := receive(deadline_ns)) is None:
                break
            heard.take(frame)
        self._drain()
        self._asked = False
        self._fill(out)

    def _drain(self) -> None:
        """Take what has come already."""
        for _ in range(BURST * self._heard.n):
            if (frame := self.link.receive(0)) is None:
                return
            self._heard.take(frame)

    def _collect(self, until_ns: int) -> None:
        """Take everything that comes until then."""
        while (frame := self.link.receive(until_ns)) is not None:
            self._heard.take(frame)
            if now() > until_ns:
                return

    def _fill(self, out: JointState) -> None:
        heard, units, measured = self._heard, self._units, self._measured
        measured["position"][:] = units.joint_position(np.array(heard.position))
        measured["velocity"][:] = units.joint_velocity(np.array(heard.velocity))
        effort = units.joint_effort(np.array(heard.effort))
        out.t_ns = min(heard.times)
        if out.t_ns:
            out.position[:], out.velocity[:], out.effort[:] = measured["position"], measured["velocity"], effort
            out.temperature[:] = heard.temperature
        else:  # some drive was never heard: its old values stay
            there = np.reshape(heard.times, (2, heard.n)).all(axis=0)
            np.copyto(out.position, measured["position"], where=there)
            np.copyto(out.velocity, measured["velocity"], where=there)
            np.copyto(out.effort, effort, where=there)
            np.copyto(out.temperature, heard.temperature, where=there)
        mode = profile.MODES[self._mapped] if self._on else None
        out.fault[:] = [heard.fault(k, mode) for k in range(heard.n)]

    # --- words ------------------------------------------------------------------------------------

    def describe_fault(self, joint_index: int, code: int) -> str:
        """The fault's name and how to mend it, in one line."""
        return faults.describe(code)

    def report(self) -> list[dict[str, object]]:
        """Of the slots that take the effort, per joint."""
        return self.slot.report()

    def _tell_all(self, command: int) -> None:
        """An NMT command to each drive; others on the bus are not spoken to."""
        self._send([codec.nmt(command, node) for node in self._nodes], now() + STOP_NS)

    def _send(self, frames: Iterable[Frame], deadline_ns: int) -> None:
        for frame in frames:
            self.link.send(frame, deadline_ns)
