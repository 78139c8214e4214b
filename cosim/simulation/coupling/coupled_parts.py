"""Parts and their couplings as one simulation: the public face of co-simulation in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from cosim.core.compile import interpreting
from cosim.core.errors import InputError, RunError, did_you_mean
from cosim.core.types import Array, Numeric
from cosim.simulation.coupling.block_part import MAX_STEPS, BlockPart
from cosim.simulation.coupling.calling_master import CallingMaster, HeldPart, diverged
from cosim.simulation.coupling.couplings import Couplings, PowerBond, Wire, checked
from cosim.simulation.coupling.energy import EnergyCorrection
from cosim.simulation.coupling.extrapolation import ORDERS
from cosim.simulation.coupling.master import Master, Scheme
from cosim.simulation.coupling.part import Part
from cosim.simulation.coupling.start import in_order_of_evaluation, sequence_of
from cosim.simulation.coupling.step_control import EnergyControl
from cosim.simulation.coupling.stepped_block import on_numbers

MASTERS = {"jacobi": False, "gauss_seidel": True}
LEAST_REST = 1e-9  # of a step: a rest that is shorter is rounding


@dataclass(frozen=True)
class CoupledRun:
    """t (n,) [s]: the communication points; signals: `part.output` -> (n, ...); residuals: bond -> (n,) the energy [J]
    that the coupling has created since the start, negative where it was lost; repeated: steps that were repeated."""

    t: Array
    signals: dict[str, Array]
    residuals: dict[str, Array]
    repeated: int = 0

    def __getitem__(self, name: str) -> Array:
        """A signal. Raises KeyError with the similar names."""
        if name not in self.signals:
            raise KeyError(f"there is no signal '{name}'{did_you_mean(name, self.signals)}")
        return self.signals[name]


@dataclass
class CoupledParts:
    """Parts with integrators of their own, coupled by power bonds and wires, as one simulation.

    parts: blocks as `BlockPart`, or anything with the contract of `Part`. master: a key of MASTERS; order: of the
    polynomials of inputs; step [s]: of the coupling, the first one with a control; sequence: the parts in the order of
    Gauss–Seidel's steps, by default sorted by their feedthrough; time_limit [s]: for each step of a part that is not
    compiled.

    Blocks that can all be traced are one piece of machine code, unless compiled is False. Raises InputErrors and
    InputError for what does not fit together.
    """

    parts: Mapping[str, BlockPart | Part]
    couplings: Sequence[PowerBond | Wire]
    master: str = "gauss_seidel"
    order: int = 1
    step: float = 1e-3
    control: EnergyControl | None = None
    correction: EnergyCorrection | None = None
    sequence: Sequence[str] | None = None
    time_limit: float | None = None
    compiled: bool = True
    scheme: Scheme = field(init=False)

    def __post_init__(self) -> None:
        self._check_settings()
        self._functions: dict[str, Callable[..., tuple[Array, Array]]] = {}
        self._couplings: Couplings = checked(self.parts, self.couplings)
        self._output_order = in_order_of_evaluation(self.parts, self._couplings)
        sequence = tuple(self.sequence or sequence_of(self.parts, self._output_order))
        self.scheme = Scheme(self.order, MASTERS[self.master], sequence, self.control, self.correction)

    def _check_settings(self) -> None:
        if self.master not in MASTERS:
            raise InputError(f"there is no master '{self.master}'{did_you_mean(self.master, MASTERS)}")
        if self.order not in ORDERS:
            raise InputError(f"the order of extrapolation is {self.order}; it must be 0, 1 or 2")
        if not 0.0 < self.step < np.inf:
            raise InputError(f"the step of the coupling is {self.step} s; it must be a time above 0")
        if self.sequence is not None and sorted(self.sequence) != sorted(self.parts):
            raise InputError(f"the sequence must name every part once: {', '.join(self.parts)}")
        if not self.parts:
            raise InputError("there are no parts; give at least one")
        if self.time_limit is not None and not self.time_limit > 0.0:
            raise InputError(f"the time limit is {self.time_limit} s; it must be above 0")
        if self.control is not None:
            self._check_variable()
        for name, part in self.parts.items():
            if isinstance(part, BlockPart):
                self._check_steps(name, part)

    def _check_steps(self, name: str, part: BlockPart) -> None:
        """Of its own in a step of the coupling."""
        if part.sampled and self._odd(part.step):
            what = f"the step of the coupling, {self.step} s, is no whole number of periods of {part.step} s"
            raise InputError(what, f"part '{name}'")
        longest = self.step if self.control is None else max(self.step, self.control.longest)
        if longest > MAX_STEPS * part.step:
            what = f"its step of {part.step} s is too short for steps of the coupling of {longest} s"
            raise InputError(f"{what}; at most {MAX_STEPS} are made in one", f"part '{name}'")

    def _odd(self, period: float) -> bool:
        count = self.step / period
        return round(count) < 1 or abs(count - round(count)) > 1e-6

    def _check_variable(self) -> None:
        assert self.control is not None
        if not any(isinstance(coupling, PowerBond) for coupling in self.couplings):
            raise InputError("step control needs a power bond, whose residual energy is the error")
        for name, part in self.parts.items():
            if not part.variable:
                what = "its steps cannot have any length; use an energy correction instead of a step control"
                raise InputError(what, f"part '{name}'")
            if self.control.repeats and not part.repeats:
                raise InputError("it cannot repeat a step; use a step control without `repeats`", f"part '{name}'")

    # --- masters ---

    @cached_property
    def compiled_master(self) -> Master | None:
        """The master as a pure function; None where a part cannot be traced."""
        blocks = {name: part for name, part in self.parts.items() if isinstance(part, BlockPart)}
        if not self.compiled or len(blocks) < len(self.parts) or any(part.untraceable for part in blocks.values()):
            return None
        named = {name: self._named(name, part) for name, part in blocks.items()}
        return Master(named, self._couplings, self.scheme, self._output_order, not interpreting())

    def _named(self, name: str, part: BlockPart) -> BlockPart:
        ports, compiled = tuple(self._couplings.ports(name)), not (interpreting() or part.untraceable)
        return replace(part, name=name, ports=ports, compiled=compiled)

    def calling_master(self) -> CallingMaster:
        """A new master on numbers, which calls the parts."""
        parts = {
            name: self._named(name, part) if isinstance(part, BlockPart) else HeldPart(name, part, self._couplings)
            for name, part in self.parts.items()
        }
        settings = self._couplings, self.scheme, self._output_order, not interpreting(), self.time_limit
        return CallingMaster(parts, *settings)

    # --- runs ---

    def run(self, duration: float) -> CoupledRun:
        """Run from t = 0, with steps of constant length for a whole number of them. Parts other than blocks are closed
        at the end. Raises InputError for a duration that is no time, RunError for a part that fails, diverges or hangs.
        """
        if not 0.0 < duration < np.inf:
            raise InputError(f"the duration is {duration} s; it must be a time above 0")
        if self.compiled_master is not None:
            return self._result(self.compiled_master, self._rows(self.compiled_master, duration))
        master = self.calling_master()
        try:
            rows = master.supervisor.run(self._rows, master, duration)
        finally:
            master.close()
        return self._result(master, rows)

    def _rows(self, master: Master, duration: float) -> Array:
        """(n, …), see `Master.row_places`."""
        step = self._step(master, "step")
        memory = master.started(0.0, self.step, lambda memory, h: step(memory, h)[0])
        rows, h, end = [memory[master.row_places]], np.array(self.step, dtype=float), np.array(duration, dtype=float)
        if self.control is None:
            for _ in range(max(1, round(duration / self.step))):
                memory, row = step(memory, h)
                rows.append(row)
            return np.array(rows)
        step = self._step(master, "controlled_step")
        while rows[-1][0] < duration - LEAST_REST * self.step:
            memory, row = step(memory, end)
            if row[0] > rows[-1][0]:  # else it is made again
                rows.append(row)
        return np.array(rows)

    def _step(self, master: Master, name: str) -> Callable[..., tuple[Array, Array]]:
        """(memory, row) after a step, from the memory and a time [s]; name: of the method of the master."""

        def recorded(memory: Numeric, time: Numeric) -> tuple[Numeric, Numeric]:
            after = getattr(master, name)(memory, time)
            return after, after[master.row_places]

        if isinstance(master, CallingMaster):
            return recorded
        if name not in self._functions:
            memory = (master.layout.size,)
            self._functions[name] = on_numbers(recorded, [memory, ()], [memory, master.row_places.shape])
        return self._functions[name]

    def _result(self, master: Master, rows: Array) -> CoupledRun:
        t, refused, values, energy = np.split(rows, [1, 2, 2 + master.outputs.size], axis=1)
        signals = {
            ".".join(path): values[:, where].reshape(len(rows), *shape)
            for path, (where, shape) in master.outputs.places.items()
        }
        for name, found in signals.items():
            finite = np.isfinite(found.reshape(len(rows), -1)).all(axis=1)
            if not finite.all():
                first = int(np.argmin(finite))
                part, _, output = name.partition(".")
                raise RunError(diverged(part, output, found[first], float(t[first, 0])))
        residuals = {bond.name: energy[:, k] for k, bond in enumerate(self._couplings.bonds)}
        return CoupledRun(t[:, 0], signals, residuals, int(refused[-1, 0]))
