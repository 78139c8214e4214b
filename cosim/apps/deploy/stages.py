"""The tasks of a tick as functions that C calls apart, around somebody else's bus.

    int32_t NAME_arm(double *memory, int64_t tick)      begin with this tick from the measured state: 0, or why not
    void NAME_read(double *memory, int64_t tick)        take over what was measured
    void NAME_controller_CONTROLLER(double *memory, int64_t tick)
                                                        of each controller, in the ticks in which it is due
    int32_t NAME_guard(double *memory)                  0, or why the motors must be off, until they are armed again
    void NAME_write(double *memory)                     the command for the motors
    void NAME_step(double *memory)                      what the model does until the next tick

A memory that is not armed, and one with a fault, gives a command without effort and gains that holds the measured
position, whatever the controllers want; 0 where that is not finite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cosim.apps.deploy.identifiers import identifier
from cosim.control.bumpless_start import BumplessStart
from cosim.control.controlled_stop import REQUESTED
from cosim.control.guard import is_finite
from cosim.core import ops
from cosim.core.compile import mathlib
from cosim.core.compile.routine import Routine
from cosim.core.layout import Region
from cosim.core.types import COMMAND, FEEDBACK, Numeric
from cosim.simulation.loop.loop_text import LoopText
from cosim.simulation.loop.tick_ring import RoutineCall
from cosim.simulation.tick.arming import armed, depths_at_start, refused
from cosim.simulation.tick.first_references import start_of
from cosim.simulation.tick.tick_model import TickModel, TickTask

# what `guard` and `arm` return besides fault codes
STOPPED = -1  # a controlled stop that was requested has ended
NOT_ARMED = -2
IN_CONTACT = -3  # a real joint is inside of a virtual contact
# where the memory keeps the length of the blend, 0 where it is not armed
_LENGTH = BumplessStart._fields.index("duration")

Path = tuple[str, ...]


@dataclass(frozen=True)
class StageCode:
    """The functions of the stages of a tick as LLVM IR. routines: that the functions of `text` call; size: of what they
    keep behind the row, in doubles."""

    routines: tuple[Routine, ...] = ()
    text: str = ""
    size: int = 0


def stage_code(model: TickModel, name: str, blend: float, row: int) -> StageCode:
    """name: with which the functions begin; blend [s]: see `start_of`; row: place of the last tick's row."""
    return _Stages(model, name, blend, row).code()


def unarmed(model: TickModel, memory: np.ndarray) -> np.ndarray:
    """The memory, of which `arm` has to be the first call."""
    memory = memory.copy()
    memory[model.layout.place("bumpless_start").where.start + _LENGTH] = 0.0
    return memory


class _Stages:
    """The text of the functions of a rig."""

    def __init__(self, model: TickModel, name: str, blend: float, row: int) -> None:
        self.model, self.name, self.blend, self.row = model, name, blend, row
        self.program = model.compiled_program
        self.real = np.isin(model.plant.model.dof_names, model.plant.real)
        self.length = model.layout.place("bumpless_start").where.start + _LENGTH
        self.routines: list[Routine] = []

    def code(self) -> StageCode:
        texts = [self._arm()]
        for task, loop_task in zip(self.model.tasks, self.program.tasks, strict=True):
            if calls := [call for call in loop_task.calls if isinstance(call, RoutineCall)]:
                texts.append(self._of_task(task, calls))
        return StageCode(tuple(self.routines), "\n".join(texts), self.model.nv)

    def _of_task(self, task: TickTask, calls: Sequence[RoutineCall]) -> str:
        if task.loop is not None:
            return self._controller(task, calls)
        return {"read": self._read, "guard": self._guard, "write": self._write, "step": self._step}[task.name](calls)

    # --- functions ---

    def _arm(self) -> str:
        paths = [*armed(self.model, BumplessStart.none(self.model.nv), *self._at_rest)]
        feedback: list[Path] = [("measured", "position"), ("measured", "velocity")]

        def arm(t: Numeric, x: Numeric, sensors: Numeric, request: Numeric, *measured: Numeric) -> tuple[Numeric, ...]:
            found = self.model.measure(t, x, sensors, request)[1:]
            q, v = (ops.where(self.real, a, b) for a, b in zip(measured, found, strict=False))
            begin = start_of(self.model, self.blend, t, q, v)
            values, codes = armed(self.model, begin.references, x, q, v), refused(self.model, begin, q, v)
            worst: Numeric = 0.0
            for code in ops.array(codes):
                worst = ops.maximum(worst, code)
            for depth in depths_at_start(self.model, x, q, v).values():
                worst = ops.where(ops.logical_and(worst <= 0.0, depth > 0.0), float(IN_CONTACT), worst)
            start = values["bumpless_start",]
            length = ops.where(worst == 0.0, start[_LENGTH], 0.0)
            values["bumpless_start",] = ops.set_at(start, [_LENGTH], [length])
            return tuple((values | {("guard_fault",): codes, ("fault",): worst}).values())

        text = self._begin_tick("i32", "arm")
        inputs = [("t",), ("plant",), ("sensors",), ("request",), *feedback]
        self._call(text, self._made(arm, "arm", inputs, paths))
        return self._end(text, self._result(text))

    @property
    def _at_rest(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A state, for the paths alone."""
        model = self.model
        return model.plant.layout.pack(model.plant.initial()), np.zeros(model.nv), np.zeros(model.nv)

    def _read(self, calls: Sequence[RoutineCall]) -> str:
        """The row keeps what the memory holds at the beginning of the tick, as in the compiled loop."""
        text = self._begin_tick("void", "read")
        text.copy("%memory", text.place("%memory", self.row), self.program.early)
        time = text.place("%memory", self.row + self.program.time)
        text(f"  store double {text.read('%memory', self.program.time)}, ptr {time}, align 8")
        for call in [self._measure(), *calls[1:]] if self.real.any() else calls:
            self._call(text, call)
        return self._end(text)

    def _measure(self) -> RoutineCall:
        """What real joints measure is in the memory already."""
        feedback: list[Path] = [("measured", "position"), ("measured", "velocity"), ("measured_effort",)]

        def measure(
            t: Numeric, x: Numeric, sensors: Numeric, request: Numeric, *measured: Numeric
        ) -> tuple[Numeric, ...]:
            sensors, *found = self.model.measure(t, x, sensors, request)
            return sensors, *(ops.where(self.real, a, b) for a, b in zip(measured, found, strict=True))

        assert len(feedback) == len(FEEDBACK)
        inputs = [("t",), ("plant",), ("sensors",), ("request",), *feedback]
        return self._made(measure, "measure", inputs, [("sensors",), *feedback])

    def _controller(self, task: TickTask, calls: Sequence[RoutineCall]) -> str:
        text = self._begin("void", f"controller_{identifier(task.name)}", ", i64 %tick")
        due = text.is_due(task, "%tick")
        self._compute(text, text.value(f"and i1 {due}, {self._is_live(text)}"), calls)
        return self._end(text)

    def _guard(self, calls: Sequence[RoutineCall]) -> str:
        """Once there is a fault it stays."""
        text = self._begin("i32", "guard")
        self._compute(text, self._is_live(text), calls)
        return self._end(text, self._result(text))

    def _write(self, calls: Sequence[RoutineCall]) -> str:
        command: list[Path] = [("command", name) for name in COMMAND]
        efforts: list[Path] = [("request",), *([("load_effort",)] if self.model.loads else [])]

        def safe(
            start: Numeric, fault: Numeric, position: Numeric, held: Numeric, *values: Numeric
        ) -> tuple[Numeric, ...]:
            live = ops.logical_and(start[_LENGTH] > 0.0, fault <= 0.0)
            held = ops.where(is_finite(position), position, held)
            return held, ops.where(live, values[0], held), *(ops.where(live, value, 0.0) for value in values[1:])

        text, held = self._begin("void", "write"), self._held
        inputs = [("bumpless_start",), ("fault",), ("measured", "position"), held, *command, *efforts]
        for call in [*calls, self._made(safe, "safe_command", inputs, [held, *command, *efforts])]:
            self._call(text, call)
        return self._end(text)

    @property
    def _held(self) -> Region:
        """The last measured positions that are finite, behind the row."""
        first = self.row + self.program.row
        return Region(slice(first, first + self.model.nv), (self.model.nv,))

    def _step(self, calls: Sequence[RoutineCall]) -> str:
        text = self._begin("void", "step")
        self._compute(text, self._is_live(text), calls)
        return self._end(text)

    # --- text ---

    def _begin(self, result: str, suffix: str, further: str = "") -> LoopText:
        """further: arguments beside the memory."""
        text = LoopText()
        text(f"define {result} @{self.name}_{suffix}(ptr %memory{further}) nounwind {{", "entry:")
        return text

    def _begin_tick(self, result: str, suffix: str) -> LoopText:
        """Of a function of the number of the tick, which sets the time."""
        text = self._begin(result, suffix, ", i64 %tick")
        text.write_time(self.program.step, self.program.time, "%tick")
        return text

    def _end(self, text: LoopText, result: str = "") -> str:
        text(f"  ret i32 {result}" if result else "  ret void", "}")
        return text.ir

    def _is_live(self, text: LoopText) -> str:
        """Whether it is armed and has no fault."""
        length, fault = (text.read("%memory", place) for place in (self.length, self.program.fault))
        zero = mathlib.constant(0.0)
        is_armed = text.value(f"fcmp ogt double {length}, {zero}")
        return text.value(f"and i1 {is_armed}, {text.value(f'fcmp oeq double {fault}, {zero}')}")

    def _result(self, text: LoopText) -> str:
        """The fault as a whole number."""
        fault, length = (text.read("%memory", place) for place in (self.program.fault, self.length))
        requested = text.value(f"fcmp oeq double {fault}, {mathlib.constant(REQUESTED)}")
        code = text.value(f"select i1 {requested}, i32 {STOPPED}, i32 {text.value(f'fptosi double {fault} to i32')}")
        is_armed = text.value(f"fcmp ogt double {length}, {mathlib.constant(0.0)}")
        unarmed = text.value(f"and i1 {text.value(f'icmp eq i32 {code}, 0')}, {text.value(f'xor i1 {is_armed}, true')}")
        return text.value(f"select i1 {unarmed}, i32 {NOT_ARMED}, i32 {code}")

    def _compute(self, text: LoopText, condition: str, calls: Sequence[RoutineCall]) -> None:
        """Make the calls when the condition holds, and keep what they have computed in the row of the tick."""
        text(f"  br i1 {condition}, label %compute, label %end", "compute:")
        for call in calls:
            self._call(text, call)
        early, size = self.program.early, self.program.row
        text.copy(text.place("%memory", early), text.place("%memory", self.row + early), size - early)
        text("  br label %end", "end:")

    def _call(self, text: LoopText, call: RoutineCall) -> None:
        self.routines.append(call.routine)
        text.call(call, "%memory")

    def _made(
        self,
        fn: Callable[..., tuple[Numeric, ...]],
        name: str,
        inputs: Sequence[Path | Region],
        outputs: Sequence[Path | Region],
    ) -> RoutineCall:
        def regions(paths: Sequence[Path | Region]) -> list[Region]:
            return [path if isinstance(path, Region) else self.model.layout.place(*path) for path in paths]

        given = regions(inputs)
        routine = Routine(fn, [region.shape for region in given], name)
        places = [region.where for region in given]
        if routine.symbolic_parameters is not None:
            places.append(self.model.layout.place("numbers").where)
        return RoutineCall(routine, tuple(places), tuple(region.where for region in regions(outputs)))
