"""What became of the drives in a run: how warm their machines were, and which steps their motors lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from cosim.output.signal_statistics import SignalFigures
from cosim.rig.run.run_metadata import RunMetadata

LOST, OUT_OF_STEP = "lost_steps", "out_of_step"  # `<joint>/<name>` of a step motor


class TemperatureSummary(TypedDict):
    """The largest rise of a thermal node [K], when it was first there [s], None in runs that did not follow it, and its
    limit [K], None without one."""

    max: float
    t_s: float | None
    limit: float | None


class LostStepsSummary(TypedDict):
    """Full steps that a motor has lost at the end, the most at any time, and when it lost the first ones [s]; None
    where it lost none."""

    count: int
    max: int
    first_s: float | None


def followed_of_drives(rig: RunMetadata) -> tuple[str, ...]:
    """The signals of these figures, whose peaks have a time."""
    steps = [name for name in rig.units if name.rpartition("/")[2] in (LOST, OUT_OF_STEP)]
    return (*rig.temperatures, *steps)


def temperatures(rig: RunMetadata, signals: Mapping[str, SignalFigures]) -> dict[str, dict[str, TemperatureSummary]]:
    """Joint -> node -> its largest temperature."""
    found: dict[str, dict[str, TemperatureSummary]] = {}
    for name, limit in rig.temperatures.items():
        if name in signals:
            joint, _, what = name.rpartition("/")
            # the largest absolute value is that of a cold start, where the ambient air is colder than that
            at = _time(rig, signals[name]) if signals[name].max == signals[name].peak else None
            largest: TemperatureSummary = {"max": signals[name].max, "t_s": at, "limit": limit}
            found.setdefault(joint, {})[what.removesuffix("_temperature")] = largest
    return found


def lost_steps(rig: RunMetadata, signals: Mapping[str, SignalFigures]) -> dict[str, LostStepsSummary]:
    """Joint of a step motor without feedback -> the steps that it lost."""
    found: dict[str, LostStepsSummary] = {}
    for joint in rig.joints:
        lost, out = (signals.get(f"{joint}/{name}") for name in (LOST, OUT_OF_STEP))
        if lost is None or out is None or lost.last != lost.last:
            continue
        first = _time(rig, out) if out.max > 0.0 else None
        found[joint] = {"count": round(abs(lost.last)), "max": round(lost.peak), "first_s": first}
    return found


def warnings_of_drives(
    temperatures: Mapping[str, Mapping[str, TemperatureSummary]], steps: Mapping[str, LostStepsSummary]
) -> list[str]:
    """Each node beyond its limit, and each motor that lost steps."""
    lines = []
    for joint, nodes in temperatures.items():
        for node, figures in nodes.items():
            if (limit := figures["limit"]) is not None and figures["max"] > limit:
                when = "" if figures["t_s"] is None else f" at {figures['t_s']:.6g} s"
                what = f"the {node} of the drive of joint '{joint}' is warmer than its limit of {limit:g} K"
                fix = "use less current, a larger motor or a shorter duty"
                lines.append(f"{what}: up to {figures['max']:.4g} K{when}; {fix}")
    for joint, lost in steps.items():
        if not lost["max"]:
            continue
        when = "" if lost["first_s"] is None else f", the first at {lost['first_s']:.6g} s"
        count = f"lost {lost['count']} full steps{when}"
        if not lost["count"]:
            count = f"slipped by up to {lost['max']} full steps{when}, and is in step again"
        fix = "use less acceleration or speed, more current or voltage, or loops with feedback"
        lines.append(f"the step motor of joint '{joint}' {count}; {fix}")
    return lines


def _time(rig: RunMetadata, figures: SignalFigures) -> float | None:
    return None if figures.peak_tick is None else figures.peak_tick * rig.step_ns * 1e-9
