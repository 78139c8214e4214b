"""The steps of the coupling within a tick of a rig of parts: checked against the parts and the schedule."""

from __future__ import annotations

from collections.abc import Mapping

from cosim.core.units import show_time
from cosim.rig.reading.schema import KeyPath, Reading
from cosim.rig.sections.parts import CouplingsSpec
from cosim.rig.sections.schedule import TOLERANCE
from cosim.simulation.coupling.block_part import MAX_STEPS, BlockPart
from cosim.simulation.coupling.step_control import EnergyControl
from cosim.simulation.tick.coupled_plant import PartSource

AT: KeyPath = ("couplings",)
CONTROL: KeyPath = (*AT, "step_control")
SHORTEST = 1e-3  # of a tick: the shortest step by default


def control_of(spec: CouplingsSpec, tick: float, reading: Reading) -> EnergyControl | None:
    """The step control of a rig, None without one or after an error. tick [s]: the step of the schedule."""
    keys = spec.step_control
    if keys is None:
        return None
    longest = tick if keys.longest is None else keys.longest
    shortest = min(SHORTEST * tick, longest) if keys.shortest is None else keys.shortest
    before = len(reading.errors)
    if longest > tick * (1.0 + TOLERANCE):
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
    if round(count) < 1 or abs(count - round(count)) > TOLERANCE * count:
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
