"""The loop of emulated drives: it answers frames as they arrive and steps the physics in real time in between."""

from __future__ import annotations

import math
import select
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from cosim.core.driver_contract import BusItem, Connection, DeviceEmulator
from cosim.core.errors import RunError
from cosim.execution.hardware.emulation.fault_injection import FaultInjection, FaultyConnection, InjectedFault
from cosim.execution.hardware.emulation.motors import EmulatedMotor, EmulatedMotors

BEHIND_NS = 50_000_000  # behind the clock by more than this, the physics lets the clock slip
SLICE_NS = 100_000  # for which one connection of several is polled at a time
SEND_NS = 2_000_000  # deadline of a reply
MAX_ITEMS = 64  # answered before the next step of the physics


@dataclass
class EmulatedConnection:
    """The device side of a driver's connection, the drives on it and their injected faults."""

    name: str
    link: Connection
    drives: DeviceEmulator
    joints: tuple[str, ...]
    motors: tuple[EmulatedMotor, ...]
    faulty_connection: FaultyConnection
    answered: int = 0  # items received
    unsent: int = 0  # replies that could not be sent

    def take(self, item: BusItem, t_ns: int) -> None:
        """Handle a received item."""
        self.answered += 1
        for each in self.faulty_connection.through([item], t_ns, inward=True):
            self.handle(each, t_ns)

    def handle(self, item: BusItem, t_ns: int) -> None:
        self.send(self.drives.handle(item, t_ns), t_ns)

    def process(self, t_ns: int) -> None:
        """Handle delayed items, and send unsolicited items of the drives."""
        for item in self.faulty_connection.due(t_ns, inward=True):
            self.handle(item, t_ns)
        if "power_loss" in self.faulty_connection.active:
            return
        unsolicited = self.drives.process(t_ns)
        if "stale_heartbeat" not in self.faulty_connection.active:
            self.send(unsolicited, t_ns)
        for item in self.faulty_connection.due(t_ns, inward=False):
            self._put(item, t_ns)

    def unknown(self) -> list[str]:
        """The requests since the last call that the emulation does not have."""
        requests = getattr(self.drives, "unknown", None)  # drives of users need not have it
        return [] if requests is None else requests.taken()

    @property
    def unknown_count(self) -> int:
        """Of all requests that the emulation does not have."""
        return getattr(getattr(self.drives, "unknown", None), "count", 0)

    def send(self, items: Sequence[BusItem], t_ns: int) -> None:
        for item in self.faulty_connection.through(list(items), t_ns, inward=False):
            self._put(item, t_ns)

    def _put(self, item: BusItem, t_ns: int) -> None:
        try:
            self.link.send(item, t_ns + SEND_NS)
        except RunError:  # no receiver or a broken connection: the item is lost as on a real one
            self.unsent += 1


@dataclass
class EmulationServer:
    """All emulated drives of a rig. clock: monotonic time [ns]; report: receives messages on injected faults."""

    motors: EmulatedMotors
    connections: tuple[EmulatedConnection, ...]
    faults: tuple[InjectedFault, ...]
    step_ns: int
    clock: Callable[[], int]
    joints: tuple[str, ...]  # of the plant
    report: Callable[[str], object] = lambda what: None
    clock_slip_ns: int = 0  # because the physics was behind
    steps: int = 0
    stopped: bool = False
    running: bool = False  # a drive has requested an effort of its motor

    def open(self) -> None:
        """Raises InputError where a connection cannot be opened; then none is open."""
        try:
            for connection in self.connections:
                connection.link.open()
        except BaseException:
            self.close()
            raise
        self.motors.plant.begin(0)
        self.motors.measure()
        self._begun = self._due = self.clock()
        for connection in self.connections:
            connection.drives.reset(self._begun)

    def close(self) -> None:
        for connection in self.connections:
            with suppress(Exception):
                connection.link.close()

    def serve(self, duration: float | None = None) -> None:
        """Run for `duration` [s], or until `stopped`."""
        end = None if duration is None else self.clock() + round(duration * 1e9)
        while not self.stopped and (end is None or self.clock() < end):
            self.step()

    def step(self) -> None:
        """Answer until the next step of the physics is due, then take it."""
        now = self.clock()
        while now < self._due and not self.stopped:
            for connection, until in self._heard(now):
                self.listen(connection, until)
            now = self.clock()
        if now - self._due > BEHIND_NS:
            self.clock_slip_ns += now - self._due
            self._begun += now - self._due
            self._due = now
        for connection in self.connections:  # items that arrived in the meantime
            self.listen(connection, 0)
        self.advance_once()

    def _heard(self, now: int) -> Sequence[tuple[EmulatedConnection, int]]:
        """The connections to look at, and until when [ns]: one for as long as nothing else is due; of several those on
        which something has come, or each in turn where they cannot be waited for together."""
        if len(self.connections) == 1:
            return [(self.connections[0], self._due)]
        descriptors: list[Any] = [getattr(connection.link, "descriptor", None) for connection in self.connections]
        if None in descriptors:
            return [(connection, min(self._due, now + SLICE_NS)) for connection in self.connections]
        ready = select.select(descriptors, (), (), (self._due - now) * 1e-9)[0]
        return [(self.connections[k], 0) for k, descriptor in enumerate(descriptors) if descriptor in ready]

    def advance_once(self) -> None:
        """Take the next step of the physics."""
        self.advance(self._due)
        self._due += self.step_ns

    @property
    def due_ns(self) -> int:
        """When the next step of the physics is due, on the clock."""
        return self._due

    def listen(self, connection: EmulatedConnection, until: int) -> None:
        """Answer what has arrived on a connection, waiting for it until this time [ns]."""
        for _ in range(MAX_ITEMS):
            try:
                item = connection.link.receive(until)
            except RunError:
                with suppress(Exception):
                    connection.link.reopen()
                return
            if item is None:
                return
            connection.take(item, self.clock())

    def advance(self, t_ns: int) -> None:
        """One step of the physics and of the drives at this time of the clock."""
        plant = self.motors.plant
        self._update_faults((t_ns - self._begun) * 1e-9)
        self.motors.write_requests()
        plant.advance()
        self.steps += 1
        plant.begin(self.steps * self.step_ns)
        self.motors.measure()
        for connection in self.connections:
            connection.process(t_ns)
            for what in connection.unknown():
                self.report(f"{connection.name}: a request that the emulation does not know: {what}")

    def _value(self, signal: str) -> float:
        joint, _, what = signal.rpartition("/")
        return float(self.motors.value(self.joints.index(joint), what))

    def _update_faults(self, t: float) -> None:
        """Begin and end faults at t [s]."""
        if not self.faults:
            return
        self.running = self.running or self.motors.requested
        changed = False
        for fault in self.faults:
            active = fault.active(t, self.running, self._value)
            if active != fault.reported:
                fault.reported, changed = active, True
                where = fault.spec.joint or fault.spec.driver
                self.report(
                    f"{t:.3f} s  {fault.spec.kind.replace('_', ' ')} at {where} {'begins' if active else 'ends'}"
                )
        if changed:
            self.inject([fault.spec for fault in self.faults if fault.reported])

    def inject(self, specs: Sequence[FaultInjection]) -> None:
        """From now on exactly these faults are active."""
        for connection in self.connections:
            on_bus = [spec for spec in specs if not spec.joint and spec.driver == connection.name]
            before = set(connection.faulty_connection.active)
            connection.faulty_connection.begin(on_bus)
            after = set(connection.faulty_connection.active)
            if "power_loss" in after - before:
                for motor in connection.motors:
                    motor.enabled = False
                    motor.request(0.0)
            if "power_loss" in before - after:
                connection.drives.reset(self._due)
            if "bus_off" in after - before:
                with suppress(RunError):
                    connection.link.bus_off()
            supply = min((spec.supply for spec in on_bus if spec.kind == "brown_out"), default=1.0)
            for joint, motor in zip(connection.joints, connection.motors, strict=True):
                self._set_motor_faults(motor, [spec for spec in specs if spec.joint == joint], supply)

    def _set_motor_faults(self, motor: EmulatedMotor, active: Sequence[FaultInjection], supply: float) -> None:
        """Exactly these faults are active at the motor; supply: voltage relative to its nominal one."""
        scale, kinds = self.motors.scale_of(motor), {spec.kind for spec in active}
        motor.jump = scale * sum(spec.size for spec in active if spec.kind == "encoder_jump")
        motor.noise = abs(scale) * math.hypot(*(spec.size for spec in active if spec.kind == "encoder_noise"))
        motor.drift_rate = scale * sum(spec.rate for spec in active if spec.kind == "encoder_drift")
        motor.drift = motor.drift if "encoder_drift" in kinds else 0.0
        motor.slip_rate = scale * sum(spec.rate for spec in active if spec.kind == "coupling_slip")
        motor.frozen, motor.blind = "encoder_freeze" in kinds, "encoder_nan" in kinds
        position, velocity, effort = (
            math.prod(spec.scale for spec in active if spec.kind == f"{what}_unit")
            for what in ("position", "velocity", "effort")
        )
        motor.set_units(position, velocity, effort)
        hot = max((spec.temperature for spec in active if spec.kind == "hot_winding"), default=-math.inf)
        cause = next((spec.cause for spec in active if spec.kind == "motor_fault"), "")
        motor.set_faults(supply, hot, cause)
