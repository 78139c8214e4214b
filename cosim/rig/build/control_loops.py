"""The control loops of a rig: its controllers with their trajectories and fallbacks, checked against the mechanism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cosim.control.control_loop import ControlLoop
from cosim.errors import InputError, did_you_mean
from cosim.plant.plant import Plant
from cosim.rig.build.initial_state import turning
from cosim.rig.build.trajectory import HoldTrajectory, build_trajectory
from cosim.rig.reading.plugins import Plugin, attempt
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.controllers import ControllerSpec
from cosim.rig.sections.rig_spec import RigSpec
from cosim.types import COMMAND, FEEDBACK, REFERENCE, Controller, ControllerContext, Limits


def build_loops(spec: RigSpec, plant: Plant, limits: Limits, reading: Reading) -> list[ControlLoop | None]:
    """One loop per controller, in the order of the file; None after a mistake, noted in `reading`. limits: (nv,)."""
    return [_loop(k, controller, spec, plant, limits, reading) for k, controller in enumerate(spec.controllers)]


def _loop(
    number: int, controller: ControllerSpec, spec: RigSpec, plant: Plant, limits: Limits, reading: Reading
) -> ControlLoop | None:
    names = list(spec.joints)
    index = np.array([names.index(name) for name in controller.joints], dtype=int)
    start = plant.start_positions[index]
    context = ControllerContext(
        joints=controller.joints,
        index=index,
        model=plant.model,
        period=controller.period_ns * 1e-9,
        limits=limits.at(index),
        prescribed=~plant.free,
    )
    path, trajectory = ("controllers", number), HoldTrajectory(start)
    if controller.trajectory is not None:
        at = (*path, "trajectory")
        trajectory = build_trajectory(controller.trajectory, controller.joints, start, at, reading)

    def load(plugin: Plugin) -> Controller:
        block = plugin.module.load(plugin.params, context)
        check_signals(block, len(index), len(names))
        _check_positions(block, controller.joints, spec)
        return block

    def make() -> ControlLoop:
        block = load(controller.plugin)
        fallback = None if controller.fallback is None else load(controller.fallback)
        timing = (controller.phase, controller.priority, controller.deadline_ns)
        return ControlLoop(controller.name, block, index, controller.ticks, trajectory, *timing, fallback)

    return attempt(make, path, reading)


def _check_positions(block: Controller, joints: Sequence[str], spec: RigSpec) -> None:
    """Raises InputError where the rates of positions that a controller follows are not the velocities it sees."""
    for name in joints:
        if turning(spec, name) and {"position", "reference_position"} & set(block.inputs):
            what = f"the position of '{name}' cannot be followed: '{spec.owners[name]}' turns, and its velocities"
            raise InputError(f"{what} are along the body; command its effort, or use a chain of other joints")


def check_tracking(loops: Sequence[ControlLoop | None], spec: RigSpec, reading: Reading) -> None:
    """A limit of the tracking error needs a controller that follows a position."""
    if None in loops:
        return  # its mistake is noted
    tracked = {int(k) for loop in loops if loop is not None and loop.looks_at("position") for k in loop.index}
    for k, (name, joint) in enumerate(spec.joints.items()):
        if joint.tracking < np.inf and k not in tracked:
            what = f"no controller follows a position of joint '{name}'; take the limit of tracking out"
            reading.fail(("joints", name, "limits", "tracking"), what)


def check_signals(block: Any, n: int, nv: int) -> None:
    """Raises InputError where a controller of n joints declares other signals than a loop of a rig with nv dofs has."""
    missing = [name for name in ("inputs", "outputs", "params", "initial", "update") if not hasattr(block, name)]
    if missing:
        raise InputError(
            f"is a {type(block).__name__} without '{missing[0]}'; a controller has inputs, outputs, params,"
            " initial and update"
        )
    feedback = {name: (n,) for name in (*FEEDBACK, *REFERENCE)}
    known = feedback | {f"all_{name}": (nv,) for name in (*FEEDBACK, "acceleration")}
    for word, declared, wired in (
        ("input", block.inputs, known),
        ("output", block.outputs, dict.fromkeys(COMMAND, (n,))),
    ):
        if not isinstance(declared, Mapping):
            raise InputError(f"declares its {word}s as a {type(declared).__name__}; use joint_signals(names, n)")
        for name, signal in declared.items():
            if name not in wired:
                raise InputError(f"declares the {word} '{name}', which does not exist{did_you_mean(name, wired)}")
            if tuple(signal.shape) != wired[name]:
                raise InputError(f"declares the {word} '{name}' of shape {signal.shape}; it is {wired[name]}")
