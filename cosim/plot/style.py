"""How pictures look, and the formats they are written in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cosim.errors import InputError

# suffix -> metadata: no date, so that equal runs give equal files
FORMATS: dict[str, dict[str, None]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}

INK, SOFT, FAINT, PALE = "#1c2229", "#3d4650", "#5c6670", "#9aa3ad"  # of words and lines, from dark to light
BLUE, RUST, ROSE, GREEN, VIOLET, OCHRE = "#4a9ae8", "#c8420b", "#c2255c", "#2f9e78", "#8a6bc8", "#b98a1d"

STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.edgecolor": PALE,
    "axes.labelcolor": SOFT,
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
    "text.color": INK,
    "xtick.color": PALE,
    "ytick.color": PALE,
    "xtick.labelcolor": SOFT,
    "ytick.labelcolor": SOFT,
    "lines.solid_capstyle": "round",
}


def check_format(path: str | Path) -> str:
    """The format that the suffix of `path` asks for. Raises InputError when it cannot be drawn."""
    form = Path(path).suffix.lower().removeprefix(".")
    if form not in FORMATS:
        raise InputError(f"cannot draw a plot as '.{form}'; use {', '.join(FORMATS)}", str(path))
    return form
