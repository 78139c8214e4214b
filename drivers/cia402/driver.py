"""The host's side of a line of CiA 402 drives: opens, enables, commands and reads them."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from cosim.drivers.cia402 import codec, faults, profile, sdo, setup
from cosim.drivers.cia402.bus import Bus, command_frames
from cosim.drivers.cia402.client import PATIENCE_NS, NoAnswer
from cosim.drivers.cia402.homing import home
from cosim.drivers.common.feedforward_field import FeedforwardField
from cosim.drivers.common.wiring import Units
from cosim.drivers.transport import CanFrame, Connection, now
from cosim.errors import InputError, RunError
from cosim.types import Array, DriverContext, JointCommand, JointState, requested_effort

if TYPE_CHECKING:
    from cosim.drivers.cia402 import Params

T = TypeVar("T")

BOOT_NS = 1_000_000_000  # in which a drive must answer when it is opened
ENABLE_NS = 1_000_000_000  # in which all drives must be on, or out of their faults
PASS_NS = 2_000_000  # between two looks at a drive that changes its state
GOODBYE_NS = 50_000_000  # for one answer when the line is closed
REST_NS = 1_000_000_000  # in which drives that stop are to be off
NOT_OPEN = "the drives are not open; open them first"


class Cia402Driver:
    """n drives on one CAN bus; see cosim.types.Driver. Torques go in steps of a thousandth of the rated torque.

    In position and velocity mode the drive's own loops run, with the effort (and in position mode the velocity) as an
    offset; kp and kd are for effort mode, where the host closes the loop with them.

    Stopped, a drive goes down its quick stop ramp (6085h) and is off at its end. With `stop: off`, and where it did not
    take the option to do so (605Ah), its voltage is disabled at once.
    """

    modes = frozenset(profile.MODES)

    def __init__(self, params: Params, context: DriverContext, link: Connection[CanFrame]) -> None:
        n = len(context.joints)
        self.joints, self.limits, self.link = context.joints, context.limits, link
        self.watchdog = params.watchdog
        self.latched = False  # `enable` was refused for a fault that `clear` may clear
        self.feedforward = FeedforwardField(self.joints)
        self._context, self._wiring, self._master = context, context.wiring, params.master
        self._nodes = tuple(wired.id for wired in context.wiring)
        self._bus = Bus(self._nodes, link, params.master)
        self._heard, self._client = self._bus.heard, self._bus.client
        self._units = Units(context.wiring)
        self._facts: list[setup.Facts] = []
        # the last measured state, in the joints' SI, for `requested_effort`
        self._measured = {"position": np.zeros(n), "velocity": np.zeros(n)}
        self._quick = params.stop == "quick"
        self._ramps = [False] * n  # drives that a quick stop leads down a ramp and off
        self._opened = self._on = self._stopped = False
        self._mode = context.mode  # for which the receive PDOs are mapped

    @property
    def lost(self) -> int:
        """Frames of the drives that could not be understood."""
        return self._heard.lost

    # --- opening and closing ----------------------------------------------------------------------

    def open(self) -> None:
        """Raises InputError at the joint's `id`: nobody answers, another device, a limit beyond the drive's own."""
        self.link.open()
        try:
            self._bus.halt(self._mode)  # a program that was killed may have left them on
            self._bus.prepare()
            self._facts = [self._at(k, self._look) for k in range(len(self._nodes))]
            self._opened = True
            for k, known in enumerate(self._facts):
                self._at(k, self._set_up)
                told = self._at(k, lambda k: self._client.find(self._nodes[k], setup.ERROR_CODE, "H"))
                self._heard.error[k], self._heard.steps[k] = told or 0, known.step
                scale = abs(float(self._units.scale[k]))
                self.feedforward.resolution[k] = known.step.effort * scale
                self.feedforward.limit[k] = min(known.max_torque, 32767 * known.step.effort) * scale
            self._bus.start()
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

    def _set_up(self, k: int) -> None:
        """What a drive forgets when it loses its power."""
        client, node = self._client, self._nodes[k]
        setup.lower(client, node, self._facts[k], self._drive_limits(k)[0])
        setup.map_sent(client, node, self._wiring[k].temperature)
        setup.map_received(client, node, self._mode, self._context.period)

    def close(self) -> None:
        """Motors off, the drives' watchdog and limits as they were found, the line closed.

        Drives that are on their way down a ramp have REST_NS to come to its end; then their voltage is disabled.
        """
        self.stop()
        if self._opened:
            end = now() + REST_NS
            for k in range(len(self._nodes)):
                with suppress(Exception):
                    self._rest(k, end, GOODBYE_NS)
            self._bus.halt(self._mode)
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
        if profile.state_of(word) not in profile.POWERED:
            self._bus.send((codec.nmt(codec.PRE_OPERATIONAL, node),))
            client.write(node, setup.CONSUMER, "I", 0, GOODBYE_NS)
            client.write(node, setup.MAX_TORQUE, "H", self._facts[k].own_max_torque, GOODBYE_NS)

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
        self._stop()
        self._stopped = self.latched = False
        self._bus.prepare()
        self._mode = mode
        self._each(self._watch)
        self._each(self._refuse_fault)
        self._each(self._set_up)
        self._bus.start()
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

    def _watch(self, k: int) -> None:
        ramps = setup.watch(self._client, self._nodes[k], self._master, self.watchdog)
        self._ramps[k] = ramps and self._quick

    def _refuse_fault(self, k: int) -> None:
        if not self._client.read(self._nodes[k], setup.STATUSWORD, "H") & profile.FAULTY:
            return
        code = self._fault_code(k)
        if code != faults.HEARTBEAT or not self._reset(k):
            self.latched = True
            raise setup.Unfit(f"{faults.describe(code)}, then clear the fault")

    def _fault_code(self, k: int) -> int:
        told = self._client.find(self._nodes[k], setup.ERROR_CODE, "H")
        return self._heard.error[k] or told or faults.UNNAMED

    def clear(self) -> None:
        """Reset the faults of all drives; motors are off. Raises RunError where one stands."""
        if not self._opened:
            raise RunError(NOT_OPEN)
        self._stop()
        self._each(self._clear)
        self._bus.start()  # an `enable` that was refused left them pre-operational, where they tell nothing
        self.latched = False

    def _clear(self, k: int) -> None:
        code = self._fault_code(k)
        if not self._reset(k):
            raise setup.Unfit(f"the fault persists: {faults.describe(code)}")

    def _reset(self, k: int) -> bool:
        """Rising edges of bit 7, as long as it takes to come to rest; whether the drive is out of its fault then."""
        node, client, end = self._nodes[k], self._client, now() + ENABLE_NS
        while True:
            client.write(node, setup.CONTROLWORD, "H", profile.DISABLE_VOLTAGE)
            if not client.read(node, setup.STATUSWORD, "H") & profile.FAULTY:
                self._heard.error[k] = 0
                return True
            if now() > end:
                return False
            client.write(node, setup.CONTROLWORD, "H", profile.RESET)
            self._bus.collect(PASS_NS)

    def _home(self, k: int) -> None:
        wired = self._wiring[k]
        if wired.homing is not None:
            home(self._client, wired.id, wired.homing, self._heard.steps[k], self._feed)

    def _feed(self) -> None:
        """Keep the drives' watchdogs quiet while one of them homes, and hear what they say meanwhile."""
        self._go_on()
        self._bus.send((self._bus.beat,))
        self._bus.collect(PASS_NS)

    def _switch_on(self, mode: str) -> None:
        """Step by step to operation enabled, holding where the motor is, with no effort."""
        bus, heard, end, code = self._bus, self._heard, now() + ENABLE_NS, profile.MODES[mode]
        pause = max(PASS_NS, int(1e9 * self._context.period))
        heard.forget()
        bus.send((codec.SYNC,))
        while True:
            bus.collect(pause)
            states = [heard.state(k) for k in range(heard.n)]
            on = [s == profile.ENABLED and d == code for s, d in zip(states, heard.display, strict=True)]
            if all(on):
                return
            if now() > end:
                raise RunError(self._not_on(on.index(False)))
            controls = [profile.next_control(state) for state in states]
            self._go_on()
            bus.send((*bus.hold(mode, controls), bus.beat, codec.SYNC))

    def _not_on(self, k: int) -> str:
        state = self._heard.state(k)
        if state in (profile.FAULT, profile.REACTING):
            fault = faults.describe(self._heard.error[k] or faults.UNNAMED)
            return f"joint '{self.joints[k]}' went into a fault: {fault}"
        shown = "silent" if state is None else f"'{profile.STATES[state]}'"
        return (
            f"joint '{self.joints[k]}' did not switch on within 1 s, node {self._nodes[k]} is {shown};"
            " check the supply of its power stage, its enable input and its safe-torque-off line"
        )

    def _go_on(self) -> None:
        """Raises RunError when another thread stopped the drives: they are not switched on after that."""
        if self._stopped:
            raise RunError(f"the drives of {', '.join(self.joints)} were stopped while they were switched on")

    def stop(self) -> None:
        """Motors off by quick stop, or by disabling the voltage; from any state and thread, waits for nobody, never
        raises."""
        self._stopped, self._on = True, False
        stop, off = profile.QUICK_STOP_COMMAND, profile.DISABLE_VOLTAGE
        self._bus.halt(self._mode, [stop if ramps else off for ramps in self._ramps])

    def _stop(self) -> None:
        """The same, waiting until all drives are off. Raises RunError where one is not in time, or does not answer."""
        self.stop()
        end = now() + REST_NS
        self._each(lambda k: self._rest(k, end))

    def _rest(self, k: int, end: int, patience_ns: int = PATIENCE_NS) -> None:
        """Wait until a drive is off. Raises setup.Unfit when it is not by `end` [ns], NoAnswer, LinkError."""
        node = self._nodes[k]
        while now() < end:
            state = profile.state_of(self._client.read(node, setup.STATUSWORD, "H", patience_ns))
            if state not in profile.POWERED:
                return
            if state == profile.QUICK_STOP:  # it obeys, and may go down its ramp in peace; another has its watchdog
                self._bus.send((self._bus.beat,))
            self._bus.collect(PASS_NS)
        raise setup.Unfit(f"node {node} is not off 1 s after it was stopped; see its quick stop deceleration (6085h)")

    # --- the cycle --------------------------------------------------------------------------------

    def write(self, cmd: JointCommand, deadline_ns: int) -> None:
        """Raises RunError: before `enable`, for a command that is out of date or not a number; LinkError."""
        if not self._on:
            raise RunError("the motors are off; enable the drives before commanding them")
        late = now() - cmd.valid_until_ns
        if late > 0:
            raise RunError(f"the command was valid until {1e-6 * late:.3g} ms ago; it is not sent")
        mode, units = self._mode, self._units
        effort = requested_effort(vars(cmd), self._measured) if mode == "effort" else cmd.effort
        if not math.isfinite(float((effort + cmd.position + cmd.velocity).sum())):
            raise RunError(f"the command of joint {self._not_finite(cmd, effort)} is not a number; it is not sent")
        efforts = units.drive_effort(self.feedforward.fit(effort)).tolist()
        positions = units.drive_position(cmd.position).tolist()
        velocities = units.drive_velocity(cmd.velocity).tolist()
        send = self.link.send
        for row in zip(self._nodes, positions, velocities, efforts, self._heard.steps, strict=True):
            for frame in command_frames(mode, row[0], profile.ENABLE, *row[1:]):
                send(frame, deadline_ns)
        send(self._bus.beat, deadline_ns)
        self._bus.synchronise(deadline_ns)

    def _not_finite(self, cmd: JointCommand, effort: Array) -> str:
        bad = ~np.isfinite(effort + cmd.position + cmd.velocity)
        return ", ".join(f"'{self.joints[k]}'" for k in np.flatnonzero(bad))

    def read(self, out: JointState, deadline_ns: int) -> None:
        """See cosim.types.Driver. What is read was measured when the drives got SYNC. Raises LinkError."""
        self._bus.listen(deadline_ns)
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
        mode = profile.MODES[self._mode] if self._on else None
        out.fault[:] = [heard.fault(k, mode) for k in range(heard.n)]

    # --- words ------------------------------------------------------------------------------------

    def describe_fault(self, joint_index: int, code: int) -> str:
        """The fault's name and how to mend it, in one line."""
        return faults.describe(code)

    def report(self) -> list[dict[str, object]]:
        """Of the slots that take the effort, per joint."""
        return self.feedforward.report()
