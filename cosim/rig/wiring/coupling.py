"""The parts of a rig beside its mechanism, built from their files and joined, and the steps of their coupling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

from cosim.core.errors import ErrorList, InputError, InputErrors, SourceLocation
from cosim.core.units import show_time
from cosim.rig.reading.contracts import load_part
from cosim.rig.reading.schema import KeyPath, Reading, number
from cosim.rig.sections.guard import watchdog_time
from cosim.rig.sections.parts import CouplingsSpec, FmuSpec, PartSpec
from cosim.rig.sections.rig_spec import RigSpec
from cosim.rig.sections.schedule import WHOLE_TOLERANCE
from cosim.simulation.coupling.block_part import MAX_STEPS, BlockPart
from cosim.simulation.coupling.couplings import Couplings, HasSignals, PowerBond, checked
from cosim.simulation.coupling.master import Scheme
from cosim.simulation.coupling.part import Part
from cosim.simulation.coupling.start import HasFeedthrough, in_order_of_evaluation
from cosim.simulation.coupling.step_control import EnergyControl
from cosim.simulation.fmi import FmuPart
from cosim.simulation.tick.coupled_plant import MECHANISM, Coupling, PartSource, PlantSignals, signals_of_plant

TIME_LIMIT = 10.0  # s, of a start of a part, and of a step where no real motor waits for it
AT: KeyPath = ("couplings",)
CONTROL: KeyPath = (*AT, "step_control")
SHORTEST_STEP = 1e-3  # of a tick: the shortest step by default


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
) -> BlockPart | FmuSource | None:
    """None after an error, recorded in `reading`."""
    if isinstance(spec, FmuSpec):
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
    parts: dict[str, BlockPart | FmuSource],
    known: dict[str, HasFeedthrough],
    reading: Reading,
) -> Coupling | None:
    places = {str(member): key for member, key in zip(spec.members, spec.keys, strict=True)}
    try:
        fmus = {name: part.start_values for name, part in parts.items() if isinstance(part, FmuSource)}
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
    return Coupling(
        parts, couplings, scheme, spec.residual_limits, in_python=in_python, first_step=first, start_values=fmus
    )


def control_of(spec: CouplingsSpec, tick: float, reading: Reading) -> EnergyControl | None:
    """The step control of a rig, None without one or after an error. tick [s]: the step of the schedule."""
    keys = spec.step_control
    if keys is None:
        return None
    longest = tick if keys.longest is None else keys.longest
    shortest = min(SHORTEST_STEP * tick, longest) if keys.shortest is None else keys.shortest
    before = len(reading.errors)
    if longest > tick * (1.0 + WHOLE_TOLERANCE):
        what = f"must be at most the step of the schedule, {_shown(tick)}, is {_shown(longest)}"
        reading.fail((*CONTROL, "longest"), what)
    if shortest > longest:
        reading.fail((*CONTROL, "shortest"), f"must be at most the longest, {_shown(longest)}, is {_shown(shortest)}")
    if shortest * MAX_STEPS < tick:
        what = f"must be at least {_shown(tick / MAX_STEPS)}, for {MAX_STEPS:,} steps in a tick, is {_shown(shortest)}"
        reading.fail((*CONTROL, "shortest"), what)
    if len(reading.errors) > before:
        return None
    return EnergyControl(shortest, longest, keys.relative, keys.absolute, keys.repeats)


def check_coupling_steps(
    spec: CouplingsSpec,
    control: EnergyControl | None,
    parts: Mapping[str, BlockPart | PartSource],
    places: Mapping[str, KeyPath],
    tick: float,
    has_mechanism: bool,
    reading: Reading,
) -> None:
    """Record steps of the coupling that the rig cannot make. places: of the parts; tick [s]: see `control_of`."""
    if spec.correction is not None and not spec.has_bonds:
        what = "needs a power bond, whose residual energy it pays back; add one, or take it out"
        reading.fail((*AT, "correction"), what)
    if has_mechanism:
        what = "the mechanism steps once per tick; take it out, or use a smaller schedule.step"
        if spec.step_control is not None:
            reading.fail(CONTROL, what)
        if spec.step is not None:
            reading.fail((*AT, "step"), what)
        return
    if control is not None:
        _check_control(spec, control, parts, places, reading)
    elif spec.step is not None and spec.step_control is None:
        _check_constant(spec.step, tick, reading)


def _check_constant(step: float, tick: float, reading: Reading) -> None:
    count = tick / step
    if round(count) < 1 or abs(count - round(count)) > WHOLE_TOLERANCE * count:
        what = f"the step of the schedule, {_shown(tick)}, is no whole number of steps of {_shown(step)}"
        reading.fail((*AT, "step"), f"{what}; use {_shown(tick / max(1, round(count)))}")


def _check_control(
    spec: CouplingsSpec,
    control: EnergyControl,
    parts: Mapping[str, BlockPart | PartSource],
    places: Mapping[str, KeyPath],
    reading: Reading,
) -> None:
    bounds = control.shortest, control.longest
    if spec.step is not None and not bounds[0] <= spec.step <= bounds[1]:
        what = f"must be from the shortest to the longest of the step control, {_shown(bounds[0])} to"
        reading.fail((*AT, "step"), f"{what} {_shown(bounds[1])}, is {_shown(spec.step)}")
    if spec.correction is not None:
        reading.fail((*AT, "correction"), "is for steps of constant length; take it out, or take out `step_control`")
    if not spec.has_bonds:
        reading.fail(CONTROL, "needs a power bond, whose residual energy is the error; add one, or take it out")
    for name, part in parts.items():
        is_block = isinstance(part, BlockPart)
        if part.sampled if is_block else not part.variable:
            what = "its steps cannot have any length; use `couplings.step` instead of `couplings.step_control`"
            reading.fail(places[name], what)
        if control.repeats and not is_block and not part.repeats:
            reading.fail(places[name], "it cannot repeat a step; use a step control without `repeats`")
        if is_block and control.longest > MAX_STEPS * part.step:
            least = _shown(control.longest / MAX_STEPS)
            reading.fail((*places[name], "step"), f"is too short for steps of the coupling; give it {least} at least")


def _shown(time: float) -> str:
    return show_time(time * 1e9)


class FmuSource:
    """See `cosim.simulation.tick.coupled_plant.PartSource`. Raises InputError for an FMU that cannot run here, or whose
    variables are not those that the rig names."""

    def __init__(self, spec: FmuSpec, time_limit: float) -> None:
        self._open = partial(
            FmuPart,
            spec.file,
            spec.name,
            spec.parameters,
            spec.outputs,
            spec.interface,
            spec.tolerance,
            spec.stiff,
            spec.process,
            time_limit,
            spec.shown,
        )
        self._system = spec.system  # holds the files that the FMU is opened from
        part = self._open()
        part.close()
        self.inputs, self.outputs, self.feedthrough = part.inputs, part.outputs, part.feedthrough
        self.order, self.repeats, self.variable = part.order, part.repeats, part.variable
        self.start_values = part.start_values

    def open(self) -> Part:
        """An instance that has not started."""
        return cast(Part, self._open())
