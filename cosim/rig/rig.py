"""A rig: read from its file, wired, and run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cosim.compile import ArrayPort, Interpreted, compile, interpreting
from cosim.compile.compiled import Compiled
from cosim.control.control_loop import ControlLoop
from cosim.control.guard import KINDS, Guard
from cosim.errors import InputError, InputErrors, did_you_mean, where_raised
from cosim.execution.engine import Engine, NativeEngine, PythonEngine
from cosim.execution.scheduler import Scheduler
from cosim.plant.encoder import Encoders
from cosim.plant.plant import Plant
from cosim.rig.build.drivers import bandwidths_of, bus_loads, groups_of, loads_of, real_joints, safety_of, self_willed
from cosim.rig.build.initial_state import closing_of, hybrid_modes_of, turning, with_initial_state
from cosim.rig.run import Run
from cosim.rig.sections.rig_spec import RigSpec, read_rig
from cosim.rig.session import channels_of, run_rig, scheduler_of
from cosim.tick.tick_model import TickModel
from cosim.tick.virtual_plant import VirtualPlant
from cosim.timing.deadlines import TaskTime
from cosim.types import COMMAND, FEEDBACK, REFERENCE, ControllerContext, Limits
from cosim.units import TURN

# ticks are taken in blocks, between which recording, telemetry and progress have their turn; blocks grow until
# one takes this long [s]
BLOCK_TIME = 0.02


class Rig:
    """A checked rig file, wired into a simulation with its drivers."""

    def __init__(self, spec: RigSpec, interpret: bool | None = None) -> None:
        """interpret: run the Python functions themselves instead of machine code (default: the environment's word).

        Raises InputErrors when parts do not fit together.
        """
        self.spec = spec
        self.interpret = interpreting() if interpret is None else interpret
        self._mistakes: list[InputError] = []
        self.joints = tuple(spec.joints)
        self._specs = list(spec.joints.values())
        self.plant = self._plant()
        loops = [self._loop(k, controller) for k, controller in enumerate(spec.controllers)]
        self._check_drivers()
        loads = loads_of(self)
        self._check_tracked(loops)
        if self._mistakes:
            raise InputErrors(self._mistakes)
        self.simulation = TickModel(
            plant=self.plant,
            encoders=self._encoders(),
            loops=[loop for loop in loops if loop is not None],
            guard=self.guard,
            integrator=spec.schedule.integrator,
            step_ns=spec.schedule.step_ns,
            substeps=spec.schedule.substeps,
            compiled=not self.interpret,
            loads=loads,
            bandwidths=bandwidths_of(spec.drivers),
            self_willed=self_willed(self),
            deceleration=spec.guard.deceleration,
        )

    # --- wiring ---

    @cached_property
    def limits(self) -> Limits:
        columns = [(s.lower, s.upper, s.velocity, s.effort) for s in self._specs]
        return Limits(*np.array(columns, dtype=float).reshape(-1, 4).T.copy())

    @cached_property
    def guard(self) -> Guard:
        """What the guard holds; feedback of simulated motors is never stale."""
        real = real_joints(self.spec.drivers)
        guard, columns = self.spec.guard, ("rate", "power", "tracking", "temperature")
        actions = [guard.actions | s.actions for s in self._specs]
        return Guard(
            limits=self.limits,
            **{name: np.array([getattr(s, name) for s in self._specs], dtype=float) for name in columns},
            stale=np.array([guard.stale if name in real else np.inf for name in self.joints]),
            actions={kind: np.array([action[kind] for action in actions]) for kind in KINDS},
            soft_start=guard.soft_start,
            step=self.spec.schedule.step_ns * 1e-9,
        )

    def _plant(self) -> Plant:
        start = np.array([s.initial_position for s in self._specs], dtype=float)
        actuators, prescribed, real = {}, {}, real_joints(self.spec.drivers)
        for k, (name, joint) in enumerate(zip(self.joints, self._specs, strict=True)):
            if joint.actuator is not None:
                actuators[name] = joint.actuator.module.load(joint.actuator.params)
            if joint.prescribed is not None:
                path = ("joints", name, "prescribed")
                self._check_prescribed(name, path)
                prescribed[name] = self._trajectory(path, joint.prescribed, (name,), start[k : k + 1])
        mechanism = self.spec.mechanism
        rotors = {name: actuators.pop(name).reflected_inertia for name in real if name in actuators}
        plant = Plant(
            mechanism.description,
            mechanism.gravity,
            actuators,
            prescribed,
            closing=closing_of(mechanism.closing),
            real=real,
            rotors=rotors,
        )
        if self._mistakes:
            raise InputErrors(self._mistakes)
        plant = with_initial_state(plant, self.spec)
        self._check_start(plant)
        return plant.switched(hybrid_modes_of(self.spec, plant))

    def _check_prescribed(self, name: str, path: tuple) -> None:
        if turning(self.spec, name):
            what = f"'{name}' is one dof of '{self.spec.owners[name]}', which turns, and cannot be prescribed by itself"
            mend = "use mechanism.carrier or a chain of revolute and prismatic joints"
            self._mistakes.append(InputError(f"{what}; {mend}", self.spec.source.place(path)))

    def _check_followed(self, controller: Any, block: Any) -> None:
        """A controller must not follow positions whose rates are not the velocities it sees."""
        for name in controller.joints:
            if turning(self.spec, name) and {"position", "reference_position"} & set(block.inputs):
                what = (
                    f"the position of '{name}' cannot be followed: '{self.spec.owners[name]}' turns, and its velocities"
                )
                raise InputError(f"{what} are along the body; command its effort, or use a chain of other joints")

    def _check_start(self, plant: Plant) -> None:
        """Loops close, and nothing repeats what must not."""
        redundant = plant.start.redundant
        if redundant and self.spec.mechanism.closing.redundant == "refuse":
            rows = ", ".join(plant.model.constraint_rows[r] for r in redundant)
            what = f"{rows} follow from the other constraints; take them out or use redundant: resolve"
            raise InputError(what, self.spec.source.place(("mechanism", "closing", "redundant")))

    def _trajectory(self, path: tuple, plugin: Any, joints: tuple[str, ...], start: np.ndarray) -> Any:
        loaded = self._made(path, lambda: plugin.module.load(plugin.params, joints, self.spec.path.parent, start))
        return loaded if loaded is not None else Hold(start)

    def _made(self, path: tuple, make: Callable[[], Any]) -> Any:
        """What a plug-in makes of the section at `path`; None after noting why it cannot."""
        try:
            return make()
        except InputErrors as many:
            self._mistakes += many.errors
        except InputError as error:
            place = error.place or self.spec.source.place(path)
            self._mistakes.append(InputError(error.what, place))
        except Exception as error:
            why = f"cannot be set up: {type(error).__name__}: {error} ({where_raised(error)})"
            self._mistakes.append(InputError(why, self.spec.source.place(path)))
        return None

    def _encoders(self) -> Encoders:
        resolution, noise, late = [], [], []
        for joint, unit in zip(self._specs, self.plant.model.dof_units, strict=True):
            full = 1.0 if unit == "m" else TURN
            counts = joint.encoder.counts if joint.encoder else None
            resolution.append(full / counts if counts else 0.0)
            noise.append(joint.encoder.noise if joint.encoder else 0.0)
            late.append(bool(joint.encoder and joint.encoder.delay))
        schedule = self.spec.schedule
        return Encoders(resolution, noise, late, schedule.step_ns * 1e-9, schedule.seed)

    def _loop(self, number: int, controller: Any) -> ControlLoop | None:
        index = np.array([self.joints.index(name) for name in controller.joints], dtype=int)
        start = self.plant.start_positions[index]
        context = ControllerContext(
            joints=controller.joints,
            index=index,
            model=self.plant.model,
            period=controller.period_ns * 1e-9,
            limits=self.limits.at(index),
            prescribed=~self.plant.free,
        )
        at, plugin, trajectory = ("controllers", number), controller.plugin, Hold(start)
        if controller.trajectory is not None:
            trajectory = self._trajectory((*at, "trajectory"), controller.trajectory, controller.joints, start)

        def make() -> ControlLoop:
            block = plugin.module.load(plugin.params, context)
            check_signals(block, len(index), len(self.joints))
            self._check_followed(controller, block)
            fallback = None
            if controller.fallback is not None:
                fallback = controller.fallback.module.load(controller.fallback.params, context)
                check_signals(fallback, len(index), len(self.joints))
                self._check_followed(controller, fallback)
            timing = (controller.phase, controller.priority, controller.deadline_ns)
            return ControlLoop(controller.name, block, index, controller.ticks, trajectory, *timing, fallback)

        return self._made(at, make)

    def _check_tracked(self, loops: list[ControlLoop | None]) -> None:
        """A limit of tracking needs a reference to be off from."""
        if None in loops:
            return  # which failed, and has been told
        led = {int(k) for loop in loops if loop is not None and loop.looks_at("position") for k in loop.index}
        for k, (name, joint) in enumerate(self.spec.joints.items()):
            if joint.tracking < np.inf and k not in led:
                what = f"no controller follows a position of joint '{name}'; take the limit of tracking out"
                self._mistakes.append(InputError(what, self.spec.source.place(("joints", name, "limits", "tracking"))))

    def _check_drivers(self) -> None:
        """Joints are simulated unless `drivers` has them, and lines carry what is sent."""
        for name, joint in self.spec.joints.items():
            if joint.driver != "sim":
                what = f"unknown driver '{joint.driver}'{did_you_mean(joint.driver, ['sim'])}"
                self._mistakes.append(InputError(what, self.spec.source.place(("joints", name, "driver"))))
        for driver in self.spec.drivers:
            for name in (name for name in driver.joints if turning(self.spec, name)):
                what = f"'{name}' is one dof of '{self.spec.owners[name]}', which turns, and cannot be real by itself"
                mend = "; use a chain of revolute and prismatic joints"
                self._mistakes.append(InputError(what + mend, self.spec.source.place(driver.at("joints", name))))
        try:
            bus_loads(self)
        except InputError as error:
            self._mistakes.append(error)

    # --- running ---

    @cached_property
    def observe(self) -> Compiled | Interpreted:
        """(arming, row) -> all signals, for batches of rows."""
        arming = self.simulation.layout.place("arming").shape
        ports = [ArrayPort("arming", arming), ArrayPort("row", (self.simulation.row.size,))]
        outputs = [ArrayPort("signals", (len(self.simulation.signals),))]
        return compile(self.simulation.observe, ports, "observe", outputs, self.interpret)

    @property
    def native(self) -> bool:
        """Whether all of a tick is machine code."""
        return not self.interpret and not self.simulation.untraceable and not self.watched

    def engine(self) -> Engine:
        """A fresh engine at t = 0: native when every part has machine code, else the Python loop."""
        order = self.spec.schedule.order
        if self.native:
            return NativeEngine(self.simulation, order)
        world = VirtualPlant(self.simulation)
        return PythonEngine(self.simulation, world, groups_of(self, world), order, **safety_of(self))

    def run(
        self,
        duration: float | None = None,
        record: str | Path | None = None,
        progress: Callable[[float], None] | None = None,
        clear_faults: bool = False,
    ) -> Run:
        """Run from t = 0 for `duration` [s] (default: the rig's), both ends included in the result.

        record: an MCAP file to write as the run goes; progress: called with the share that is done; clear_faults: what
        real drives report as faults is cleared first (look at the causes before).
        Raises StoppedRun when the guard, a failing controller or Ctrl-C stops the run; its `run` holds what there
        was until then. Raises RunError when not even the first tick was done.
        """
        return run_rig(self, duration, record, progress, clear_faults)

    @cached_property
    def tasks(self) -> tuple[TaskTime, ...]:
        """The tasks of a tick in running order, with the deadlines that they have to keep."""
        schedule = self.spec.schedule
        period = round(schedule.step_ns / schedule.rate)
        return tuple(
            TaskTime(
                stage.name,
                stage.ticks,
                stage.phase,
                (stage.loop.deadline_ns if stage.loop else schedule.deadlines.get(stage.name)) or period,
                self.hardware and stage.name in ("read", "write"),
            )
            for stage in self.simulation.stages(schedule.order)
        )

    @property
    def watched(self) -> bool:
        """Whether something outside has to be looked at in every tick: real motors, or an emergency stop."""
        return self.hardware or self.spec.guard.estop is not None

    @property
    def hardware(self) -> bool:
        """Whether there is a real motor in it."""
        return bool(self.spec.drivers)

    def scheduler(self) -> Scheduler:
        """The scheduler of a run, to be taken through its states by hand."""
        return scheduler_of(self)

    def sinks(self, stack: ExitStack, record: str | Path | None) -> list[Any]:
        """Where finished ticks go: the recording, and the telemetry that the rig asks for. Of a run on time they are in
        a process of their own."""
        from cosim.output.sinks import Output, RemoteSink, open_sinks

        spec = self.spec
        output = Output(
            name=spec.name,
            channels=channels_of(self),
            attachment=(spec.path.name, spec.path.read_bytes()),
            record=str(record) if record is not None else None,
            endpoint=spec.telemetry.publish,
            rate=spec.telemetry.rate,
        )
        if spec.schedule.pacing is None or (output.record is None and output.endpoint is None):
            return open_sinks(stack, output)
        return [stack.enter_context(RemoteSink(output))]


def check_signals(block: Any, n: int, nv: int) -> None:
    """Raises InputError where the signals that a controller of n joints declares are not those it will meet."""
    missing = [name for name in ("inputs", "outputs", "params", "initial", "update") if not hasattr(block, name)]
    if missing:
        raise InputError(
            f"is a {type(block).__name__} without '{missing[0]}'; a controller has inputs, outputs, params,"
            " initial and update"
        )
    feedback = {name: (n,) for name in (*FEEDBACK, *REFERENCE)}
    known = feedback | {f"all_{name}": (nv,) for name in (*FEEDBACK, "acceleration")}
    for word, declared, wired in (
        ("input", block.inputs, known),
        ("output", block.outputs, dict.fromkeys(COMMAND, (n,))),
    ):
        if not isinstance(declared, Mapping):
            raise InputError(f"declares its {word}s as a {type(declared).__name__}; use joint_signals(names, n)")
        for name, signal in declared.items():
            if name not in wired:
                raise InputError(f"declares the {word} '{name}', which does not exist{did_you_mean(name, wired)}")
            if tuple(signal.shape) != wired[name]:
                raise InputError(f"declares the {word} '{name}' of shape {signal.shape}; it is {wired[name]}")


class Hold:
    """The reference of a controller without a trajectory: stay where the joints began."""

    end = 0.0

    def __init__(self, position: np.ndarray) -> None:
        self._sample = {
            "position": position,
            **{k: np.zeros(len(position)) for k in ("velocity", "acceleration", "effort")},
        }

    def sample(self, t: Any) -> dict[str, Any]:
        return dict(self._sample)


def load_rig(
    path: str | Path, overrides: Iterable[str] = (), interpret: bool | None = None, realtime: bool = False
) -> Rig:
    """The rig of a file, after overrides like `controllers.arm.kp=200`.

    realtime: run on time, as `schedule.realtime` says or, where that says nothing, by its defaults.
    Raises InputErrors with every mistake in it, each with its line.
    """
    overrides = [overrides] if isinstance(overrides, str) else list(overrides)
    spec = read_rig(path, overrides)
    if (realtime or spec.drivers) and spec.schedule.pacing is None:
        # to catch up would be to throw late commands at real motors
        word = "{overrun: skip}" if spec.drivers else "yes"
        spec = read_rig(path, [*overrides, f"schedule.realtime={word}"])
    return Rig(spec, interpret)
