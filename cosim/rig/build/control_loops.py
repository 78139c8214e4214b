"""The control loops of a rig: its controllers with their trajectories and fallbacks, checked against the mechanism."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosim.control.control_loop import ControlLoop
from cosim.control.limits import LIMITS
from cosim.errors import InputError
from cosim.plant.plant import Plant
from cosim.rig.build.driver_context import drive_controlled
from cosim.rig.build.initial_state import is_spherical_dof
from cosim.rig.reading.contracts import check_controller, load_trajectory
from cosim.rig.reading.plugins import Plugin, call_checked
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.controllers import ControllerSpec
from cosim.rig.sections.rig_spec import RigSpec
from cosim.types import Array, Controller, ControllerContext, Limits, Numeric, Trajectory, TrajectoryContext


def build_loops(spec: RigSpec, plant: Plant, limits: Limits, reading: Reading) -> list[ControlLoop | None]:
    """One loop per controller, in the order of the file; None after an error, recorded in `reading`. limits: (nv,)."""
    return [_loop(k, controller, spec, plant, limits, reading) for k, controller in enumerate(spec.controllers)]


def _loop(
    number: int, controller: ControllerSpec, spec: RigSpec, plant: Plant, limits: Limits, reading: Reading
) -> ControlLoop | None:
    context = controller_context(controller, spec, plant, limits)
    index = context.index
    start = plant.start_positions[index]
    path, plugin = ("controllers", number), controller.trajectory
    trajectory: Trajectory | None = None
    if plugin is not None:
        planning = TrajectoryContext(index, context.model, plant.start.q, context.limits)
        trajectory = load_trajectory(plugin, controller.joints, start, (*path, "trajectory"), reading, planning)
    reference = trajectory or HoldTrajectory(start)

    def load(plugin: Plugin) -> Controller:
        block = plugin.module.load(plugin.params, context)
        check_controller(block, len(index), len(spec.joints))
        _check_positions(block, controller.joints, spec)
        return block

    def make() -> ControlLoop:
        block = load(controller.plugin)
        fallback = None if controller.fallback is None else load(controller.fallback)
        timing = (controller.phase, controller.priority, controller.deadline_ns)
        return ControlLoop(
            controller.name, block, index, controller.ticks, reference, *timing, fallback, plant.modes.locks
        )

    return call_checked(make, path, reading)


def controller_context(controller: ControllerSpec, spec: RigSpec, plant: Plant, limits: Limits) -> ControllerContext:
    """What a controller is loaded with. limits: (nv,)."""
    names = list(spec.joints)
    index = np.array([names.index(name) for name in controller.joints], dtype=int)
    closed = drive_controlled(plant, spec.drivers)
    return ControllerContext(
        joints=controller.joints,
        index=index,
        model=plant.controller_model,
        period=controller.period_ns * 1e-9,
        limits=limits.at(index),
        prescribed=~plant.unprescribed,
        drive_controlled=tuple(name for name in controller.joints if name in closed),
    )


def _check_positions(block: Controller, joints: Sequence[str], spec: RigSpec) -> None:
    """Raises InputError for a followed position whose rate is not the measured velocity."""
    for name in joints:
        if is_spherical_dof(spec, name) and {"position", "reference_position"} & set(block.inputs):
            what = f"the position of '{name}' cannot be followed: '{spec.owners[name]}' turns, and its velocities"
            raise InputError(f"{what} are along the body; command its effort, or use a chain of other joints")


def check_reference_limits(loops: Sequence[ControlLoop | None], spec: RigSpec, reading: Reading) -> None:
    """A limit that checks reference positions needs a controller that follows a position."""
    if None in loops:
        return  # the error is recorded already
    followed = followed_positions(loops)
    for row in (row for row in LIMITS if row.reference == "required"):
        for k, (name, joint) in enumerate(spec.joints.items()):
            for key in row.bound_keys:
                if np.isfinite(joint.limits[key]) and k not in followed:
                    what = f"no controller follows a position of joint '{name}'; remove its {row.key} limit"
                    reading.fail(("joints", name, "limits", key), what)


def followed_positions(loops: Sequence[ControlLoop | None]) -> set[int]:
    """The dofs that have a controller with a position reference."""
    return {int(k) for loop in loops if loop is not None and loop.needs_reference("position") for k in loop.index}


class HoldTrajectory:
    """The reference of a controller without a trajectory: the initial position, at rest."""

    end = 0.0

    def __init__(self, position: Array) -> None:
        """position: (n,), SI."""
        zeros = {name: np.zeros(len(position)) for name in ("velocity", "acceleration", "effort")}
        self._sample = {"position": position, **zeros}

    def sample(self, t: Numeric) -> dict[str, Numeric]:
        return dict(self._sample)
