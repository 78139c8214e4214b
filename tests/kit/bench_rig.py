"""A rig with real joints on a simulated bench, tick by tick in the memory of the rig, so that its loop can be compiled.

The bench is another rig without drivers: its mechanism, its drives and its encoders may differ from what the rig under
test takes them for, and a fault changes what its drives and its encoders do.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from cosim.control.shadow import RESIDUALS
from cosim.core import ops
from cosim.core.types import Numeric
from cosim.execution.native_engine import NativeEngine
from cosim.rig.rig import Rig
from cosim.simulation.plant.external_efforts import ORDER
from cosim.simulation.tick.memory_call import MemoryCall
from cosim.simulation.tick.tick_model import TickModel

BLOCK = 100_000  # ticks


@dataclass(frozen=True)
class Bench:
    """Without a fault. Every function gets the time [s] and arrays of all joints (nv,)."""

    model: TickModel
    load_delay: int = 0  # ticks until load motors exert a command

    def load(self, t: Numeric, q: Numeric, v: Numeric) -> Numeric:
        """(nv,) effort on the joints beside the mechanism's and the drives'."""
        return np.zeros(self.model.nv)

    def exerted(self, t: Numeric, commands: Numeric) -> Numeric:
        """(m,) efforts that the load motors exert for their commands."""
        return commands

    def requested(self, t: Numeric, request: Numeric) -> Numeric:
        """What the drives take for the request."""
        return request

    def measured(self, t: Numeric, q: Numeric, v: Numeric) -> tuple[Numeric, Numeric]:
        """Measured positions and velocities."""
        return q, v

    def reported(self, t: Numeric, effort: Numeric, request: Numeric) -> Numeric:
        """The effort that the drives report; effort: that they exert."""
        return effort


def on_bench(rig: Rig, bench: Rig) -> TickModel:
    """The ticks of a simulated rig, whose every joint can bear an effort from outside."""
    model = bench.tick_model
    plant = dataclasses.replace(model.plant, coupled=tuple(rig.joints))
    fields = {f.name: getattr(model, f.name) for f in dataclasses.fields(TickModel) if f.init}
    return TickModel(**fields | {"plant": plant})


@dataclass
class BenchedTicks(TickModel):
    """The ticks of a rig with real joints, and of its bench between them."""

    bench: Bench | None = None

    def initial(self):
        assert self.bench is not None
        state, q, v = self.bench.model._initial_motion
        parts = {"plant": self.bench.model.plant.layout.pack(state)}
        parts["loads"] = np.zeros((self.bench.load_delay + 1, len(self.loads)))
        parts["sensors"] = self.bench.model.sensor_layout.pack(self.bench.model.encoders.initial(q, v))
        return super().initial() | {"bench": parts}

    def _read_calls(self) -> list[MemoryCall]:
        first, *rest = super()._read_calls()
        inputs = ["t", ("bench", "plant"), ("bench", "sensors"), "request"]
        feedback = [("measured", "position"), ("measured", "velocity"), "measured_effort"]
        outputs = [("bench", "sensors"), *feedback, "sample_interval", ("load_measured", "velocity"), "load_interval"]
        return [first, self._call("bench_measure", self.bench_measure, inputs, outputs), *rest]

    def _write_calls(self) -> list[MemoryCall]:
        kept = [("bench", "plant"), ("bench", "loads")]
        inputs, outputs = ["t", *kept, "request", "load_effort"], [*kept, ("load_measured", "effort")]
        return [*super()._write_calls(), self._call("bench_advance", self.bench_advance, inputs, outputs)]

    def bench_measure(self, t: Numeric, x: Numeric, sensors: Numeric, request: Numeric) -> tuple[Numeric, ...]:
        bench = self.bench
        taken = bench.requested(t, request)
        after, q, v, effort = bench.model.measure(t, x, sensors, taken)
        interval = ops.where(t > 0.0, np.full(self.nv, self.step), 0.0)
        joints, on_shaft = [load.joint for load in self.loads], bench.measured(t, q, v)
        reported = bench.reported(t, effort, request)
        return after, *on_shaft, reported, interval, v[joints], interval[joints]

    def bench_advance(
        self, t: Numeric, x: Numeric, loads: Numeric, request: Numeric, commands: Numeric
    ) -> tuple[Numeric, ...]:
        bench, plant = self.bench, self.bench.model.plant
        state = plant.layout.unpack(x)
        q, v, _ = plant.motion(t, state)
        load = bench.load(t, plant.model.equations.chart(q), v)
        loads = ops.concatenate([ops.array([bench.exerted(t, commands)]), loads[:-1]])
        acting = loads[-1]
        load = load + ops.set_at(np.zeros(self.nv), [each.joint for each in self.loads], acting)
        held = ops.array([load, *[np.zeros(self.nv)] * ORDER]).T
        state = state | {"external": {"since": t, "coefficients": held}}
        return bench.model.advance(t, plant.layout.pack(state), bench.requested(t, request)), loads, acting


def ticks_of(rig: Rig, bench: Bench) -> BenchedTicks:
    """The ticks of a rig with real joints on this bench."""
    fields = {f.name: getattr(rig.tick_model, f.name) for f in dataclasses.fields(TickModel) if f.init}
    return BenchedTicks(**fields, bench=bench)


def run_on(rig: Rig, bench: Bench, seconds: float) -> tuple[dict[str, np.ndarray], str]:
    """(signals by name, why the run stopped or "") of a compiled run in simulated time."""
    model = ticks_of(rig, bench)
    engine = NativeEngine(model)
    rows, fault = engine.run(round(seconds / model.step) + 1)
    values = rig.observe(engine.view("bumpless_start").copy(), rows)
    return dict(zip(model.signals.names, values.T, strict=True)), fault


def largest_residuals(rig: Rig, bench: Bench, seconds: float) -> tuple[dict[str, np.ndarray], str, int]:
    """({residual: largest without sign (nv,)}, why the run stopped, ticks) of a run of any length."""
    model = ticks_of(rig, bench)
    engine, left = NativeEngine(model), round(seconds / model.step) + 1
    largest = {name: np.zeros(model.nv) for name in RESIDUALS}
    fault, done = "", 0
    while left and not fault:
        rows, fault = engine.run(min(left, BLOCK))
        left, done = left - len(rows), done + len(rows)
        for name in RESIDUALS:
            values = rows[:, model.row.place("shadow", name).where]
            largest[name] = np.maximum(largest[name], np.abs(values).max(axis=0))
    return largest, fault, done
