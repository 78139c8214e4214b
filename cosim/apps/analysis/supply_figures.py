"""Figures of one supply and of its drives, each with what it follows from.

What a source needs depends on its kind: a diode bridge gives a rectified voltage with six peaks per period, between
which the capacitor alone feeds the drives; an active front end takes energy back; a battery has a charge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.apps.analysis.brake_resistor import largest_resistance
from cosim.apps.analysis.samples import PAUSE, Array, braking, largest_integral, mean, rms
from cosim.core.units import UNITS, show_quantity
from cosim.mechanics.bondgraph.power_account import ELECTRICAL, RETURNED
from cosim.rig.run.run import Run
from cosim.rig.run.run_metadata import SupplyMetadata

# rated currents of fuses [A], IEC 60269-1, and of larger ones by the same steps
RATED = (2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0, 25.0, 32.0, 40.0, 50.0, 63.0, 80.0, 100.0, 125.0, 160.0, 200.0)
FUSE_LOAD = 0.8  # of the rated current of a fuse, that it carries all the time
RESISTOR_MARGIN = 1.25  # of its power over the mean one
CAPACITOR_TOLERANCE = 0.8  # of the nominal capacitance that an electrolytic capacitor has at least
GRID = 50.0  # Hz
PEAKS = 6  # of the rectified voltage per period
WINDOWS = (0.01, 0.1, 1.0, 10.0)  # s, of I²t and of the mean power of the resistor
LINE = math.sqrt(2.0 / 3.0)  # RMS current of each of three lines per current behind the bridge
PASSED_ON = 0.5  # of the current of a source, that the drives take at least where it does not charge the capacitor
BRIDGE, FRONT_END, BATTERY = "diode_bridge", "active_front_end", "battery"
AT_TICKS = "at the ticks"


class SizingFigure(NamedTuple):
    """A figure and what it follows from."""

    key: str
    what: str
    value: float
    unit: str
    source: str

    @property
    def shown(self) -> str:
        return show_quantity(self.value, self.unit) if self.unit in UNITS else f"{self.value:.4g} {self.unit}"


class LinkInRun:
    """What flowed at a link in a run, by tick: its voltage u, the current i of its source, what its drives took."""

    def __init__(self, run: Run, name: str, supply: SupplyMetadata) -> None:
        self.run, self.name, self.supply = run, name, supply
        self.t, self.u, self.i = run.t, run[f"{name}/voltage"], run[f"{name}/current"]

    @cached_property
    def drives(self) -> Mapping[str, Array]:
        """Joint -> the current into its drive."""
        return {joint: self.run[f"{joint}/supply_current"] for joint in self.supply.joints}

    @cached_property
    def taken(self) -> Array:
        """By all drives together."""
        return np.sum(list(self.drives.values()), axis=0)

    @cached_property
    def feeds(self) -> NDArray[np.bool_]:
        """Whether the source conducts, and the drives take most of its current: it does not charge the capacitor."""
        return (self.i > 0.0) & (self.taken >= PASSED_ON * self.i)


def groups_of(link: LinkInRun, ripple: float) -> Iterator[tuple[str, list[SizingFigure]]]:
    """(title, figures)."""
    yield "supply", [*_of_source(link), *_OF_KIND[link.supply.source](link)]
    yield "fuse", _of_fuse(link)
    if link.supply.threshold is not None:
        yield "resistor", _of_resistor(link)
    yield "capacitor", _of_capacitor(link, ripple)
    yield "energy", _of_energy(link)


def of_axis(run: Run, name: str) -> list[SizingFigure]:
    i = run[f"{name}/supply_current"]
    energy, how = regenerated(run, name, _supply_of(run, name))
    return [
        SizingFigure("current_peak", "peak current", float(np.abs(i).max()), "A", "from or to the link"),
        SizingFigure("current_rms", "RMS current", rms(run.t, i), "A", "over the run"),
        SizingFigure("regenerated", "regenerated", energy, "J", how),
    ]


# --- of each kind of source ---


def _of_source(link: LinkInRun) -> list[SizingFigure]:
    power, given = link.u * link.i, link.run.summary["powers"].get(link.name, {})
    average, how = mean(link.t, power), f"over the run, {AT_TICKS}"
    if ELECTRICAL in given:
        energy = given[ELECTRICAL] - given.get("supply", 0.0)
        average, how = energy / link.t[-1], "energy over the duration of the run"
    return [
        SizingFigure("current_peak", "peak current", float(link.i.max()), "A", "largest current of the source"),
        SizingFigure("current_rms", "RMS current", rms(link.t, link.i), "A", "over the run"),
        SizingFigure("power_peak", "peak power", float(power.max()), "W", "voltage of the link times current"),
        SizingFigure("power_mean", "mean power", average, "W", how),
    ]


def _of_bridge(link: LinkInRun) -> list[SizingFigure]:
    current = LINE * rms(link.t, link.i)
    return [SizingFigure("line_current_rms", "RMS current of a line", current, "A", "√(2/3) of it, before the bridge")]


def _taken_back(link: LinkInRun) -> list[SizingFigure]:
    current, power = (max(-float(x.min()), 0.0) for x in (link.i, link.u * link.i))
    return [
        SizingFigure("current_returned", "peak current taken back", current, "A", "largest current backwards"),
        SizingFigure("returned_peak", "peak power taken back", power, "W", "voltage of the link times it"),
    ]


def _of_battery(link: LinkInRun) -> list[SizingFigure]:
    charge = link.run[f"{link.name}/state_of_charge"]
    assert link.supply.capacity is not None
    used = link.supply.capacity * float(charge[0] - charge[-1])
    return [
        *_taken_back(link),
        SizingFigure("charge", "charge used", used / 3600.0, "A·h", "integrated over the run, less what came back"),
        SizingFigure("charge_min", "lowest state of charge", float(charge.min()), "1", "of its capacity"),
        SizingFigure("charge_end", "state of charge at the end", float(charge[-1]), "1", "of its capacity"),
        SizingFigure("terminals_min", "lowest voltage", float(link.u.min()), "V", "at its terminals, the link"),
    ]


_OF_KIND: Mapping[str, Callable[[LinkInRun], list[SizingFigure]]] = {
    BRIDGE: _of_bridge,
    FRONT_END: _taken_back,
    BATTERY: _of_battery,
}


# --- of each part ---


def _of_fuse(link: LinkInRun) -> list[SizingFigure]:
    t, i = link.t, link.i
    current = rms(t, i) / FUSE_LOAD
    how = f"RMS current at {FUSE_LOAD:.0%} of it, next step"
    found = [SizingFigure("rated_current", "rated current", rated(current), "A", f"{how}; between source and link")]
    if link.supply.source == BRIDGE:
        size = rated(LINE * current)
        found.append(SizingFigure("line_rated_current", "rated current in a line", size, "A", f"{how}; of three"))
    for window in (w for w in WINDOWS if w < t[-1]):
        heat = float(largest_integral(t, i * i, window))
        what = f"I²t in {window:g} s"
        found.append(SizingFigure(f"i2t_{window:g}s", what, heat, "A²s", "largest; its curve is above it at this time"))
    return found


def _of_resistor(link: LinkInRun) -> list[SizingFigure]:
    t, p = link.t, link.run[f"{link.name}/chopper_loss"]
    stops = braking(t, p)
    count = SizingFigure("stops", "times of braking", float(len(stops)), "1", f"with pauses above {PAUSE:g} s between")
    if not stops:
        return [count._replace(source="the chopper was never on")]
    energies = link.run[f"{link.name}/chopper_energy"]
    bursts = [float(energies[end] - energies[begin]) for begin, end in stops]
    average = float(energies[-1] - energies[0]) / t[-1]
    found = [
        SizingFigure("power_peak", "peak power", float(p.max()), "W", "largest power of the chopper"),
        SizingFigure("power_mean", "mean power", average, "W", "energy over the duration of the run"),
        SizingFigure(
            "rated_power", "rated power", RESISTOR_MARGIN * average, "W", f"mean power times {RESISTOR_MARGIN:g}"
        ),
        count,
        SizingFigure("energy_per_stop", "energy of a stop", max(bursts), "J", "the largest one"),
    ]
    for window in (w for w in WINDOWS if w < t[-1]):
        power = float(largest_integral(t, p, window)) / window
        found.append(SizingFigure(f"power_{window:g}s", f"power over {window:g} s", power, "W", "largest mean"))
    largest, full = _resistance(link, stops), link.supply.full
    if math.isfinite(largest):
        how = f"holds the link below {full:.4g} V, where it is always on, at the power that came back"
        found.append(SizingFigure("resistance", "resistance at most", largest, "ohm", how))
    return found


def _resistance(link: LinkInRun, stops: Sequence[tuple[int, int]]) -> float:
    supply, power = link.supply, link.u * (link.i - link.taken)
    assert supply.threshold is not None and supply.full is not None
    voltages = supply.threshold, supply.full
    found = (
        largest_resistance(link.t[a : b + 1], power[a : b + 1], float(link.u[a]), supply.capacitance, *voltages)
        for a, b in stops
    )
    return min(found)


def _of_capacitor(link: LinkInRun, ripple: float) -> list[SizingFigure]:
    u, feeds = link.u, link.feeds
    found = [
        SizingFigure("voltage_min", "lowest voltage", float(u.min()), "V", "of the link"),
        SizingFigure("voltage_max", "largest voltage", float(u.max()), "V", "of the link"),
    ]
    if link.supply.source != BRIDGE or not feeds.any():
        return found
    current, voltage = float(link.i[feeds].max()), float(u[feeds].min())
    needed = current / (PEAKS * GRID * ripple * voltage) / CAPACITOR_TOLERANCE
    how = f"{current:.4g} A for 1/{PEAKS} of a period of {GRID:g} Hz at {voltage:.4g} V"
    how += f", {1.0 - CAPACITOR_TOLERANCE:.0%} tolerance"
    return [
        *found,
        SizingFigure("voltage_fed", "voltage of the ripple", voltage, "V", "lowest while the bridge feeds the drives"),
        SizingFigure("current_fed", "current of the ripple", current, "A", "largest while the bridge feeds the drives"),
        SizingFigure("capacitance", f"capacitance for a ripple of {ripple:.3g}", needed, "F", how),
    ]


def _of_energy(link: LinkInRun) -> list[SizingFigure]:
    powers, source = link.run.summary["powers"].get(link.name, {}), link.supply.source
    parts = (
        ("taken", ELECTRICAL, "from the source, less returned"),
        *((("returned", RETURNED, "returned to the source"),) if source != BRIDGE else ()),
        ("chopper", "chopper", "in the brake resistor"),
        ("supply", "supply", "lost in the supply"),
    )
    found = [
        SizingFigure(key, what, powers[part], "J", "integrated over the run")
        for key, part, what in parts
        if part in powers
    ]
    of_axes = [regenerated(link.run, joint, link.name) for joint in link.supply.joints]
    hows = dict.fromkeys(how for _, how in of_axes)
    together = -float((link.u * link.taken).min())
    return [
        *found,
        SizingFigure("regenerated", "regenerated by the axes", sum(e for e, _ in of_axes), "J", "; ".join(hows)),
        SizingFigure(
            "regenerated_peak", "largest power of all axes back", max(together, 0.0), "W", f"their sum, {AT_TICKS}"
        ),
    ]


def regenerated(run: Run, joint: str, supply: str) -> tuple[float, str]:
    """(energy [J] that a drive gave back to its link, what it follows from): the integral of its run where its
    `powers` are recorded."""
    if RETURNED in (own := run.summary["powers"].get(joint, {})):
        return own[RETURNED], "integrated over the run"
    power = run[f"{supply}/voltage"] * run[f"{joint}/supply_current"]
    back = mean(run.t, np.maximum(-power, 0.0)) * (run.t[-1] - run.t[0])
    return back, f"{AT_TICKS}; integrated where the drive has 'powers: true'"


def _supply_of(run: Run, joint: str) -> str:
    return next(name for name, supply in run.rig.supplies.items() if joint in supply.joints)


def rated(current: float) -> float:
    """The next rated current of a fuse."""
    scale = 1.0
    while current > RATED[-1] * scale:
        scale *= 10.0
    return next(size * scale for size in RATED if size * scale >= current)
