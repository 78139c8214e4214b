"""One tick of a rig as a pure function: read → controllers → guard → write → step.

The tick is composed of parts that can also be called one by one. Native runs compile the whole of it; the
Python loop calls the same parts around its drivers, so both give the same signals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cosim import guard, ops
from cosim.compile.jacobian import Jacobian
from cosim.compile.routine import Routine, call_when
from cosim.encoder import Encoders
from cosim.errors import CompileError, did_you_mean
from cosim.integrators import INTEGRATORS, System
from cosim.layout import Layout
from cosim.parameters import Tunables
from cosim.plant import Plant
from cosim.stepping import Stepping
from cosim.types import COMMAND, FEEDBACK, Limits, State, requested_effort


@dataclass
class Loop:
    """A controller in its place: which joints it commands, how often, by what reference."""

    name: str
    block: Any
    index: np.ndarray  # (n,) of its joints in the model's order
    ticks: int
    trajectory: Any

    own: slice = field(init=False, default_factory=lambda: slice(0))  # its parameters among those of all loops

    def __post_init__(self) -> None:
        self.layout = Layout(self.block.initial())
        self.tunables = Tunables(self.block.params)

    def looks_at(self, what: str) -> bool:
        """Whether the controller follows a reference position (then it has a velocity and acceleration too), or this
        part of a reference."""
        return "reference_position" in self.block.inputs or f"reference_{what}" in self.block.inputs

    def update(self, t: Any, p: Any, x: Any, q: Any, v: Any, effort: Any, a: Any) -> tuple[Any, ...]:
        """(next state, then the fields of COMMAND): one call of the controller on flat arrays.

        p: its tunable parameters, x: its state; q, v, effort: (nv,) as measured; a: (nv,) accelerations that
        are known beforehand, those of prescribed joints.
        """
        reference = {f"reference_{name}": value for name, value in self.trajectory.sample(t).items()}
        measured = dict(zip(FEEDBACK, (q, v, effort), strict=True))
        u = {name: values[self.index] for name, values in measured.items()} | reference
        u |= {f"all_{name}": values for name, values in measured.items()} | {"all_acceleration": a}
        unknown = [name for name in self.block.inputs if name not in u]
        if unknown:
            raise ValueError(f"there is no input '{unknown[0]}'{did_you_mean(unknown[0], u)}")
        given = {name: u[name] for name in self.block.inputs}
        x_next, y = self.block.update(t, self.tunables.apply(p), self.layout.unpack(x), given)
        return self.layout.pack(x_next), *(self._told(name, y) for name in COMMAND)

    def _told(self, name: str, y: Any) -> Any:
        """One output of the block, checked: the block may be the user's own."""
        if name not in y:
            raise ValueError(f"the output '{name}' is missing")
        value = ops.array(y[name])
        if value.shape != self.index.shape:
            raise ValueError(f"the output '{name}' has shape {value.shape}; it must be {self.index.shape}")
        if value.dtype.kind not in "biufO":
            raise ValueError(f"the output '{name}' must be numbers")
        return value


@dataclass
class Simulation:
    """A wired rig without drivers: everything that happens in a tick, in seconds and flat arrays."""

    plant: Plant
    encoders: Encoders
    loops: Sequence[Loop]
    limits: Limits  # (nv,)
    integrator: str
    step_ns: int
    substeps: int
    compiled: bool = True

    def __post_init__(self) -> None:
        self.nv = self.plant.model.nv
        self.layout = Layout(self.initial())
        self.parameters = np.concatenate([np.zeros(0), *(loop.tunables.values for loop in self.loops)])
        start = 0
        for loop in self.loops:
            loop.own = slice(start, start := start + loop.tunables.values.size)

    def initial(self) -> State:
        """The state of everything at t = 0: plant, measurements, controllers, the command held."""
        plant = self.plant
        q, v, _ = plant.motion(0.0, plant.initial())
        return {
            "plant": plant.initial(),
            "sensors": self.encoders.initial(plant.model.pure.chart(q), v),
            "controllers": {loop.name: loop.block.initial() for loop in self.loops},
            "wait": {loop.name: np.zeros(()) for loop in self.loops},  # ticks until it is due
            "command": {name: np.zeros(self.nv) for name in COMMAND},
            "request": np.zeros(self.nv),  # what the drives have been asked for since the last tick
        }

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

    def known_acceleration(self, t: Any) -> Any:
        """(nv,) accelerations of the prescribed joints, 0 elsewhere."""
        return self.plant.motion(t, self.plant.initial())[2]

    @property
    def controllers(self) -> list[Callable[..., Any]]:
        """One function per loop, `Loop.update`; a controller that cannot be traced stays in Python."""
        return [update for update, _ in self._traced_controllers]

    @property
    def untraceable(self) -> dict[str, str]:
        """Controllers that stay in Python, by name, and why."""
        pairs = zip(self.loops, self._traced_controllers, strict=True)
        return {loop.name: why for loop, (_, why) in pairs if why}

    @cached_property
    def _traced_controllers(self) -> list[tuple[Callable[..., Any], str]]:
        return [self._controller(loop) for loop in self.loops]

    def _controller(self, loop: Loop) -> tuple[Callable[..., Any], str]:
        """(the function, why it cannot be traced)."""
        shapes = [(), loop.tunables.values.shape, (loop.layout.size,), *[(self.nv,)] * 4]
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
            return loop.update, str(error)

    @cached_property
    def stepping(self) -> Stepping:
        return Stepping(self.plant, self._step, self.step / self.substeps, self.compiled)

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

    # --- the whole tick ---

    @cached_property
    def row(self) -> Layout:
        """What a tick leaves behind for the recording; everything else follows from it."""
        n = np.zeros(self.nv)
        measured = {"position": n, "velocity": n}
        return Layout({"plant": self.plant.initial(), "request": n, "measured": measured, "verdict": n})

    def row_of(self, plant: Any, request: Any, feedback: Mapping[str, Any], verdict: Any) -> Any:
        """The row of a tick; plant: its flat state, the others as in the tick."""
        measured = {name: feedback[name] for name in ("position", "velocity")}
        state = self.plant.layout.unpack(plant)
        return self.row.pack({"plant": state, "request": request, "measured": measured, "verdict": verdict})

    def tick(self, number: Any, p: Any, x: Any) -> tuple[Any, Any, Any]:
        """(state after the tick, row, fault): tick `number` (count from 0) on flat arrays.

        fault is 0, or the largest verdict of the guard and of what became of the plant, and the state is then of
        no use.
        """
        t = number * self.step
        state = self.layout.unpack(x)
        plant = self.plant.layout.pack(state["plant"])
        command = dict(state["command"])
        sensors, *sample = self.measure(t, plant, self.sensor_layout.pack(state["sensors"]), state["request"])
        known = self.known_acceleration(t)
        for loop, update in zip(self.loops, self.controllers, strict=True):
            held = [loop.layout.pack(state["controllers"][loop.name])]
            held += [command[name][loop.index] for name in COMMAND]
            due = state["wait"][loop.name] <= 0.0
            memory, *told = call_when(due, update, (t, p[loop.own], held[0], *sample, known), held)
            state["controllers"][loop.name] = loop.layout.unpack(memory)
            state["wait"][loop.name] = ops.where(due, loop.ticks - 1.0, state["wait"][loop.name] - 1.0)
            for name, values in zip(COMMAND, told, strict=True):
                command[name] = ops.placed(command[name], loop.index, values)
        feedback = dict(zip(FEEDBACK, sample, strict=True))
        command, verdict = guard.check(self.limits, feedback, command)
        request = requested_effort(command, feedback)
        row = self.row_of(plant, request, feedback, verdict)
        fault = self.trouble(t, plant)
        for k in range(self.nv):
            fault = ops.maximum(fault, verdict[k])
        state |= {
            "plant": self.plant.layout.unpack(self.advance(t, plant, request)),
            "sensors": self.sensor_layout.unpack(sensors),
            "command": command,
            "request": request,
        }
        return self.layout.pack(state), row, fault

    def observe(self, t: Any, row: Any) -> Any:
        """All signals of a row as one vector, in the order of `signals`."""
        return ops.array([ops.array(value) for value in self._signals(t, row).values()])

    @cached_property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals, `<joint>/<interface>` and `energy/…`."""
        at_rest = {name: np.zeros(self.nv) for name in FEEDBACK}
        nothing = at_rest["effort"]
        row = self.row_of(self.plant.layout.pack(self.plant.initial()), nothing, at_rest, nothing)
        return tuple(self._signals(0.0, row))

    def _signals(self, t: Any, row: Any) -> dict[str, Any]:
        names = self.plant.model.dof_names
        parts = self.row.unpack(row)
        signals = self.plant.observe(t, parts["plant"], parts["request"])
        for loop in self.loops:
            sample = loop.trajectory.sample(t)
            followed = [what for what in ("position", "velocity", "acceleration") if loop.looks_at(what)]
            for i, k in enumerate(loop.index):
                signals |= {f"{names[k]}/reference_{what}": sample[what][i] for what in followed}
                signals[f"{names[k]}/command_effort"] = parts["request"][k]
        for k in np.flatnonzero(self.encoders.inexact):
            signals[f"{names[k]}/measured_position"] = parts["measured"]["position"][k]
            signals[f"{names[k]}/measured_velocity"] = parts["measured"]["velocity"][k]
        return signals
