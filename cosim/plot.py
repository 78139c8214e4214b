"""The picture of a run: one row per joint, columns for position, effort and tracking error."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cosim.errors import InputError

MAX_JOINTS = 8
PIXEL_COLUMNS = 800  # points are thinned to the lowest and highest of each
LARGEST = 1e100  # of a run that diverged; axes of larger numbers overflow
LETTERS = {13.0: 7.0, 9.5: 11.0, 8.5: 12.5}  # that fit into an inch, by size of the letters in points
LINE = 1.5 / 72.0  # inches from line to line per point of size

# suffix -> metadata: no date, so that equal runs give equal files
FORMATS: dict[str, dict[str, None]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}

STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.edgecolor": "#9aa3ad",
    "axes.labelcolor": "#3d4650",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.limits": (-3, 4),
    "axes.formatter.use_mathtext": True,
    "axes.formatter.useoffset": False,
    "grid.color": "#e6e9ed",
    "grid.linewidth": 0.7,
    "text.color": "#1c2229",
    "xtick.color": "#9aa3ad",
    "ytick.color": "#9aa3ad",
    "xtick.labelcolor": "#3d4650",
    "ytick.labelcolor": "#3d4650",
    "lines.solid_capstyle": "round",
}
ACTUAL = {"label": "actual", "color": "#4a9ae8", "linewidth": 1.8, "zorder": 2}
COMMANDED = {"label": "commanded", "color": "#c8420b", "linewidth": 0.8, "zorder": 3}
REFERENCE = {"label": "reference", "color": "#1c2229", "linewidth": 1.0, "dashes": (4, 2.5), "zorder": 4}
ERROR = {"label": "reference − actual", "color": "#c2255c", "linewidth": 1.2, "zorder": 2}


@dataclass(frozen=True)
class Column:
    """A column of axes: its title and, by interface, how the curves are drawn; the first gives the unit."""

    title: str
    curves: dict[str, dict[str, Any]]
    missing: str = "not recorded"  # what stands where a joint has none of them

    def of(self, joint: str, signals: Mapping[str, np.ndarray]) -> list[tuple[str, dict[str, Any]]]:
        """(signal, style) of the curves that were recorded of a joint."""
        return [(f"{joint}/{i}", style) for i, style in self.curves.items() if f"{joint}/{i}" in signals]


POSITION = Column("position", {"position": ACTUAL, "reference_position": REFERENCE})
EFFORT = Column("effort", {"effort": ACTUAL, "command_effort": COMMANDED})
TRACKING = Column("tracking error", {"position_error": ERROR}, missing="no reference")
VELOCITY = Column("velocity", {"velocity": ACTUAL, "reference_velocity": REFERENCE})


def plot_run(
    path: str | Path,
    t: np.ndarray,
    signals: Mapping[str, np.ndarray],
    joints: Sequence[str],
    title: str,
    units: Mapping[str, str],
    note: str = "",
    description: str = "",
) -> None:
    """Draw a run into a png, svg or pdf file, by the suffix of `path`.

    t (k,) in s; signals: `<joint>/<interface>` -> (k,), in the unit that `units` gives for the same name.
    `title` and, smaller, `description` stand above the legend, in as many lines as they need.
    The third column is the tracking error, or the velocity when no joint has a reference. What was not
    recorded is left out, and so are efforts that are all zero. Of more than 8 joints the first 8 are drawn
    and the footer, which also holds `note`, says so.

    Raises InputError for another suffix, a path that cannot be written, or signals with nothing to draw.
    """
    form = check_format(path)

    import matplotlib

    shown = joints[:MAX_JOINTS]
    signals = {**signals, **_position_errors(shown, signals)}
    units = {**units, **{f"{joint}/position_error": units.get(f"{joint}/position", "") for joint in shown}}
    tracked = any(TRACKING.of(joint, signals) for joint in shown)
    columns = [POSITION, EFFORT, TRACKING if tracked else VELOCITY]
    columns = [c for c in columns if _worth(c, shown, signals)]
    if not columns:
        raise InputError("nothing to plot; no joint has a position, velocity or effort", str(path))
    if len(shown) < len(joints):
        note = "  ·  ".join(filter(None, [note, f"the first {len(shown)} of {len(joints)} joints"]))

    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # a user's own matplotlibrc does not change the picture
        for key, value in STYLE.items():
            matplotlib.rcParams[key] = value
        figure = _draw(t, signals, shown, columns, (title, description, note), units)
        try:
            figure.savefig(path, format=form, dpi=130, metadata=FORMATS[form])
        except OSError as cause:
            mend = "name a file in a folder that exists and that you may write to"
            raise InputError(f"cannot write the plot: {cause.strerror}; {mend}", str(path)) from cause


def check_format(path: str | Path) -> str:
    """The format that the suffix of `path` asks for. Raises InputError when it cannot be drawn."""
    form = Path(path).suffix.lower().removeprefix(".")
    if form not in FORMATS:
        raise InputError(f"cannot draw a plot as '.{form}'; use {', '.join(FORMATS)}", str(path))
    return form


def _worth(column: Column, joints: Sequence[str], signals: Mapping[str, np.ndarray]) -> bool:
    """Whether a column has curves; joints that all swing freely have no efforts to look at."""
    curves = [signals[signal] for joint in joints for signal, _ in column.of(joint, signals)]
    return any(map(np.any, curves)) if column is EFFORT else bool(curves)


def _position_errors(joints: Sequence[str], signals: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    pairs = {j: (signals.get(f"{j}/reference_position"), signals.get(f"{j}/position")) for j in joints}
    return {f"{j}/position_error": r - q for j, (r, q) in pairs.items() if r is not None and q is not None}


def _draw(
    t: np.ndarray,
    signals: Mapping[str, np.ndarray],
    joints: Sequence[str],
    columns: Sequence[Column],
    words: tuple[str, str, str],
    units: Mapping[str, str],
) -> Any:
    """The figure; words: title, description and note."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    # all sizes in inches; a lone joint gets a taller row, a lone column a wider one
    row_height = 1.5 + 1.4 / len(joints)
    width = 0.6 + max(8.0, 4.1 * len(columns))
    title, description, footer = (
        _Lines.of(text, size, width) for text, size in zip(words, (13.0, 9.5, 8.5), strict=True)
    )
    heading = 0.12 + title.height + description.height
    head, foot = heading + 0.32, 0.12 + footer.height
    height = head + row_height * len(joints) + foot
    rows = (0.0, foot / height, 1.0, 1.0 - (head + foot) / height)  # left, bottom, width, height: fractions
    layout = ConstrainedLayoutEngine(rect=rows, w_pad=0.08, h_pad=0.05, wspace=0.0, hspace=0.0)
    figure = Figure(figsize=(width, height), layout=layout)
    # the first column of the grid holds the names of the joints
    grid = figure.add_gridspec(len(joints), 1 + len(columns), width_ratios=[0.06, *[1.0] * len(columns)])
    handles: dict[str, Any] = {}
    first = None
    for row, joint in enumerate(joints):
        _name_row(figure.add_subplot(grid[row, 0]), joint, row_height)
        for place, column in enumerate(columns, start=1):
            axes = first = figure.add_subplot(grid[row, place], sharex=first)
            curves = column.of(joint, signals)
            for signal, style in curves:
                x, y = thin(t, signals[signal], PIXEL_COLUMNS)
                (line,) = axes.plot(x, y, **style)
                handles.setdefault(style["label"], line)
            if curves:
                _dress(axes, units.get(curves[0][0], ""))
            else:
                _leave(axes, column.missing)
            axes.tick_params(labelbottom=row == len(joints) - 1)
            if row == 0:
                axes.set_title(column.title, fontsize=9.5, color="#3d4650", pad=8)
            if row == len(joints) - 1:
                axes.set_xlabel("time [s]")
    figure.align_ylabels()
    title.write(figure, 0.12, weight="bold")
    description.write(figure, 0.12 + title.height, color="#3d4650")
    footer.write(figure, height - 0.06 - footer.height, color="#5c6670")
    figure.legend(
        handles.values(), handles, loc="upper left", bbox_to_anchor=(0.0, 1.0 - heading / height),
        ncols=len(handles), frameon=False, handlelength=2.6,
    )  # fmt: skip
    return figure


@dataclass(frozen=True)
class _Lines:
    """A text in as many lines as it needs to stay on the picture."""

    lines: list[str]
    size: float  # points

    @classmethod
    def of(cls, text: str, size: float, width: float) -> _Lines:
        """width: of the picture, inches."""
        return cls(textwrap.wrap(text, int(LETTERS[size] * (width - 0.24))), size)

    @property
    def height(self) -> float:
        """inches"""
        return LINE * self.size * len(self.lines)

    def write(self, figure: Any, top: float, **style: Any) -> None:
        """top: inches from the upper edge."""
        width, height = figure.get_size_inches()
        x, y = 0.12 / width, 1.0 - top / height
        figure.text(x, y, "\n".join(self.lines), va="top", fontsize=self.size, parse_math=False, **style)


def _name_row(axes: Any, joint: str, row_height: float) -> None:
    axes.set_axis_off()
    fitting = 72.0 * row_height / (0.65 * len(joint))  # points; a letter is about 0.65 of its size wide
    axes.text(
        0.5, 0.5, joint, rotation=90, ha="center", va="center", fontweight="bold",
        fontsize=min(10.0, fitting), parse_math=False, transform=axes.transAxes,
    )  # fmt: skip


def _leave(axes: Any, why: str) -> None:
    """Say why axes have no curve."""
    axes.set_yticks([])
    axes.text(0.5, 0.5, why, ha="center", color="#9aa3ad", transform=axes.transAxes)


def _dress(axes: Any, unit: str) -> None:
    """Label, margins and range of axes with curves."""
    axes.margins(x=0.0, y=0.08)
    axes.yaxis.get_offset_text().set(fontsize=8, color="#3d4650")
    axes.set_ylabel(unit.replace("*", "·").replace("^2", "²"))
    axes.locator_params(axis="y", nbins=6)
    low, high = axes.get_ylim()
    middle = 0.5 * (low + high)
    # a curve that is flat but for rounding is drawn flat
    half = max(0.5 * (high - low), 1e-5 * abs(middle), 1e-12)
    axes.set_ylim(middle - half, middle + half)


def thin(x: np.ndarray, y: np.ndarray, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """At most 2·columns points of the curve (x, y), both (k,), that draw the same picture.

    Of every stretch the lowest and the highest point stay, so that no peak is lost. Values that are not
    finite, or beyond `LARGEST`, become NaN, a gap in the curve.
    """
    y = np.where(np.abs(y) <= LARGEST, y, np.nan)
    width = -(-len(y) // columns)
    if width <= 2:
        return x, y
    stretches = np.full(-(-len(y) // width) * width, np.nan)
    stretches[: len(y)] = y
    stretches = stretches.reshape(-1, width)
    gaps = np.isnan(stretches)
    lowest = np.where(gaps, np.inf, stretches).argmin(axis=1)
    highest = np.where(gaps, -np.inf, stretches).argmax(axis=1)
    starts = np.arange(len(stretches)) * width
    keep = np.unique([starts + lowest, starts + highest])
    return x[keep], y[keep]
