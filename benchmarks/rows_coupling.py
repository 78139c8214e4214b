"""Coupled parts: the cost of a step of the coupling in machine code, and of two parts in Python beside mosaik."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from benchmarks.paired_timing import Budget, RepeatedCall, Samples, repetitions, time_pairs, undisturbed
from benchmarks.peers import relative_difference
from benchmarks.peers_mosaik import Update, run_loop
from benchmarks.rows import CPU_TIME, BenchCase, Measurement, Target
from cosim.core.compile.routine import Routine
from cosim.core.types import Array, Numeric, Signal, Signals, State, param, params
from cosim.simulation.coupling import BlockPart, CoupledParts, PowerBond, Wire
from cosim.simulation.coupling.calling_master import CallingMaster
from cosim.simulation.loop.native_loop import NativeLoop
from cosim.simulation.loop.tick_ring import LoopTask, RoutineCall, SharedWord, TickProgram, TickRing

STEP = 1e-3  # s, of the coupling and of the parts
COMPARED = 2000  # steps
FORCE, VELOCITY = Signal((), "N"), Signal((), "m/s")


@params
class MassParams:
    """A mass on a spring to the ground, and a spring between both masses."""

    mass: float = param(unit="kg", default=1.0)
    stiffness: float = param(unit="N/m", default=10.0)
    coupling: float = param(unit="N/m", default=100.0)


class MassWithSpring:
    """The velocity of the end of its coupling spring in, the force on this end out."""

    def __init__(self, params: MassParams) -> None:
        self.params = params
        self.inputs: Signals = {"velocity": VELOCITY}
        self.outputs: Signals = {"force": FORCE}

    def initial(self) -> State:
        return {"x": np.zeros(()), "end": np.zeros(()), "v": np.ones(())}

    def flow(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        force = p.coupling * (x["x"] - x["end"])
        return {"x": x["v"], "end": u["velocity"], "v": -(p.stiffness * x["x"] + force) / p.mass}, {"force": force}


class PulledMass:
    """A force in, the velocity out."""

    def __init__(self, params: MassParams) -> None:
        self.params = params
        self.inputs: Signals = {"force": FORCE}
        self.outputs: Signals = {"velocity": VELOCITY}

    def initial(self) -> State:
        return {"x": np.zeros(()), "v": -np.ones(())}

    def flow(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        return {"x": x["v"], "v": (u["force"] - p.stiffness * x["x"]) / p.mass}, {"velocity": x["v"]}


class BothMasses:
    """The same two masses as one block; it has an input that does nothing, as a part of its own."""

    def __init__(self) -> None:
        self.left, self.right = MassWithSpring(MassParams()), PulledMass(MassParams())
        self.params = MassParams()
        self.inputs: Signals = {"u": FORCE}
        self.outputs: Signals = {"velocity": VELOCITY}

    def initial(self) -> State:
        return {"left": self.left.initial(), "right": self.right.initial()}

    def flow(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        left, pulled = self.left.flow(t, p, x["left"], {"velocity": x["right"]["v"]})
        right, outputs = self.right.flow(t, p, x["right"], pulled)
        return {"left": left, "right": right}, outputs


def native_steps(step: Callable[..., Numeric], memory: Array) -> RepeatedCall:
    """Steps of a memory in one loop in machine code, which records the time of each."""
    start = 2  # behind the time and the fault, which stays 0
    here = slice(start, start + len(memory))
    call = RoutineCall(Routine(step, [memory.shape], "coupled_step"), (here,), (here,))
    loop = NativeLoop(TickProgram((LoopTask((call,)),), step=STEP, time=0, fault=1, judge=0, early=1, row=2))
    loop.link()

    def steps(n: int) -> None:
        ring = TickRing(loop.program, places=1)  # rows are not read
        ring.words[SharedWord.COUNT] = n
        whole = np.concatenate([np.zeros(start), memory])
        loop.run(whole, ring)
        memory[:] = whole[start:]

    return steps


def compiled(budget: Budget) -> Measurement:
    """Gauss–Seidel of order 1 with the energy account of its bond, beside one step of the whole."""
    parts = {
        "left": BlockPart(MassWithSpring(MassParams()), STEP),
        "right": BlockPart(PulledMass(MassParams()), STEP),
    }
    bond = PowerBond(("left.force", "right.force"), ("right.velocity", "left.velocity"))
    master = CoupledParts(parts, [bond], "gauss_seidel", 1, STEP).compiled_master
    assert master is not None
    memory = master.initial(0.0, STEP)
    ours = native_steps(lambda m: master.step(m, STEP), memory)
    whole = BlockPart(BothMasses(), STEP, name="whole")
    state, _ = whole.at_start(0.0, np.zeros(1))
    other = native_steps(lambda x: whole.advance(0.0, STEP, x, np.zeros((1, 1)))[0], state)
    ours(COMPARED)
    other(COMPARED)
    found, expected = master.layout.unpack(memory)["states"], whole.state_layout.unpack(state)
    difference = abs(found["right"][1] - expected["right"]["v"])
    note = f"velocities differ by {difference:.0e} m/s after {COMPARED * STEP:g} s; steps of {STEP * 1e3:g} ms"
    return Measurement(time_pairs(ours, other, budget, CPU_TIME), note=note)


@dataclass
class ValueInPython:
    """A part in plain Python: a value that follows its input."""

    update: Update
    value: float
    order = 0
    repeats = variable = True
    feedthrough = frozenset[tuple[str, str]]()
    inputs: Signals = field(default_factory=lambda: {"u": FORCE})
    outputs: Signals = field(default_factory=lambda: {"y": FORCE})

    def start(self, t: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        return {"y": np.array(self.value)}

    def step(self, t: float, h: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        self.value = self.update(self.value, float(inputs["u"][0]))
        return {"y": np.array(self.value)}

    def save(self) -> object:
        return self.value

    def restore(self, saved: object) -> None:
        assert isinstance(saved, float)
        self.value = saved

    def close(self) -> None:
        """Nothing to release."""


def follow(rate: float, value: float, given: float) -> float:
    return value + STEP * rate * (given - value)


UPDATES: tuple[Update, Update] = (partial(follow, 3.0), partial(follow, -1.0))
STARTS = 1.0, 2.0


def called_steps(master: CallingMaster) -> RepeatedCall:
    """Steps of parts that are called, from their start."""
    memory = master.started(0.0, STEP)

    def steps(n: int) -> None:
        nonlocal memory
        for _ in range(n):
            memory = master.step(memory, STEP)

    return steps


def python_loop() -> tuple[RepeatedCall, ValueInPython]:
    """Steps of two values, and the second of them."""
    a, b = (ValueInPython(update, start) for update, start in zip(UPDATES, STARTS, strict=True))
    wires = [Wire("a.y", "b.u"), Wire("b.y", "a.u")]
    master = CoupledParts({"a": a, "b": b}, wires, "gauss_seidel", 0, STEP, sequence=["a", "b"]).calling_master()
    return called_steps(master), b


def beside_mosaik(budget: Budget) -> Measurement:
    """Blocks of our steps run between blocks of mosaik's, in one run of mosaik: it cannot go on after a run."""
    compared, value = python_loop()
    compared(COMPARED)
    last = run_loop(UPDATES, STARTS, COMPARED, lambda: None)
    difference = relative_difference(np.array([value.value]), np.array([last]))

    ours, _ = python_loop()
    block = 20  # steps of mosaik
    times: list[tuple[float, float]] = []
    with undisturbed():
        count = repetitions(ours, budget.block, CPU_TIME)
        done, begun = 0, CPU_TIME()

        def after() -> None:
            nonlocal done, begun
            done += 1
            if done % block:
                return
            other = (CPU_TIME() - begun) / block
            begun = CPU_TIME()
            ours(count)
            times.append(((CPU_TIME() - begun) / count, other))
            begun = CPU_TIME()

        run_loop(UPDATES, STARTS, block * (budget.pairs + 1), after)
    mine, theirs = np.array(times[1:]).T  # the first block has the start of mosaik
    return Measurement(Samples(mine, theirs), difference)


CASES = (
    BenchCase(
        "coupling compiled",
        "a step of two coupled parts, Gauss–Seidel of order 1 with the account of energy, in one loop in machine code",
        compiled,
        "a step of RK4 of both as one block, in the same loop",
        target=Target("ours", 1.0, at_most=True),
    ),
    BenchCase(
        "coupling python",
        "a step of two coupled parts in Python, Gauss–Seidel of order 0",
        beside_mosaik,
        "the same loop in mosaik, simulators in its process",
        target=Target("ratio", 20.0),
    ),
)
