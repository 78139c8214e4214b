"""The parts of a rig beside its mechanism, built from their files and joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cosim.core.errors import ErrorList, InputError, InputErrors, SourceLocation
from cosim.rig.reading.contracts import load_part
from cosim.rig.reading.schema import KeyPath, Reading, number
from cosim.rig.sections.guard import watchdog_time
from cosim.rig.sections.parts import CouplingsSpec, FmuSpec, PartSpec
from cosim.rig.sections.rig_spec import RigSpec
from cosim.rig.wiring.coupling_steps import check_coupling_steps, control_of
from cosim.simulation.coupling.block_part import BlockPart
from cosim.simulation.coupling.couplings import Couplings, HasSignals, PowerBond, checked
from cosim.simulation.coupling.master import Scheme
from cosim.simulation.coupling.start import HasFeedthrough, in_order_of_evaluation
from cosim.simulation.coupling.step_control import EnergyControl
from cosim.simulation.tick.coupled_plant import MECHANISM, Coupling, PartSource, PlantSignals, signals_of_plant

TIME_LIMIT = 10.0  # s, of a start of a part, and of a step where no real motor waits for it


def build_coupling(spec: RigSpec, names: Sequence[str], units: Sequence[str], reading: Reading) -> Coupling | None:
    """None for a rig without parts; names, units: of the dofs. Errors are recorded."""
    if not spec.parts:
        if spec.couplings.members:
            reading.fail(("couplings",), "there are no parts to couple; add the section `parts`")
        return None
    tick = spec.schedule.step_ns * 1e-9
    limit, control = _time_limit(spec, tick), control_of(spec.couplings, tick, reading)
    parts = {part.name: _part(part, tick, spec.couplings, limit, reading) for part in spec.parts}
    found = {name: part for name, part in parts.items() if part is not None}
    if len(found) < len(parts):
        return None
    plant = {MECHANISM: PlantSignals(*signals_of_plant(names, units))} if names else {}
    known: dict[str, HasFeedthrough] = {**plant, **found}
    keys = {part.name: part.key for part in spec.parts}
    check_coupling_steps(spec.couplings, control, found, keys, tick, bool(plant), reading)
    if not plant:
        _check_no_mechanism(spec.couplings, reading)
    if reading.errors:
        return None
    joined = _joined(spec.couplings, control, found, known, reading)
    homes = {part.name: part.federate for part in spec.parts if part.federate is not None}
    start_limit = spec.couplings.time_limit or TIME_LIMIT
    return joined and replace(joined, federates=homes, time_limit=limit, start_limit=start_limit)


def _time_limit(spec: RigSpec, step: float) -> float:
    """s, of a step of a part; step [s]: of the schedule. By default half the time of the watchdog that would stop the
    real motors: the part is named then. Federates answer through a network of their own."""
    federated = any(part.federate for part in spec.parts)
    watchdog = watchdog_time(spec.guard, True, step) if spec.drivers and not federated else None
    default = TIME_LIMIT if watchdog is None else 0.5 * watchdog
    return spec.couplings.time_limit or default


def _check_no_mechanism(spec: CouplingsSpec, reading: Reading) -> None:
    """Record what is joined to a mechanism in a rig that has none."""
    for member, key in zip(spec.members, spec.keys, strict=True):
        if any(end.partition(".")[0] == MECHANISM for end in member.ends):
            reading.fail(key, "this rig has no mechanism; name a part, or add `mechanism`")


def _check_dofs(spec: CouplingsSpec) -> None:
    """Raises InputErrors for bonds that join the effort on one dof with the velocity of another."""
    errors = ErrorList()
    for bond in spec.members:
        if not isinstance(bond, PowerBond):
            continue
        (part, _, effort), (_, _, flow) = bond.effort[1].partition("."), bond.flow[0].partition(".")
        dofs = effort.rpartition("/")[0], flow.rpartition("/")[0]
        if part == MECHANISM and dofs[0] != dofs[1]:
            what = f"the effort acts on '{dofs[0]}', the flow belongs to '{dofs[1]}', and their product is no power"
            errors.append(InputError(f"{what}; take both of one dof, or use wires", str(bond)))
    if errors:
        raise InputErrors(errors)


def _part(
    spec: PartSpec | FmuSpec, tick: float, couplings: CouplingsSpec, time_limit: float, reading: Reading
) -> BlockPart | PartSource | None:
    """None after an error, recorded in `reading`."""
    if isinstance(spec, FmuSpec):
        from cosim.rig.wiring.fmu_source import FmuSource

        try:
            return FmuSource(spec, time_limit)
        except InputError as error:
            return reading.fail(_place_of(error, spec), str(error))
    block = load_part(spec.plugin, spec.key, reading)
    if block is None:
        return None
    part = BlockPart(block, spec.step or tick, spec.integrator, name=spec.name)
    if part.sampled and couplings.step_control is None:
        of = "schedule" if couplings.step is None else "coupling"
        _check_samples(spec, part, couplings.step or tick, reading, of)
    return part


def _place_of(error: InputError, spec: FmuSpec) -> KeyPath:
    """The place in the rig of an error of an FMU: of the parameter that it names, else of the file."""
    named = error.place.key if isinstance(error.place, SourceLocation) else ""
    name = named.removeprefix(f"{spec.name}.")
    of_rig = spec.system is None and name in spec.parameters
    return (*spec.key, "params", name) if of_rig else spec.file_key


def _check_samples(spec: PartSpec, part: BlockPart, step: float, reading: Reading, of: str) -> None:
    count = step / part.step
    if round(count) < 1 or abs(count - round(count)) > 1e-6:
        what = f"the step of the {of}, {step:g} s, is no whole number of its periods of {part.step:g} s"
        reading.fail((*spec.key, "step"), what)


def _check_quantities(
    spec: CouplingsSpec, couplings: Couplings, known: Mapping[str, HasSignals], reading: Reading
) -> None:
    """Record numbers of wires whose unit is not the input's."""
    for member, key in zip(spec.members, spec.keys, strict=True):
        part, _, signal = member.inputs[0].partition(".")
        for name in ("initial", "offset"):
            if text := spec.quantities.get((*key, name)):
                number(text, known[part].inputs[signal].unit, (*key, name), reading)


def _joined(
    spec: CouplingsSpec,
    control: EnergyControl | None,
    parts: dict[str, BlockPart | PartSource],
    known: dict[str, HasFeedthrough],
    reading: Reading,
) -> Coupling | None:
    places = {str(member): key for member, key in zip(spec.members, spec.keys, strict=True)}
    try:
        fmus = [name for name, part in parts.items() if not isinstance(part, BlockPart)]
        couplings = checked(known, spec.members, (MECHANISM, *fmus))
        in_order_of_evaluation(known, couplings)
        _check_dofs(spec)
    except InputErrors as errors:
        for error in errors.errors:
            defined = spec.elsewhere.get(str(error.place))
            what = error.what if defined is None else f"{defined}: {error.what}"
            reading.fail(places.get(str(error.place), ("couplings",)), what)
        return None
    except InputError as error:
        return reading.fail(("couplings",), error.what)
    _check_quantities(spec, couplings, known, reading)
    if spec.sequence and not spec.sequential:
        return reading.fail(("couplings", "sequence"), "is for gauss_seidel; take it out, or take that master")
    if spec.sequence and sorted(spec.sequence) != sorted(known):
        return reading.fail(("couplings", "sequence"), f"it must name every part once: {', '.join(known)}")
    scheme = Scheme(spec.order, spec.sequential, spec.sequence, control, spec.correction)
    reasons = {name: part.untraceable if isinstance(part, BlockPart) else "an FMU" for name, part in parts.items()}
    in_python = {name: why for name, why in reasons.items() if why}
    first = control.shortest if control is not None and spec.step is None else spec.step
    return Coupling(parts, couplings, scheme, spec.residual_limits, in_python=in_python, first_step=first)
