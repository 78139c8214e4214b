"""The control loops of a rig: its controllers with their trajectories and fallbacks, checked against the mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from cosim.control.control_loop import ControlLoop
from cosim.control.controller_wrappers import (
    ExcitedController,
    FilteredController,
    GainSchedule,
    ScheduledController,
    Sections,
    at_points,
)
from cosim.control.elastic_modes import ModelledModes
from cosim.control.limits import LIMITS
from cosim.core.errors import InputError, SectionError
from cosim.core.types import Array, Controller, ControllerContext, Limits, Numeric, Parameters, Trajectory, declared
from cosim.rig.reading.contracts import check_controller, load_trajectory
from cosim.rig.reading.plugins import Plugin, call_checked
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.controllers import ControllerSpec
from cosim.rig.sections.filters import check_filters, sections_of
from cosim.rig.sections.rig_spec import RigSpec
from cosim.rig.wiring.driver_context import drive_controlled
from cosim.rig.wiring.initial_state import is_spherical_dof
from cosim.rig.wiring.prescribed_motion import trajectory_context
from cosim.simulation.plant.plant import Plant


def build_loops(
    spec: RigSpec, plant: Plant, limits: Limits, reading: Reading, nominal: Plant | None = None
) -> list[ControlLoop | None]:
    """One loop per controller, in the order of the file; None after an error, recorded in `reading`. limits: (nv,);
    nominal: the plant with numbers, where some of `plant` are inputs of the code."""
    found = enumerate(spec.controllers)
    return [_loop(k, controller, spec, plant, limits, reading, nominal) for k, controller in found]


def _loop(
    number: int,
    controller: ControllerSpec,
    spec: RigSpec,
    plant: Plant,
    limits: Limits,
    reading: Reading,
    nominal: Plant | None,
) -> ControlLoop | None:
    context = controller_context(controller, spec, plant, limits, None, nominal)
    index = context.index
    start = plant.start_positions[index]
    path, plugin = ("controllers", number), controller.trajectory
    trajectory: Trajectory | None = None
    if plugin is not None:
        known = nominal or plant  # a trajectory is planned with the numbers of the rig
        planning = trajectory_context(known, context.numeric_model, index, context.limits)
        trajectory = load_trajectory(plugin, controller.joints, start, (*path, "trajectory"), reading, planning)
    reference = trajectory or HoldTrajectory(start)
    context = replace(context, trajectory=reference)
    schedules = gain_schedules(controller, spec)
    excited = declared(reference, "is_excitation", False)

    def load(plugin: Plugin, schedules: Sequence[GainSchedule] = ()) -> Controller:
        block, *_ = (plugin.module.load(params, context) for params in at_points(plugin.params, schedules))
        check_controller(block, len(index), len(spec.joints))
        _check_positions(block, controller.joints, spec)
        if has_modelled_modes(block, plugin, controller, context):
            block = ModelledModes(block, context)
        if schedules:
            block = ScheduledController(block, schedules, len(spec.joints))
        if controller.filters:
            block = FilteredController(block, *_filters(controller, context), len(index))
        return ExcitedController(block, len(index)) if excited else block

    def make() -> ControlLoop:
        block = load(controller.plugin, schedules)
        fallback = None if controller.fallback is None else load(controller.fallback)
        timing = (controller.phase, controller.priority, controller.deadline_ns)
        return ControlLoop(
            controller.name, block, index, controller.ticks, reference, *timing, fallback, plant.modes.locks
        )

    return call_checked(make, path, reading)


def has_modelled_modes(block: Controller, plugin: Plugin, spec: ControllerSpec, context: ControllerContext) -> bool:
    """Whether a controller has the modes of elastic links from the model. Raises SectionError where `modes` of the
    controller has no effect, or is against modes that it feeds back."""
    model = context.numeric_model
    elastic = [model.dof_names[k] for k in model.elastic_dofs]
    if spec.modes is not None and not elastic:
        raise SectionError("the mechanism has no elastic links; take it out", ("modes",))
    reads = {"all_position", "all_velocity"} & set(block.inputs)
    if spec.modes is not None and not reads:
        raise SectionError("the controller does not use the whole mechanism; take it out", ("modes",))
    fed_back = [name for name in elastic if name in (getattr(plugin.params, "passive", None) or {})]
    if spec.modes == "reference" and fed_back:
        what = f"the controller feeds '{fed_back[0]}' back, which is in its 'passive' joints"
        raise SectionError(f"{what}; use modes: measured", ("modes",))
    return bool(elastic and reads) and spec.modes != "measured" and not fed_back


def gain_schedules(controller: ControllerSpec, spec: RigSpec) -> list[GainSchedule]:
    """The schedules of the parameters of a controller."""
    names = list(spec.joints)
    return [
        GainSchedule(one.field, f"all_{one.interface}", names.index(one.dof), one.points, np.array(one.rows))
        for one in controller.schedules
    ]


def _filters(controller: ControllerSpec, context: ControllerContext) -> tuple[list[Parameters], Sections]:
    """(parameters of the filters of a controller, what makes sections of them). Raises InputErrors for frequencies that
    are too high, and SectionError for joints whose drives take no effort."""
    for number, spec in enumerate(controller.filters):
        for name in spec.joints:
            if name in context.drive_controlled:
                what = (
                    f"the drive of joint '{name}' closes a loop of its own, which a filter of the effort cannot reach"
                )
                fix = "use mode: effort of the drive, or take the filter out"
                raise SectionError(f"{what}; {fix}", ("filters", number))
    check_filters(controller.filters, context.period)
    sections = partial(sections_of, controller.filters, len(context.joints), context.period)
    return [one.params for one in controller.filters], sections


def controller_context(
    controller: ControllerSpec,
    spec: RigSpec,
    plant: Plant,
    limits: Limits,
    trajectory: Trajectory | None,
    nominal: Plant | None = None,
) -> ControllerContext:
    """What a controller is loaded with. limits, nominal: as of `build_loops`."""
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
        start=plant.start_positions,
        nominal=nominal and nominal.controller_model,
        trajectory=trajectory,
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
