"""The colours of all that is drawn of runs, readable on a light ground; most of them on a dark one too."""

from __future__ import annotations

# of texts and lines, from dark to light
INK, SOFT, FAINT, PALE, GRID = "#1c2229", "#3d4650", "#5c6670", "#9aa3ad", "#e6e9ed"
BLUE, RUST, GREEN, VIOLET = "#4a9ae8", "#c8420b", "#2f9e78", "#8a6bc8"
OCHRE, ROSE, TEAL, GREY = "#b98a1d", "#c2255c", "#1f9fb0", "#808b96"
PALETTE = (BLUE, RUST, GREEN, VIOLET, OCHRE, ROSE, TEAL, GREY)  # of curves beside each other
# colour of a curve -> the same one on a dark ground
DARK = {
    BLUE: "#6ea5ff",
    RUST: "#ff8a57",
    GREEN: "#52c796",
    VIOLET: "#b794f6",
    OCHRE: "#e0b34a",
    ROSE: "#f7769f",
    TEAL: "#4ecbdb",
    GREY: "#a3adb8",
}
