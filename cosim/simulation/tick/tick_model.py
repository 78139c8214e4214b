"""A tick of a rig as tasks on one memory: read → controllers → guard → write → step → publish.

Each call of a task names the regions of its arguments in the memory. The compiled engine compiles the calls into one
loop, the Python engine makes the same calls around its drivers; both give the same signals.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from cosim.control.bumpless_start import BumplessStart
from cosim.control.control_loop import ControlLoop
from cosim.control.controlled_stop import ControlledStop
from cosim.control.load_emulation import METRICS, SUMS
from cosim.control.observer import Estimate, at_start
from cosim.control.shadow import RESIDUALS
from cosim.core import ops
from cosim.core.compile.jit import vector_lanes
from cosim.core.compile.routine import Routine
from cosim.core.compile.trace import SymbolicParameters
from cosim.core.errors import CompileError
from cosim.core.layout import Layout, Region
from cosim.core.types import COMMAND, Numeric, State, declared
from cosim.simulation.loop.gpu_loop import GpuLoop
from cosim.simulation.loop.native_loop import NativeLoop
from cosim.simulation.loop.rollout_program import RolloutProgram
from cosim.simulation.loop.simd_loop import SimdLoop
from cosim.simulation.loop.tick_ring import LoopTask, PythonCall, RoutineCall, TickProgram
from cosim.simulation.plant.plant import Plant
from cosim.simulation.tick.accumulation import Accumulation
from cosim.simulation.tick.controller_tracing import inputs_routine, trace_controller
from cosim.simulation.tick.first_references import start_of
from cosim.simulation.tick.memory_call import MemoryCall
from cosim.simulation.tick.signals import SignalMap
from cosim.simulation.tick.tick_functions import GUARD_INPUTS, TickFunctions

ORDER = ("read", "controllers", "guard", "write", "step", "publish")
# the row that a tick leaves behind, the beginning of the memory
ROW = ("t", "plant", "request", "measured", "guard_fault", "warned", "fallback_active", "controller_signals")
# … what parts add to it, and real joints, which comes next in the memory
COUPLED_ROW = ("coupled",)
REAL_ROW = (
    *("measured_effort", "temperature", "age", "drive_power", "residual_energy"),
    *("load_effort", "load_measured", "load_power", "load_residual_energy", "load_tracking", "sample_time", "units"),
)
# … and their twins
SHADOW_ROW = ("shadow",)

Path = str | tuple[str, ...]
T = TypeVar("T")


class TickTask(NamedTuple):
    """A task of the tick: its calls, the ticks in which it runs, and its loop where it is a controller."""

    name: str
    calls: tuple[MemoryCall, ...]
    ticks: int = 1
    phase: int = 0
    loop: ControlLoop | None = None


@dataclass
class TickModel(TickFunctions):
    """A wired rig without drivers: everything that happens in a tick, and the memory it happens on."""

    order: Sequence[str] = ORDER
    # in the data of its parts: inputs of the code instead of constants, and their values (n,)
    symbolic_parameters: SymbolicParameters | None = None
    numbers: np.ndarray = field(default_factory=lambda: np.zeros(0))
    blend: float = 0.5  # s, see `start_of`, of references that begin elsewhere than the rig
    coupling_start: State | None = None  # of the coupling at t = 0, where numbers of its parts are inputs
    _rollout_loops: dict[str, tuple[object, Any]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.parameters = np.concatenate([np.zeros(0), *(loop.tunables.values for loop in self.loops)])
        start = 0
        for loop in self.loops:
            loop.parameter_slice = slice(start, start := start + loop.tunables.values.size)
        self.layout = Layout(self.initial())

    # --- memory ---

    def initial(self) -> State:
        """The memory at t = 0, all that passes from tick to tick; it begins with the row."""
        n, loads = np.zeros(self.nv), np.zeros(len(self.loads))
        state, q, v = self._initial_motion
        return {
            "t": np.zeros(()),
            "plant": state,
            "request": n,  # effort requested of the drives
            "measured": {"position": n, "velocity": n},
            "guard_fault": n,
            "warned": n,  # mask of kinds of limits
            "fallback_active": {loop.name: loop.fallback_active for loop in self.loops},
            "controller_signals": {
                loop.name: {name: np.zeros(signal.shape) for name, signal in loop.signals.items()}
                for loop in self.loops
            },
            **({} if self.coupling is None else {"coupled": np.zeros(len(self.coupling.signals))}),
            "measured_effort": n,
            "temperature": np.full(self.nv, np.nan),  # of drives [°C], NaN where not measured
            "age": n,  # of the last sample [s]
            "drive_power": n,  # of real drives, by their last sample [W]
            "residual_energy": n,  # of real drives [J]
            "load_effort": loads,  # commanded, of load motors
            "load_measured": {"velocity": loads, "effort": loads},
            "load_power": np.zeros((2, len(loads))),  # of the commanded and of the exerted efforts, by the last sample
            "load_residual_energy": n,  # of the load motors of joints [J]
            "load_tracking": {name: loads for name in METRICS},
            **({"sample_time": n} if self.plant.real else {}),  # of the last samples of real joints, by the ticks [s]
            # of real joints: disagreement of their units, mask of the proofs that are done
            **({"units": {"disagreement": n, "proven": n}} if self.plant.real else {}),
            # of virtual contacts, see `feel_contacts`
            **({"haptic": {name: n for name in _HAPTIC}} if self.plant.haptic else {}),
            "shadow": {name: n for name in RESIDUALS},  # residuals of real joints against their twins
            "drive_work": n,  # of real drives, until their last sample [J]
            "load_work": np.zeros((2, len(loads))),
            "load_sums": np.zeros((SUMS, len(loads))),  # of how load motors follow their commands
            "load_slow": np.zeros((4, len(loads))),
            "load_interval": loads,  # as sample_interval
            # of the last sample of load motors: interval and horizon, see `sample_times`, and time without one
            "load_samples": {name: loads for name in _LOAD_SAMPLES},
            "reference_position": n,  # of joints with a limit that checks it
            "previous_request": n,  # request before the guard ran
            # of joints with limits on standstill
            "standstill": {name: n for name in _STANDSTILL},
            # of real joints: the velocity that limits check; what `watch_units` keeps
            **({"judged_velocity": n, "unit_state": self.unit_start} if self.plant.real else {}),
            "known_acceleration": n,  # of prescribed and real joints
            "locks": np.zeros((2, self.nv)),  # 1 for latched dofs; for those locked by a latch, brake or stop
            "sample_interval": n,  # of real joints with a new sample: time since the one before [s], 0 without
            "sample_delay": n,  # … and age of the sample at the time of the tick [s]
            "shadow_before": {name: n for name in _SHADOW_BEFORE},  # of real joints: last sample, estimated velocity
            **(self._real_motion if self.plant.real else {}),
            "sensors": self.encoders.initial(q, v),
            "controllers": {loop.name: loop.initial() for loop in self.loops},
            "controller_commands": {
                loop.name: {name: np.zeros(len(loop.index)) for name in COMMAND} for loop in self.loops
            },
            "command": {name: n for name in COMMAND},  # after the guard
            "parameters": self.parameters,
            "numbers": self.numbers,
            "python_inputs": {
                name: np.zeros(inputs.size) for name, (_, inputs) in self.inputs_of_python_controllers.items()
            },
            "bumpless_start": self._first_start,
            "controlled_stop": {"requested": np.zeros(()), "reason": np.zeros(()), "first_guard_fault": n},
            "fault": np.zeros(()),
            **({} if self.coupling is None else {"coupling": self._coupling_start}),
            # sampled drives that are switched on
            **({"enabled": np.ones(self.nv)} if self.plant.periods else {}),
        }

    @property
    def _real_motion(self) -> State:
        """The estimated motion of real joints at t = 0, and the time (nv,) over which their last samples came [s], 0 in
        a tick without one."""
        q, v, _ = self.plant.real_motion(self._initial_motion[0])
        return {"estimate": at_start(q, v)._asdict(), "followed": np.zeros(self.nv)}

    @property
    def coupled_in_python(self) -> bool:
        """Whether parts of the rig are not compiled, so that a tick of them is not a call on the memory."""
        return self.coupling is not None and bool(self.coupling.in_python)

    @cached_property
    def _coupling_start(self) -> State:
        """What is known of the coupling in the memory: all that it needs, or what the guard reads."""
        assert self.coupling is not None
        if self.coupling_start is not None:
            return self.coupling_start
        if not self.coupled_in_python:
            return self.coupled_step.master.layout.unpack(self.coupled_step.initial())
        sizes = (math.prod(signal.shape) for part in self.coupling.parts.values() for signal in part.outputs.values())
        outputs = len(self.coupling.used_outputs) + sum(sizes)
        return {"values": np.zeros((1, outputs)), "energy": np.zeros(len(self.coupling.couplings.bonds))}

    @property
    def _no_start(self) -> np.ndarray:
        """The flat BumplessStart of references that begin on their trajectories."""
        stop = ControlledStop.inactive(self.nv) if self.has_controlled_stop else np.zeros(0)
        return np.concatenate([BumplessStart.none(self.nv).flat, stop])

    @property
    def _first_start(self) -> np.ndarray:
        """The flat BumplessStart at t = 0: as `_no_start`, but of trajectories that blend from where the rig starts."""
        blending = [loop for loop in self.loops if declared(loop.trajectory, "blends", False)]
        if not blending or self.plant.real:
            return self._no_start
        position, (_, _, velocity) = self.plant.start_positions, self._initial_motion
        own = start_of(self, self.blend, 0.0, position, velocity, blending).references
        return np.concatenate([own.flat, self._no_start[len(own.flat) :]])

    def memory(self) -> np.ndarray:
        """The memory at t = 0."""
        return self.layout.pack(self.initial())

    def memory_from(self, plant: Plant) -> np.ndarray:
        """The memory at t = 0 of the same rig with another start of its plant; nothing is traced again."""
        moved = copy.copy(self)
        moved.plant = plant
        for found in ("_initial_motion", "coupled_step", "plant_part", "_coupling_start"):
            moved.__dict__.pop(found, None)
        return self.layout.pack(moved.initial())

    @cached_property
    def row(self) -> Layout:
        """The beginning of the memory, which a tick leaves behind for the recording."""
        memory = self.initial()
        coupled = COUPLED_ROW if self.coupling is not None else ()
        haptic = ("haptic",) if self.plant.haptic else ()
        real = (*REAL_ROW, *haptic, *(SHADOW_ROW if self.shadow else ())) if self.plant.real else ()
        return Layout({name: memory[name] for name in (*ROW, *coupled, *real)})

    @cached_property
    def signals(self) -> SignalMap:
        memory = self.memory()
        first = memory[: self.row.size], memory[self.layout.place("bumpless_start").where]
        coupled = {} if self.coupling is None else self.coupling.signals
        return SignalMap(self.plant, self.encoders, self.loops, self.loads, self.row, *first, coupled)

    # --- the compiled loop ---

    @cached_property
    def program(self) -> TickProgram:
        """The ticks without their calls."""
        place = self.layout.place
        return TickProgram(
            tasks=tuple(LoopTask((), task.ticks, task.phase) for task in self.tasks),
            step=self.step,
            time=place("t").where.start,
            fault=place("fault").where.start,
            judge=next(k for k, task in enumerate(self.tasks) if task.name == "guard" and task.loop is None),
            early=place("plant").where.stop,
            row=self.row.size,
        )

    @cached_property
    def compiled_program(self) -> TickProgram:
        """The ticks with their calls as routines; controllers that stay in Python are called by their numbers in
        `python_loops`."""
        calls = [self._controller_calls(task) or tuple(map(self._routine_call, task.calls)) for task in self.tasks]
        pairs = zip(calls, self.tasks, strict=True)
        return replace(self.program, tasks=tuple(LoopTask(made, task.ticks, task.phase) for made, task in pairs))

    @property
    def python_loops(self) -> tuple[ControlLoop, ...]:
        """The loops whose controllers stay in Python."""
        return tuple(loop for loop in self.loops if loop.name in self.untraceable)

    def _controller_calls(self, task: TickTask) -> tuple[RoutineCall | PythonCall, ...]:
        """The calls of the task of a controller that stays in Python, else none."""
        if task.loop is None or task.name not in self.untraceable:
            return ()
        python = PythonCall(self.python_loops.index(task.loop))
        if task.name not in self.inputs_of_python_controllers:
            return (python,)
        routine, _ = self.inputs_of_python_controllers[task.name]
        inputs = [self._region(path).where for path in ("t", *_KNOWN)]
        return RoutineCall(routine, tuple(inputs), (self._region(("python_inputs", task.name)).where,)), python

    @cached_property
    def native_loop(self) -> NativeLoop:
        """The compiled ticks, for any number of runs: all that changes is in the memory."""
        return NativeLoop(self.compiled_program)

    def simd_loop(self, accumulation: Accumulation | None, samples: tuple[str, ...]) -> SimdLoop:
        """The ticks of several rigs in SIMD lanes, with accumulated metrics and samples of these signals; the same loop
        as long as these are the same. Raises CompileError for a metric that cannot be traced."""
        return self._rollout_loop("cpu", lambda program: SimdLoop(program, vector_lanes()), accumulation, samples)

    def gpu_loop(self, accumulation: Accumulation | None, samples: tuple[str, ...]) -> GpuLoop:
        """The same for one of many threads of a GPU."""
        return self._rollout_loop("gpu", GpuLoop, accumulation, samples)

    def _rollout_loop(
        self,
        device: str,
        make: Callable[[RolloutProgram], T],
        accumulation: Accumulation | None,
        samples: tuple[str, ...],
    ) -> T:
        key = accumulation and accumulation.key, samples
        if device not in self._rollout_loops or self._rollout_loops[device][0] != key:
            self._rollout_loops[device] = key, make(self._rollout_program(accumulation, samples))
        return self._rollout_loops[device][1]

    def _rollout_program(self, accumulation: Accumulation | None, samples: tuple[str, ...]) -> RolloutProgram:
        start, row = self.layout.place("bumpless_start"), (self.row.size,)

        def sample(start: Numeric, row: Numeric) -> Numeric:
            values = self.signals.values(start, row)
            return ops.array([ops.array(values[name]) for name in samples])

        def accumulate(accumulators: Numeric, start: Numeric, row: Numeric) -> Numeric:
            assert accumulation is not None
            return accumulation.update(accumulators, start, row)

        sizes = [start.shape, row]
        accumulators = None if accumulation is None else (accumulation.layout.size,)
        return RolloutProgram(
            self.compiled_program,
            self.layout.size,
            start.where,
            self.layout.place("numbers").where,
            accumulators and Routine(accumulate, [accumulators, *sizes], "accumulate"),
            Routine(sample, sizes, "sample") if samples else None,
            Routine(self.signals.observe, sizes, "observe"),
        )

    # --- controllers ---

    @property
    def untraceable(self) -> dict[str, str]:
        """Controllers that stay in Python, by name, and why."""
        pairs = zip(self.loops, self._traced_controllers, strict=True)
        return {loop.name: why for loop, (_, why) in pairs if why}

    @cached_property
    def _traced_controllers(self) -> list[tuple[Callable[..., Numeric], str]]:
        """Of each loop: see `trace_controller`."""
        return [trace_controller(loop, self.nv, self._no_start.shape, self.compiled) for loop in self.loops]

    @cached_property
    def inputs_of_python_controllers(self) -> dict[str, tuple[Routine, Layout]]:
        """By name, of controllers that stay in Python and whose inputs can be compiled; see `inputs_routine`."""
        found = {}
        for loop in self.loops:
            if loop.name in self.untraceable and loop.fallback is None:
                with suppress(CompileError):  # of a trajectory in Python
                    found[loop.name] = inputs_routine(loop, self.nv, self._no_start)
        return found

    # --- tasks ---

    @cached_property
    def tasks(self) -> tuple[TickTask, ...]:
        """The tasks of a tick in running order; `publish` has no calls: the loop itself copies the row."""
        calls = {
            "read": self._read_calls(),
            "guard": self._guard_calls(),
            "write": self._write_calls(),
            "step": [self._step_call()],
            "publish": [],
        }
        tasks = []
        for name in self.order:
            tasks += [TickTask(name, tuple(calls[name]))] if name in calls else self._controller_tasks()
        return tuple(tasks)

    def _step_call(self) -> MemoryCall:
        held = ["request", *self._setpoints]
        if self.coupling is None or self.coupled_in_python:
            return self._call("advance", self.advance, ["t", "plant", *held], ["plant"])
        inputs, outputs = ["t", "plant", "coupling", *held], ["plant", "coupling", "coupled"]
        return self._call("advance", self.coupled_step.advance, inputs, outputs)

    @property
    def _setpoints(self) -> tuple[Path, ...]:
        """What sampled actuators follow."""
        return (*_COMMAND[:2], "enabled") if self.plant.periods else ()

    def _read_calls(self) -> list[MemoryCall]:
        calls = [self._call("measure", self.measure, ["t", "plant", "sensors", "request"], ["sensors", *_MEASURED])]
        if self.plant.real:
            sample = [*_MEASURED[:2], "sample_interval", "sample_delay"]
            calls += self._shadow_motion_calls()
            kept = ["sample_time", *_ESTIMATE]
            outputs = ["plant", "followed", *kept]
            calls.append(self._call("follow_real", self.follow_real, ["t", "plant", *sample, *kept], outputs))
            account = ["drive_power", "drive_work", "residual_energy"]
            inputs = ["t", "plant", "bumpless_start", *_MEASURED[1:], "request", *_SAMPLES, *account]
            calls.append(self._call("account_for_drives", self.account_for_drives, inputs, account))
            calls += self._shadow_effort_calls()
        if self.plant.imposed.any():
            calls.append(
                self._call("known_acceleration", self.known_acceleration, ["t", "plant"], ["known_acceleration"])
            )
        if self.plant.modes.locks.changing:
            calls.append(self._call("locks", self.locks, ["plant"], ["locks"]))
        return calls

    def _shadow_motion_calls(self) -> list[MemoryCall]:
        """Before the estimated motion is updated."""
        if self.shadow is None:
            return []
        kept = [("shadow", "position"), ("shadow", "slip"), *(("shadow_before", name) for name in _SHADOW_BEFORE[:-1])]
        inputs = ["t", "bumpless_start", *_MEASURED[:2], "sample_interval", "sample_delay", *kept, *_ESTIMATE]
        return [self._call("shadow_motion", self.shadow_motion, inputs, kept)]

    def _shadow_effort_calls(self) -> list[MemoryCall]:
        """After it was."""
        if self.shadow is None:
            return []
        settled, estimated = (("shadow_before", name) for name in _SHADOW_BEFORE[-2:])
        kept = [("shadow", "effort"), ("shadow", "drive"), estimated]
        sample = [_MEASURED[2], "sample_delay", _ESTIMATE[-1]]
        inputs = ["t", "plant", "bumpless_start", "request", *sample, settled, *kept]
        return [self._call("shadow_efforts", self.shadow_efforts, inputs, kept)]

    def _controller_tasks(self) -> list[TickTask]:
        """By priority, highest first."""
        tasks = []
        pairs = zip(self.loops, self._traced_controllers, strict=True)
        first = self.layout.place("parameters").where.start
        for loop, (update, _) in sorted(pairs, key=lambda pair: -pair[0].priority):
            parameters = Region(
                slice(first + loop.parameter_slice.start, first + loop.parameter_slice.stop), loop.tunables.values.shape
            )
            state = [self._region(("controllers", loop.name)), self._region(("fallback_active", loop.name))]
            inputs = [self._region(path) for path in _KNOWN]
            command = [self._region(("controller_commands", loop.name, name)) for name in COMMAND]
            signals = self._region(("controller_signals", loop.name))
            arguments = (self._region("t"), parameters, *state, *inputs), (*state, *command, signals)
            call = MemoryCall(f"controller_{loop.name}", update, *arguments)
            tasks.append(TickTask(loop.name, (call,), loop.ticks, loop.phase, loop))
        return tasks

    def _guard_calls(self) -> list[MemoryCall]:
        calls, samples = [], _SAMPLES if self.plant.real else ()
        if self._tracked:
            names = [loop.name for loop in self._tracked if loop.fallback is not None]
            fallbacks = [
                path for name in names for path in (("fallback_active", name), ("controllers", name, "hold_position"))
            ]
            inputs = ["t", "bumpless_start", *fallbacks]
            calls.append(self._call("reference_positions", self.reference_positions, inputs, ["reference_position"]))
        guarded = list(_GUARD_PATHS)
        if self.plant.real:
            last = ["sample_interval", "request", *_COMMAND[:2], "unit_state"]
            inputs = ["t", "plant", "bumpless_start", *_MEASURED, *last]
            outputs: list[Path] = ["unit_state", "judged_velocity", ("units", "disagreement"), ("units", "proven")]
            calls.append(self._call("watch_units", self.watch_units, inputs, outputs))
            guarded += ["judged_velocity", ("units", "disagreement")]
        if self.plant.haptic:
            kept: list[Path] = [("haptic", name) for name in _HAPTIC]
            calls.append(
                self._call(
                    "feel_contacts", self.feel_contacts, ["t", "plant", "bumpless_start", _MEASURED[0], *kept], kept
                )
            )
            guarded += kept[:2]
        judged: list[Path] = [_MEASURED[0], "judged_velocity" if self.plant.real else _MEASURED[1], _MEASURED[2]]
        if self.guard.needs_history.any():
            inputs = ["t", "bumpless_start", *judged, "reference_position", "request", *_STANDSTILL_PATHS, *samples]
            calls.append(self._call("watch_standstill", self.watch_standstill, inputs, _STANDSTILL_PATHS))
        inputs = ["t", "plant", "bumpless_start", "request", *guarded, *samples, "controller_commands"]
        outputs = [*_COMMAND, "guard_fault", "warned", "fault", "previous_request", "request"]
        calls.append(self._call("check_command", self.check_command, inputs, outputs))
        if self.coupling is not None:
            inputs = [("coupling", "values"), ("coupling", "energy"), "fault"]
            calls.append(self._call("check_coupling", self.check_coupling, inputs, ["fault"]))
        if self.has_controlled_stop:
            request, *begun = [("controlled_stop", name) for name in ("requested", "reason", "first_guard_fault")]
            inputs = ["t", "bumpless_start", _MEASURED[1], "guard_fault", "fault", request, *begun]
            calls.append(
                self._call("controlled_stop", self.controlled_stop, inputs, ["bumpless_start", *begun, "fault"])
            )
        return calls

    def _write_calls(self) -> list[MemoryCall]:
        calls = [self._call("request", self.request, [*_MEASURED[:2], *_COMMAND], ["request"])]
        if self.loads:
            account = ["load_power", "load_work"]
            known = [("load_samples", name) for name in _LOAD_SAMPLES]
            samples = [("load_measured", "velocity"), ("load_measured", "effort"), "load_interval", *known]
            inputs = [
                "t",
                "plant",
                "bumpless_start",
                "request",
                "load_effort",
                *samples,
                *account,
                "load_sums",
                "load_slow",
                ("load_tracking", next(iter(METRICS))),
            ]
            figures = [("load_tracking", name) for name in METRICS]
            outputs = ["load_effort", *account, "load_residual_energy", "load_sums", "load_slow", *figures, *known]
            calls.append(self._call("load_effort", self.load_effort, inputs, outputs))
        return calls

    def _routine_call(self, call: MemoryCall) -> RoutineCall:
        shapes = [region.shape for region in call.inputs]
        routine = call.fn if isinstance(call.fn, Routine) else Routine(call.fn, shapes, call.name)
        hidden = () if routine.symbolic_parameters is None else (self._region("numbers"),)
        inputs = (region.where for region in (*call.inputs, *hidden))
        return RoutineCall(routine, tuple(inputs), tuple(region.where for region in call.outputs))

    def _call(
        self, name: str, fn: Callable[..., Numeric], inputs: Sequence[Path], outputs: Sequence[Path]
    ) -> MemoryCall:
        return MemoryCall(name, fn, *(tuple(map(self._region, paths)) for paths in (inputs, outputs)))

    def _region(self, path: Path) -> Region:
        return self.layout.place(*((path,) if isinstance(path, str) else path))


# paths in the memory
_MEASURED: tuple[Path, ...] = (("measured", "position"), ("measured", "velocity"), "measured_effort")
# what a controller gets besides the time, its parameters and its state
_KNOWN: tuple[Path, ...] = (*_MEASURED, "known_acceleration", "locks", "bumpless_start")
# of real joints
_SAMPLES: tuple[Path, ...] = ("sample_interval", "followed")
_ESTIMATE: tuple[Path, ...] = tuple(("estimate", name) for name in Estimate._fields)
_COMMAND: tuple[Path, ...] = tuple(("command", name) for name in COMMAND)
_SHADOW_BEFORE = ("position", "velocity", "time", "delay", "settled", "estimated_velocity")
_HAPTIC = ("energy", "effort", "held", "position")
_LOAD_SAMPLES = ("interval", "horizon", "silent")
_STANDSTILL = ("stalled_time", "unseen_motion", "last_position", "last_reference")
_STANDSTILL_PATHS: tuple[Path, ...] = tuple(("standstill", name) for name in _STANDSTILL)
_GUARD_PATHS: tuple[Path, ...] = (
    *(*_MEASURED[:2], "temperature", "age", "reference_position", *_STANDSTILL_PATHS[:2]),
    *("residual_energy", "load_residual_energy", *(("shadow", name) for name in RESIDUALS)),
)
assert len(_GUARD_PATHS) == len(GUARD_INPUTS)
