"""The report of an identification: one HTML file with its tables and plots."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cosim.apps.identification.results import Identification
from cosim.output.palette import BLUE, PALE, RUST
from cosim.output.plot import drawable
from cosim.output.plot.style import styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 15px/1.5 system-ui, sans-serif; color: #1c2229; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }}
table {{ border-collapse: collapse; margin: 1rem 0 }} td, th {{ padding: .15rem .8rem .15rem 0; text-align: left }}
td.number, th.number {{ text-align: right; font-variant-numeric: tabular-nums }}
tr {{ border-bottom: 1px solid #e6e9ed }} img {{ max-width: 100% }} .note {{ color: #5c6670 }}
</style></head><body>
<h1>{title}</h1><p class="note">{about}</p>
<h2>Numbers</h2>{numbers}
<h2>What is not identifiable from this motion</h2>{blind}
<h2>Validation</h2>
<p>Root mean squares of the signals of the drives and of what is left unexplained of them, in the part that was not used
to find the numbers; samples in which a joint turns round left out.</p>{checks}
<h2>Drives</h2><p>Their recorded signals, and the part of them that the numbers of the rig and the found numbers leave
unexplained. The grey part was used to find the numbers.</p>
<img alt="signals of the drives over time" src="data:image/png;base64,{plot}">
</body></html>
"""


def page(found: Identification) -> str:
    """The text of the file."""
    rows = [
        (
            n.name,
            f"{n.before:.5g}",
            f"{n.value:.5g}",
            f"± {n.interval:.2g}",
            n.unit,
            "" if n.state == "found" else n.state,
        )
        for n in found.numbers
    ]
    checks = [(c.joint, f"{c.drive:.4g}", f"{c.before:.4g}", f"{c.after:.4g}") for c in found.checks]
    blind = [quantity.title for quantity in found.unseen]
    blind += [f"{quantity.title} only in combination with others" for quantity in found.unsure]
    motion = found.motion
    about = (
        f"From {motion.path}: {motion.t[-1] - motion.t[0]:.4g} s, {found.about.replace('_', ' ')};"
        f" {found.sample_numbers[0]} samples for training, {found.sample_numbers[1]} for validation."
    )
    return PAGE.format(
        title=html.escape(f"Identification of {found.rig.run_spec.name}"),
        about=html.escape(about),
        numbers=_table(("number", "in the rig", "found", "95 %", "unit", ""), rows, 1, 4),
        blind="<ul>" + "".join(f"<li>{html.escape(text)}</li>" for text in blind or ["everything else is"]) + "</ul>",
        checks=_table(("joint", "drive", "unexplained before", "after"), checks, 1, 4),
        plot=base64.b64encode(_plot(found)).decode(),
    )


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]], first: int, last: int) -> str:
    """Columns `first` to `last` are numbers."""

    def cells(tag: str, texts: Sequence[str]) -> Iterator[str]:
        for k, text in enumerate(texts):
            kind = ' class="number"' if first <= k < last else ""
            yield f"<{tag}{kind}>{html.escape(text)}</{tag}>"

    lines = ["".join(cells("th", heading)), *("".join(cells("td", row)) for row in rows)]
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _plot(found: Identification) -> bytes:
    """PNG."""
    picture = io.BytesIO()
    styled(lambda: _figure(found).savefig(picture, format="png"))
    return picture.getvalue()


def _figure(found: Identification) -> Figure:
    from matplotlib.figure import Figure

    left = found.unexplained
    t, drives, before, after, names = left.t, left.drive, left.before, left.after, left.joints
    units = dict(zip(found.rig.joints, found.rig.plant.model.dof_units, strict=True))
    figure = Figure(figsize=(9.0, 1.7 * len(names) + 0.6), layout="constrained", dpi=110)
    rows: Any = figure.subplots(len(names), 1, sharex=True, squeeze=False)
    for k, (axes, name) in enumerate(zip(rows[:, 0], names, strict=True)):
        axes.axvspan(t[0], t[left.training - 1], color="#f3f5f7", zorder=0)
        axes.plot(t, drives[:, k], color=PALE, label="drive")
        axes.plot(t, before[:, k], color=RUST, linewidth=0.9, label="unexplained, rig")
        axes.plot(t, after[:, k], color=BLUE, linewidth=0.9, label="unexplained, found")
        axes.set_ylabel(f"{drawable(name)}\n{found.unit or ('N·m' if units[name] == 'rad' else 'N')}")
    rows[0, 0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, frameon=False)
    rows[-1, 0].set_xlabel("t, s")
    return figure
