"""Which plots of which signals a layout has, whatever program shows it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

PALETTE = ("#d1603d", "#3b82c4", "#3f9c68", "#c79a2e", "#8a63c9", "#2aa7b5", "#c4568f", "#9aa0a6")
MOST_PLOTS = 12  # in a tab
ROWS = 4  # in a column of plots

# title of a tab -> the signals of each joint in it
JOINT_TABS: dict[str, tuple[str, ...]] = {
    "position": ("reference_position", "position"),
    "velocity": ("reference_velocity", "velocity"),
    "effort": ("command_effort", "effort"),
    "current": ("current",),
    "temperature": ("temperature",),
}
PARTS = "parts"  # tab of a rig without joints
RIG_TABS = ("energy", "timing")  # groups of signals, each in one plot


class LayoutPlot(NamedTuple):
    title: str
    signals: tuple[str, ...]


class LayoutTab(NamedTuple):
    title: str
    plots: tuple[LayoutPlot, ...]

    @property
    def columns(self) -> list[tuple[LayoutPlot, ...]]:
        """At most ROWS plots above each other."""
        return [self.plots[k : k + ROWS] for k in range(0, len(self.plots), ROWS)]


def tabs_of(signals: Collection[str], joints: Sequence[str]) -> list[LayoutTab]:
    """Tabs without plots, and plots without signals, are left out."""
    tabs = []
    for title, names in JOINT_TABS.items():
        plots = [LayoutPlot(joint, _present(signals, [f"{joint}/{name}" for name in names])) for joint in joints]
        tabs += _numbered(title, [plot for plot in plots if plot.signals])
    if not joints:
        tabs += _numbered(PARTS, _by_part(signals))
    for group in RIG_TABS:
        if found := tuple(name for name in signals if name.startswith(f"{group}/")):
            tabs.append(LayoutTab(group, (LayoutPlot(group, found),)))
    return tabs


def _numbered(title: str, plots: Sequence[LayoutPlot]) -> Iterator[LayoutTab]:
    """Tabs of at most MOST_PLOTS."""
    for first in range(0, len(plots), MOST_PLOTS):
        last = min(first + MOST_PLOTS, len(plots))
        numbered = f"{title} {first + 1}–{last}" if len(plots) > MOST_PLOTS else title
        yield LayoutTab(numbered, tuple(plots[first:last]))


def _by_part(signals: Collection[str]) -> list[LayoutPlot]:
    """A plot for each part or bond of a rig without joints."""
    groups: dict[str, list[str]] = {}
    for name in signals:
        groups.setdefault(name.rpartition("/")[0], []).append(name)
    return [LayoutPlot(group, tuple(names)) for group, names in groups.items() if group not in RIG_TABS]


def _present(signals: Collection[str], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name in signals)
