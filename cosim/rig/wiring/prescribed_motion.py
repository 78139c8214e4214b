"""The motion of prescribed joints, and what trajectories that are planned with the model know of the rig.

A motion is shaped for the elastic modes of the whole mechanism. So these trajectories are shaped when the plant is
there, those with equal `shaping` together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cosim.control.input_shaping import Shaping
from cosim.core import ops
from cosim.core.errors import InputErrors
from cosim.core.types import Array, Limits, MechanismModel, Numeric, Trajectory, TrajectoryContext, breaks_of
from cosim.mechanics.multibody.coordinates import ROTATION
from cosim.mechanics.multibody.given_rotation import GivenRotation
from cosim.mechanics.multibody.mechanism import GivenMotion
from cosim.rig.reading.contracts import load_given_motion, with_options
from cosim.rig.reading.plugins import Plugin, call_checked
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.rig_spec import RigSpec
from cosim.rig.wiring.initial_state import is_spherical_dof
from cosim.simulation.plant.breaks import motion_of, motion_of_rotation, velocity_jumps
from cosim.simulation.plant.plant import Plant


def prescribed_trajectories(spec: RigSpec, reading: Reading) -> dict[str, Trajectory]:
    """By dof, not yet shaped for modes; without those with an error, recorded in `reading`."""
    found: dict[str, Trajectory] = {}
    for name, joint in spec.joints.items():
        if joint.prescribed is None:
            continue
        path = ("joints", name, "prescribed")
        if is_spherical_dof(spec, name):
            what = f"'{name}' is one dof of '{spec.owners[name]}', which turns, and cannot be prescribed by itself"
            chain = "use mechanism.moving_base or a chain of revolute and prismatic joints"
            is_ball = list(spec.owners.values()).count(spec.owners[name]) == ROTATION.nv
            reading.fail(path, f"{what}; {f'give joints.{spec.owners[name]}.prescribed' if is_ball else chain}")
        plugin = joint.prescribed
        if _shaped_modes(plugin) is not None:
            plugin = plugin._replace(options=())
        start = np.array([joint.initial_position], dtype=float)
        if (trajectory := load_given_motion(plugin, name, start, path, reading)) is not None:
            found[name] = trajectory
    return found


def prescribed_rotations(spec: RigSpec, reading: Reading) -> dict[str, GivenRotation]:
    """By spherical joint; without those with an error, recorded in `reading`."""
    found: dict[str, GivenRotation] = {}
    for name, joint in spec.multi_dof_joints.items():
        if joint.prescribed is None:
            continue
        path = ("joints", name, "prescribed")
        start = np.array(joint.position or ROTATION.neutral, dtype=float)[-ROTATION.nq :]
        start = start / np.abs(start).max()  # so that its norm does not overflow
        keys = joint.prescribed
        make = partial(keys.rotation, start / np.linalg.norm(start), reading.folder)
        if (rotation := call_checked(make, path, reading)) is not None:
            found[name] = rotation
    return found


def with_shaped_motion(plant: Plant, spec: RigSpec, reading: Reading) -> Plant:
    """The plant with prescribed joints whose motion is shaped for modes.

    Raises InputErrors with the errors recorded in `reading`."""
    groups: dict[Shaping, list[str]] = {}
    for name in plant.prescribed:
        if (shaping := _shaped_modes(_plugin(spec, name))) is not None:
            groups.setdefault(shaping, []).append(name)
    for shaping, names in groups.items():
        model = plant.controller_model
        index = np.array([model.dof_index(name) for name in names])
        context = trajectory_context(plant, model, index, model.limits.at(index))
        together = JointlyPrescribed([plant.prescribed[name] for name in names])
        shape = partial(shaping.around, together, tuple(names), reading.folder, context)
        shaped = call_checked(shape, ("joints", names[0], "prescribed"), reading)
        if shaped is None:
            continue
        for k, name in enumerate(names):
            plugin = _plugin(spec, name)
            others = plugin._replace(options=tuple(one for one in plugin.options if one[0] != "shaping"))
            option = partial(with_options, others, PrescribedPart(shaped, k), (name,), reading)
            if (part := call_checked(option, ("joints", name, "prescribed"), reading)) is not None:
                plant = plant.with_prescribed({**plant.prescribed, name: part})
    if reading.errors:
        raise InputErrors(reading.errors)
    return plant


def check_jumps(plant: Plant, reading: Reading) -> None:
    """Record given motions whose velocity jumps beside real motors."""
    if not plant.real:
        return
    given = list[tuple[tuple[str, ...], Array]]()
    given += [
        (("joints", name, "prescribed"), velocity_jumps(item, motion_of(item)))
        for name, item in plant.prescribed.items()
    ]
    given += [
        (("joints", name, "prescribed"), velocity_jumps(item, motion_of_rotation(item)))
        for name, item in plant.rotations.items()
    ]
    for joint in plant.mechanism.joints:
        if isinstance(motion := joint.motion, GivenMotion):
            given.append((("mechanism", joint.name), velocity_jumps(motion, motion.sample)))
    for path, times in given:
        if len(times):
            what = f"its velocity jumps at {times[0]:.6g} s, and the real motor of '{plant.real[0]}' has no impulses"
            reading.fail(path, f"{what}; give a trajectory that starts and ends at rest")


def _plugin(spec: RigSpec, name: str) -> Plugin:
    plugin = spec.joints[name].prescribed
    assert plugin is not None
    return plugin


def _shaped_modes(plugin: Plugin) -> Shaping | None:
    """The input shaping of a trajectory, if it is for modes."""
    shaping = dict(plugin.options).get("shaping")
    return shaping if shaping is not None and shaping.modes is not None else None


def trajectory_context(plant: Plant, model: MechanismModel, index: Array, limits: Limits) -> TrajectoryContext:
    """What the trajectory of the n dofs `index` is planned with. model: of controllers; limits: (n,)."""
    driven = {*plant.actuated, *plant.prescribed_dofs, *plant.real}
    passive = [k for k, name in enumerate(model.dof_names) if name not in driven and k not in model.elastic_dofs]
    others = {model.dof_names.index(name): trajectory for name, trajectory in plant.prescribed_by_dof.items()}
    others = {dof: trajectory for dof, trajectory in others.items() if dof not in index}
    return TrajectoryContext(index, model, plant.start.q, limits, others, np.setdiff1d(passive, index).astype(int))


@dataclass(frozen=True, eq=False)
class JointlyPrescribed:
    """The trajectories of n dofs, one each, as one."""

    trajectories: Sequence[Trajectory]

    @property
    def end(self) -> float:
        return max(trajectory.end for trajectory in self.trajectories)

    @property
    def breaks(self) -> Array:
        return np.concatenate([breaks_of(trajectory) for trajectory in self.trajectories])

    def sample(self, t: Numeric) -> dict[str, Numeric]:
        samples = [trajectory.sample(t) for trajectory in self.trajectories]
        return {name: ops.concatenate([sample[name] for sample in samples]) for name in samples[0]}


@dataclass(frozen=True, eq=False)
class PrescribedPart:
    """Number k of the dofs of a trajectory."""

    trajectory: Trajectory
    k: int

    @property
    def end(self) -> float:
        return self.trajectory.end

    @property
    def breaks(self) -> Array:
        return breaks_of(self.trajectory)

    def sample(self, t: Numeric) -> dict[str, Numeric]:
        return {name: value[self.k : self.k + 1] for name, value in self.trajectory.sample(t).items()}
