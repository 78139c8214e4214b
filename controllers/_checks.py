"""What controllers refuse when they are loaded, each in one line that names the joint and the fix."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.core.errors import InputError
from cosim.core.types import ControllerContext
from cosim.core.units import format_seconds


def check_effort_mode(context: ControllerContext, instead: str) -> None:
    """Raises InputError for a joint whose drive closes a loop of its own; instead: the type that suits it."""
    for name in context.drive_controlled:
        what = f"the drive of joint '{name}' closes a loop of its own"
        raise InputError(f"{what}; use mode: effort of the drive, or type: {instead}")


def check_no_shorter_than_a_period(key: str, times: Sequence[float] | None, context: ControllerContext) -> None:
    """Raises InputError for a time [s] of a joint that is shorter than the period of the controller."""
    for name, time in zip(context.joints, times or (), strict=bool(times)):
        if time < context.period * (1.0 - 1e-9):
            what = f"{key} of {format_seconds(time)} of joint '{name}' is shorter than the period"
            raise InputError(f"{what}; use {format_seconds(context.period)} or more")


def check_below_half_the_rate(key: str, frequencies: Sequence[float] | None, context: ControllerContext) -> None:
    """Raises InputError for a frequency [Hz] of a joint that is not below half the rate of the controller."""
    largest = 0.5 / context.period
    for name, frequency in zip(context.joints, frequencies or (), strict=bool(frequencies)):
        if frequency >= largest * (1.0 - 1e-9):
            what = f"{key} of {frequency:g} Hz of joint '{name}' is not below half the rate, {largest:g} Hz"
            raise InputError(f"{what}; lower it, or shorten the period")
