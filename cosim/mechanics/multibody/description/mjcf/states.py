"""The states of a compiled model: its own pose, in which it begins, and its keyframes."""

from __future__ import annotations

import numpy as np

from cosim.mechanics.multibody.description.mjcf.compiled import CompiledModel, rotation_of
from cosim.mechanics.multibody.description.robot_file import NamedState

COORDINATES = {"free": 7, "spherical": 4}  # of others 1
VELOCITIES = {"free": 6, "spherical": 3}
NO_TURN = (0.0, 0.0, 0.0, 1.0)


def start_of(compiled: CompiledModel) -> NamedState:
    """The pose of the file: joints at their `ref`, free bodies where they are."""
    return _state(compiled, "start", compiled.model.qpos0, np.zeros(compiled.model.nv))


def keyframes_of(compiled: CompiledModel) -> tuple[NamedState, ...]:
    """Positions and velocities of the keyframes by name."""
    model = compiled.model
    return tuple(
        _state(compiled, compiled.name("KEY", k), model.key_qpos[k], model.key_qvel[k]) for k in range(model.nkey)
    )


def _state(compiled: CompiledModel, name: str, qpos: np.ndarray, qvel: np.ndarray) -> NamedState:
    positions, velocities = {}, {}
    for number in range(compiled.model.njnt):
        kind, joint = compiled.kind(number), compiled.joint(number)
        at, dof = compiled.model.jnt_qposadr[number], compiled.model.jnt_dofadr[number]
        q = np.array(qpos[at : at + COORDINATES.get(kind, 1)], dtype=float)
        v = np.array(qvel[dof : dof + VELOCITIES.get(kind, 1)], dtype=float)
        if kind in COORDINATES:
            w, *vector = (q[-4:] / np.linalg.norm(q[-4:])).tolist()
            q[-4:] = (*vector, w)
            if kind == "free":  # its linear velocity is along the axes of the world there, of the body here
                v[:3] = rotation_of(np.array([w, *vector])).T @ v[:3]
        if not np.array_equal(q, _neutral(kind)):
            positions[joint] = tuple(q.tolist())
        if v.any():
            velocities[joint] = tuple(v.tolist())
    return NamedState(name, positions, velocities, compiled.place("keyframe", name))


def _neutral(kind: str) -> np.ndarray:
    return np.array({"free": (0.0, 0.0, 0.0, *NO_TURN), "spherical": NO_TURN}.get(kind, (0.0,)))
