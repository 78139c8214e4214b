"""Dynamixel drives behind the driver contract: several joints on one half-duplex serial link.

Modes of the drives: effort is current control (0), velocity is velocity control (1), position is current-based position
control (5) with the joint's effort limit as its goal current, or extended position control (4) in drives that have no
current. Only current control has a field for the effort: there the host closes the loop with kp and kd and the last
measurement. Velocity and position loops run in the drive, with the gains configured in it.

Every packet feeds the drive's watchdog, reads too. Reads must not keep a drive running that receives no commands:
therefore a read sends no request unless a command was sent recently.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.core.driver_contract import DriverContext
from cosim.core.errors import InputError
from cosim.plugins.drivers.common.cycle import FAULTY, CycleLayout, Transmission
from cosim.plugins.drivers.common.drive_checks import ENABLE_NS
from cosim.plugins.drivers.common.driver import MotorDriver
from cosim.plugins.drivers.common.frame_layout import ReceivedFrame
from cosim.plugins.drivers.common.interpreted_cycle import InterpretedCycle
from cosim.plugins.drivers.dynamixel import codec, cycle, cyclic_frames, faults
from cosim.plugins.drivers.dynamixel import tables as t
from cosim.plugins.drivers.dynamixel.client import Client
from cosim.plugins.drivers.dynamixel.codec import BusPacket
from cosim.plugins.drivers.dynamixel.inspection import DriveSettings, Expected, inspect
from cosim.plugins.drivers.dynamixel.params import JointParams, Params
from cosim.plugins.drivers.dynamixel.sync_reader import SyncReader
from cosim.plugins.drivers.transport import Connection

if TYPE_CHECKING:
    from cosim.plugins.drivers.transport.compiled_link import CompiledLink

WATCHDOG_TOLERANCE_NS = 20_000_000  # by which a watchdog may trip late
STOP_COPIES = 3  # of the packet that switches off: it is not answered and may collide with another packet
REBOOT_NS = 1_000_000_000  # in which a drive must answer again
SETTLE_NS = 100_000_000  # after that, until its self-test has ended
POLL_NS = 100_000_000  # for the state of all drives while they are being switched on


class DynamixelDriver(MotorDriver[bytes, JointParams]):
    """See `common.driver`."""

    _encode = staticmethod(BusPacket.packed)

    def __init__(self, params: Params, context: DriverContext, link: Connection[bytes]) -> None:
        """Raises InputError."""
        super().__init__(context, link, params.watchdog)
        self._params = params
        self._models = [t.MODELS[w.model] for w in self._wiring]
        without_current = [k for k, model in enumerate(self._models) if not model.senses_current]
        self.modes = frozenset({"velocity", "position"} if without_current else cyclic_frames.GOALS)
        if without_current and context.mode == "effort":
            k = without_current[0]
            what = f"{self._wiring[k].model} has no current control; use mode velocity or position"
            raise InputError(what, context.place("joints", self.joints[k], "model"))
        n = len(self.joints)
        self._efforts = np.array([m.effort(w.torque_constant) for m, w in zip(self._models, self._wiring, strict=True)])
        self._ids = bytes(w.id for w in self._wiring)
        self._decoder = codec.Decoder()
        self._client = Client(link, self._decoder)
        self._watchdog_counts, self._read_window_ns = self._split_watchdog()
        # ns after a command at which the watchdog must have tripped
        self._tripped_ns = self._read_window_ns + self._watchdog_counts * t.WATCHDOG + WATCHDOG_TOLERANCE_NS
        self._settings: list[DriveSettings] = []
        own = [[effort, 0.0] for effort in self._efforts.tolist()]
        self._cycle = self.interpreted = InterpretedCycle(cycle.reception(self._ids), own)
        self._reader = SyncReader(link, self._decoder, self._ids, params.port.baudrate, self._cycle)
        self._current_limit = np.zeros(n)  # the drives' own, counts
        self._new_command, self._written_ns = False, 0  # a command was sent since the last request; its time [ns]
        self._skip_request = False  # this read sends no request
        self.feedforward.resolution[:] = self._efforts * np.abs(self.units.scale)

    @property
    def lost(self) -> int:
        return super().lost + self._decoder.lost + self._reader.invalid

    def _drive_name(self, k: int) -> str:
        return f"drive {self._ids[k]}"

    # --- opening ------------------------------------------------------------------------------------

    def _split_watchdog(self) -> tuple[int, int]:
        """(counts of the drive's watchdog, ns of reads after a command): together the configured time."""
        read_window = max(t.WATCHDOG, math.ceil(self._context.period * 1e9))
        steps = min((round(self.watchdog * 1e9) - read_window) // t.WATCHDOG, t.MAX_WATCHDOG)
        if steps < 1:
            least = (read_window + t.WATCHDOG) * 1e-9
            what = f"{self.watchdog:g} s is too short for drives that count in 20 ms; use at least {least:g} s"
            raise InputError(what, self._context.place("watchdog"))
        return steps, read_window

    def _connect(self) -> None:
        self.stop()
        self._settings = [self._inspect(k) for k in range(len(self.joints))]
        self._current_limit = np.array([f.current_limit for f in self._settings], dtype=float)
        for own, found in zip(self._cycle.settings, self._settings, strict=True):
            own[cycle.VELOCITY_LIMIT] = float(found.velocity_limit)
        fast = all(f.firmware >= t.FIRMWARE_FAST for f in self._settings)
        self._reader.set_fast(fast if self._params.fast is None else self._params.fast)
        self._read_state()

    def _inspect(self, k: int) -> DriveSettings:
        model, params = self._models[k], self._params
        expected = Expected(self._wiring[k], params.return_delay, params.fast, self.link.name)
        facts = inspect(self._client, expected, partial(self._context.place, "joints", self.joints[k]))
        own = [("velocity", facts.velocity_limit * t.VELOCITY, f"register {t.VELOCITY_LIMIT.address}")]
        if model.senses_current:
            effort = facts.current_limit * self._efforts[k]
            own.append(("effort", float(effort), f"register {t.CURRENT_LIMIT.address}"))
        self._check_limits(k, own)
        return facts

    def _read_state(self) -> None:
        """Map the registers of the state and read it, outside of the cycle. Raises RunError without an answer."""
        self._turns.forget(self._now())  # another operating mode and a reboot begin within one turn again
        for id in self._ids:
            self._client.write(id, cyclic_frames.MAP_ADDRESS, cyclic_frames.MAP)
        for k, id in enumerate(self._ids):
            data = b"\0" + self._client.read(id, cyclic_frames.ADDRESS, cyclic_frames.STATE_BYTES)
            self._reader.take({k}, id, data, self._now())
        self._measure()

    # --- switching on and off -------------------------------------------------------------------------

    def _prepare(self, mode: str) -> None:
        self._send_stop()
        steps = self._efforts * np.abs(self.units.scale) if mode == "effort" else np.zeros(len(self._ids))
        self.feedforward.limit[:], self.feedforward.resolution[:] = self._current_limit * steps, steps

    def _fault_before_enable(self, k: int) -> int:
        """The hardware error status; sets the watchdog, which also clears an earlier trip."""
        client, id = self._client, self._ids[k]
        client.put(id, t.TORQUE_ENABLE, 0)
        client.put(id, t.BUS_WATCHDOG, 0)  # clears a trip; other values are refused before
        client.put(id, t.BUS_WATCHDOG, self._watchdog_counts)
        return client.get(id, t.HARDWARE_ERROR)

    def _switch_on(self, mode: str) -> None:
        for k, id in enumerate(self._ids):
            operating = self._operating_mode(mode, k)
            if self._client.get(id, t.OPERATING_MODE) != operating:  # EEPROM: written only if needed
                self._client.put(id, t.OPERATING_MODE, operating)
            self._client.write(id, t.PROFILE_ACCELERATION.address, bytes(8))  # and velocity: no profile
        self._read_state()
        self._hold()
        deadline_ns = self._now() + ENABLE_NS
        on = codec.sync_write(t.TORQUE_ENABLE.address, 1, b"".join(bytes((id, 1)) for id in self._ids))
        for numbers in self._cycle.numbers:
            numbers[cycle.TORQUE] = 0
        while 0 in (torque := [numbers[cycle.TORQUE] for numbers in self._cycle.numbers]):
            if self._now() >= deadline_ns:
                raise self._not_on(torque.index(0), "check its supply")
            with self._gate:
                self.check_not_stopped()
                self.link.send(on, deadline_ns)  # again: it is not answered
            self._reader.poll(min(deadline_ns, self._now() + POLL_NS))  # one request to all: it feeds all watchdogs
        self._measure()
        self._written_ns, self._new_command = self._now(), True

    def _operating_mode(self, mode: str, k: int) -> int:
        if mode == "position":
            return t.CURRENT_POSITION_MODE if self._models[k].senses_current else t.EXTENDED_MODE
        return t.CURRENT_MODE if mode == "effort" else t.VELOCITY_MODE

    def _hold(self) -> None:
        """Goals that hold the measured positions without effort; the limit of the effort in position mode."""
        goals = [r[cycle.PLACE] if self._mode == "position" else 0 for r in self._cycle.numbers]
        bound = np.minimum(self.limits.effort / np.abs(self.units.scale) / self._efforts, self._current_limit)
        for k, id in enumerate(self._ids):
            self._client.put(id, cyclic_frames.GOALS[self._mode][1], int(goals[k]))
            if self._mode == "position" and self._models[k].senses_current:
                self._client.put(id, t.GOAL_CURRENT, int(bound[k]))

    def _stop_items(self) -> Iterator[bytes]:
        off = codec.sync_write(t.TORQUE_ENABLE.address, 1, b"".join(bytes((id, 0)) for id in self._ids))
        for _ in range(STOP_COPIES):
            yield off

    def _clear_faults(self) -> None:
        """Clear tripped watchdogs and reboot drives with an error.

        A reboot is like a power cycle: the number of turns of a joint that moves more than one turn is lost.
        """
        for k, id in enumerate(self._ids):
            self._client.put(id, t.TORQUE_ENABLE, 0)
            self._client.put(id, t.BUS_WATCHDOG, 0)
            if self._client.get(id, t.HARDWARE_ERROR):
                self._reboot(k, id)
        self._read_state()

    def _reboot(self, k: int, id: int) -> None:
        """Raises RunError for a drive that does not answer afterwards, or has an error."""
        start_ns = self._now()
        self._client.request(id, codec.packet(id, codec.REBOOT))
        while self._client.request(id, codec.packet(id, codec.PING)) is None:
            if self._now() - start_ns > REBOOT_NS:
                raise self._joint_error(k, f"drive {id} did not answer within 1 s after its reboot; check its supply")
        until = self._now() + SETTLE_NS
        while self._now() < until:
            self.link.receive(until)
        if hardware := self._client.get(id, t.HARDWARE_ERROR):
            raise self._fault_persists(k, hardware)

    def describe_fault(self, joint_index: int, code: int) -> str:
        """The manufacturer's name of the fault and the fix; empty for 0."""
        return faults.describe(code)

    # --- the cycle ------------------------------------------------------------------------------------

    def _transmission(self, mode: str) -> Transmission:
        return cycle.transmission(mode, self._ids)

    def _drain(self) -> None:
        """Only requests are answered."""
        return None

    def _send_filled(self, deadline_ns: int) -> None:
        super()._send_filled(deadline_ns)
        self._written_ns, self._new_command = self._now(), True

    def _poll(self, deadline_ns: int) -> None:
        """Decide whether `_receive` sends a request: not between the last command and the trip of the watchdog."""
        since_ns = self._now() - self._written_ns
        self._skip_request = (
            self._is_on and not self._new_command and self._read_window_ns < since_ns < self._tripped_ns
        )

    def _receive(self, deadline_ns: int) -> None:
        skip, self._skip_request = self._skip_request, False
        if skip:
            return
        self._new_command = False
        self._reader.poll(deadline_ns)

    def _polls(self) -> Sequence[BusPacket]:
        return (BusPacket.of(self._reader.request),)

    def _cycle_layout(self) -> CycleLayout:
        stops = tuple(map(BusPacket.of, self._stop_items()))
        return super()._cycle_layout()._replace(stops=stops, quiet_ns=(self._read_window_ns, self._tripped_ns))

    def _compiled_link(self) -> Callable[[Any], CompiledLink]:
        from cosim.plugins.drivers.dynamixel.packet_link import PacketLink

        reader = self._reader
        return lambda port: PacketLink(port, cyclic_frames.BLOCK, reader.expected_bytes, reader.wire_ns)

    def take_back(self, came: Iterable[ReceivedFrame], waiting: Sequence[bool]) -> None:
        super().take_back(came, waiting)
        if any(waiting):
            self._reader.expect_late_answers()
        self._skip_request, self._new_command, self._written_ns = True, False, self._now()

    def _fault_codes(self) -> list[int] | int:
        if self._is_on and not any([state[FAULTY] for state in self._cycle.states]):  # the usual way
            return 0
        rows = ([int(number) for number in numbers[: cycle.WATCHDOG + 1]] for numbers in self._cycle.numbers)
        return [faults.code(*row, on=self._is_on) for row in rows]
