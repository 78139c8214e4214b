"""Which supply, fuse, brake resistor and capacitor a rig needs, from a run: what flowed, and what follows with margins.

Currents and powers are those at the ticks, peaks between them are not seen; energies are integrated with the motion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cosim.apps.analysis.supply_figures import LinkInRun, SizingFigure, groups_of, of_axis
from cosim.core.errors import InputError
from cosim.output.palette import BLUE, RUST
from cosim.output.report_page import ReportPage
from cosim.output.svg_chart import SvgChart
from cosim.output.text_table import TextTable, bold
from cosim.rig.run.run import Run

RIPPLE = 0.05  # of the voltage, from peak to peak
OPTION = "--supplies"


@dataclass(frozen=True)
class SupplySizing:
    """By supply, and of the axes on any of them, figures in groups: title -> figures."""

    run: Run
    supplies: Mapping[str, Mapping[str, Sequence[SizingFigure]]]
    axes: Mapping[str, Sequence[SizingFigure]]

    def lines(self) -> list[str]:
        found = [f"{bold(self.run.rig.name)}  {self.run.t[-1]:.6g} s; currents and powers at the ticks"]
        for name, groups in {**self.supplies, **{axis: {"axis": of} for axis, of in self.axes.items()}}.items():
            table = TextTable((name, "figure", "value", "from"), ())
            for group, figures in groups.items():
                for figure in figures:
                    table.add_row(group, figure.what, figure.shown, figure.source)
            found += ["", *table.lines()]
        return found

    def as_json(self) -> dict[str, Any]:
        """SI units, but charges in A·h."""

        def values(figures: Sequence[SizingFigure]) -> dict[str, Any]:
            return {f.key: {"value": float(f.value), "unit": f.unit, "from": f.source} for f in figures}

        return {
            "rig": self.run.rig.name,
            "duration_s": float(self.run.t[-1]),
            "warnings": self.run.warnings,
            "supplies": {
                name: {group: values(figures) for group, figures in groups.items()}
                for name, groups in self.supplies.items()
            },
            "axes": {name: values(figures) for name, figures in self.axes.items()},
        }

    def page(self) -> ReportPage:
        page = ReportPage(f"Supplies of {self.run.rig.name}")
        page.text(
            f"From a run of {self.run.t[-1]:.6g} s. Currents and powers are those at the ticks: peaks between them are"
            " not seen. Energies are integrated with the motion.",
            note=True,
        )
        for line in self.run.warnings:
            page.text(f"Warning: {line}", note=True)
        for name, groups in self.supplies.items():
            page.heading(name)
            page.charts(_charts(self.run, name))
            for group, figures in groups.items():
                page.table([group, "value", "from"], [[f.what, f.shown, f.source] for f in figures])
        for name, figures in self.axes.items():
            page.heading(name)
            page.table(["axis", "value", "from"], [[f.what, f.shown, f.source] for f in figures])
        return page


def size_supplies(run: Run, ripple: float = RIPPLE) -> SupplySizing:
    """ripple: of the voltage of a link, from peak to peak, as a fraction. Raises InputError for a run without a supply,
    and for one that does not have all that flowed."""
    supplies = run.rig.supplies
    if not supplies:
        if any(name.endswith("/supply_current") for name in run.rig.units):
            raise InputError("this run does not name its supplies; record it again", OPTION)
        raise InputError("no drive of this run is on a supply; give the rig a section 'supplies'", OPTION)
    _check_kept(run)
    return SupplySizing(
        run,
        {name: dict(groups_of(LinkInRun(run, name, supply), ripple)) for name, supply in supplies.items()},
        {joint: of_axis(run, joint) for supply in supplies.values() for joint in supply.joints},
    )


def _check_kept(run: Run) -> None:
    """Raises InputError for a run of which signals or ticks were thrown away: its means would be wrong."""
    fix = "run the rig with keep=all, or name the rig itself"
    ticks = run.summary["ticks"] + 1
    if len(run.t) != ticks:
        what = f"this run has kept {len(run.t)} of its {ticks} ticks, so its means are not known"
        raise InputError(f"{what}; {fix}", OPTION)
    wanted = [f"{name}/{what}" for name in run.rig.supplies for what in ("voltage", "current")]
    wanted += [f"{joint}/supply_current" for supply in run.rig.supplies.values() for joint in supply.joints]
    if missing := [name for name in wanted if name not in run]:
        raise InputError(f"this run has not kept {missing[0]}; {fix}", OPTION)


def _charts(run: Run, name: str) -> list[SvgChart]:
    charts = []
    for what, title, color in (("voltage", "voltage, V", BLUE), ("current", "current of the source, A", RUST)):
        chart = SvgChart(title, "time, s")
        chart.line(run.t, run[f"{name}/{what}"], color)
        charts.append(chart)
    return charts
