"""The plant among parts that are integrated apart: a tick is one step of their coupling.

The plant is the part `mechanism`. Its inputs are efforts on dofs, `<dof>/effort`, its outputs `<dof>/position` and
`<dof>/velocity`. Efforts from parts act beside the drives'; within the tick they are polynomials of time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np

from cosim.core import ops
from cosim.core.compile.while_loop import repeated_while
from cosim.core.layout import Layout
from cosim.core.types import Array, Numeric, Signal, Signals, State
from cosim.core.units import quantity_unit
from cosim.simulation.coupling.block_part import BlockPart, zeros_of
from cosim.simulation.coupling.calling_master import CallingMaster, HeldPart
from cosim.simulation.coupling.couplings import Couplings, Terminal
from cosim.simulation.coupling.master import Master, MasterPart, Scheme
from cosim.simulation.coupling.part import Part, StartValue
from cosim.simulation.coupling.start import HasFeedthrough, in_order_of_evaluation, sequence_of
from cosim.simulation.plant.external_efforts import ORDER
from cosim.simulation.plant.plant import Plant

MECHANISM = "mechanism"  # the name of the plant among the parts
COUPLING = "coupling"  # group of the signals of the steps of the coupling: its last, and since the start
STEP_SIGNALS: Signals = {
    "step": Signal((), "s", "length of the last step of the coupling"),
    "steps": Signal((), "1", "steps of the coupling since the start"),
    "repeated": Signal((), "1", "steps that were made again with a shorter length, since the start"),
}
OF_A_BOND: Signals = {
    "power": Signal((), "W", "effort · flow"),
    "residual_energy": Signal(
        (), "J", "energy that the coupling has created since the start; negative where it was lost"
    ),
}
LEAST_REST = 1e-9  # of a tick: a rest that is shorter is rounding


T = TypeVar("T")


class StepsPlant(Protocol):
    """What a tick has: see `TickFunctions`."""

    plant: Plant

    @property
    def step(self) -> float: ...

    def advance(self, t: Numeric, x: Numeric, request: Numeric, *setpoints: Numeric) -> Numeric: ...


def signals_of_plant(names: Sequence[str], units: Sequence[str]) -> tuple[Signals, Signals]:
    """(inputs, outputs) of the plant as a part; units: rad or m, of each dof."""
    inputs, outputs = {}, {}
    for name, unit in zip(names, units, strict=True):
        effort, position, velocity = (quantity_unit(f"joint {of}", unit) for of in ("effort", "position", "velocity"))
        inputs[f"{name}/effort"] = Signal((), effort)
        outputs |= {f"{name}/position": Signal((), position), f"{name}/velocity": Signal((), velocity)}
    return inputs, outputs


@dataclass
class PlantSignals:
    """The plant as the checks of couplings see it."""

    inputs: Signals
    outputs: Signals
    feedthrough: frozenset[tuple[str, str]] = frozenset()


@dataclass
class PlantPart:
    """The plant with the contract of `BlockPart`. held: numbers that are constant in a tick, behind its state: the
    request to the drives and their setpoints. ports: (input, output) whose work is measured."""

    functions: StepsPlant
    outputs: Signals
    held: int
    ports: tuple[tuple[str, str], ...]
    feedthrough: frozenset[tuple[str, str]] = frozenset()
    order: int = ORDER
    start: Array | None = None  # its state at the start, by default that of the plant
    inputs: Signals = field(init=False)
    input_layout: Layout = field(init=False)
    output_layout: Layout = field(init=False)

    def __post_init__(self) -> None:
        self.inputs = {f"{name}/effort": Signal((), "") for name in self._plant.coupled}
        self.input_layout, self.output_layout = Layout(zeros_of(self.inputs)), Layout(zeros_of(self.outputs))

    @property
    def _plant(self) -> Plant:
        return self.functions.plant

    @property
    def has_dofs(self) -> bool:
        """False for a rig of parts only: the plant is then none of the parts."""
        return self._plant.model.nv > 0

    @property
    def size(self) -> int:
        return self._plant.layout.size + self.held

    def at_start(self, t: Numeric, u: Numeric) -> tuple[Numeric, Numeric]:
        """See `BlockPart`; the efforts are constant."""
        rest = np.zeros((ORDER, len(self._plant.coupled)))
        start = self._plant.layout.pack(self._plant.initial()) if self.start is None else self.start
        x = self.with_efforts(t, start, np.array([np.reshape(u, -1), *rest]))
        return ops.concatenate([x, np.zeros(self.held)]), self.output_values(t, x)

    def advance(self, t: Numeric, h: Numeric, x: Numeric, coefficients: Numeric) -> tuple[Numeric, Numeric, Numeric]:
        """See `BlockPart`; h is the length of a tick."""
        nx, nv = self._plant.layout.size, self._plant.model.nv
        held = [x[start : start + nv] for start in range(nx, nx + self.held, nv)]
        before = self.with_efforts(t, x[:nx], coefficients)
        after = self.functions.advance(t, before, *held)
        work = self.work_done(after) - self.work_done(before)
        return ops.concatenate([after, x[nx:]]), self.output_values(t + self.functions.step, after), work

    def with_efforts(self, t: Numeric, x: Numeric, coefficients: Numeric) -> Numeric:
        """The state with the polynomials (k + 1, m) of the efforts from outside."""
        if not self._plant.coupled:
            return x
        rows = [coefficients[k] for k in range(len(coefficients))]
        rows += [np.zeros(len(self._plant.coupled))] * (ORDER + 1 - len(rows))
        given = {"since": t, "coefficients": ops.array(rows).T}
        return self._plant.layout.pack(self._plant.layout.unpack(x) | {"external": given})

    def work_done(self, x: Numeric) -> Numeric:
        """(ports,) J that the efforts of the ports have done on the plant since the start."""
        if not self.ports:
            return np.zeros(0)
        external = self._plant.layout.unpack(x)["energy"]["external"]
        places = [self._plant.coupled.index(given.rpartition("/")[0]) for given, _ in self.ports]
        return external[places]

    def output_values(self, t: Numeric, x: Numeric) -> Numeric:
        q, v, _ = self._plant.motion(t, self._plant.layout.unpack(x))
        chart, values = self._plant.model.equations.chart(q), []
        for name in self.outputs:
            dof, _, what = name.rpartition("/")
            values.append((v if what == "velocity" else chart)[self._plant.model.dof_index(dof)])
        return ops.array(values) if values else np.zeros(0)


class CouplingFault(IntEnum):
    """Why a run with parts cannot continue; higher values take precedence."""

    RESIDUAL_ENERGY = 1
    NOT_FINITE = 2


class PartSource(HasFeedthrough, Protocol):
    """A part that is no block, such as an FMU; each run opens an instance of its own. order, repeats, variable: see
    `Part`."""

    order: int
    repeats: bool
    variable: bool

    def open(self) -> Part: ...


@dataclass(frozen=True)
class Coupling:
    """The parts of a rig beside its mechanism, how they are joined, and how they are stepped; the sequence of the
    scheme may be empty: sorted by feedthrough. residual_limits [J]: of each bond, inf for none. first_step [s]: of the
    coupling within a tick, without a control the length of all; None: one per tick. start_values: that the rig gives
    its FMUs, by part and variable."""

    parts: Mapping[str, BlockPart | PartSource]
    couplings: Couplings
    scheme: Scheme
    residual_limits: tuple[float, ...]
    time_limit: float | None = None  # s, of each step of a part that is not compiled
    start_limit: float | None = None  # s, of its start
    in_python: Mapping[str, str] = field(default_factory=dict)  # parts that are not compiled, and why
    federates: Mapping[str, str] = field(default_factory=dict)  # of parts: where they run, if the run is federated
    publish: Callable[[float, Mapping[Terminal, Array]], None] | None = None  # gets time [s] and outputs of each tick
    first_step: float | None = None
    start_values: Mapping[str, Mapping[str, StartValue]] = field(default_factory=dict)

    @property
    def blocks(self) -> dict[str, BlockPart]:
        return {name: part for name, part in self.parts.items() if isinstance(part, BlockPart)}

    @property
    def used_outputs(self) -> list[str]:
        """Of the mechanism, each once."""
        sources = (origin.source for origin in self.couplings.sources.values())
        return list(dict.fromkeys(source.signal for source in sources if source.part == MECHANISM))

    @property
    def bond_names(self) -> tuple[str, ...]:
        return tuple(bond.name for bond in self.couplings.bonds)

    @property
    def signals(self) -> dict[str, Signal]:
        """What the parts and the bonds record, in the order of `CoupledStep.record`."""
        found: dict[str, Signal] = {}
        for name, part in self.parts.items():
            for output, signal in part.outputs.items():
                count = int(np.prod(signal.shape, dtype=int))
                names = [output] if not signal.shape else [f"{output}_{k + 1}" for k in range(count)]
                found |= {f"{name}/{each}": replace(signal, shape=()) for each in names}
        for bond in self.couplings.bonds:
            found |= {f"{bond.name}/{what}": declared for what, declared in OF_A_BOND.items()}
        if self.first_step is not None:
            found |= {f"{COUPLING}/{what}": declared for what, declared in STEP_SIGNALS.items()}
        return found

    def fault(self, values: Numeric, energy: Numeric) -> Numeric:
        """0, or the `CouplingFault` of these outputs (n,) and residual energies (bonds,) [J]."""
        fault: Numeric = 0.0
        for k, limit in enumerate(self.residual_limits):
            if limit < np.inf:
                beyond = ops.abs(energy[k]) > limit
                fault = ops.maximum(fault, ops.where(beyond, float(CouplingFault.RESIDUAL_ENERGY), 0.0))
        finite = ops.abs(ops.sum(list(values))) < np.inf  # false of NaN
        return ops.where(finite, fault, float(CouplingFault.NOT_FINITE))


def plant_part(coupling: Coupling, functions: StepsPlant, held: int) -> PlantPart:
    """The plant with the outputs that couplings use; held: see `PlantPart`."""
    model = functions.plant.model
    _, outputs = signals_of_plant(model.dof_names, model.dof_units)
    used = {name: outputs[name] for name in coupling.used_outputs}
    return PlantPart(functions, used, held, tuple(coupling.couplings.ports(MECHANISM)))


class CoupledStep:
    """The steps of a tick with parts, as pure functions."""

    def __init__(
        self, coupling: Coupling, functions: StepsPlant, held: int, compiled: bool, calling: bool = False
    ) -> None:
        """held: see `PlantPart`; compiled: whether parts are routines of their own; calling: whether it runs on
        numbers, and opens parts that are not compiled."""
        self.plant = plant_part(coupling, functions, held)
        self.coupling, self.functions, self._compiled, self._calling = coupling, functions, compiled, calling
        self._step = functions.step if coupling.first_step is None else coupling.first_step
        parts: dict[str, MasterPart] = {**self._with_plant(self.plant)}
        for name, part in coupling.parts.items():
            block = isinstance(part, BlockPart)
            parts[name] = self._block(name, part) if block else HeldPart(name, part.open(), coupling.couplings)
        order = in_order_of_evaluation(parts, coupling.couplings)
        sequence = coupling.scheme.sequence or tuple(sequence_of(parts, order))
        settings = parts, coupling.couplings, replace(coupling.scheme, sequence=sequence), order, compiled
        self.master = CallingMaster(*settings, coupling.start_limit) if calling else Master(*settings)
        given = [(functions.plant.model.nv,)] * (held // functions.plant.model.nv if self.plant.has_dofs else 1)
        shapes = [(), (functions.plant.layout.size,), (memory := self.master.layout.size,), *given]
        self._begun = self.master.between(self._begin, shapes, [(memory,), (len(coupling.signals),)])

    def _block(self, name: str, part: BlockPart) -> BlockPart:
        in_python = self._calling and bool(part.untraceable)
        return replace(
            part,
            name=name,
            ports=tuple(self.coupling.couplings.ports(name)),
            compiled=self._compiled and not in_python,
            coupling_step=self._step if self.coupling.scheme.control is None else None,
        )

    def _with_plant(self, value: T) -> dict[str, T]:
        """A value of the plant under its name, where it is one of the parts."""
        return {MECHANISM: value} if self.plant.has_dofs else {}

    def initial(self) -> np.ndarray:
        """The memory of the master at t = 0, with a past on the line of a first step where it extrapolates."""
        return self.master.started(0.0, self._step)

    def advance(
        self, t: Numeric, x: Numeric, memory: Numeric, request: Numeric, *setpoints: Numeric
    ) -> tuple[Numeric, Numeric, Numeric]:
        """(state of the plant, memory of the master) a tick later, and the record of its beginning."""
        begun, record = self._begun(t, x, memory, request, *setpoints)
        after = self._tick(begun, t)
        return self.state_of_plant(after, x), after, record

    def _begin(
        self, t: Numeric, x: Numeric, memory: Numeric, request: Numeric, *setpoints: Numeric
    ) -> tuple[Numeric, Numeric]:
        """(memory, record) at the beginning of a tick."""
        m = self.master.layout.unpack(memory)
        held = ops.concatenate([x, request, *setpoints])
        m = m | {"t": t, "states": m["states"] | self._with_plant(held)}
        return self.master.layout.pack(m), self.record(m)

    def state_of_plant(self, memory: Numeric, x: Numeric) -> Numeric:
        """In the memory of the master; x: what it is of a rig without a mechanism."""
        return memory[self.master.layout.place("states", MECHANISM).where][: len(x)] if self.plant.has_dofs else x

    def _tick(self, memory: Numeric, t: Numeric) -> Numeric:
        """The memory a tick later: after one step of the coupling, or several."""
        if self.master.scheme.control is not None:
            return self._controlled_steps(memory, t + self.functions.step)[0]
        count = round(self.functions.step / self._step)
        if count == 1:
            return self.master.step(memory, self.functions.step)
        return ops.repeat(lambda m: self.master.step(m, self._step), count, memory)

    @cached_property
    def _controlled_steps(self) -> Callable[..., Numeric]:
        """Steps whose lengths the residual energy chooses, to a time [s]."""
        control = self.master.scheme.control
        assert control is not None
        shapes, most = [(self.master.layout.size,), ()], control.most_steps(self.functions.step)
        compiled = self._compiled and not self._calling
        return repeated_while(self._controlled_step, shapes, "coupling_step", most, compiled)

    def _controlled_step(self, memory: Numeric, end: Numeric) -> tuple[Numeric, Numeric]:
        after = self.master.controlled_step(memory, end)
        rest = end - self.master.layout.unpack(after)["t"]
        return after, ops.where(rest > LEAST_REST * self.functions.step, 1.0, 0.0)

    def record(self, m: State) -> Numeric:
        """Outputs of the parts, then power and residual energy of each bond, then STEP_SIGNALS."""
        values, energy = m["values"][0], m["energy"]
        places = [self.master.outputs.place(name).where for name, part in self.coupling.parts.items() if part.outputs]
        bonds = []
        for k, bond in enumerate(self.coupling.couplings.bonds):
            effort, flow = (values[self.master.outputs.place(*end.source).where] for end in (bond.effort, bond.flow))
            bonds += [effort @ flow, energy[k]]
        steps = [] if self.coupling.first_step is None else [m["lengths"][0], m["made"], m["refused"]]
        further = [ops.array([*bonds, *steps])] if bonds or steps else []
        return ops.concatenate([*(values[place] for place in places), *further])
