"""Charts of the drives: what was measured beside what the numbers predict, and on what the residual depends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim.apps.identification.base_numbers import BaseNumber
from cosim.apps.identification.intervals import INTERVAL
from cosim.apps.identification.results import Identification, Unexplained
from cosim.core.types import Array
from cosim.core.units import unit_sign
from cosim.output.palette import BLUE, INK, PALE, PALETTE, RUST
from cosim.output.svg_chart import SvgChart

WIDE, HIGH = 960, 200  # pixels of a chart over time
NARROW = 314  # … of three beside each other
MOST_DOTS = 1200  # of a chart
MOST_ROWS = 40  # numbers of a chart
FARTHEST = 4.0  # half intervals from the number of all recordings, at which dots are drawn that lie farther
COLORS = {
    "measured": INK,
    "predicted, and residual in the check": RUST,
    "training": PALE,
    "prediction by the rig": BLUE,
}


@dataclass(frozen=True)
class ResidualBand:
    """Of a joint the half width that holds INTERVAL of its samples in training, and which part it holds of the check;
    NaN of a joint at rest."""

    half: float
    inside: float


def bands_of(found: Identification) -> list[ResidualBand]:
    bands = []
    for check in found.checks:
        trained, checked = (np.abs(found.counted("after", check.joint, training)) for training in (True, False))
        half = float(np.quantile(trained, INTERVAL)) if trained.size else float("nan")
        bands.append(ResidualBand(half, float(np.mean(checked <= half)) if checked.size else float("nan")))
    return bands


def draw_drive(found: Identification, left: Unexplained, joint: int, band: ResidualBand) -> SvgChart:
    name = left.joints[joint]
    chart = SvgChart(f"{name} [{unit_sign(found.unit_of(name))}]", "time [s]", WIDE, HIGH)
    if left.training:
        chart.shade(float(left.t[0]), float(left.t[left.training - 1]))
    measured, predicted = left.drive[:, joint], left.drive[:, joint] - left.residual[:, joint]
    if np.isfinite(band.half):
        chart.band(left.t, predicted - band.half, predicted + band.half, RUST, "95 %")
    chart.line(left.t, left.drive[:, joint] + left.before[:, joint], BLUE, "by the rig", dashed=True, width=0.8)
    chart.line(left.t, measured, INK, "measured", width=1.2)
    chart.line(left.t, predicted, RUST, "predicted", width=1.2)
    return chart


def draw_residual(found: Identification, left: Unexplained, joint: int) -> list[SvgChart]:
    """Over speed, over the load in the direction of motion, and its spectrum."""
    name = left.joints[joint]
    unit = unit_sign(found.unit_of(name))
    of_joint = dict(zip(found.rig.joints, found.rig.plant.model.dof_units, strict=True))[name]
    over_speed = SvgChart(f"residual [{unit}]", f"speed [{unit_sign(of_joint)}/s]", NARROW, HIGH)
    over_load = SvgChart(f"residual [{unit}]", f"|drive| · direction of motion [{unit}]", NARROW, HIGH)
    of_training = [(of, slice(0, of.training)) for of in found.unexplained if of.training]
    for parts, color in ((of_training, PALE), ([(left, slice(left.training, None))], RUST)):
        speed, drive, residual = _counted(parts, joint)
        over_speed.dots(speed, residual, color, radius=1.0)
        over_load.dots(np.abs(drive) * np.sign(speed), residual, color, radius=1.0)
    for chart in (over_speed, over_load):
        chart.level(0.0)
    return [over_speed, over_load, _draw_spectrum(found, left, joint, unit)]


def _draw_spectrum(found: Identification, left: Unexplained, joint: int, unit: str) -> SvgChart:
    of = left.spectrum
    chart = SvgChart(f"spectrum [{unit}/√Hz]", "frequency [Hz]", NARROW, HIGH, log=(True, True))
    if found.cutoff is not None and found.cutoff < of.frequency[-1]:
        chart.shade(found.cutoff, float(of.frequency[-1]))
    chart.line(of.frequency, of.drive[:, joint], INK, width=1.0)
    chart.line(of.frequency, of.left[:, joint], RUST, width=1.2)
    return chart


def draw_recordings(numbers: Sequence[BaseNumber]) -> SvgChart:
    """A row for each number, a dot for each recording."""
    shown = sorted(numbers, key=lambda number: -number.fraction)[:MOST_ROWS]
    names = [number.short for number in shown]
    chart = SvgChart("", "half intervals from the number of all recordings", WIDE, 60 + 18 * len(shown))
    chart.shade(-1.0, 1.0)
    rows = np.arange(len(shown), dtype=float)
    count = len(shown[0].alone)
    for k in range(count):
        away = np.array([(number.alone[k] - number.value) / max(number.interval, 1e-300) for number in shown])
        name = f"{k + 1}" if count <= len(PALETTE) else ""  # more have no colours of their own
        chart.dots(np.clip(away, -FARTHEST, FARTHEST), rows, PALETTE[k % len(PALETTE)], name, radius=3.0)
    chart.set_range(x=(-1.05 * FARTHEST, 1.05 * FARTHEST))
    chart.name_rows(names)
    return chart


def _counted(parts: Sequence[tuple[Unexplained, slice]], joint: int) -> tuple[Array, Array, Array]:
    """(speed, drive, residual) where they count, MOST_DOTS of each at most."""
    rows = [
        np.column_stack([of.speed[part, joint], of.drive[part, joint], of.residual[part, joint]])[
            of.counted[part, joint]
        ]
        for of, part in parts
    ]
    found = np.concatenate([np.zeros((0, 3)), *rows])
    speed, drive, residual = found[:: -(-len(found) // MOST_DOTS) or 1].T
    return speed, drive, residual
