"""A scenario with the signals of its rig: conditions and bounds in SI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from cosim.apps.scenario.armed_rig import ArmedRig
from cosim.apps.scenario.reaction import SignalBound
from cosim.apps.scenario.timeline import TimedFault
from cosim.core.errors import ErrorList, InputError, InputErrors, near_names
from cosim.core.units import parse_quantity
from cosim.rig.reading.schema import KeyPath
from cosim.rig.sections.scenario import OFF, Bound, ExpectedEnd, ScenarioSpec


@dataclass(frozen=True)
class Scenario:
    """faults: in their order; expect: what is judged; ticks: of the whole run."""

    spec: ScenarioSpec
    faults: tuple[TimedFault, ...]
    expect: tuple[ExpectedEnd | SignalBound, ...]
    ticks: int

    @property
    def expects_off(self) -> bool:
        return any(isinstance(each, ExpectedEnd) and each.what == OFF for each in self.expect)


def resolve(specs: Sequence[ScenarioSpec], armed: ArmedRig) -> list[Scenario]:
    """Raises InputErrors for signals that do not exist and values that do not fit them."""
    errors, found = ErrorList(), []
    for spec in specs:
        try:
            found.append(_resolved(spec, armed))
        except InputError as error:
            errors.append(error)
    if errors:
        raise InputErrors(errors)
    return found


def _resolved(spec: ScenarioSpec, armed: ArmedRig) -> Scenario:
    faults = []
    for fault in spec.faults:
        when = None
        if (condition := fault.when) is not None:
            keys = (*condition.key, "above" if condition.factor > 0.0 else "below")
            bound = _in_si(condition.bound, condition.signal, armed, spec, (*condition.key, "signal"), keys)
            when = condition.signal, condition.factor, bound
        faults.append(TimedFault(fault.spec, when, fault.follows))
    expect: list[ExpectedEnd | SignalBound] = []
    for each in spec.expect:
        if isinstance(each, Bound):
            value = _in_si(each.value, each.signal, armed, spec, each.key, each.key)
            expect.append(SignalBound(each, value, armed.names[each.signal], armed.units[each.signal]))
        else:
            expect.append(each)
    return Scenario(spec, tuple(faults), tuple(expect), round(spec.duration / armed.step) + 1)


def _in_si(text: str, signal: str, armed: ArmedRig, spec: ScenarioSpec, at: KeyPath, of_value: KeyPath) -> float:
    """A value in the unit of a signal; at: the key that names the signal."""

    def fail(what: str, key: KeyPath) -> NoReturn:
        raise InputError(what, spec.place(key))

    if signal not in armed.units:
        fail(f"no signal '{signal}'{near_names(signal, armed.units)}", at)
    try:
        return parse_quantity(text, armed.units[signal], f"signal '{signal}'")
    except ValueError as error:
        fail(str(error), of_value)
