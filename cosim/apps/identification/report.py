"""The report of an identification: its numbers, what they rest on, and how well they explain the drives."""

from __future__ import annotations

import numpy as np

from cosim.apps.identification.results import Identification, Unexplained
from cosim.core.errors import listed
from cosim.core.units import unit_sign
from cosim.output.palette import BLUE, FAINT, RUST
from cosim.output.report_page import ReportPage
from cosim.output.svg_chart import SvgChart

WIDE, HIGH = 960, 190  # pixels of a chart


def report_page(found: Identification) -> ReportPage:
    page = ReportPage(f"Identification of {found.rig.run_spec.name}")
    paths = listed([of.path for of in found.unexplained if of.training])
    page.text(
        f"From {paths}: {found.about.replace('_', ' ')};"
        f" {found.sample_numbers[0]} samples for training, {found.sample_numbers[1]} for validation.",
        note=True,
    )
    page.heading("Numbers")
    rows = [
        [n.name, f"{n.before:.5g}", f"{n.value:.5g}", f"± {n.interval:.2g}", unit_sign(n.unit), n.state]
        for n in found.numbers
    ]
    page.table(["number", "in the rig", "found", "95 %", "unit", "state"], rows)
    page.heading("What is not identifiable from this motion")
    blind = [quantity.title for quantity in found.unseen]
    blind += [f"{quantity.title} only in combination with others" for quantity in found.unsure]
    page.listing(blind or ["everything else is"])
    page.heading("Validation")
    page.text(
        "Root mean squares of the signals of the drives and of what is left unexplained of them, in the part that was"
        " not used to find the numbers; samples in which a joint turns round left out."
    )
    checks = [[c.joint, f"{c.drive:.4g}", f"{c.before:.4g}", f"{c.after:.4g}"] for c in found.checks]
    page.table(["joint", "drive", "unexplained before", "after"], checks)
    page.heading("Drives")
    page.text(
        "Their recorded signals, and the part of them that the numbers of the rig and the found numbers leave"
        " unexplained. The grey part was used to find the numbers."
    )
    for left in found.unexplained:
        if len(found.unexplained) > 1:
            page.text(left.path, note=True)
        page.charts(draw_drives(found, left))
    return page


def draw_drives(found: Identification, left: Unexplained) -> list[SvgChart]:
    charts = []
    for k, name in enumerate(left.joints):
        chart = SvgChart(f"{name} [{unit_sign(found.unit_of(name))}]", "time [s]", WIDE, HIGH)
        if left.training:
            chart.shade(float(left.t[0]), float(left.t[left.training - 1]))
        chart.line(left.t, np.asarray(left.drive[:, k]), FAINT, "drive", width=1.0)
        chart.line(left.t, np.asarray(left.before[:, k]), RUST, "unexplained, rig", width=1.0)
        chart.line(left.t, np.asarray(left.after[:, k]), BLUE, "unexplained, found", width=1.2)
        charts.append(chart)
    return charts
