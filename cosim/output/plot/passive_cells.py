"""Cells of the plot of a run for what has a single curve or no row of its own: joints that move without effort and
reference, such as modes of elastic links, and the deflections of frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cosim.output.plot.curves import Samples, is_zero
from cosim.output.plot.joint_columns import ACTUAL, EFFORT, POSITION, TRACKING, PlotColumn
from cosim.output.plot.mechanism_panels import Panel, PanelCurve
from cosim.output.plot.style import BLUE, RUST, VIOLET

DEFLECTION = "x/deflection"  # ends the name of the first of three signals of a frame
AXES = {"x": VIOLET, "y": BLUE, "z": RUST}


def rows_and_cells(
    joints: Sequence[str], columns: Sequence[PlotColumn], signals: Mapping[str, Samples], units: Mapping[str, str]
) -> tuple[list[str], list[Panel]]:
    """(joints with rows, cells of the others and of the frames that deflect). At least one joint has a row."""
    passive = [joint for joint in joints if _is_passive(joint, columns, signals)]
    passive = passive if len(passive) < len(joints) else []
    cells = [
        Panel(joint, units.get(name, ""), [PanelCurve("actual", signals[name], ACTUAL)])
        for joint in passive
        for name in (f"{joint}/position",)
    ]
    frames = [name.removesuffix(DEFLECTION) for name in signals if name.endswith("." + DEFLECTION)]
    return [joint for joint in joints if joint not in passive], cells + [_deflection(f, signals, units) for f in frames]


def _is_passive(joint: str, columns: Sequence[PlotColumn], signals: Mapping[str, Samples]) -> bool:
    """Whether a joint moves without a reference, beside others that have one, under efforts that are all zero."""
    efforts = [signals[name] for name, _ in EFFORT.of(joint, signals)]
    moves = bool(POSITION.of(joint, signals)) and TRACKING in columns and not TRACKING.of(joint, signals)
    return moves and bool(efforts) and all(map(is_zero, efforts))


def _deflection(frame: str, signals: Mapping[str, Samples], units: Mapping[str, str]) -> Panel:
    """frame: its name and a dot."""
    names = {axis: f"{frame}{axis}/deflection" for axis in AXES}
    curves = [
        PanelCurve(axis, signals[name], {"color": AXES[axis], "linewidth": 1.5})
        for axis, name in names.items()
        if name in signals and not is_zero(signals[name])
    ]
    return Panel(f"deflection of {frame.removesuffix('.')}", units.get(names["x"], "m"), curves)
