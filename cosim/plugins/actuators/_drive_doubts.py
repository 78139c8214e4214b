"""Parameters of a drive that are possible and hardly meant: warnings before a run, by `cosim check` and `cosim run`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

REVERSED = math.pi / 2.0  # electrical, error of the field angle from which on the torque acts against the request
# of the holding torque, a detent torque from which on a rotor has several rests at one angle of the field: the detent
# torque repeats four times per electrical turn, so that its stiffness is as large
QUARTER = 0.25


def doubts_of(params: Any, largest_voltage: float | None) -> tuple[str, ...]:
    """What a user should know of the parameters of a `drive`: of its motor, its inverter, its loops and its steps.
    largest_voltage: the amplitude of a phase [V] that its inverter gives, None where that is not known."""
    of_motor = getattr(params.motor.params, "doubts", ())
    of_inverter = () if largest_voltage is None else _beyond_inverter(params, largest_voltage)
    return (*of_motor, *of_inverter, *_of_the_field(params), *_of_the_detent(params))


def _beyond_inverter(params: Any, given: float) -> Iterator[str]:
    """Where its control counts on a voltage that the inverter does not have."""
    inverter, limit = params.control.inverter, params.control.voltage_limit
    if inverter is not None and params.supply is None and given < limit < math.inf:
        what = f"control.voltage_limit of {limit:.4g} V is above the {given:.4g} V that the inverter gives"
        yield f"{what} as amplitude of a phase at its supply_voltage of {inverter.supply_voltage:.4g} V; lower it"


def _of_the_field(params: Any) -> Iterator[str]:
    field = params.loops.field if params.loops else None
    pairs = getattr(params.motor.params, "pole_pairs", None)
    if field is None or pairs is None:
        return
    error = abs(field.offset) + pairs * field.eccentricity
    if error >= REVERSED:
        what = f"its field angle is off by up to {math.degrees(error):.3g}° electrical"
        yield f"{what}, and from 90° on the torque acts against the request; check offset and eccentricity"


def _of_the_detent(params: Any) -> Iterator[str]:
    detent, constant = (getattr(params.motor.params, name, 0.0) for name in ("detent", "torque_constant"))
    current = params.control.current_limit
    if params.open_loop is not None and params.open_loop.steps is not None:
        current = params.open_loop.steps.current
    holding = constant * current if constant else math.inf
    if detent and math.isfinite(holding) and detent > QUARTER * holding:
        what = (
            f"its detent torque of {detent:.3g} N·m is more than a quarter of its holding torque of {holding:.3g} N·m"
        )
        yield f"{what}, so that the rotor does not follow single microsteps; check detent and the current"
