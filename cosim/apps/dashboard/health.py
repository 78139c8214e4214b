"""Figures of a run: timing, energy, drives, joints at their limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from cosim.apps.dashboard.source import JointAbout

Column = Callable[[str], np.ndarray]
LIMIT_MARGIN = 0.01  # of the range, within which a joint is at its limit
HOT_TEMPERATURE = 70.0  # degC
HIGH_BUS_LOAD = 0.8  # of a bus
NO_LOADS: Mapping[str, float] = {}
END = "timing/end_to_end"
TASKS = ("timing/latency", END)


class Figure(NamedTuple):
    """A row of a panel; group: its heading."""

    group: str
    name: str
    value: str
    warning: bool = False


def figures(
    units: Mapping[str, str],
    column: Column,
    step: float,
    lost: int,
    start: Mapping[str, float],
    bus_loads: Mapping[str, float] = NO_LOADS,
) -> list[Figure]:
    """column: the recent values of a signal; step: of a tick [s]; lost: samples that did not arrive; start: signal ->
    its first value, of energies; bus_loads: driver -> fraction of its bus that is used at worst."""
    buses = [Figure("buses", name, f"up to {load:.0%}", load > HIGH_BUS_LOAD) for name, load in bus_loads.items()]
    return [*_timing(units, column, step, lost), *_energy(units, column, start), *_drives(units, column), *buses]


def _timing(units: Mapping[str, str], column: Column, step: float, lost: int) -> list[Figure]:
    found = [
        Figure("timing", name.removeprefix("timing/").replace("_", " "), percentiles(column(name)))
        for name in units
        if name in TASKS and len(column(name))
    ]
    if found and END in units:
        late = int(np.count_nonzero(column(END) > step))
        found.append(Figure("timing", "late ticks among them", f"{late:,} of {len(column(END)):,}", late > 0))
    if lost:
        found.append(Figure("timing", "samples lost on the way", f"{lost:,}", True))
    return found


def percentiles(values: np.ndarray) -> str:
    """Median, 99th percentile and maximum of times [s]."""
    values = values[np.isfinite(values)]
    if not len(values):
        return "–"
    median, high, most = (f"{value * 1e6:,.0f}" for value in (*np.percentile(values, [50, 99]), values.max()))
    return f"{median} · {high} · {most} µs"


def _energy(units: Mapping[str, str], column: Column, start: Mapping[str, float]) -> list[Figure]:
    """The residual of the balance since the start: work in, less what was dissipated and what is stored."""
    if "energy/stored" not in units or not len(column("energy/stored")):
        return []
    now = {name: float(column(name)[-1]) for name in units if name.startswith("energy/")}
    stored = now["energy/stored"] - start.get("energy/stored", math.nan)
    work = now.get("energy/work", 0.0) + now.get("energy/forces", 0.0)
    lost = now.get("energy/dissipated", 0.0)
    residual, scale = work - lost - stored, max(abs(work), abs(lost), abs(stored), 1e-12)
    found = [
        Figure("energy", "stored", f"{now['energy/stored']:.4g} J"),
        Figure("energy", "work in", f"{work:.4g} J"),
        Figure("energy", "dissipated", f"{lost:.4g} J"),
    ]
    if math.isfinite(residual):
        found.append(Figure("energy", "residual", f"{residual:.1e} J ({residual / scale:.0e})", abs(residual) > scale))
    return found


def _drives(units: Mapping[str, str], column: Column) -> list[Figure]:
    found = []
    for name in units:
        joint, _, what = name.rpartition("/")
        if what == "temperature" and len(column(name)) and math.isfinite(now := float(column(name)[-1])):
            found.append(Figure("drives", f"{joint} temperature", f"{now:.0f} °C", now > HOT_TEMPERATURE))
    return found


def at_limits(joints: Mapping[str, JointAbout], positions: Mapping[str, float]) -> dict[str, str]:
    """Joint -> `lower` or `upper`, of those at a limit of their positions."""
    found = {}
    for name, joint in joints.items():
        margin = LIMIT_MARGIN * (joint.upper - joint.lower)
        position = positions.get(name, math.nan)
        if math.isfinite(margin):
            if position <= joint.lower + margin:
                found[name] = "lower"
            elif position >= joint.upper - margin:
                found[name] = "upper"
    return found
