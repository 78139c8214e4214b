"""The loop behind emulated drives: frames are answered as they come, the physics goes on by the clock in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from cosim.errors import RunError
from cosim.hardware.emulation.fault_injection import FaultyConnection, InjectedFault
from cosim.hardware.emulation.motors import EmulatedMotor, EmulatedMotors

BEHIND_NS = 50_000_000  # further behind the clock than this the physics gives time up
SLICE_NS = 100_000  # that one line of several is listened to at a time
SEND_NS = 2_000_000  # that an answer may take to be handed over
AT_ONCE = 64  # items that are answered before the physics has its turn


@dataclass
class EmulatedConnection:
    """The device's end of a driver's line, the drives on it and what is wrong with them."""

    name: str
    link: Any
    drives: Any  # the family's emulator
    joints: tuple[str, ...]
    motors: tuple[EmulatedMotor, ...]
    disturbed: FaultyConnection
    answered: int = 0  # items from the other side
    unsent: int = 0  # answers that the line did not take

    def take(self, item: Any, t_ns: int) -> None:
        """An item from the other side."""
        self.answered += 1
        for each in self.disturbed.through([item], t_ns, inward=True):
            self.handle(each, t_ns)

    def handle(self, item: Any, t_ns: int) -> None:
        self.send(self.drives.handle(item, t_ns), t_ns)

    def process(self, t_ns: int) -> None:
        """Time has passed for the drives."""
        for item in self.disturbed.due(t_ns, inward=True):
            self.handle(item, t_ns)
        if "power_loss" in self.disturbed.active:
            return
        unasked = self.drives.process(t_ns)
        if "stale_heartbeat" not in self.disturbed.active:
            self.send(unasked, t_ns)
        for item in self.disturbed.due(t_ns, inward=False):
            self._put(item, t_ns)

    def send(self, items: Sequence[Any], t_ns: int) -> None:
        for item in self.disturbed.through(list(items), t_ns, inward=False):
            self._put(item, t_ns)

    def _put(self, item: Any, t_ns: int) -> None:
        try:
            self.link.send(item, t_ns + SEND_NS)
        except RunError:  # nobody listens, or the line is broken: as on a real one, what was said is gone
            self.unsent += 1


@dataclass
class EmulationServer:
    """Everything behind the lines of a rig. clock: time [ns], steady."""

    motors: EmulatedMotors
    lines: tuple[EmulatedConnection, ...]
    faults: tuple[InjectedFault, ...]
    step_ns: int
    clock: Callable[[], int]
    joints: tuple[str, ...]  # of the world
    tell: Callable[[str], object] = lambda what: None
    lost_ns: int = 0  # given up because the physics was behind
    steps: int = 0
    stopped: bool = False

    def open(self) -> None:
        """Raises InputError where a line cannot be had; then none is."""
        try:
            for line in self.lines:
                line.link.open()
        except BaseException:
            self.close()
            raise
        self.motors.world.begin(0)
        self.motors.measure()
        self._begun = self._due = self.clock()
        for line in self.lines:
            line.drives.reset(self._begun)

    def close(self) -> None:
        for line in self.lines:
            with suppress(Exception):
                line.link.close()

    def serve(self, duration: float | None = None) -> None:
        """Answer for so long [s], or until `stopped`."""
        end = None if duration is None else self.clock() + round(duration * 1e9)
        while not self.stopped and (end is None or self.clock() < end):
            self.turn()

    def turn(self) -> None:
        """Listen until the physics is due, then take its step."""
        now = self.clock()
        while now < self._due and not self.stopped:
            for line in self.lines:
                self._listen(line, self._due if len(self.lines) == 1 else min(self._due, now + SLICE_NS))
            now = self.clock()
        if now - self._due > BEHIND_NS:
            self.lost_ns += now - self._due
            self._begun += now - self._due
            self._due = now
        for line in self.lines:  # what has come in the meantime, before time goes on
            self._listen(line, 0)
        self.advance(self._due)
        self._due += self.step_ns

    def _listen(self, line: EmulatedConnection, until: int) -> None:
        for _ in range(AT_ONCE):
            try:
                item = line.link.receive(until)
            except RunError:
                with suppress(Exception):
                    line.link.reopen()
                return
            if item is None:
                return
            line.take(item, self.clock())

    def advance(self, t_ns: int) -> None:
        """One step of the physics at this time of the clock, and of everything that goes by it."""
        world = self.motors.world
        self._disturb((t_ns - self._begun) * 1e-9)
        self.motors.ask()
        world.advance()
        self.steps += 1
        world.begin(self.steps * self.step_ns)
        self.motors.measure()
        for line in self.lines:
            line.process(t_ns)

    def _value(self, signal: str) -> float:
        joint, _, what = signal.rpartition("/")
        return float(self.motors.value(self.joints.index(joint), what))

    def _disturb(self, t: float) -> None:
        """What is wrong at t [s] begins, and ends."""
        if not self.faults:
            return
        changed = False
        for fault in self.faults:
            active = fault.active(t, self._value)
            if active != fault.told:
                fault.told, changed = active, True
                where = fault.spec.joint or fault.spec.driver
                self.tell(f"{t:.3f} s  {fault.spec.kind.replace('_', ' ')} at {where} {'begins' if active else 'ends'}")
                if fault.spec.joint:
                    self._at_motor(fault.spec.joint)
        if not changed:
            return
        for line in self.lines:
            before = set(line.disturbed.active)
            line.disturbed.begin([f.spec for f in self.faults if f.told and f.spec.driver == line.name])
            after = set(line.disturbed.active)
            if "power_loss" in after - before:
                for motor in line.motors:
                    motor.ask(0.0)
            if "power_loss" in before - after:
                line.drives.reset(self._due)
            if "bus_off" in after - before:
                with suppress(RunError):
                    line.link.bus_off()

    def _at_motor(self, joint: str) -> None:
        """All that is wrong at the motor of a joint now."""
        pairs = (pair for line in self.lines for pair in zip(line.joints, line.motors, strict=True))
        motor = next(motor for name, motor in pairs if name == joint)
        wrong = [fault.spec for fault in self.faults if fault.told and fault.spec.joint == joint]
        jumps = sum(spec.size for spec in wrong if spec.kind == "encoder_jump")
        motor.jump = self.motors.scale_of(motor) * jumps
        motor.trouble = next((spec.trouble for spec in wrong if spec.kind == "motor_fault"), "")
