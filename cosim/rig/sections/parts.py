"""The sections `parts` and `couplings` of a rig: what is integrated apart from the mechanism, and how it is joined."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from cosim.core.errors import InputError, SectionError, SourceLocation, shortened
from cosim.core.paths import open_file
from cosim.core.plugin_loading import PART
from cosim.core.trust.data_only import FMU, refuse_code
from cosim.core.types import param, params
from cosim.core.units import LONGEST_TIME, UNITS, given_unit, show_time
from cosim.rig.reading.names import Name, Reference
from cosim.rig.reading.plugins import Plugin, read_named_plugin
from cosim.rig.reading.schema import READERS, KeyPath, Reading, number, read, read_fields
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.systems import RigSystem, joined_members
from cosim.simulation.coupling.coupled_parts import MASTERS
from cosim.simulation.coupling.couplings import PowerBond, Wire
from cosim.simulation.coupling.energy import EnergyCorrection
from cosim.simulation.coupling.extrapolation import ORDERS
from cosim.simulation.fmi.archive import Interface
from cosim.simulation.tick.coupled_plant import COUPLING, MECHANISM

HELICS_NAMES = {"broker", "core", "federation", "parent", "root"}  # that HELICS gives to others than federates
INTERFACES: dict[str, Interface] = {"co_simulation": "co-simulation", "model_exchange": "model exchange"}


class NumberWithUnit(NamedTuple):
    """A number in SI; text: as it is written with a unit, empty for a bare number."""

    value: float
    text: str = ""


def _number_with_unit(
    reading: Reading, hint: object, value: YamlValue, meta: Mapping[str, Any], path: KeyPath
) -> NumberWithUnit | None:
    unit = given_unit(value) if isinstance(value, str) else None
    if unit is not None and unit not in UNITS:
        return reading.fail(path, f"unit '{unit}' is not known; give the unit of the input, or a bare number in SI")
    read = number(value, unit or "1", path, reading)
    return None if read is None else NumberWithUnit(read, str(value) if unit else "")


READERS[NumberWithUnit] = _number_with_unit


def _order(text: int) -> int:
    """Raises ValueError for an order that there is not."""
    if text not in ORDERS:
        raise ValueError(f"the order of extrapolation is 0, 1 or 2, got {text}")
    return text


@params
class PartKeys:
    name: Name = param(doc="of the part in couplings and signals")
    type: str = param(doc="a path ending in `.py`, or an entry point of the group `cosim.parts`")
    step: float | None = param(unit="s", min=1e-9, max=LONGEST_TIME, default=None, doc="of its integrator, at most")
    integrator: Literal["semi_implicit_euler", "rk4", "rosenbrock", "rodas4"] = param(default="rk4")
    params: dict | None = param(default=None, doc="parameters that the file defines")
    federate: Name | None = param(default=None, doc="of HELICS in which it runs with `cosim run --helics`")


@params
class FmuKeys:
    name: Name = param(doc="of the part in couplings and signals")
    fmu: str = param(doc="an FMU file, relative to the folder of the rig")
    interface: Literal["co_simulation", "model_exchange"] | None = param(default=None, doc="default: the first it has")
    outputs: tuple[str, ...] | None = param(default=None, doc="outputs and local variables; default: all outputs")
    tolerance: float | None = param(above=0, max=1, default=None, doc="relative, of the solver")
    stiff: bool = param(default=False, doc="model exchange is integrated with an implicit method")
    process: bool = param(default=True, doc="runs in a process of its own: a crash or a hang is an error of the part")
    params: dict | None = param(default=None, doc="parameters and start values, numbers in SI or with a unit")
    federate: Name | None = param(default=None, doc="of HELICS in which it runs with `cosim run --helics`")


@params
class SspKeys:
    name: Name = param(doc="of the system in couplings and signals")
    ssp: str = param(doc="an `.ssp` or `.ssd` file, relative to the folder of the rig")
    locals: tuple[str, ...] = param(default=(), doc="`component.variable`, recorded beside all outputs")
    initial: dict | None = param(default=None, doc="`component.input`: one tick late; this for outputs at t = 0")
    tolerance: float | None = param(above=0, max=1, default=None, doc="relative, of the solvers")
    stiff: bool = param(default=False, doc="model exchange is integrated with an implicit method")
    process: bool = param(default=True, doc="each FMU runs in a process of its own")
    params: dict | None = param(default=None, doc="`component.parameter`, or of the system, in place of the file's")
    federate: Name | None = param(default=None, doc="of HELICS in which it runs with `cosim run --helics`")


@params
class CorrectionKeys:
    gain: float = param(above=0, max=1, default=1.0, doc="part of the residual energy that a tick pays back")
    limit: float = param(above=0, max=10, default=0.2, doc="of what is added, relative to the largest effort or flow")


@params
class StepControlKeys:
    relative: float = param(above=0, max=1, default=1e-4, doc="tolerance of the energy of a bond in a step")
    absolute: float = param(unit="J", above=0, default=1e-4, doc="is added to it")
    shortest: float | None = param(unit="s", min=1e-9, max=LONGEST_TIME, default=None, doc="step")
    longest: float | None = param(unit="s", min=1e-9, max=LONGEST_TIME, default=None, doc="step")
    repeats: bool = param(default=False, doc="a step that exceeds the tolerance is made again with a shorter length")


@params
class BondKeys:
    effort: tuple[Reference, ...] = param(doc="`[part.output, part.input]`")
    flow: tuple[Reference, ...] = param(doc="`[part.output, part.input]`, from the second part back to the first")
    residual_limit: float | None = param(unit="J", above=0, default=None, doc="residual energy that stops the run")


@params
class WireKeys:
    output: Reference = param(doc="`part.output`")
    input: Reference = param(doc="`part.input`")
    initial: NumberWithUnit | None = param(
        default=None, doc="the input is held within a tick; this is for outputs at t = 0"
    )
    factor: float | None = param(default=None, doc="input = factor · output + offset in SI; units may differ")
    offset: NumberWithUnit | None = param(default=None, doc="in the unit of the input")


@params
class CouplingsKeys:
    master: Literal["gauss_seidel", "jacobi"] = param(default="gauss_seidel")
    order: Annotated[int, _order] = param(default=1, doc="of the polynomials that extrapolate inputs")
    sequence: tuple[Reference, ...] = param(default=(), doc="of all parts, for `gauss_seidel`")
    correction: CorrectionKeys | None = param(default=None, doc="pays residual energy back")
    step: float | None = param(unit="s", min=1e-9, max=LONGEST_TIME, default=None, doc="of the coupling")
    step_control: StepControlKeys | None = param(default=None, doc="the residual energy chooses the steps")
    time_limit: float | None = param(
        unit="s", above=0, default=None, doc="of each start and step of a part that is not compiled"
    )
    bonds: tuple[BondKeys, ...] = param(default=())
    wires: tuple[WireKeys, ...] = param(default=())


def _home(federate: str | None) -> str:
    return "" if federate is None else f", federate {federate}"


@dataclass(frozen=True)
class PartSpec:
    """A part of a rig. step [s]: of its integrator, None for the schedule's; key: its place in the rig; federate: of
    HELICS, None for the mechanism's."""

    name: str
    plugin: Plugin
    step: float | None
    integrator: str
    key: KeyPath
    federate: str | None = None

    def describe(self, step_ns: int) -> str:
        """In words; step_ns: of the schedule."""
        own = "" if self.step is None else f", steps of {show_time(self.step * 1e9)}"
        return f"{self.plugin.name}, {self.integrator}{own}{_home(self.federate)}"


@dataclass(frozen=True)
class FmuSpec:
    """An FMU as a part; see `cosim.simulation.fmi.FmuPart`; key, federate: see `PartSpec`; system: that it is from;
    shown: its file in messages."""

    name: str
    file: Path
    interface: Interface | None
    outputs: tuple[str, ...] | None
    tolerance: float | None
    stiff: bool
    process: bool
    parameters: Mapping[str, object]
    key: KeyPath
    federate: str | None = None
    system: RigSystem | None = None
    shown: str = ""

    @property
    def file_key(self) -> KeyPath:
        """The key with its file."""
        return (*self.key, "fmu" if self.system is None else "ssp")

    @property
    def params_key(self) -> str:
        """Where overrides set its parameters."""
        if self.system is None:
            return f"parts.{self.name}.params"
        component = self.name.removeprefix(f"{self.system.name}/").replace("/", ".")
        return f"parts.{self.system.name}.params.{component}"

    def describe(self, step_ns: int) -> str:
        """In words; step_ns: of the schedule."""
        process = "" if self.process else " in the process of the run"
        origin = "" if self.system is None else f" of {Path(self.system.file).name}"
        return f"{self.file.name}{origin}, an FMU{process}{_home(self.federate)}"


@dataclass(frozen=True)
class CouplingsSpec:
    """The couplings of a rig. keys: of each bond and wire, its place in the rig; elsewhere: see `JoinedMembers`;
    quantities: texts with a unit by their places, still to be compared with the input's; residual_limits [J]: of
    each bond, inf for none; step [s]: of the coupling within a tick, the first one with a step control."""

    sequential: bool = True
    order: int = 1
    sequence: tuple[str, ...] = ()
    correction: EnergyCorrection | None = None
    members: tuple[PowerBond | Wire, ...] = ()
    keys: tuple[KeyPath, ...] = ()
    residual_limits: tuple[float, ...] = ()
    time_limit: float | None = None  # s; None for the default, which depends on the drives
    step: float | None = None
    step_control: StepControlKeys | None = None
    elsewhere: Mapping[str, SourceLocation] = field(default_factory=dict)
    quantities: Mapping[KeyPath, str] = field(default_factory=dict)

    @property
    def has_bonds(self) -> bool:
        return any(isinstance(member, PowerBond) for member in self.members)

    @property
    def loaded_dofs(self) -> set[str]:
        """Dofs of the mechanism with an effort from a part."""
        inputs = {end for member in self.members for end in member.inputs}
        start, end = f"{MECHANISM}.", "/effort"
        return {name[len(start) : -len(end)] for name in inputs if name.startswith(start) and name.endswith(end)}


def read_parts(items: YamlValue, taken: Mapping[str, str], reading: Reading) -> tuple[PartSpec | FmuSpec, ...]:
    """The section `parts`; errors are recorded. taken: names of other groups of signals, and what has them."""
    found: list[PartSpec | FmuSpec] = []
    used = {MECHANISM: "the mechanism", COUPLING: "the coupling", **taken}
    for k, item in enumerate(items or []):
        at = ("parts", k)
        kinds = [kind for key, kind in KINDS.items() if isinstance(item, dict) and key in item]
        keys: PartKeys | FmuKeys | SspKeys | None = read((kinds or [PartKeys])[0], item, at, reading)
        if keys is None:
            continue
        if keys.name in used:
            reading.fail((*at, "name"), f"'{keys.name}' is the name of {used[keys.name]}; give the part another one")
        used[keys.name] = "another part"
        if keys.federate == MECHANISM:
            reading.fail((*at, "federate"), "is where the mechanism runs; take the key out, or give another name")
        if keys.federate in HELICS_NAMES:
            reading.fail((*at, "federate"), f"'{keys.federate}' is something else in HELICS; give another name")
        if isinstance(keys, SspKeys):
            found += _system(keys, at, reading)
            continue
        spec = _fmu(keys, at, reading) if isinstance(keys, FmuKeys) else _block(keys, at, reading)
        found += [] if spec is None else [spec]
    return tuple(found)


KINDS: dict[str, type[FmuKeys] | type[SspKeys]] = {"fmu": FmuKeys, "ssp": SspKeys}


def _block(keys: PartKeys, at: KeyPath, reading: Reading) -> PartSpec | None:
    plugin = read_named_plugin(PART, keys.type, keys.params, at, reading)
    return None if plugin is None else PartSpec(keys.name, plugin, keys.step, keys.integrator, at, keys.federate)


def _fmu(keys: FmuKeys, at: KeyPath, reading: Reading) -> FmuSpec | None:
    file = _file(keys.fmu, (*at, "fmu"), reading)
    if file is None:
        return None
    interface = INTERFACES[keys.interface] if keys.interface else None
    options = interface, keys.outputs, keys.tolerance, keys.stiff, keys.process, _flat(keys.params)
    return FmuSpec(keys.name, file, *options, at, keys.federate)


def _system(keys: SspKeys, at: KeyPath, reading: Reading) -> list[FmuSpec]:
    """The FMUs of a system; none after an error, which is recorded."""
    from cosim.simulation.fmi.system_structure import read_system

    file, before = _file(keys.ssp, (*at, "ssp"), reading), len(reading.errors)
    late = {name: _bare(value, (*at, "initial", name), reading) for name, value in _flat(keys.initial).items()}
    if file is None or len(reading.errors) > before:
        return []
    try:
        initial = {name: value for name, value in late.items() if value is not None}
        system = read_system(file, _flat(keys.params), initial, keys.locals)
    except SectionError as error:
        reading.fail((*at, *error.keys), error.what)
        return []
    except InputError as error:
        reading.fail((*at, "ssp"), str(error))
        return []
    found = RigSystem(keys.name, str(file), at, system)
    return [
        FmuSpec(
            name=f"{keys.name}/{part.name}",
            file=part.path,
            interface=part.interface,
            outputs=part.outputs,
            tolerance=keys.tolerance,
            stiff=keys.stiff,
            process=keys.process,
            parameters=part.parameters,
            key=at,
            federate=keys.federate,
            system=found,
            shown=part.shown,
        )
        for part in system.parts
    ]


def _file(text: str, at: KeyPath, reading: Reading) -> Path | None:
    """A file of FMUs that exists; None after an error, which is recorded."""
    try:
        refuse_code(text, FMU, reading.place(at))
    except InputError as error:
        reading.errors.append(error)
        return None
    file = reading.file(text, at)
    if file is not None:
        try:
            open_file(file).close()  # an input of the rig, also where another process reads it
        except FileNotFoundError:
            return reading.fail(at, f"there is no file {file}")
        except OSError as error:
            return reading.fail(at, f"{file} cannot be read: {error.strerror}")
    return file


def _bare(value: YamlValue, at: KeyPath, reading: Reading) -> float | None:
    """A number in SI; None after an error, which is recorded."""
    if isinstance(value, str) and given_unit(value):
        return reading.fail(at, f"expected a number in SI without a unit, got '{shortened(value)}'")
    return number(value, "1", at, reading)


def _flat(values: Mapping[str, Any] | None) -> dict[str, Any]:
    """Nested sections, as of overrides, with dots in their keys."""
    found: dict[str, Any] = {}
    for key, value in (values or {}).items():
        inner = {f"{key}.{name}": each for name, each in _flat(value).items()} if isinstance(value, dict) else {}
        found |= inner or {key: value}
    return found


def read_couplings(data: YamlValue, parts: Sequence[PartSpec | FmuSpec], reading: Reading) -> CouplingsSpec:
    """The section `couplings`, with the connections in systems among the parts; errors are recorded."""
    at = ("couplings",)
    values: dict[str, Any] = read_fields(CouplingsKeys, data, at, reading)
    members: list[PowerBond | Wire] = []
    places: list[KeyPath] = []
    limits: list[float] = []
    quantities: dict[KeyPath, str] = {}
    for k, bond in enumerate(values.get("bonds") or ()):
        place = (*at, "bonds", k)
        if bond is None:
            continue
        wrong = next((name for name in ("effort", "flow") if len(getattr(bond, name)) != 2), "")
        if wrong:
            reading.fail((*place, wrong), "expected two ends, [part.output, part.input]")
            continue
        members.append(PowerBond(tuple(bond.effort), tuple(bond.flow)))  # type: ignore[arg-type]
        limits.append(math.inf if bond.residual_limit is None else bond.residual_limit)
        places.append(place)
    for k, wire in enumerate(values.get("wires") or ()):
        if wire is not None:
            place = (*at, "wires", k)
            initial = None if wire.initial is None else wire.initial.value
            offset = 0.0 if wire.offset is None else wire.offset.value
            members.append(Wire(wire.output, wire.input, initial, wire.factor, offset))
            places.append(place)
            given = {"initial": wire.initial, "offset": wire.offset}
            quantities |= {(*place, name): each.text for name, each in given.items() if each and each.text}
    systems = {part.system.name: part.system for part in parts if isinstance(part, FmuSpec) and part.system}
    joined = joined_members(members, places, tuple(systems.values()), reading)
    correction: CorrectionKeys | None = values.get("correction")
    return CouplingsSpec(
        MASTERS[values.get("master", "gauss_seidel")],
        values.get("order", 1),
        tuple(values.get("sequence") or ()),
        None if correction is None else EnergyCorrection(correction.gain, correction.limit),
        joined.members,
        joined.keys,
        tuple(limits),
        values.get("time_limit"),
        values.get("step"),
        values.get("step_control"),
        joined.elsewhere,
        quantities,
    )
