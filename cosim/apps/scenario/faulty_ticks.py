"""Faults of simulated joints: inputs of the ticks in their memory, so that compiled ticks have them too.

A rig is given these ticks only where a scenario has a fault at one of its simulated joints.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cosim.core import ops
from cosim.core.compile import ArrayPort, BatchFunction
from cosim.core.compile.routine import Routine
from cosim.core.errors import InputError, SourceLocation
from cosim.core.types import Numeric, State
from cosim.execution.engine import Engine
from cosim.execution.hardware.emulation.fault_injection import FaultInjection, winding_resistance
from cosim.rig.parameter_table import table_of
from cosim.rig.parametrised_rig import parametrised
from cosim.rig.wiring.cached_parts import CachedParts
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.plant.encoder import MODULUS, Encoders, Params, normal
from cosim.simulation.tick.memory_call import MemoryCall
from cosim.simulation.tick.tick_model import TickModel

ENCODER_FAULTS = ("jump", "rate", "drift", "slip", "deviation", "frozen", "blind")
UNPOWERED = ("motor_fault", "power_loss")


class FaultyEncoders(Encoders):
    """Encoders whose faults are a part of their state, (n,) each: an offset `jump`, one that grows at `rate` and has
    come to `drift`, a velocity beyond the joint's by `slip`, noise with a standard `deviation`, and truth values
    `frozen` and `blind` (no number)."""

    faulty: np.ndarray  # bool (n,): joints that have faults at times

    @classmethod
    def of(cls, encoders: Encoders, faulty: np.ndarray) -> FaultyEncoders:
        made = cls.__new__(cls)
        made.__dict__.update(copy.copy(encoders).__dict__, faulty=faulty)
        return made

    @property
    def inexact(self) -> np.ndarray:
        return super().inexact | self.faulty

    def initial(self, position: np.ndarray, velocity: np.ndarray) -> State:
        n = len(position)
        state = super().initial(position, velocity)
        draws = np.random.default_rng([self.seed, n]).integers(1, int(MODULUS), n).astype(float)
        return {**state, **{name: np.zeros(n) for name in ENCODER_FAULTS}, "held": position * 1.0, "draws": draws}

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        following, y = super().update(t, p, x, u)
        draws, errors = normal(x["draws"])
        drift = x["drift"] + x["rate"] * self.period
        position = y["position"] + x["jump"] + drift + x["deviation"] * errors
        position = ops.where(x["frozen"] > 0.5, x["held"], position)
        velocity = ops.where(x["frozen"] > 0.5, 0.0, y["velocity"] + x["rate"] + x["slip"])
        given = (ops.where(x["blind"] > 0.5, math.nan, value) for value in (position, velocity))
        faults = {name: x[name] for name in ENCODER_FAULTS} | {"drift": drift, "held": position, "draws": draws}
        return {**following, **faults}, {**y, **dict(zip(("position", "velocity"), given, strict=True))}


@dataclass
class FaultyTicks(TickModel):
    """Ticks whose simulated drives can be switched off: `powered` (nv,) in their memory."""

    def initial(self) -> State:
        return {**super().initial(), "powered": np.ones(self.nv)}

    def _step_call(self) -> MemoryCall:
        if self.coupling is not None:
            return super()._step_call()
        inputs = ["t", "plant", "powered", "request", *self._setpoints]
        return self._call("advance", self._advance_powered, inputs, ["plant"])

    def _advance_powered(self, t: Numeric, x: Numeric, powered: Numeric, *held: Numeric) -> Numeric:
        """held: the request, and setpoints of which the last one is whether a sampled drive is switched on."""
        last = len(held) - 1
        values = [ops.where(powered > 0.5, each, 0.0) if k in (0, last) else each for k, each in enumerate(held)]
        return self.advance(t, x, *values)


class SimulatedFaults:
    """The faults of simulated joints of a rig, and the rig with the ticks that have them."""

    def __init__(self, rig: WiredRig, faults: Sequence[tuple[FaultInjection, SourceLocation]]) -> None:
        """faults: all that may become active, each with its place for errors. Raises InputError for a joint that cannot
        have its fault."""
        coupled = rig.tick_model.coupling is not None
        found = table_of(rig).per_run if rig.looped and not coupled else {}
        self._joints = rig.joints
        self._numbers: dict[str, slice] = {}  # name -> its place
        names: list[str] = []
        for spec, place in faults:
            names += [name for name in _numbers_of(spec) if name in found and name not in names]
            if coupled and spec.kind in ("brown_out", *UNPOWERED):
                what = f"'{spec.kind}' is not possible at a simulated joint of a rig with parts"
                raise InputError(f"{what}; use an encoder fault", place)
            if spec.kind == "brown_out" and not set(_numbers_of(spec)) <= found.keys():
                raise InputError(_no_supply(spec.joint, rig), place)
        self._nominal = np.concatenate([np.zeros(0), *(found[name].values for name in names)])
        first = 0
        for name in names:
            self._numbers[name] = slice(first, first := first + found[name].values.size)
        self.rig = _with_faults(rig, names, {spec.joint for spec, _ in faults})
        self.numbers = self._nominal.copy()  # as they are now
        self._observe = _observation(self.rig.tick_model) if names else None

    def observe(self, start: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(k, n) signals of rows (k, nr + numbers) that end with the numbers of their tick; start (k, …)."""
        if self._observe is None:
            return self.rig.observe(start, rows)
        size = self.rig.tick_model.row.size
        arrays = start, rows[:, :size], rows[:, size:]
        return self._observe(*arrays[: len(self._observe.inputs)])

    def apply(self, engine: Engine, active: Sequence[FaultInjection]) -> None:
        """From now on, between two ticks, exactly these faults are active."""
        at = [(spec, self._joints.index(spec.joint)) for spec in active if spec.joint in self._joints]
        n = len(self._joints)
        jump, rate, slip, variance, frozen, blind = (np.zeros(n) for _ in range(6))
        powered, temperature, numbers = np.ones(n), np.full(n, np.nan), self._nominal.copy()
        for spec, k in at:
            jump[k] += spec.size * (spec.kind == "encoder_jump")
            rate[k] += spec.rate * (spec.kind == "encoder_drift")
            slip[k] += spec.rate * (spec.kind == "coupling_slip")
            variance[k] += spec.size**2 * (spec.kind == "encoder_noise")
            frozen[k] += spec.kind == "encoder_freeze"
            blind[k] += spec.kind == "encoder_nan"
            powered[k] *= spec.kind not in UNPOWERED
            if spec.kind == "hot_winding":
                temperature[k] = spec.temperature
            for name in _numbers_of(spec):
                if name in self._numbers:
                    numbers[self._numbers[name]] *= _factor(spec)
        drift = engine.view("sensors", "drift") * (rate != 0.0)
        values = (jump, rate, drift, slip, np.sqrt(variance), frozen, blind)
        for name, value in zip(ENCODER_FAULTS, values, strict=True):
            engine.view("sensors", name)[:] = value
        simulated = [k for k, name in enumerate(self._joints) if name not in self.rig.plant.real]
        engine.view("powered")[:] = powered
        engine.view("temperature")[simulated] = temperature[simulated]
        engine.view("numbers")[:] = self.numbers = numbers


def _no_supply(joint: str, rig: WiredRig) -> str:
    if rig.looped:
        return f"the actuator of joint '{joint}' has no voltage_limit; give it one, or use motor_fault"
    return f"'brown_out' of the simulated joint '{joint}' needs compiled ticks, which this rig has not; use motor_fault"


def _observation(model: TickModel) -> BatchFunction:
    """(start, row, numbers) -> all signals: code with symbolic parameters takes them after its other arguments."""
    shapes = [model.layout.place("bumpless_start").shape, (model.row.size,)]
    routine = Routine(model.signals.observe, shapes, "observe")
    hidden = [] if routine.symbolic_parameters is None else [model.numbers.shape]
    ports = [ArrayPort(f"in{k}", shape) for k, shape in enumerate([*shapes, *hidden])]
    return BatchFunction.of(routine, ports)


def _numbers_of(spec: FaultInjection) -> tuple[str, ...]:
    """The numbers of the plant that a fault changes."""
    name = {"brown_out": "voltage_limit", "hot_winding": "resistance"}.get(spec.kind)
    return () if name is None else (f"joints.{spec.joint}.actuator.{name}",)


def _factor(spec: FaultInjection) -> float:
    return spec.supply if spec.kind == "brown_out" else winding_resistance(spec.temperature)


def _with_faults(rig: WiredRig, numbers: Sequence[str], joints: Collection[str]) -> WiredRig:
    model = parametrised(rig, numbers, numbers) if numbers else rig.tick_model
    parts: dict[str, Any] = {field.name: getattr(model, field.name) for field in fields(model) if field.init}
    parts["encoders"] = FaultyEncoders.of(model.encoders, np.array([name in joints for name in rig.joints]))
    ticks = FaultyTicks(**parts)
    ticks.parameters[:] = model.parameters
    found = rig.with_ticks(ticks)
    found.cached = CachedParts()  # its signals are others
    return found
