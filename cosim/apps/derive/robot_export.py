"""`cosim export model`: the mechanism of a rig or a robot file as URDF, MJCF or SDF."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from cosim.apps.derive.graph_report import keep_files_of, read_robot_file
from cosim.core.errors import InputError, plural
from cosim.core.types import Array
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.assembly import close_loops
from cosim.mechanics.multibody.coordinates import rotation_of
from cosim.mechanics.multibody.description.export.writer import ENDINGS, robot_text
from cosim.mechanics.multibody.description.robot_file import RobotFile
from cosim.mechanics.multibody.description.robot_formats import SUFFIXES
from cosim.mechanics.multibody.mechanism import Joint, Mechanism, Pose
from cosim.output.output_files import check_output, write_file
from cosim.rig.reading.yaml_source import Override
from cosim.rig.rig import load_rig
from cosim.rig.sections.rig_spec import RigSpec

CLOSED = 1e-9  # m or rad: residual of loops that are closed
LIMITS = {"lower": "lower", "upper": "upper", "velocity": "max_velocity", "effort": "max_effort"}


def export_model(source: Path, output: Path, overrides: Iterable[Override] = ()) -> None:
    """Write the file and print what it is, and what the format cannot say.

    Raises InputError for errors in the source, for an output that cannot be written or would overwrite one of its
    files, and for what the format cannot say and without which it would be another mechanism.
    """
    check_output(output, "-o", tuple(ENDINGS))
    keep_files_of(source, output, "-o")
    model, start, file = _read(source, overrides)
    try:
        written = robot_text(
            _with_file(model.mechanism, file),
            output.suffix.lower(),
            model.gravity.tolist(),
            {name: float(inertia) for name, inertia in model.drive_rotors.items()},
            file.carried if file is not None else {},
            {name: _pose(q) for joint, name, q in _coordinates(model, start) if joint.kind == "free"},
            _positions(model, start),
        )
    except InputError as error:
        raise InputError(error.what, error.place or str(source)) from None
    write_file(output, written.text.encode(), "model")
    title, links, moving = ENDINGS[output.suffix.lower()].title, len(model.mechanism.links), len(model.joint_names)
    parts = f"{links} {plural(links, 'link')}, {moving} moving {plural(moving, 'joint')}"
    print(f"wrote    {output}: {title}, {parts}")
    for line in written.notes:
        print(f"note     {line}")
    for line in written.lost:
        print(f"warning  {line}")


def _read(source: Path, overrides: Iterable[Override]) -> tuple[Model, Array, RobotFile | None]:
    """(the model with its limits, the positions at the start, the robot file)."""
    if source.suffix.lower() in SUFFIXES:
        if list(overrides):
            raise InputError("replaces a value of a rig, and a robot file has none; name a rig", "--set")
        robot = read_robot_file(source)
        gravity = robot.gravity_or(None)
        model = Model(robot.under(gravity), gravity)
        return model, _start_of_file(model, robot), robot
    rig = load_rig(source, overrides)
    rig.require_joints("cosim export model")
    model = rig.plant.model
    limited = _with_limits(model.mechanism, rig.spec)
    found = Model(limited, model.gravity.tolist(), model.drive_rotors)
    return found, np.asarray(rig.plant.start.q), rig.spec.mechanism.file


def _with_limits(mechanism: Mechanism, spec: RigSpec) -> Mechanism:
    """With the limits that the rig gives its joints."""

    def limited(joint: Joint) -> Joint:
        own = spec.joints.get(joint.name)
        given = {} if own is None else {LIMITS[key]: bound for key, bound in own.limits.items() if key in LIMITS}
        return replace(joint, **{key: bound for key, bound in given.items() if math.isfinite(bound)})

    loops = tuple(replace(loop, joint=limited(loop.joint)) for loop in mechanism.loops)
    return replace(mechanism, joints=tuple(map(limited, mechanism.joints)), loops=loops)


def _with_file(mechanism: Mechanism, file: RobotFile | None) -> Mechanism:
    """Without the forces that carry links of the robot file, which formats have words for."""
    if file is None or not file.carried:
        return mechanism
    own = {force.name for force in file.mechanism.forces}
    carrying = {force.name for force in file.under((0.0, 0.0, -1.0)).forces} - own
    return replace(mechanism, forces=tuple(force for force in mechanism.forces if force.name not in carrying))


def _start_of_file(model: Model, robot: RobotFile) -> Array:
    """The positions in which a robot file begins, with its loops closed."""
    q = np.array(model.neutral(), dtype=float)
    for joint, name, part in _coordinates(model, q):
        given = robot.start.positions.get(name) if robot.start is not None else None
        if given is not None and joint.kind != "fixed":
            part[:] = given
    return close_loops(model, q, np.zeros(model.nv, dtype=bool)) if _open(model, q) else q


def _open(model: Model, q: Array) -> bool:
    """Whether loops or constraints are not closed there."""
    if not model.constraint_rows:
        return False
    residual = model.constraint_violation(q, np.zeros(model.nv), *([0.0] if model.timed else []))[0]
    return float(np.abs(residual).max(initial=0.0)) > CLOSED


def _positions(model: Model, start: Array) -> dict[str, float | Array]:
    """Joint -> coordinate or quaternion of a pose in which loops are closed: where all are 0, else the start."""
    if not model.mechanism.loops or not _open(model, np.array(model.neutral(), dtype=float)):
        return {}
    found = ((joint, name, q) for joint, name, q in _coordinates(model, start) if joint.kind != "free")
    return {name: float(q[0]) if len(q) == 1 else q for _, name, q in found if len(q)}


def _coordinates(model: Model, q: Array) -> Iterator[tuple[Joint, str, Array]]:
    """(joint, its name, its part of the coordinates)."""
    first = 0
    for joint, kind in zip(model.joints, model.kinds, strict=True):
        yield joint, joint.name, q[first : first + kind.nq]
        first += kind.nq


def _pose(q: Array) -> Pose:
    return Pose(np.array(rotation_of(q[3:])), np.array(q[:3]))
