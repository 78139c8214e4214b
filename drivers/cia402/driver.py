"""CiA 402 drives on a CAN bus behind the driver contract."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from cosim.drivers.cia402 import codec, faults, profile, sdo, setup
from cosim.drivers.cia402.bus import Bus, command_frames
from cosim.drivers.cia402.client import PATIENCE_NS, NoAnswer
from cosim.drivers.cia402.homing import home
from cosim.drivers.common.driver import ENABLE_NS, MotorDriver
from cosim.drivers.transport import CanFrame, Connection
from cosim.types import Array, DriverContext

if TYPE_CHECKING:
    from cosim.drivers.cia402 import JointParams, Params  # noqa: F401 (a base names it)

T = TypeVar("T")

BOOT_NS = 1_000_000_000  # in which a drive must answer when it is opened
PASS_NS = 2_000_000  # between two reads of a drive that changes its state
RESTORE_NS = 50_000_000  # for one answer while closing
REST_NS = 1_000_000_000  # in which drives that stop are to be off


class Cia402Driver(MotorDriver[CanFrame, "JointParams"]):
    """n drives on one CAN bus. Torques have a resolution of a thousandth of the rated torque.

    In position and velocity mode the drive's own loops run, with the effort (and in position mode the velocity) as an
    offset; kp and kd are for effort mode, where the host closes the loop with them.

    A stopped drive follows its quick stop ramp (6085h) and is off at its end. With `stop: off`, and where it did not
    accept the option to do so (605Ah), its voltage is disabled immediately.
    """

    modes = frozenset(profile.MODES)

    def __init__(self, params: Params, context: DriverContext, link: Connection[CanFrame]) -> None:
        super().__init__(context, link, params.watchdog)
        n = len(context.joints)
        self._master = params.master
        self._nodes = tuple(wired.id for wired in self._wiring)
        self._bus = Bus(self._nodes, link, params.master)
        self._heard, self._client = self._bus.heard, self._bus.client
        self._facts: list[setup.Facts] = []
        self._quick = params.stop == "quick"
        self._ramps = [False] * n  # drives that a quick stop leads down a ramp and off

    @property
    def lost(self) -> int:
        return self._heard.lost

    def _at(self, k: int, action: Callable[[int], T]) -> T:
        """Do something with drive k; errors are reported as those of the drive."""
        try:
            return action(k)
        except NoAnswer:
            raise self._no_answer(k) from None
        except setup.Unfit as error:
            raise self._drive_error(k, error.what) from None
        except sdo.Aborted as error:
            what = f"{self._drive_name(k)} refused its set-up: {error}; see the drive's manual"
            raise self._drive_error(k, what) from None

    def _each(self, action: Callable[[int], object]) -> None:
        for k in range(len(self._nodes)):
            self._at(k, action)

    # --- opening and closing ------------------------------------------------------------------------

    def _connect(self) -> None:
        self._bus.halt(self._mode)  # a program that was killed may have left them on
        self._bus.prepare()
        self._facts = [self._at(k, self._identify) for k in range(len(self._nodes))]
        try:
            self._each(self._take_over)
            self._bus.start()
        except BaseException:
            self._disconnect()
            raise

    def _identify(self, k: int) -> setup.Facts:
        """One drive: motor off, of the right kind, with limits not below the guard's. It may still be booting."""
        node, end = self._nodes[k], self._now() + BOOT_NS
        while True:
            try:
                self._client.write(node, setup.CONTROLWORD, "H", profile.DISABLE_VOLTAGE)
                break
            except NoAnswer:
                if self._now() >= end:
                    raise
        facts = setup.facts(self._client, self._wiring[k], self._mode)
        self._check_limits(k, setup.limits(facts), tolerance=facts.step.effort)
        return facts

    def _take_over(self, k: int) -> None:
        self._set_up(k)
        error, facts = self._client.find(self._nodes[k], setup.ERROR_CODE, "H"), self._facts[k]
        self._heard.error[k], self._heard.steps[k] = error or 0, facts.step
        scale = abs(float(self._units.scale[k]))
        self.feedforward.resolution[k] = facts.step.effort * scale
        self.feedforward.limit[k] = min(facts.max_torque, 32767 * facts.step.effort) * scale

    def _set_up(self, k: int) -> None:
        """What a drive forgets when it loses its power."""
        client, node = self._client, self._nodes[k]
        setup.lower(client, node, self._facts[k], self._guard_limits(k)["effort"])
        setup.map_sent(client, node, self._wiring[k].temperature)
        setup.map_received(client, node, self._mode, self._context.period)

    def _disconnect(self) -> None:
        """The drives' watchdog and limits as they were before.

        Drives on their way down a ramp have REST_NS to reach its end; then their voltage is disabled.
        """
        end = self._now() + REST_NS
        for k in range(len(self._nodes)):
            with suppress(Exception):
                self._rest(k, end, RESTORE_NS)
        self._bus.halt(self._mode)
        for k in range(len(self._nodes)):
            with suppress(Exception):
                self._restore(k)
        self._heard.run(False)

    def _restore(self, k: int) -> None:
        """Only a drive that is off for certain is left without its watchdog."""
        node, client = self._nodes[k], self._client
        word = client.read(node, setup.STATUSWORD, "H", RESTORE_NS)
        if profile.state_of(word) not in profile.POWERED:
            self._bus.send((codec.nmt(codec.PRE_OPERATIONAL, node),))
            client.write(node, setup.CONSUMER, "I", 0, RESTORE_NS)
            client.write(node, setup.MAX_TORQUE, "H", self._facts[k].own_max_torque, RESTORE_NS)

    # --- switching on and off -------------------------------------------------------------------------

    def _prepare(self, mode: str) -> None:
        self._send_stop()
        self._await_rest()
        self._bus.prepare()
        self._each(self._watch)

    def _watch(self, k: int) -> None:
        ramps = setup.watch(self._client, self._nodes[k], self._master, self.watchdog)
        self._ramps[k] = ramps and self._quick

    def _fault_before_enable(self, k: int) -> int:
        """A missed heartbeat is reset here: it means no more than that there were no commands."""
        return self._at(k, self._standing_fault)

    def _standing_fault(self, k: int) -> int:
        if not self._client.read(self._nodes[k], setup.STATUSWORD, "H") & profile.FAULTY:
            return 0
        code = self._fault_code(k)
        return 0 if code == faults.HEARTBEAT and self._reset(k) else code

    def _fault_code(self, k: int) -> int:
        told = self._client.find(self._nodes[k], setup.ERROR_CODE, "H")
        return self._heard.error[k] or told or faults.UNNAMED

    def _clear_faults(self) -> None:
        self._await_rest()
        self._each(self._clear)
        self._bus.start()  # an `enable` that was refused left them pre-operational, where they send nothing

    def _clear(self, k: int) -> None:
        code = self._fault_code(k)
        if not self._reset(k):
            raise self._fault_persists(k, code)

    def _reset(self, k: int) -> bool:
        """Rising edges of bit 7, as long as the reaction takes; whether the drive is out of its fault then."""
        node, client, end = self._nodes[k], self._client, self._now() + ENABLE_NS
        while True:
            client.write(node, setup.CONTROLWORD, "H", profile.DISABLE_VOLTAGE)
            if not client.read(node, setup.STATUSWORD, "H") & profile.FAULTY:
                self._heard.error[k] = 0
                return True
            if self._now() > end:
                return False
            client.write(node, setup.CONTROLWORD, "H", profile.RESET)
            self._bus.collect(PASS_NS)

    def _home(self, k: int) -> None:
        wired = self._wiring[k]
        if wired.homing is not None:
            home(self._client, wired.id, wired.homing, self._heard.steps[k], self._feed)

    def _feed(self) -> None:
        """Feed the drives' watchdogs while one of them homes, and take what they send meanwhile."""
        self._check_not_stopped()
        self._bus.send((self._bus.beat,))
        self._bus.collect(PASS_NS)

    def _switch_on(self, mode: str) -> None:
        """Step by step to operation enabled, holding the measured position, with no effort."""
        self._each(self._set_up)
        self._bus.start()
        self._each(self._home)
        self._each(lambda k: self._client.write(self._nodes[k], setup.MODE, "b", profile.MODES[mode]))
        bus, heard, end, code = self._bus, self._heard, self._now() + ENABLE_NS, profile.MODES[mode]
        pause = max(PASS_NS, int(1e9 * self._context.period))
        heard.forget()
        bus.send((codec.SYNC,))
        while True:
            bus.collect(pause)
            states = [heard.state(k) for k in range(heard.n)]
            on = [s == profile.ENABLED and d == code for s, d in zip(states, heard.display, strict=True)]
            if all(on):
                return
            if self._now() > end:
                raise self._still_off(on.index(False))
            controls = [profile.next_control(state) for state in states]
            with self._gate:
                self._check_not_stopped()
                bus.send((*bus.hold(mode, controls), bus.beat, codec.SYNC))

    def _still_off(self, k: int) -> Exception:
        state = self._heard.state(k)
        if state in (profile.FAULT, profile.REACTING):
            return self._joint_error(k, f"fault: {faults.describe(self._heard.error[k] or faults.UNNAMED)}")
        shown = "silent" if state is None else f"'{profile.STATES[state]}'"
        fix = "check the supply of its power stage, its enable input and its safe-torque-off line"
        return self._not_on(k, f"it is {shown}; {fix}")

    def _stop_items(self) -> Iterable[CanFrame]:
        """Quick stop, or voltage off."""
        stop, off = profile.QUICK_STOP_COMMAND, profile.DISABLE_VOLTAGE
        return self._bus.halt_frames(self._mode, [stop if ramps else off for ramps in self._ramps])

    def _await_rest(self) -> None:
        """Wait until all drives are off. Raises RunError where one is not in time, or does not answer."""
        end = self._now() + REST_NS
        self._each(lambda k: self._rest(k, end))

    def _rest(self, k: int, end: int, patience_ns: int = PATIENCE_NS) -> None:
        """Wait until a drive is off. Raises setup.Unfit when it is not by `end` [ns], NoAnswer, LinkError."""
        node = self._nodes[k]
        while self._now() < end:
            state = profile.state_of(self._client.read(node, setup.STATUSWORD, "H", patience_ns))
            if state not in profile.POWERED:
                return
            if state == profile.QUICK_STOP:  # it follows its ramp; others are stopped by their watchdog
                self._bus.send((self._bus.beat,))
            self._bus.collect(PASS_NS)
        raise setup.Unfit(f"node {node} is not off 1 s after it was stopped; see its quick stop deceleration (6085h)")

    def describe_fault(self, joint_index: int, code: int) -> str:
        """The fault's name and its fix, in one line."""
        return faults.describe(code)

    # --- the cycle ------------------------------------------------------------------------------------

    def _send_commands(self, position: Array, velocity: Array, effort: Array, deadline_ns: int) -> None:
        send, mode = self.link.send, self._mode
        rows = zip(self._nodes, position.tolist(), velocity.tolist(), effort.tolist(), self._heard.steps, strict=True)
        for node, q, v, tau, step in rows:
            for frame in command_frames(mode, node, profile.ENABLE, q, v, tau, step):
                send(frame, deadline_ns)
        send(self._bus.beat, deadline_ns)
        self._bus.synchronise(deadline_ns)

    def _poll(self, deadline_ns: int) -> None:
        """SYNC without a heartbeat."""
        if not self._bus.asked:
            self._bus.synchronise(deadline_ns)

    def _receive(self, deadline_ns: int) -> None:
        """What is received was measured when the drives got SYNC."""
        self._bus.listen(deadline_ns)
        heard, feedback = self._heard, self._feedback
        feedback.position[:], feedback.velocity[:] = heard.position, heard.velocity
        feedback.effort[:], feedback.temperature[:] = heard.effort, heard.temperature
        feedback.t_ns = [min(pair) for pair in zip(heard.times[: heard.n], heard.times[heard.n :], strict=True)]

    def _fault_codes(self) -> list[int]:
        mode = profile.MODES[self._mode] if self._is_on else None
        return [self._heard.fault(k, mode) for k in range(self._heard.n)]
