"""CiA 402 drives on a CAN bus behind the driver contract."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TypeVar

from cosim.core.driver_contract import DriverContext
from cosim.plugins.drivers.cia402 import codec, cycle, faults, process_data, profile, sdo, setup
from cosim.plugins.drivers.cia402.bus import Bus
from cosim.plugins.drivers.cia402.client import TIMEOUT_NS, NoAnswer
from cosim.plugins.drivers.cia402.factor_group import Declared, velocity_unit_of
from cosim.plugins.drivers.cia402.homing import home
from cosim.plugins.drivers.cia402.params import JointParams, Params
from cosim.plugins.drivers.cia402.process_data import CommandCoder, ProcessMap
from cosim.plugins.drivers.common.cycle import Transmission
from cosim.plugins.drivers.common.drive_checks import ENABLE_NS
from cosim.plugins.drivers.common.driver import MotorDriver
from cosim.plugins.drivers.common.frame_layout import ReceivedFrame
from cosim.plugins.drivers.common.interpreted_cycle import InterpretedCycle
from cosim.plugins.drivers.transport import CanFrame, Connection

T = TypeVar("T")

BOOT_NS = 1_000_000_000  # for the first answer of a drive, which may still be booting
POLL_NS = 2_000_000  # between two reads of the state of a drive
RESTORE_NS = 50_000_000  # for one answer while closing
STOP_TIME_NS = 1_000_000_000  # in which stopped drives must be off


class Cia402Driver(MotorDriver[CanFrame, JointParams]):
    """n drives on one CAN bus. Torques have a resolution of a thousandth of the rated torque.

    In position and velocity mode the loops of the drive run, with the effort (and in position mode the velocity) as
    an offset; kp and kd are for effort mode, where the host closes the loop.

    A stopped drive follows its quick stop ramp (6085h) and switches off at its end. With `stop: off`, or if the drive
    did not accept this option (605Ah), its voltage is disabled immediately.
    """

    modes = frozenset(profile.MODES)

    def __init__(self, params: Params, context: DriverContext, link: Connection[CanFrame]) -> None:
        super().__init__(context, link, params.watchdog)
        n = len(context.joints)
        self._master = params.master
        self._nodes = tuple(wired.id for wired in self._wiring)
        self._bus = Bus(self._nodes, link, params.master, self._take)
        self._network, self._client = self._bus.network, self._bus.client
        self._properties: list[setup.DriveProperties] = []
        self._own: list[ProcessMap | None] = [None] * n  # process data of drives that have their own
        self._steps = [codec.Step(1.0, 1.0, 1.0)] * n
        settings = [cycle.settings(step, self._mode) for step in self._steps]
        self._cycle = self.interpreted = InterpretedCycle(cycle.reception(self._drives(self._mode)), settings)
        self._quick = params.stop == "quick"
        self._ramps = [False] * n  # drives whose quick stop is a ramp that ends with the voltage off

    def _drives(self, mode: str) -> list[cycle.CycledDrive]:
        return [cycle.of_joint(wired, mode, own) for wired, own in zip(self._wiring, self._own, strict=True)]

    def _call(self, k: int, action: Callable[[int], T]) -> T:
        """The result of an action on drive k; its errors are reported as the drive's."""
        try:
            return action(k)
        except NoAnswer:
            raise self._no_answer(k) from None
        except setup.UnsuitableDrive as error:
            raise self._drive_error(k, error.what) from None
        except sdo.Aborted as error:
            what = f"{self._drive_name(k)} refused its set-up: {error}; see the drive's manual"
            raise self._drive_error(k, what) from None

    def _call_each(self, action: Callable[[int], object]) -> None:
        for k in range(len(self._nodes)):
            self._call(k, action)

    # --- opening and closing ------------------------------------------------------------------------

    def _connect(self) -> None:
        self._use_process_data(self._mode)
        self._bus.disable_voltage(self._places)  # a killed program may have left them on
        self._bus.prepare()
        self._properties = [self._call(k, self._identify) for k in range(len(self._nodes))]
        try:
            self._call_each(self._configure)
            self._bus.start()
        except BaseException:
            self._disconnect()
            raise

    def _identify(self, k: int) -> setup.DriveProperties:
        """Switch a drive off and check its kind and its limits."""
        node, end = self._nodes[k], self._now() + BOOT_NS
        while True:
            try:
                self._client.write(node, setup.CONTROLWORD, "H", profile.DISABLE_VOLTAGE)
                break
            except NoAnswer:
                if self._now() >= end:
                    raise
        properties = setup.identify(self._client, self._wiring[k], self._mode, self._declared(k))
        self._check_limits(k, setup.limits(properties), tolerance=abs(properties.step.effort))
        return properties

    def _declared(self, k: int) -> Declared:
        """What the rig states of the units of a drive."""
        wired, constants, scale = self._wiring[k], self._context.torque_constants, abs(self.units.scale[k])
        return Declared(
            wired.cpr,
            None if wired.velocity_unit is None else velocity_unit_of(wired.velocity_unit),
            wired.rated_torque,
            scale,
            constants[k] / scale if constants else math.nan,
            self._guard_limits(k)["effort"],
        )

    def _configure(self, k: int) -> None:
        self._set_up(k)
        error, properties = setup.standing_error(self._client, self._nodes[k]), self._properties[k]
        self._network.error[k] = error
        self.feedforward.resolution[k] = abs(properties.step.effort) * abs(float(self.units.scale[k]))

    def _set_up(self, k: int) -> None:
        """The settings that a drive loses without power."""
        client, node = self._client, self._nodes[k]
        setup.limit_torque(client, node, self._properties[k], self._guard_limits(k)["effort"])
        own = setup.map_process_data(client, node, self._mode, self._wiring[k].mapped_temperature)
        setup.set_interpolation(client, node, self._context.period)
        self._use_own(k, own)

    def _use_own(self, k: int, own: ProcessMap | None) -> None:
        """The process data of a drive: None for the driver's."""
        properties, scale = self._properties[k], abs(float(self.units.scale[k]))
        limit = min(properties.max_torque, 32767 * abs(properties.step.effort)) * scale
        step, self._own[k] = properties.step, own
        if own is not None:
            if self._mode != "effort" and process_data.TORQUE_OFFSET not in own.received:
                limit = 0.0  # no effort can be sent beside the target
            if process_data.SPEED not in own.transmitted:
                step = step._replace(velocity=math.inf)
        self.feedforward.limit[k], self._steps[k] = limit, step
        self._cycle.settings[k][:] = cycle.settings(step, self._mode)
        self._use_process_data(self._mode)

    def _use_process_data(self, mode: str) -> None:
        """As the drives have them now."""
        drives, code = self._drives(mode), profile.MODES[mode]
        self._bus.coders = [CommandCoder(drive.map, mode, code) for drive in drives]
        reception = cycle.reception(drives)
        if reception != self._cycle.reception:
            self._cycle.receive_as(reception)

    @property
    def _places(self) -> list[float]:
        """[counts] where the drives were measured last."""
        return [numbers[cycle.PLACE] for numbers in self._cycle.numbers]

    def _disconnect(self) -> None:
        """Restore the drives' watchdogs and limits.

        Drives on their quick stop ramp have STOP_TIME_NS to reach its end; then their voltage is disabled.
        """
        end = self._now() + STOP_TIME_NS
        for k in range(len(self._nodes)):
            with suppress(Exception):
                self._wait_until_off(k, end, RESTORE_NS)
        self._bus.disable_voltage(self._places)
        for k in range(len(self._nodes)):
            with suppress(Exception):
                self._restore(k)
        self._network.set_operational(False)

    def _restore(self, k: int) -> None:
        """Restore a drive that reports to be off; another one keeps its watchdog."""
        node, client = self._nodes[k], self._client
        word = client.read(node, setup.STATUSWORD, "H", RESTORE_NS)
        if profile.state_of(word) not in profile.POWERED:
            self._bus.send((codec.nmt(codec.PRE_OPERATIONAL, node),))
            client.write(node, setup.CONSUMER, "I", 0, RESTORE_NS)
            client.write(node, setup.MAX_TORQUE, "H", self._properties[k].max_torque_raw, RESTORE_NS)

    # --- switching on and off -------------------------------------------------------------------------

    def _prepare(self, mode: str) -> None:
        self._send_stop()
        self._wait_until_all_off()
        self._bus.prepare()
        self._call_each(self._set_watchdog)

    def _set_watchdog(self, k: int) -> None:
        ramps = setup.set_watchdog(self._client, self._nodes[k], self._master, self.watchdog)
        self._ramps[k] = ramps and self._quick

    def _fault_before_enable(self, k: int) -> int:
        """The fault of a drive; a missed heartbeat is reset here, because it only means that there were no commands."""
        return self._call(k, self._standing_fault)

    def _standing_fault(self, k: int) -> int:
        if not self._client.read(self._nodes[k], setup.STATUSWORD, "H") & profile.FAULTY:
            return 0
        code = self._fault_code(k)
        return 0 if code == faults.HEARTBEAT and self._reset(k) else code

    def _fault_code(self, k: int) -> int:
        return self._network.error[k] or setup.standing_error(self._client, self._nodes[k]) or faults.UNNAMED

    def _clear_faults(self) -> None:
        self._wait_until_all_off()
        self._call_each(self._clear)
        self._bus.start()  # after a refused `enable` they are pre-operational and send nothing

    def _clear(self, k: int) -> None:
        code = self._fault_code(k)
        if not self._reset(k):
            raise self._fault_persists(k, code)

    def _reset(self, k: int) -> bool:
        """Rising edges of bit 7 until the fault reaction has ended; whether the fault is reset."""
        node, client, end = self._nodes[k], self._client, self._now() + ENABLE_NS
        while True:
            client.write(node, setup.CONTROLWORD, "H", profile.DISABLE_VOLTAGE)
            if not client.read(node, setup.STATUSWORD, "H") & profile.FAULTY:
                self._network.error[k] = 0
                return True
            if self._now() > end:
                return False
            client.write(node, setup.CONTROLWORD, "H", profile.RESET)
            self._bus.receive_for(POLL_NS)

    def _home(self, k: int) -> None:
        wired = self._wiring[k]
        if wired.homing is not None:
            home(self._client, wired.id, wired.homing, self._steps[k], self._feed)

    def _feed(self) -> None:
        """Feed the drives' watchdogs during homing, and take their frames."""
        self.check_not_stopped()
        self._bus.send((self._bus.heartbeat_frame,))
        self._bus.receive_for(POLL_NS)

    def _switch_on(self, mode: str) -> None:
        """Step by step to operation enabled, holding the measured position without effort."""
        self._call_each(self._set_up)
        self._bus.start()
        self._call_each(self._home)
        self._call_each(self._set_mode)
        self._cycle.send_as(self._transmission(mode))  # their process data may be others now
        bus, end, code = self._bus, self._now() + ENABLE_NS, profile.MODES[mode]
        pause = max(POLL_NS, int(1e9 * self._context.period))
        self._forget_times()
        bus.send((codec.SYNC,))
        while True:
            bus.receive_for(pause)
            self._measure()
            states = [self._drive_state(k) for k in range(len(self._nodes))]
            rows = zip(states, self._cycle.numbers, strict=True)
            on = [state == profile.ENABLED and numbers[cycle.DISPLAY] == code for state, numbers in rows]
            if all(on):
                break
            if self._now() > end:
                raise self._still_off(on.index(False))
            bus.send(codec.nmt(codec.START, node) for node, s in zip(self._nodes, states, strict=True) if s is None)
            controls = [profile.next_control(state) for state in states]
            with self._gate:
                self.check_not_stopped()
                bus.send((*bus.hold_frames(controls, self._places), bus.heartbeat_frame, codec.SYNC))
        for numbers in self._cycle.numbers:
            numbers[cycle.NETWORK] = codec.RUNNING  # they may not have reported it since

    def _drive_state(self, k: int) -> int | None:
        """The last reported state of a drive; None if it reported none."""
        return profile.state_of(int(self._cycle.numbers[k][cycle.STATUSWORD])) if self._cycle.times[k] else None

    def _set_mode(self, k: int) -> None:
        """Set the mode of operation; a drive that does not send which it has is asked."""
        client, node, own = self._client, self._nodes[k], self._own[k]
        client.write(node, setup.MODE, "b", profile.MODES[self._mode])
        if own is not None and process_data.DISPLAY not in own.transmitted:
            self._cycle.numbers[k][cycle.DISPLAY] = client.read(node, setup.MODE_DISPLAY, "b")

    def _still_off(self, k: int) -> Exception:
        state = self._drive_state(k)
        if state in (profile.FAULT, profile.REACTING):
            return self._joint_error(k, f"fault: {faults.describe(self._network.error[k] or faults.UNNAMED)}")
        reported = "silent" if state is None else f"'{profile.STATES[state]}'"
        fix = "check the supply of its power stage, its enable input and its safe-torque-off input"
        return self._not_on(k, f"it is {reported}; {fix}")

    def _stop_items(self) -> Iterable[CanFrame]:
        """Quick stop or voltage off."""
        stop, off = profile.QUICK_STOP_COMMAND, profile.DISABLE_VOLTAGE
        return self._bus.stop_frames(self._places, [stop if ramps else off for ramps in self._ramps])

    def _wait_until_all_off(self) -> None:
        """Wait until all drives are off. Raises RunError after STOP_TIME_NS and for a drive that does not answer."""
        end = self._now() + STOP_TIME_NS
        self._call_each(lambda k: self._wait_until_off(k, end))

    def _wait_until_off(self, k: int, end: int, timeout_ns: int = TIMEOUT_NS) -> None:
        """Wait for a drive to be off, until `end` [ns]. Raises setup.UnsuitableDrive, NoAnswer, ConnectionLost."""
        node = self._nodes[k]
        while self._now() < end:
            state = profile.state_of(self._client.read(node, setup.STATUSWORD, "H", timeout_ns))
            if state not in profile.POWERED:
                return
            if state == profile.QUICK_STOP:  # it follows its ramp and needs the heartbeat
                self._bus.send((self._bus.heartbeat_frame,))
            self._bus.receive_for(POLL_NS)
        raise setup.UnsuitableDrive(
            f"node {node} is not off 1 s after it was stopped; check its quick stop deceleration (6085h)"
        )

    def describe_fault(self, joint_index: int, code: int) -> str:
        """The fault's name and its fix, in one line."""
        return faults.describe(code)

    # --- the cycle ------------------------------------------------------------------------------------

    def _transmission(self, mode: str) -> Transmission:
        return cycle.transmission(mode, self._drives(mode), self._bus.heartbeat_frame)

    def _polls(self) -> tuple[CanFrame, ...]:
        return (codec.SYNC,)

    def _poll(self, deadline_ns: int) -> None:
        """SYNC without a heartbeat."""
        self._drain()
        self._cycle.expect(after_command=False)
        self.link.send(codec.SYNC, deadline_ns)

    def _receive(self, deadline_ns: int) -> None:
        super()._receive(deadline_ns)
        self._drain()  # emergencies come behind the process data

    def _judge(self, received: ReceivedFrame, t_ns: int) -> None:
        if not received.role:  # a measurement
            return
        k, numbers = received.joint, self._cycle.numbers[received.joint]
        if received.frame.id >= codec.HEARTBEAT:
            answered = self._cycle.measured_ns(k) > self._bus.started_ns
            self._network.heartbeat(k, int(numbers[cycle.NETWORK]), answered)
        else:
            self._network.emergency(k, int(numbers[cycle.EMERGENCY]))

    def _fault_codes(self) -> list[int]:
        mode = profile.MODES[self._mode] if self._is_on else None
        rows = enumerate(self._cycle.numbers)
        return [self._network.fault(k, int(r[cycle.STATUSWORD]), int(r[cycle.DISPLAY]), mode) for k, r in rows]
