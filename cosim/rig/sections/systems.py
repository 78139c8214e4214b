"""Systems of SSP among the parts of a rig: their connectors as ends of couplings, their connections as wires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cosim.core.errors import InputError, SourceLocation, did_you_mean, shortened
from cosim.rig.reading.schema import KeyPath, Reading
from cosim.simulation.coupling.couplings import PowerBond, Wire
from cosim.simulation.fmi.fmu_system import FmuSystem, SystemWire


@dataclass(frozen=True)
class RigSystem:
    """A system of SSP among the parts of a rig. name: in the rig; file: in messages; key: its place in the rig."""

    name: str
    file: str
    key: KeyPath
    system: FmuSystem

    def output(self, connector: str) -> SystemWire:
        """The wire from the output that a connector is. Raises InputError."""
        self._check(connector, self.system.outputs, "output")
        return self._named(self.system.outputs[connector])

    def inputs(self, connector: str) -> list[SystemWire]:
        """The wires to the inputs that a connector feeds. Raises InputError."""
        self._check(connector, self.system.inputs, "input")
        return [self._named(wire) for wire in self.system.inputs[connector]]

    def wires(self) -> list[SystemWire]:
        return [self._named(wire) for wire in self.system.wires]

    def _check(self, connector: str, known: Mapping[str, object], kind: str) -> None:
        if connector in known:
            return
        if connector in self.system.unconnected:
            what = f"the connector '{connector}' of system '{self.name}' has no FMU behind it"
            raise InputError(f"{what}; connect it in {self.file}")
        what = f"system '{self.name}' has no {kind} '{shortened(connector)}'"
        raise InputError(f"{what}{did_you_mean(connector, known)}")

    def _named(self, wire: SystemWire) -> SystemWire:
        """With the names that its parts have in the rig."""
        (a, output), (b, name) = wire.source, wire.target
        return replace(wire, source=(f"{self.name}/{a}", output), target=(f"{self.name}/{b}", name))


@dataclass(frozen=True)
class JoinedMembers:
    """Bonds and wires between parts; keys: of each, its place in the rig; elsewhere: the places in other files of those
    that the rig does not have, by their texts."""

    members: tuple[PowerBond | Wire, ...]
    keys: tuple[KeyPath, ...]
    elsewhere: Mapping[str, SourceLocation]


def joined_members(
    members: Sequence[PowerBond | Wire], keys: Sequence[KeyPath], systems: Sequence[RigSystem], reading: Reading
) -> JoinedMembers:
    """The connections in systems, and the couplings of a rig with the parts behind connectors as their ends. Errors
    are recorded."""
    by_name = {system.name: system for system in systems}
    found: list[tuple[PowerBond | Wire, KeyPath]] = []
    elsewhere: dict[str, SourceLocation] = {}
    for system in systems:
        for inner in system.wires():
            found.append((inner.wire, (*system.key, "ssp")))
            if inner.place is not None:
                elsewhere[str(inner.wire)] = inner.place
    for member, key in zip(members, keys, strict=True):
        try:
            made = _wires(member, by_name) if isinstance(member, Wire) else _bond(member, by_name)
            found += [(each, key) for each in made]
        except InputError as error:
            reading.fail(key, error.what)
    return JoinedMembers(tuple(each for each, _ in found), tuple(key for _, key in found), elsewhere)


def _source(end: str, systems: Mapping[str, RigSystem]) -> SystemWire:
    """The wire to what an end of a coupling names, from the output behind it."""
    part, _, signal = end.partition(".")
    return systems[part].output(signal) if part in systems else SystemWire((part, signal), (part, signal))


def _targets(end: str, systems: Mapping[str, RigSystem]) -> list[SystemWire]:
    """Wires from what an end of a coupling names, to the inputs behind it."""
    part, _, signal = end.partition(".")
    return systems[part].inputs(signal) if part in systems else [SystemWire((part, signal), (part, signal))]


def _wires(wire: Wire, systems: Mapping[str, RigSystem]) -> Iterator[Wire]:
    """A wire to each input behind its end."""
    first = _source(wire.source, systems)
    for last in _targets(wire.target, systems):
        yield _between(first, last, wire)


def _bond(bond: PowerBond, systems: Mapping[str, RigSystem]) -> list[PowerBond | Wire]:
    """A bond between two parts, and wires to other inputs behind its ends."""
    effort, flow = _source(bond.effort[0], systems), _source(bond.flow[0], systems)
    chosen: list[tuple[str, str]] = []
    besides: list[PowerBond | Wire] = []
    for (given, end), source, back in ((bond.effort, effort, flow), (bond.flow, flow, effort)):
        targets = _targets(end, systems)
        # power comes back from the part that gets it
        target = next((each for each in targets if each.target[0] == back.source[0]), targets[0])
        for each, name in ((source, given), (target, end)):
            if _scales(each):
                what = f"'{name}' has a factor or an offset, which a bond has not"
                raise InputError(f"{what}; use a wire for each signal")
        chosen.append((".".join(source.source), ".".join(target.target)))
        besides += [_between(source, each) for each in targets if each is not target]
    return [PowerBond(*chosen), *besides]


def _between(first: SystemWire, last: SystemWire, own: Wire | None = None) -> Wire:
    """From an output to an input; own: the wire of the rig between what stands for them."""
    own = own or Wire("", "")
    given = 1.0 if own.factor is None else own.factor
    factor = last.factor * given * first.factor
    offset = last.factor * (given * first.offset + own.offset) + last.offset
    same = own.factor is None and not (_scales(first) or _scales(last))
    initial = None if own.initial is None else last.factor * own.initial + last.offset
    return Wire(".".join(first.source), ".".join(last.target), initial, None if same else factor, offset)


def _scales(wire: SystemWire) -> bool:
    return (wire.factor, wire.offset) != (1.0, 0.0)
