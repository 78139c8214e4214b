"""Voltages of the links of supplies over a run, and what a run warns of where they left their range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from cosim.output.signal_statistics import SignalFigures
from cosim.rig.run.run_metadata import RunMetadata, SupplyMetadata

# of the voltage of a link without load: above the first and below the second a run warns, by default
RISEN, SUNK = 1.5, 0.5
SATURATED = 1.005  # of the voltage from which a chopper is always on


class SupplySummary(TypedDict):
    """Voltage of the link of a supply [V]: at the start, the lowest and the largest one, and when this was first
    there [s]; None in runs that did not follow it."""

    voltage_start: float
    voltage_min: float
    voltage_max: float
    t_max_s: float | None


def links_of(rig: RunMetadata) -> dict[str, str]:
    """Supply -> the signal of the voltage of its link."""
    return {name: f"{name}/voltage" for name in rig.supplies}


def link_voltages(rig: RunMetadata, signals: Mapping[str, SignalFigures]) -> dict[str, SupplySummary]:
    """By supply, of those whose voltage was followed."""
    found: dict[str, SupplySummary] = {}
    for name, link in links_of(rig).items():
        if (voltage := signals.get(link)) is not None:
            found[name] = {
                "voltage_start": voltage.first,
                "voltage_min": voltage.min,
                "voltage_max": voltage.max,
                "t_max_s": None if voltage.peak_tick is None else voltage.peak_tick * rig.step_ns * 1e-9,
            }
    return found


def supply_warnings(voltages: Mapping[str, SupplySummary], supplies: Mapping[str, SupplyMetadata]) -> list[str]:
    """Links whose voltage left its range, and choppers that could not hold it."""
    found = []
    for name, supply in supplies.items():
        if (figures := voltages.get(name)) is None:
            continue
        highest, lowest, start = (figures[key] for key in ("voltage_max", "voltage_min", "voltage_start"))
        when = "" if figures["t_max_s"] is None else f" at {figures['t_max_s']:.4g} s"
        risen = f"the link '{name}' rises to {highest:.4g} V{when}"
        saturated = supply.full is not None and highest > SATURATED * supply.full
        if saturated:
            what = f"its chopper is always on above {supply.full:.4g} V and cannot burn what comes back"
            found.append(f"{risen}: {what}; lower its resistance, see cosim analyze --supplies")
        if supply.largest is not None and highest > supply.largest:
            fix = "brake more slowly, or give it another chopper or capacitor"
            found.append(f"{risen}, above its largest_voltage of {supply.largest:.4g} V; {fix}")
        elif supply.largest is None and supply.full is None and highest > RISEN * supply.voltage:
            what = f"{highest / supply.voltage:.2g} times its voltage without load, as it has no chopper"
            found.append(f"{risen}, {what}; give it one, or its largest_voltage if it withstands that")
        least = SUNK * supply.voltage if supply.lowest is None else supply.lowest
        if lowest < least <= start:
            what = f"its lowest_voltage of {least:.4g} V" if supply.lowest else f"half its {supply.voltage:.4g} V"
            fix = "use a stronger source, or take less"
            found.append(f"the link '{name}' sinks to {lowest:.4g} V, below {what}; {fix}")
    return found
