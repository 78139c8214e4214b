"""Couplings of parts: power bonds and wires, and the checks that a set of them fits its parts."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple, Protocol

from cosim.core.errors import ErrorList, InputError, InputErrors, did_you_mean
from cosim.core.types import Signal, Signals
from cosim.core.units import JOINT_DIMENSIONS, unit_sign
from cosim.mechanics.bondgraph.domains import DOMAINS

# units of effort and flow whose product is a power
POWERS = {(domain.effort, domain.flow) for domain in DOMAINS.values() if domain.product_is_power}


class HasSignals(Protocol):
    """What the checks need to know of a part."""

    @property
    def inputs(self) -> Signals: ...

    @property
    def outputs(self) -> Signals: ...


class Terminal(NamedTuple):
    """One input or output of a part."""

    part: str
    signal: str

    def __str__(self) -> str:
        return f"{self.part}.{self.signal}"


class InputSource(NamedTuple):
    """An output and the input that it drives, as factor · output + offset. initial: the value before the first step,
    of a delayed one."""

    source: Terminal
    target: Terminal
    initial: float | None = None
    factor: float = 1.0
    offset: float = 0.0

    @property
    def transforms(self) -> bool:
        return (self.factor, self.offset) != (1.0, 0.0)


@dataclass(frozen=True)
class Wire:
    """A signal: `part.output` drives `part.input`, as factor · output + offset in SI. With `initial` the input gets the
    value of the last communication point, and `initial` at the start, so that it closes no algebraic loop. Units are
    not compared where a factor is given."""

    source: str
    target: str
    initial: float | None = None
    factor: float | None = None
    offset: float = 0.0

    @property
    def inputs(self) -> tuple[str, ...]:
        """`part.input` that it drives."""
        return (self.target,)

    @property
    def ends(self) -> tuple[str, ...]:
        return self.source, self.target

    def __str__(self) -> str:
        return f"wire {self.source} -> {self.target}"


@dataclass(frozen=True)
class PowerBond:
    """A bond: an effort one way, a flow the other, each as (`part.output`, `part.input`). Their product is the power
    that goes from the part with the output of the effort to the other one."""

    effort: tuple[str, str]
    flow: tuple[str, str]

    @property
    def name(self) -> str:
        """`a-b`, from the part that gives power to the one that takes it."""
        return "-".join(end.partition(".")[0] for end in self.effort)

    @property
    def inputs(self) -> tuple[str, ...]:
        """`part.input` that it drives."""
        return self.effort[1], self.flow[1]

    @property
    def ends(self) -> tuple[str, ...]:
        return *self.effort, *self.flow

    def __str__(self) -> str:
        return f"bond {self.effort[0]} -> {self.effort[1]}, {self.flow[0]} -> {self.flow[1]}"


class BondEnds(NamedTuple):
    """The connections of a bond, under its name."""

    name: str
    effort: InputSource
    flow: InputSource


@dataclass(frozen=True)
class Couplings:
    """Checked couplings: the connection of every input, and the bonds among them."""

    sources: Mapping[Terminal, InputSource]  # by target
    bonds: tuple[BondEnds, ...]

    def ports(self, part: str) -> list[tuple[str, str]]:
        """(input, output) of every end of a bond at this part, in the order of `bond_ends`."""
        return [port for end, port in self.bond_ends() if end == part]

    def bond_ends(self) -> Iterator[tuple[str, tuple[str, str]]]:
        """(part, (input, output)) of the giving, then of the taking end of every bond."""
        for bond in self.bonds:
            yield bond.effort.source.part, (bond.flow.target.signal, bond.effort.source.signal)
            yield bond.flow.source.part, (bond.effort.target.signal, bond.flow.source.signal)


def checked(
    parts: Mapping[str, HasSignals], couplings: Sequence[PowerBond | Wire], open_parts: Container[str] = ()
) -> Couplings:
    """open_parts: parts whose inputs need no source. Raises InputErrors: a part or a signal that does not exist, shapes
    or units that differ, a bond whose product is no power, an input without a source or with two."""
    errors = ErrorList()
    sources: dict[Terminal, InputSource] = {}
    bonds: list[BondEnds] = []
    for coupling in couplings:
        try:
            made = _connections(parts, coupling)
        except InputError as error:
            errors.append(error)
            continue
        for connection in made:
            if (other := sources.get(connection.target)) is not None:
                what = f"input '{connection.target}' is driven by '{other.source}' already; remove one of both"
                errors.append(InputError(what, str(coupling)))
            sources[connection.target] = connection
        if isinstance(coupling, PowerBond):
            bonds.append(BondEnds(_unused(coupling.name, bonds), *made))
    if not errors:
        for target in (Terminal(name, signal) for name, part in parts.items() for signal in part.inputs):
            if target not in sources and target.part not in open_parts:
                errors.append(InputError(f"input '{target}' has no source; connect an output to it"))
    if errors:
        raise InputErrors(errors)
    return Couplings(sources, tuple(bonds))


def _unused(name: str, bonds: Sequence[BondEnds]) -> str:
    """The name, with a number where another bond between the same parts has it."""
    count = sum(bond.name == name or bond.name.startswith(f"{name}:") for bond in bonds)
    return f"{name}:{count + 1}" if count else name


def _connections(parts: Mapping[str, HasSignals], coupling: PowerBond | Wire) -> list[InputSource]:
    """The connections of a coupling, the effort first. Raises InputError."""
    if isinstance(coupling, Wire):
        made = _connection(parts, coupling, coupling.source, coupling.target, coupling.factor is None)
        factor = 1.0 if coupling.factor is None else coupling.factor
        return [made._replace(initial=coupling.initial, factor=factor, offset=coupling.offset)]
    effort, flow = (_connection(parts, coupling, *ends) for ends in (coupling.effort, coupling.flow))
    if (effort.source.part, effort.target.part) != (flow.target.part, flow.source.part):
        what = f"the flow must come back from '{effort.target.part}' to '{effort.source.part}'"
        raise InputError(f"{what}; use a wire for each signal that does not", str(coupling))
    signals = (
        parts[effort.source.part].outputs[effort.source.signal],
        parts[flow.source.part].outputs[flow.source.signal],
    )
    units = signals[0].unit, signals[1].unit
    pairs = set(product(*map(_units, units)))
    if any((e, f) in POWERS for f, e in pairs) and not POWERS & pairs:
        flow_unit, effort_unit = map(unit_sign, units)
        what = f"{flow_unit} is the unit of a flow, and {effort_unit} of an effort"
        raise InputError(f"{what}; exchange `effort` and `flow`", str(coupling))
    if not POWERS & pairs:
        known = ", ".join(f"{unit_sign(e)} and {unit_sign(f)}" for e, f in sorted(POWERS))
        what = f"the product of {unit_sign(units[0]) or '1'} and {unit_sign(units[1]) or '1'} is no power"
        raise InputError(f"{what}; known efforts and flows: {known}", str(coupling))
    if signals[0].shape != signals[1].shape:
        what = f"the effort has shape {signals[0].shape}, the flow {signals[1].shape}; both must be the same"
        raise InputError(what, str(coupling))
    return [effort, flow]


def _connection(
    parts: Mapping[str, HasSignals], coupling: PowerBond | Wire, source: str, target: str, same_unit: bool = True
) -> InputSource:
    ends: list[Terminal] = []
    found: list[Signal] = []
    for text, kind in ((source, "outputs"), (target, "inputs")):
        name, dot, signal = text.partition(".")
        if name not in parts:
            raise InputError(f"there is no part '{name}'{did_you_mean(name, parts)}", str(coupling))
        signals: Signals = getattr(parts[name], kind)
        if signal not in signals:
            raise InputError(_no_signal(parts[name], name, dot, signal, kind), str(coupling))
        ends.append(Terminal(name, signal))
        found.append(signals[signal])
    if found[0].shape != found[1].shape:
        what = f"'{source}' has shape {found[0].shape}, '{target}' {found[1].shape}; both must be the same"
        raise InputError(what, str(coupling))
    if same_unit and not set(_units(found[0].unit)) & set(_units(found[1].unit)):
        what = f"'{source}' is in {found[0].unit}, '{target}' in {found[1].unit}; both must be the same"
        raise InputError(what, str(coupling))
    return InputSource(ends[0], ends[1])


def _no_signal(part: HasSignals, name: str, dot: str, signal: str, kind: str) -> str:
    """What is wrong with an end `name``dot``signal` that is not among the signals of `kind`, inputs or outputs."""
    known: Signals = getattr(part, kind)
    if not dot:
        return f"'{name}' names no {kind[:-1]}; write {name}.<{kind[:-1]}>{did_you_mean('', known)}"
    others = {"inputs": "outputs", "outputs": "inputs"}[kind]
    if signal in getattr(part, others):
        article = "an output" if others == "outputs" else "an input"
        return f"'{signal}' of part '{name}' is {article}, not {kind[:-1]}{did_you_mean('', known)}"
    return f"part '{name}' has no {kind[:-1]} '{signal}'{did_you_mean(signal, known)}"


def _units(unit: str) -> tuple[str, ...]:
    """The units that a unit stands for: a joint's for both of its kinds."""
    return JOINT_DIMENSIONS.get(unit, (unit,))
