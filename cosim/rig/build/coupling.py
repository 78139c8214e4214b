"""The parts of a rig beside its mechanism, built from their files and joined."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.coupling.algebraic_loops import HasFeedthrough, in_order_of_evaluation
from cosim.coupling.block_part import BlockPart
from cosim.coupling.couplings import checked
from cosim.coupling.master import Scheme
from cosim.errors import InputError, InputErrors
from cosim.rig.reading.contracts import load_part
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.parts import CouplingsSpec, PartSpec
from cosim.rig.sections.rig_spec import RigSpec
from cosim.tick.coupled_plant import MECHANISM, Coupling, PlantSignals, signals_of_plant


def build_coupling(spec: RigSpec, names: Sequence[str], units: Sequence[str], reading: Reading) -> Coupling | None:
    """None for a rig without parts; names, units: of the dofs. Errors are recorded."""
    if not spec.parts:
        if spec.couplings.members:
            reading.fail(("couplings",), "there are no parts to couple; add the section `parts`")
        return None
    step = spec.schedule.step_ns * 1e-9
    parts = {part.name: _part(part, step, reading) for part in spec.parts}
    found = {name: part for name, part in parts.items() if part is not None}
    if len(found) < len(parts):
        return None
    for part in spec.parts:
        _check_part(part, found[part.name], step, reading)
    known: dict[str, HasFeedthrough] = {MECHANISM: PlantSignals(*signals_of_plant(names, units)), **found}
    return None if reading.errors else _joined(spec.couplings, found, known, reading)


def _part(spec: PartSpec, step: float, reading: Reading) -> BlockPart | None:
    block = load_part(spec.plugin, spec.key, reading)
    return None if block is None else BlockPart(block, spec.step or step, spec.integrator, name=spec.name)


def _check_part(spec: PartSpec, part: BlockPart, step: float, reading: Reading) -> None:
    if part.untraceable:
        what = f"part '{spec.name}' cannot be compiled: {part.untraceable}"
        reading.fail((*spec.key, "type"), what)
    count = step / part.step
    if part.sampled and (round(count) < 1 or abs(count - round(count)) > 1e-6):
        what = f"the step of the schedule, {step:g} s, is no whole number of its periods of {part.step:g} s"
        reading.fail((*spec.key, "step"), what)


def _joined(
    spec: CouplingsSpec, parts: dict[str, BlockPart], known: dict[str, HasFeedthrough], reading: Reading
) -> Coupling | None:
    places = {str(member): key for member, key in zip(spec.members, spec.keys, strict=True)}
    try:
        couplings = checked(known, spec.members, (MECHANISM,))
        in_order_of_evaluation(known, couplings)
    except InputErrors as errors:
        for error in errors.errors:
            reading.fail(places.get(str(error.place), ("couplings",)), error.what)
        return None
    except InputError as error:
        return reading.fail(("couplings",), error.what)
    if spec.sequence and sorted(spec.sequence) != sorted(known):
        return reading.fail(("couplings", "sequence"), f"it must name every part once: {', '.join(known)}")
    scheme = Scheme(spec.order, spec.sequential, spec.sequence, None, spec.correction)
    return Coupling(parts, couplings, scheme, spec.residual_limits)
