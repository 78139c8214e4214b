"""Modbus drives behind the driver contract.

Every message may feed a drive's watchdog, not only a command. Reads must not keep a motor on that gets no commands:
some time after the last command nothing is sent until the watchdogs must have tripped. The drives' timeout is shorter
by this time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from cosim.core.driver_contract import DriverContext
from cosim.core.errors import CosimError, InputError
from cosim.core.types import Array
from cosim.plugins.drivers.common.fault_texts import FaultTable, fault_table
from cosim.plugins.drivers.common.node_driver import OFF, NodeDriver, Request
from cosim.plugins.drivers.modbus import codec
from cosim.plugins.drivers.modbus.params import JointParams, Registers
from cosim.plugins.drivers.transport.half_duplex import HalfDuplexLink

STATUS_FAULT = -2  # the status has a fault, and the fault code is 0 or there is none
READ_WINDOW = 0.25  # of the watchdog
TOLERANCE_NS = 20_000_000  # by which a watchdog may trip late
IDENTITY = ("model", "max_effort", "max_velocity")
STATE = ("position", "velocity", "status", "effort", "temperature", "fault")


def runs(map: Registers, names: Iterable[str]) -> list[range]:
    """The registers of these points, adjacent ones together: each is read by one request."""
    spans = [point.span for name in names if (point := getattr(map, name)) is not None]
    found: list[range] = []
    for span in sorted(spans, key=lambda span: span.start):
        if found and span.start <= found[-1].stop and span.stop - found[-1].start <= codec.MAX_READ:
            found[-1] = range(found[-1].start, max(span.stop, found[-1].stop))
        else:
            found.append(span)
    return found


class ModbusDriver(NodeDriver[bytes, JointParams]):
    link: HalfDuplexLink[codec.RtuRequest]

    def __init__(self, context: DriverContext, line: HalfDuplexLink[codec.RtuRequest], watchdog: float) -> None:
        """Raises InputError for a joint whose registers lack the target of the mode."""
        super().__init__(context, line, watchdog)
        self._maps = [joint.registers for joint in self._wiring]
        self.modes = frozenset(mode for mode in self.modes if all(map.target(mode) for map in self._maps))
        for name, map in zip(context.joints, self._maps, strict=True):
            if map.target(context.mode) is None:
                what = f"mode '{context.mode}' needs '{context.mode}_target'; add it, or give another 'mode'"
                raise InputError(what, context.place("joints", name, "registers"))
        self._state_runs, self._identity_runs = (
            [runs(map, names) for map in self._maps] for names in (STATE, IDENTITY)
        )
        self._memory: list[dict[int, int]] = [{} for _ in self._maps]  # registers as read
        self._fault_tables = [fault_table(map.faults or {}, "the drive's manual") for map in self._maps]
        self._refused: dict[int, str] = {}
        self._commanded_ns = 0
        self._read_window = max(context.period, READ_WINDOW * watchdog)  # s after a command, in which reads may follow
        targets = [map.effort_target for map in self._maps]
        resolution = np.array([point.resolution if point else 0.0 for point in targets])
        self.feedforward.resolution[:] = resolution * np.abs(self.units.scale)
        self._largest = np.array([point.largest if point else 0.0 for point in targets])  # N·m

    @property
    def lost(self) -> int:
        return self._lost + self.link.unanswered

    # --- opening, switching on and off ---------------------------------------------------------------

    def _connect(self) -> None:
        self.link.unanswered = 0
        self._refused.clear()
        super()._connect()

    def _check_identity(self, k: int, identity: tuple[float, ...]) -> None:
        map, (model, effort, velocity) = self._maps[k], identity
        if map.model and model != map.model.value:
            what = f"has {model:.0f} in register {map.model.register}, not {map.model.value}"
            raise self._drive_error(k, f"{self._drive_name(k)} {what}; it is another drive, or 'model' is wrong")
        own = [("effort", effort, "max_effort"), ("velocity", velocity, "max_velocity")]
        if map.effort_target:
            own.append(("effort", map.effort_target.largest, "largest value of effort_target"))
        self._check_limits(k, own)

    def _switch_on(self, mode: str) -> None:
        for k, map in enumerate(self._maps):
            rest = {"effort": 0.0, "velocity": 0.0, "position": float(self._feedback.position[k])}[mode]
            timeout = self.watchdog - self._read_window
            for point, value in ((map.timeout, timeout), (map.effort_limit, self._guard_limits(k)["effort"])):
                if point is not None and np.isfinite(value):
                    self._write(k, point.register, point.words(min(value, point.largest)))
            if map.mode is not None:
                self._write(k, map.mode.register, (getattr(map.mode, mode),))
            target = map.target(mode)
            assert target is not None
            self._write(k, target.register, target.words(rest))
        super()._switch_on(mode)

    def _largest_effort(self, mode: str) -> Array | float:
        return self._largest if mode == "effort" else 0.0

    def _write(self, k: int, register: int, words: tuple[int, ...]) -> None:
        """Write and wait for the acknowledgement: what is missing when the drive is switched on is a danger."""
        frame = self._writing(k, register, words)
        if not self._reply(k, register, lambda: self.link.send(frame, 0)):
            raise self._no_answer(k)

    def _stop_items(self) -> Iterator[bytes]:
        for k in range(len(self._maps)):
            for frame in codec.split(self._off(k))[0]:
                self.link.interrupt()
                yield frame

    def _no_answer(self, k: int) -> CosimError:
        what = self._refused.get(k)
        return self._drive_error(k, f"{what}; correct 'registers'") if what else super()._no_answer(k)

    # --- requests ------------------------------------------------------------------------------------

    def _writing(self, k: int, register: int, words: tuple[int, ...]) -> bytes:
        function = codec.WRITE_ONE if self._maps[k].write == codec.WRITE_ONE else codec.WRITE
        return codec.encode(codec.RtuRequest(self._wiring[k].address, function, at=register, words=words))

    def _reading(self, k: int, spans: Iterable[range]) -> bytes:
        node, function = self._wiring[k].address, self._maps[k].read
        return b"".join(codec.encode(codec.RtuRequest(node, function, span.start, len(span))) for span in spans)

    def _request(self, k: int, request: Request) -> bytes:
        if request == "identity":
            return self._reading(k, self._identity_runs[k] or self._state_runs[k])
        control = self._maps[k].control
        words = {"state": [], "enable": control.on, "clear": control.clear}[request]
        return b"".join(self._writing(k, control.register, (word,)) for word in words) + self._reading(
            k, self._state_runs[k]
        )

    def _off(self, k: int) -> bytes:
        control = self._maps[k].control
        return b"".join(self._writing(k, control.register, (word,)) for word in control.off)

    def _command(self, k: int, position: float, velocity: float, effort: float) -> bytes:
        map, spans = self._maps[k], self._state_runs[k]
        target = map.target(self._mode)
        assert target is not None
        words = target.words(self._target(position, velocity, effort))
        if map.write != codec.READ_WRITE:
            return self._writing(k, target.register, words) + self._reading(k, spans)
        node, first = self._wiring[k].address, spans[0]
        both = codec.RtuRequest(node, codec.READ_WRITE, first.start, len(first), target.register, words)
        return codec.encode(both) + self._reading(k, spans[1:])

    # --- the cycle -----------------------------------------------------------------------------------

    def _send_commands(
        self, position: list[float], velocity: list[float], effort: list[float], deadline_ns: int
    ) -> None:
        if self._is_on:  # requests of the last cycle; while drives are switched on, before the first command
            self.link.forget()
        super()._send_commands(position, velocity, effort, deadline_ns)
        while self.link.pending and (item := self.link.receive(deadline_ns)) is not None:
            self._take(item)
        self._commanded_ns = self._now()

    def _poll(self, deadline_ns: int) -> None:
        since_ns = self._now() - self._commanded_ns
        if self._is_on and self._read_window * 1e9 < since_ns < self.watchdog * 1e9 + TOLERANCE_NS:
            self._pending.clear()
            return
        self.link.forget()
        super()._poll(deadline_ns)

    def _take(self, item: bytes) -> None:
        request = self.link.request
        k = None if request is None else self._nodes.get(request.node)
        if request is None or k is None:
            return
        if item[1] & codec.FAILED:
            name, register = codec.EXCEPTIONS.get(item[2], f"exception {item[2]}"), request.at or request.register
            function = f"function {request.function} at register {register:#x}"
            self._refused[k] = f"{self._drive_name(k)} refuses {function}: {name}"
            self._lost += 1
            return
        if request.words:
            self._replies[k, request.at] = True
        if not request.quantity:
            return
        memory, state = self._memory[k], self._state_runs[k]
        if request.register == state[0].start:
            memory.clear()
        memory.update(enumerate(codec.read_words(item), request.register))
        if all(span.start in memory for span in self._identity_runs[k]):
            self._identity[k] = self._identified(k)
        if all(span.start in memory for span in state):
            self._measured_state(k)

    def _identified(self, k: int) -> tuple[float, ...]:
        map, memory = self._maps[k], self._memory[k]
        limits = (np.inf if point is None else point.value(memory) for point in (map.max_effort, map.max_velocity))
        return (memory[map.model.register] if map.model else 0, *limits)

    def _measured_state(self, k: int) -> None:
        map, memory, feedback = self._maps[k], self._memory[k], self._feedback
        feedback.position[k], feedback.velocity[k] = map.position.value(memory), map.velocity.value(memory)
        feedback.effort[k] = map.effort.value(memory) if map.effort else np.nan
        feedback.temperature[k] = map.temperature.value(memory) if map.temperature else np.nan
        status = memory[map.status.register]
        fault = int(map.fault.value(memory)) if map.fault else 0
        fault = fault or (STATUS_FAULT if status & map.status.fault else 0)
        on = status & map.status.on == map.status.on
        self._answered(k, self._mode if on else OFF, fault, self._now())

    def describe_fault(self, joint_index: int, code: int) -> str:
        if code == STATUS_FAULT:
            return "fault without a code; see the drive's display"
        return super().describe_fault(joint_index, code)

    def _fault_table(self, k: int) -> FaultTable:
        return self._fault_tables[k]
