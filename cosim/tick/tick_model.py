"""The ticks of a rig as pure functions on one memory: read → controllers → guard → write → step → publish.

Each part of a tick says where in the memory its arguments are. Native runs compile the parts into one loop; the
Python loop calls the same parts around its drivers, so both give the same signals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from cosim import ops
from cosim.compile import ArrayPort, compile
from cosim.compile.jacobian import Jacobian
from cosim.compile.routine import Routine
from cosim.control import guard
from cosim.control.bumpless_start import BumplessStart
from cosim.control.control_loop import ControlLoop
from cosim.control.controlled_stop import ControlledStop, cutting, halted
from cosim.control.guard import Guard
from cosim.control.load_emulation import LoadMotor, applied
from cosim.control.observer import JointMotion, correct, gains, predict
from cosim.errors import CompileError
from cosim.layout import Layout, Region
from cosim.plant.encoder import Encoders
from cosim.plant.event_stepper import EventStepper
from cosim.plant.integrators import INTEGRATORS, System
from cosim.plant.plant import Plant
from cosim.tick.memory_call import MemoryCall
from cosim.timing.pacing import ORDER
from cosim.types import COMMAND, FEEDBACK, Limits, State, requested_effort

# steps between two measurements of a real joint, beyond which the observer trusts new ones no more than that
MOST_BETWEEN = 20.0
# what a tick leaves behind, the beginning of the memory
ROW = ("t", "plant", "request", "measured", "verdict", "warned", "fallen")
# … and what real joints add to it, which comes next in the memory
OF_REAL = ("effort", "temperature", "age", "load")
# what the guard sees of every joint
SEEN = ("position", "velocity", "temperature", "age", "reference")


class TickTask(NamedTuple):
    """A task of the tick: its parts, the ticks that it runs in, and the loop whose controller it is, if it is one."""

    name: str
    parts: tuple[MemoryCall, ...]
    ticks: int = 1
    phase: int = 0
    loop: ControlLoop | None = None


@dataclass
class TickModel:
    """A wired rig without drivers: everything that happens in a tick, in seconds and flat arrays."""

    plant: Plant
    encoders: Encoders
    loops: Sequence[ControlLoop]
    guard: Guard  # (nv,)
    integrator: str
    step_ns: int
    substeps: int
    compiled: bool = True
    loads: Sequence[LoadMotor] = ()
    bandwidths: np.ndarray = field(default_factory=lambda: np.zeros(0))  # Hz, of what is observed of real joints
    # (nv,) truth values: joints whose drives close their loops by gains of their own, so those of commands are nothing
    self_willed: np.ndarray | None = None
    deceleration: float | None = None  # rad/s² or m/s², with which a stop brings the joints to rest; None: at once

    def __post_init__(self) -> None:
        self.nv = self.plant.model.nv
        self.parameters = np.concatenate([np.zeros(0), *(loop.tunables.values for loop in self.loops)])
        start = 0
        for loop in self.loops:
            loop.own = slice(start, start := start + loop.tunables.values.size)
        self.layout = Layout(self.initial())

    def initial(self) -> State:
        """Everything that goes on from tick to tick, at t = 0. What comes first is the row that a tick leaves behind
        for the recording; everything else follows from it."""
        plant, n = self.plant, np.zeros(self.nv)
        q, v, _ = plant.motion(0.0, plant.initial())
        return {
            "t": np.zeros(()),
            "plant": plant.initial(),
            "request": n,  # what the drives have been asked for
            "measured": {"position": n, "velocity": n},
            "verdict": n,
            "warned": n,  # mask of kinds of limits
            "fallen": {loop.name: loop.fallen for loop in self.loops},
            "effort": n,  # as measured
            "temperature": np.full(self.nv, np.nan),  # of drives [°C], where it is measured
            "age": n,  # of what was measured [s]
            "load": np.zeros(len(self.loads)),  # efforts of load motors
            "reference": n,  # positions that controllers follow, where the guard looks
            "before": n,  # what the drives had been asked for when the guard looked
            "known": n,  # accelerations of prescribed and real joints
            "fresh": n,  # of real joints that were measured anew: time since they were before [s]
            "lag": n,  # … and by how much they are older than the tick [s]
            "sensors": self.encoders.initial(plant.model.equations.chart(q), v),
            "controllers": {loop.name: loop.initial() for loop in self.loops},
            "told": {loop.name: {name: np.zeros(len(loop.index)) for name in COMMAND} for loop in self.loops},
            "command": {name: n for name in COMMAND},
            "parameters": self.parameters,
            "arming": np.concatenate([[0.0, 1.0], n, n, ControlledStop.none(self.nv) if self.halts else []]),
            "halted": {"asked": np.zeros(()), "reason": np.zeros(()), "first": n},  # what brings the joints to rest
            "fault": np.zeros(()),
        }

    @property
    def limits(self) -> Limits:
        return self.guard.limits

    @property
    def halts(self) -> bool:
        """Whether a stop brings the joints to rest before motors are off."""
        return self.deceleration is not None

    @property
    def step(self) -> float:
        """s"""
        return self.step_ns * 1e-9

    # --- the parts of a tick ---

    def _part(self, fn: Callable[..., Any], shapes: Sequence[tuple[int, ...]], name: str) -> Callable[..., Any]:
        """fn as a routine of its own in compiled code, as it is otherwise."""
        return Routine(fn, shapes, name) if self.compiled else fn

    @property
    def nx(self) -> int:
        return self.plant.layout.size

    @cached_property
    def flow(self) -> Callable[..., Any]:
        """ẋ (nx,) of the plant from (t, x, request)."""
        return self._part(self._flow, [(), (self.nx,), (self.nv,)], "flow")

    def _flow(self, t: Any, x: Any, request: Any) -> Any:
        dx, _ = self.plant.flow(t, None, self.plant.layout.unpack(x), {"request": request})
        return self.plant.layout.pack(dx)

    @cached_property
    def _slope(self) -> Jacobian:
        """∂ẋ/∂(t, x), (nx, 1 + nx)."""

        def by_all(tx: Any, request: Any) -> Any:
            return self._flow(tx[0], tx[1:], request)

        return Jacobian(by_all, [(1 + self.nx,), (self.nv,)], "slope")

    def measure(self, t: Any, x: Any, sensors: Any, request: Any) -> tuple[Any, ...]:
        """(next state of the sensors, then the fields of FEEDBACK (nv,)); x: plant, request: as held so far."""
        state = self.plant.layout.unpack(x)
        q, v, effort = self.plant.feedback(t, state, request)
        true = {"position": q, "velocity": v, "effort": effort}
        x_next, sample = self.encoders.update(t, self.encoders.params, self.sensor_layout.unpack(sensors), true)
        return self.sensor_layout.pack(x_next), *(sample[name] for name in FEEDBACK)

    @cached_property
    def sensor_layout(self) -> Layout:
        return Layout(self.initial()["sensors"])

    def known_acceleration(self, t: Any, x: Any) -> Any:
        """(nv,) accelerations of the prescribed and real joints, 0 elsewhere."""
        return self.plant.motion(t, self.plant.layout.unpack(x))[2]

    def observe_real(self, x: Any, position: Any, fresh: Any, lag: Any) -> Any:
        """The flat state of the plant, its real joints corrected by what was measured (nv,) where that is new.

        fresh (nv,): time [s] since the measurement before, 0 where there is none; lag (nv,): by which it is older than
        the tick. The plant's step is the prediction.
        """
        state, real = self.plant.layout.unpack(x), [self.plant.model.dof_index(name) for name in self.plant.real]
        seen = self.plant.observed(state)
        new, after = fresh[real] > 0.0, ops.clip(fresh[real], self.step, MOST_BETWEEN * self.step)
        before = predict(JointMotion(*seen), -lag[real]).position  # where the joints are taken to have been then
        residual = ops.where(new, position[real] - before, 0.0)
        motion = correct(JointMotion(*seen), residual, gains(self.bandwidths, after))
        return self.plant.layout.pack(self.plant.corrected(state, *motion))

    def load(self, t: Any, x: Any, request: Any) -> Any:
        """(m,) efforts of the load motors."""
        found = self.plant.efforts(t, self.plant.layout.unpack(x), request)
        return applied(self.loads, found["effort"], found["v"], found["a"])

    @property
    def controllers(self) -> list[Callable[..., Any]]:
        """One function per loop, `ControlLoop.update`; a controller that cannot be traced stays in Python."""
        return [update for update, _ in self._traced_controllers]

    @property
    def untraceable(self) -> dict[str, str]:
        """Controllers that stay in Python, by name, and why."""
        pairs = zip(self.loops, self._traced_controllers, strict=True)
        return {loop.name: why for loop, (_, why) in pairs if why}

    @cached_property
    def _traced_controllers(self) -> list[tuple[Callable[..., Any], str]]:
        return [self._controller(loop) for loop in self.loops]

    def _controller(self, loop: ControlLoop) -> tuple[Callable[..., Any], str]:
        """(the function, why it cannot be traced)."""
        n = (self.nv,)
        shapes = [
            (),
            loop.tunables.values.shape,
            (loop.layout.size,),
            loop.fallen.shape,
            *[n] * 4,
            self._place("arming").shape,
        ]
        name = f"controller_{loop.name}"
        try:
            part = self._part(loop.update, shapes, name)
            if isinstance(part, Routine) and Routine(loop.update, shapes, name).symbol != part.symbol:
                raise CompileError(
                    "does not do the same each time: it keeps something of its own, reads a clock or throws dice;"
                    " keep it in the state x and take time from t"
                )
            return part, ""
        except CompileError as error:
            loop.rescuer = self._rescuer(loop)
            return loop.update, str(error)

    def _rescuer(self, loop: ControlLoop) -> Callable[..., Any] | None:
        """The fallback of a controller that stays in Python, in machine code if it can be traced itself."""
        if loop.fallback is None or not self.compiled:
            return None
        x = Layout(loop.fallback.initial()).size
        sizes = {"x": (x,), **{name: (self.nv,) for name in (*FEEDBACK, "known")}, "held": loop.index.shape}
        try:
            return compile(
                loop.rescue, [ArrayPort("t", ()), *(ArrayPort(*item) for item in sizes.items())], f"rescue_{loop.name}"
            )
        except CompileError:
            return None

    @cached_property
    def stepping(self) -> EventStepper:
        return EventStepper(self.plant, self._step, self.step / self.substeps, self.compiled)

    def _step(self, t: Any, x: Any, request: Any, h: Any) -> Any:
        """One step of the integrator."""

        def slope(t: Any, x: Any) -> tuple[Any, Any]:
            j = self._slope(ops.concatenate([t, x]), request)
            return j[:, 1:], j[:, 0]

        def rates(t: Any, x: Any) -> Any:
            return self.plant.coordinate_rates(t, self.plant.layout.unpack(x))

        system = System(lambda t, x: self.flow(t, x, request), self.plant.coordinates, rates, slope)
        return INTEGRATORS[self.integrator](system, t, x, h)

    def advance(self, t: Any, x: Any, request: Any) -> Any:
        """The plant's state one step later."""
        for k in range(self.substeps):
            x = self.stepping.advance(t + k * self.stepping.length, x, request)
        return x

    def trouble(self, t: Any, x: Any) -> Any:
        """`SOUND`, or why the plant's state x cannot be gone on from: see `stepping`."""
        return self.stepping.trouble(t, x)

    def lead(self, t: Any, arming: Any, *held: Any) -> Any:
        """(nv,) reference positions of the joints whose tracking the guard holds.

        held: of each such loop with a fallback in turn, whether that has taken over, and the positions it holds then.
        """
        reference: Any = np.zeros(self.nv)
        taken = iter(held)
        for loop in self._tracked:
            sample = BumplessStart.of(arming, self.nv).at(loop.index).reference(loop.trajectory, t)["position"]
            if loop.fallback is not None:
                fallen, still = next(taken), next(taken)
                sample = ops.where(fallen[0] > 0.5, still, sample)
            reference = ops.with_elements(reference, loop.index, sample)
        return reference

    @property
    def _tracked(self) -> list[ControlLoop]:
        """Controllers of joints whose tracking the guard holds."""
        bounded = np.isfinite(self.guard.tracking)
        return [loop for loop in self.loops if loop.looks_at("position") and bounded[loop.index].any()]

    def judge(self, t: Any, x: Any, arming: Any, request: Any, *seen: Any) -> tuple[Any, ...]:
        """(the fields of COMMAND (nv,), verdicts (nv,), warned (nv,), fault (), request before and now (nv,)): what
        controllers told, made safe.

        seen: SEEN, (nv,) each, then the fields of COMMAND of each loop in turn. fault is 0, or the largest verdict of
        the guard and of what became of the plant; then nothing is written any more, and the row shows what would have
        been.
        """
        told = seen[len(SEEN) :]
        command: dict[str, Any] = {name: np.zeros(self.nv) for name in COMMAND}
        for k, loop in enumerate(self.loops):
            for name, values in zip(COMMAND, told[k * len(COMMAND) :], strict=False):
                command[name] = ops.with_elements(command[name], loop.index, values)
        if self.self_willed is not None:
            command |= {gain: ops.where(self.self_willed, 0.0, command[gain]) for gain in ("kp", "kd")}
        known = dict(zip(SEEN, seen, strict=False)) | {"request": request, "armed": t - arming[0]}
        safe, verdict, warned = guard.check(self.guard, known, command)
        if self.halts:
            safe = guard.check(cutting(self.guard), known, command)[0]
        command = safe
        fault = self.trouble(t, x)
        for k in range(self.nv):
            fault = ops.maximum(fault, verdict[k])
        told_now = tuple(command[name] for name in COMMAND)
        asked = self.ask(known["position"], known["velocity"], *told_now)
        return *told_now, verdict, warned, fault, request, ops.where(fault > 0.0, asked, request)

    def halt(
        self, t: Any, arming: Any, v: Any, verdict: Any, fault: Any, asked: Any, reason: Any, first: Any
    ) -> tuple[Any, ...]:
        """(arming, reason (), first (nv,), fault ()): a stop that can wait for the joints to rest begins to bring them
        there, and becomes the fault when they do.

        v, verdict (nv,), fault: of this tick; asked: whether somebody asked for a stop; reason, first: what began it
        before, and the verdicts (nv,) of that tick.
        """
        begun = BumplessStart.of(arming, self.nv)
        assert self.deceleration is not None and begun.halting is not None
        position, velocity = np.zeros(self.nv), v
        for loop in self.loops:
            sample = begun.at(loop.index).reference(loop.trajectory, t)
            position = ops.with_elements(position, loop.index, sample["position"])
            if loop.looks_at("velocity"):
                velocity = ops.with_elements(velocity, loop.index, sample["velocity"])
        flat, *found = halted(
            begun.halting, t, position, velocity, verdict, fault, asked, reason, first, self.deceleration, self.step
        )
        return ops.concatenate([arming[: 2 + 2 * self.nv], flat]), *found

    @staticmethod
    def ask(q: Any, v: Any, *command: Any) -> Any:
        """(nv,) what drives make of the fields of COMMAND at these positions and velocities."""
        return requested_effort(dict(zip(COMMAND, command, strict=True)), {"position": q, "velocity": v})

    # --- the tick ---

    def stages(self, order: Sequence[str] = ORDER) -> list[TickTask]:
        """The tasks of a tick in running order; `publish` has no parts: the loop itself leaves the row."""
        at, commands = self._place, [("command", name) for name in COMMAND]
        feedback = [("measured", "position"), ("measured", "velocity"), ("effort",)]
        measured = self._part_at("measure", self.measure, ["t", "plant", "sensors", "request"], ["sensors", *feedback])
        known = self._part_at("known", self.known_acceleration, ["t", "plant"], ["known"])
        seen_real = ["plant", ("measured", "position"), "fresh", "lag"]
        observed = self._part_at("observe", self.observe_real, seen_real, ["plant"])
        told = [("told", loop.name, name) for loop in self.loops for name in COMMAND]
        looked = ["t", "plant", "arming", "request", *feedback[:2], *SEEN[2:], *told]
        judgement = [*commands, "verdict", "warned", "fault", "before", "request"]
        judged = self._part_at("guard", self.judge, looked, judgement)
        stopping = [("halted", name) for name in ("asked", "reason", "first")]
        halting = ["t", "arming", ("measured", "velocity"), "verdict", "fault", *stopping]
        resting = [self._part_at("halt", self.halt, halting, ["arming", *stopping[1:], "fault"])] if self.halts else []
        fallbacks = [loop.name for loop in self._tracked if loop.fallback is not None]
        held = [path for name in fallbacks for path in (("fallen", name), ("controllers", name, "held"))]
        led = self._part_at("lead", self.lead, ["t", "arming", *held], ["reference"])
        asked = self._part_at("write", self.ask, [*feedback[:2], *commands], ["request"])
        loaded = self._part_at("load", self.load, ["t", "plant", "request"], ["load"])
        stepped = self._part_at("advance", self.advance, ["t", "plant", "request"], ["plant"])
        single = {
            "read": [measured, *([observed] if self.plant.real else []), *([known] if self.plant.given.any() else [])],
            "guard": [*([led] if self._tracked else []), judged, *resting],
            "write": [asked, *([loaded] if self.loads else [])],
            "step": [stepped],
            "publish": [],
        }
        found = []
        for name in order:
            if name in single:
                found.append(TickTask(name, tuple(single[name])))
                continue
            pairs = zip(self.loops, self.controllers, strict=True)
            for loop, update in sorted(pairs, key=lambda pair: -pair[0].priority):
                first = at("parameters").where.start
                own = Region(slice(first + loop.own.start, first + loop.own.stop), loop.tunables.values.shape)
                kept = [at("controllers", loop.name), at("fallen", loop.name)]
                seen = [at(*path) for path in (*feedback, ("known",), ("arming",))]
                told_here = [at("told", loop.name, name) for name in COMMAND]
                part = MemoryCall(f"controller_{loop.name}", update, (at("t"), own, *kept, *seen), (*kept, *told_here))
                found.append(TickTask(loop.name, (part,), loop.ticks, loop.phase, loop))
        return found

    def _place(self, *path: str) -> Region:
        return self.layout.place(*path)

    def _part_at(self, name: str, fn: Callable[..., Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> MemoryCall:
        places = [
            tuple(self._place(*((path,) if isinstance(path, str) else path)) for path in paths)
            for paths in (inputs, outputs)
        ]
        return MemoryCall(name, fn, *places)

    @cached_property
    def row(self) -> Layout:
        """What a tick leaves behind for the recording, the beginning of the memory; everything else follows from it."""
        whole = self.initial()
        return Layout({name: whole[name] for name in (*ROW, *(OF_REAL if self.plant.real else ()))})

    def memory(self) -> np.ndarray:
        """The memory at t = 0."""
        return self.layout.pack(self.initial())

    def observe(self, arming: Any, row: Any) -> Any:
        """All signals of a row as one vector, in the order of `signals`; arming: of the run that the row is from."""
        return ops.array([ops.array(value) for value in self._signals(arming, row).values()])

    @cached_property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals, `<joint>/<interface>` and `energy/…`."""
        memory = self.memory()
        return tuple(self._signals(memory[self._place("arming").where], memory[: self.row.size]))

    def _signals(self, arming: Any, row: Any) -> dict[str, Any]:
        names = self.plant.model.dof_names
        parts = self.row.unpack(row)
        t = parts["t"]
        signals = self.plant.observe(t, parts["plant"], parts["request"])
        for loop in self.loops:
            sample = BumplessStart.of(arming, self.nv).at(loop.index).reference(loop.trajectory, t)
            followed = [what for what in ("position", "velocity", "acceleration") if loop.looks_at(what)]
            for i, k in enumerate(loop.index):
                signals |= {f"{names[k]}/reference_{what}": sample[what][i] for what in followed}
                signals[f"{names[k]}/command_effort"] = parts["request"][k]
        real = [self.plant.model.dof_index(name) for name in self.plant.real]
        for k in np.union1d(np.flatnonzero(self.encoders.inexact), real).astype(int):
            signals[f"{names[k]}/measured_position"] = parts["measured"]["position"][k]
            signals[f"{names[k]}/measured_velocity"] = parts["measured"]["velocity"][k]
        for k in real:
            signals[f"{names[k]}/model_effort"] = signals[f"{names[k]}/effort"]
            signals[f"{names[k]}/effort"] = parts["effort"][k]
            signals |= {f"{names[k]}/{what}": parts[what][k] for what in ("temperature", "age")}
        for k, load in enumerate(self.loads):
            signals[f"{names[load.index]}/load_effort"] = parts["load"][k]
        return signals
