"""What a rig takes over of a compiled MJCF file, and what of it is lost.

Format: the MuJoCo XML reference, https://mujoco.readthedocs.io/en/stable/XMLreference.html.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cosim.core.errors import plural
from cosim.mechanics.multibody.description.mjcf.actuators import actuators_of, one_sided
from cosim.mechanics.multibody.description.mjcf.collisions import collisions_of
from cosim.mechanics.multibody.description.mjcf.compiled import CompiledModel
from cosim.mechanics.multibody.description.mjcf.contacts import contacts_of
from cosim.mechanics.multibody.description.mjcf.equality import Equalities
from cosim.mechanics.multibody.description.mjcf.states import keyframes_of, start_of
from cosim.mechanics.multibody.description.mjcf.tendons import rotors_of, springs_of
from cosim.mechanics.multibody.description.mjcf.tree import MjcfTree
from cosim.mechanics.multibody.description.robot_file import RobotFile
from cosim.mechanics.multibody.description.topology import build_mechanism

# count of the compiled model -> what is dropped
NOT_READ = {"nflex": "flexible object", "nplugin": "plugin"}


def read_mjcf(path: str | Path) -> RobotFile:
    """What the MJCF file at `path` states; armature is the rotor inertia of its joints.

    Raises InputErrors for a file that MuJoCo refuses, and where the package `mujoco` is missing.
    """
    compiled = CompiledModel.of(path)
    compiled.refuse_not_finite()
    tree, equalities = MjcfTree(compiled), Equalities(compiled)
    springs, forces = springs_of(compiled)
    _warn_of_the_rest(compiled)
    contacts_of(compiled)
    compiled.diagnostics.angles.extend(compiled.source.angles())
    mechanism = build_mechanism(
        compiled.title,
        tree.links,
        equalities.followed(tree.joints),
        compiled.diagnostics,
        equalities.loops,
        equalities.constraints,
        springs,
        forces=[*tree.forces, *forces],
        rotors=rotors_of(compiled),
    )
    return RobotFile(
        mechanism,
        gravity_of(compiled),
        actuators_of(compiled, equalities.mimics),
        start_of(compiled),
        keyframes_of(compiled),
        efforts=one_sided(compiled),
        carried=_carried(compiled),
        gravity_place=compiled.section("option"),
        collisions=collisions_of(compiled),
    )


def gravity_of(compiled: CompiledModel) -> tuple[float, float, float]:
    """The gravity of the file [m/s²], 0 where a flag disables it."""
    x, y, z = (0.0, 0.0, 0.0) if compiled.disables("GRAVITY") else compiled.model.opt.gravity.tolist()
    return x, y, z


def _carried(compiled: CompiledModel) -> dict[str, float]:
    """Body -> `gravcomp`, the part of its weight that is compensated."""
    model = compiled.model
    if any(np.ravel(getattr(model, "jnt_actgravcomp", []))):
        what = "gravity compensation of a body acts beside the actuators here, not through them (actuatorgravcomp)"
        compiled.warn(what)
    found = ((compiled.name("BODY", body), float(model.body_gravcomp[body])) for body in range(1, model.nbody))
    return {name: part for name, part in found if part}


def _warn_of_the_rest(compiled: CompiledModel) -> None:
    model = compiled.model
    counts = {word: int(getattr(model, key, 0)) for key, word in NOT_READ.items()}
    dropped = [f"{n} {plural(n, word)}" for word, n in counts.items() if n]
    if dropped:
        compiled.warn(f"dropped: {', '.join(dropped)}")
    if model.opt.density or model.opt.viscosity:
        what = "the forces of the fluid (density, viscosity, wind) are not taken; use mechanism.forces for drag"
        compiled.diagnostics.warn(what, compiled.section("option"))
