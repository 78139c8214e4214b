"""`cosim derive --picture`: the mechanism of a rig or a robot, drawn in one or several postures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cosim.apps.derive.equations.command import mount_of
from cosim.apps.derive.equations.composition import compose
from cosim.apps.derive.graph_report import check_file
from cosim.apps.derive.mechanism_picture.pen import Pen
from cosim.apps.derive.mechanism_picture.planar import draw_planar
from cosim.apps.derive.mechanism_picture.sketch import Sketch, sketch_of
from cosim.apps.derive.mechanism_picture.spatial import draw_spatial
from cosim.apps.derive.mechanism_picture.stage import PosedSketch, Projection, stage_of, view_of
from cosim.apps.derive.plant_model import read_model
from cosim.apps.derive.tables import counted
from cosim.core import ops
from cosim.core.errors import InputError, shortened
from cosim.core.units import parse_quantity
from cosim.mechanics.multibody.assembly import close_loops
from cosim.mechanics.multibody.description.robot_formats import SUFFIXES, format_of
from cosim.mechanics.multibody.model import Model
from cosim.output.plot import save
from cosim.output.scene.build import scene_of
from cosim.output.scene.scene import Shape
from cosim.output.scene.sdf_visuals import read_sdf_visuals
from cosim.output.scene.visuals import read_visuals
from cosim.rig.rig import Rig, load_rig
from cosim.rig.scene import scene_of_rig

Posture = tuple[np.ndarray, float]  # coordinates (nq,), time [s]
MARGIN = 0.16  # in
PALEST = 0.3  # shade of the first of several postures
LAYERS = 20.0  # of drawing, of one posture


class Subject(NamedTuple):
    """What is drawn: its model, its start (nq,), the shapes of its `Scene`, and its rig if it has one."""

    model: Model
    start: np.ndarray
    shapes: Iterable[tuple[int, Shape]] = ()
    rig: Rig | None = None


def derive_picture(
    path: Path,
    file: Path | None,
    at: Sequence[str] = (),
    times: str = "",
    labels: bool = False,
    mount: Path | None = None,
    on: str | None = None,
) -> None:
    """Draw the mechanism of a rig or robot file into `file` (png, svg, pdf): at its start, a robot at position 0; else
    at positions such as `0.1, 0.2`, or at the times of a run such as `0, 0.5 s`; earlier postures are paler.

    labels: with names of joints and frames; mount: the file of a manipulator on the frame `on` of the mechanism.
    Raises InputErrors for errors in the rig or robot; InputError for invalid positions or times, a run with real
    motors, a mechanism without bodies, and a file that cannot be written.
    """
    if file is None:
        raise InputError("needs the file to draw, e.g. mechanism.svg", "--picture")
    check_file(file, path, "--picture")
    subject = _read(path)
    if mount is not None or on is not None:
        subject = _mounted(subject, *mount_of(mount, on))
    if times:
        postures = _run_of(subject, times)
    else:
        postures = [(closed(subject.model, text), 0.0) for text in at] or [(subject.start, 0.0)]
    sketch, view, poses = pictured(subject.model, postures, subject.shapes)
    if not sketch.bodies:
        raise InputError("nothing moves in this mechanism; there is no picture", str(path))
    plot_mechanism(file, sketch, view, poses, labels)
    shown = counted(len(postures), "posture")
    print(f"{sketch.name}: {'planar' if view.planar else 'spatial'}, {counted(len(sketch.joints), 'joint')}, {shown}")
    print(f"wrote    picture {file}")


def _read(path: Path) -> Subject:
    if path.suffix.lower() not in SUFFIXES:
        rig = load_rig(path)
        rig.require_joints("cosim derive")
        return Subject(rig.plant.model, rig.plant.start.q, list(scene_of_rig(rig).shapes), rig)
    model = read_model(path)
    format = format_of(path)
    visuals = read_visuals(path, {}, ())[0] if format == "urdf" else {}
    if format == "sdf":
        visuals = read_sdf_visuals(path, None, ())[0]
    return Subject(model, model.neutral(), list(scene_of(model, model.neutral(), (), visuals).shapes))


def _mounted(platform: Subject, mount: Path, on: str) -> Subject:
    """Both in one, without the visuals of their files."""
    manipulator = _read(mount)
    both = compose(platform.model, manipulator.model, on)
    start = np.zeros(both.joined.nq)
    for part, places in zip((platform, manipulator), both.coordinates, strict=True):
        start[places] = part.start
    return Subject(both.joined, start)


def _run_of(subject: Subject, times: str) -> list[Posture]:
    if subject.rig is None:
        raise InputError("gives times of the run of a rig, and a robot file has none; pass --at", "--times")
    return run_postures(subject.rig, read_times(times))


def pictured(
    model: Model, postures: Sequence[Posture], shapes: Iterable[tuple[int, Shape]] = ()
) -> tuple[Sketch, Projection, np.ndarray]:
    """The sketch of a model, the view on it, and the poses (m, n + 1, 3, 4) of the ground and the bodies of
    `model.drawn`. shapes: see `sketch_of`."""
    model = model.drawn
    sketch = sketch_of(model, shapes)
    poses = np.array([_poses(model, q, t) for q, t in postures])
    return sketch, view_of(sketch, poses[0], model.gravity), poses


def _poses(model: Model, q: np.ndarray, t: float) -> np.ndarray:
    bodies = model.body_poses(q, t) if model.equations.timed else model.body_poses(q)
    return np.concatenate([np.eye(4)[None, :3], bodies])


def closed(model: Model, text: str) -> np.ndarray:
    """(nq,): positions such as `0.1, 0.2`, with loops closed next to them; modes may be left out, but only all of them.
    Raises InputError."""
    try:
        q = np.array([float(word) for word in text.split(",")])
    except ValueError:
        q = np.zeros(0)
    modes = {model.dof_names[k] for k in model.elastic_dofs}
    given = [k for k, name in enumerate(model.coordinate_names) if len(q) == model.nq or name not in modes]
    if len(q) != len(given) or not np.isfinite(q).all():
        names = ", ".join(model.coordinate_names)
        what = f"expected {counted(model.nq, 'position')}, of {names}"
        what += f", or {len(given)} without modes of elastic links" if modes else ""
        raise InputError(f"{what}, got '{shortened(text)}'", "--at")
    q = ops.set_at(np.zeros(model.nq), given, q)
    try:
        return close_loops(model, q, np.zeros(model.nv, dtype=bool))
    except InputError as error:
        raise InputError(f"{error.what} near '{shortened(text)}'", "--at") from None


def read_times(text: str) -> list[float]:
    """Times [s] from text such as `0, 0.5, 800 ms`. Raises InputError."""
    try:
        found = [parse_quantity(word, "s") for word in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 0.0:
        raise InputError(f"expected times such as '0, 0.5, 800 ms', got '{shortened(text)}'", "--times")
    return found


def run_postures(rig: Rig, times: Sequence[float]) -> list[Posture]:
    """The postures of a run at the recorded instants nearest to times [s]. Raises InputError for real motors."""
    if rig.hardware:
        raise InputError("would switch real motors on; pass --at, or a rig without drivers", "--times")
    run = rig.run(max(times), keep="all")
    q = np.column_stack([run[f"{name}/position"] for name in rig.plant.model.coordinate_names])
    rows = [int(np.abs(run.t - time).argmin()) for time in times]
    return [(q[row], float(run.t[row])) for row in rows]


def plot_mechanism(path: str | Path, sketch: Sketch, view: Projection, poses: np.ndarray, labels: bool = False) -> None:
    """Draw into a png, svg or pdf file, by the suffix of `path`.

    poses: (m, n + 1, 3, 4) of the ground and the bodies in m postures, earlier ones paler; labels: names of joints and
    frames. Raises InputError as `save` does.
    """
    stage = stage_of(sketch, view, poses)
    save(path, lambda: figure_of(stage, labels), "picture", {"svg.hashsalt": "mechanism"})


def figure_of(stage: PosedSketch, labels: bool) -> Any:
    """The figure of matplotlib, in inches: a point of a body lies where `stage.at` has it."""
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    shades = np.linspace(PALEST, 1.0, len(stage.poses)) ** 1.3 if len(stage.poses) > 1 else np.ones(1)
    pens = [Pen(axes, float(shade), LAYERS * (k + 1)) for k, shade in enumerate(shades)]
    draw = draw_planar if stage.view.planar else draw_spatial
    draw(stage, pens, Pen(axes), labels)
    low, high = np.array(axes.dataLim.min) - MARGIN, np.array(axes.dataLim.max) + MARGIN
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    figure.set_size_inches(*(high - low))
    return figure
