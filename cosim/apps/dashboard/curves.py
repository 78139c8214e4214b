"""Which curves the charts of a page show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

BLUE, RUST, GREEN, OCHRE, VIOLET, GREY = "#3b82c4", "#d1603d", "#3f9c68", "#c79a2e", "#8a63c9", "#9aa0a6"
PALETTE = (BLUE, RUST, GREEN, OCHRE, VIOLET, GREY, "#2aa7b5", "#c4568f")


class Curve(NamedTuple):
    """of: the signals that `values` takes; by default the curve is the first one."""

    label: str
    of: tuple[str, ...]
    color: str
    dashed: bool = False
    values: Callable[..., np.ndarray] | None = None


class Chart(NamedTuple):
    title: str
    unit: str
    curves: tuple[Curve, ...]


def error(reference: np.ndarray, position: np.ndarray) -> np.ndarray:
    return reference - position


# title, unit of a signal of the joint that gives the unit, curves: label, signals, colour, dashed
JOINT_CHARTS: tuple[tuple[str, str, tuple[Curve, ...]], ...] = (
    (
        "position",
        "position",
        (Curve("position", ("position",), BLUE), Curve("reference", ("reference_position",), RUST, True)),
    ),
    ("error", "position", (Curve("error", ("reference_position", "position"), VIOLET, values=error),)),
    ("velocity", "velocity", (Curve("velocity", ("velocity",), GREEN),)),
    (
        "effort",
        "effort",
        (Curve("effort", ("effort",), OCHRE), Curve("command", ("command_effort",), RUST, True)),
    ),
)


def joint_charts(joint: str, titles: Sequence[str], units: Mapping[str, str]) -> list[Chart]:
    """The charts of these titles; without the curves whose signals are not there, and without empty charts."""
    found = []
    for title, unit, curves in JOINT_CHARTS:
        own = [curve._replace(of=tuple(f"{joint}/{signal}" for signal in curve.of)) for curve in curves]
        own = [curve for curve in own if all(signal in units for signal in curve.of)]
        if own and title in titles:
            found.append(Chart(f"{joint} {title}", shown_unit(units[f"{joint}/{unit}"]), tuple(own)))
    return found


def signal_chart(signals: Sequence[str], units: Mapping[str, str]) -> Chart:
    """One chart of any signals."""
    curves = tuple(Curve(name, (name,), PALETTE[k % len(PALETTE)]) for k, name in enumerate(signals))
    shown = dict.fromkeys(shown_unit(units[name]) for name in signals)
    return Chart("chosen signals", ", ".join(filter(None, shown)), curves)


def shown_unit(unit: str) -> str:
    """As it is written by hand."""
    return "" if unit == "1" else unit.replace("*", "·").replace("^2", "²").replace("degC", "°C")


def values_of(curve: Curve, column: Callable[[str], np.ndarray]) -> np.ndarray:
    """column: the values of a signal."""
    columns = [column(name) for name in curve.of]
    return columns[0] if curve.values is None else curve.values(*columns)
