"""Checks that the objects of plug-ins follow their contracts in `cosim.core.types`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cosim.core.compile.trace import origin
from cosim.core.errors import InputError, did_you_mean
from cosim.core.layout import leaves
from cosim.core.types import (
    ACTUATOR_INPUTS,
    ACTUATOR_OUTPUTS,
    ALL,
    COMMAND,
    FEEDBACK,
    REFERENCE,
    Actuator,
    Array,
    ContinuousBlock,
    DiscreteBlock,
    SharedActuator,
    Signal,
    Signals,
    Trajectory,
    TrajectoryContext,
    breaks_of,
    signals_of,
)
from cosim.rig.reading.plugins import Plugin, call_checked
from cosim.rig.reading.schema import KeyPath, Reading
from cosim.simulation.plant.breaks import jumps_at, motion_of

Shapes = Mapping[str, tuple[int, ...]]
BLOCK = ("inputs", "outputs", "params", "initial")
SAMPLE = ("position", "velocity", "acceleration", "effort")
NAME = re.compile(r"[A-Za-z_]\w*")  # of a signal of a controller


def load_actuator(plugin: Plugin, path: KeyPath, reading: Reading) -> Actuator | None:
    """The actuator of the section at `path`; None after an error, recorded in `reading`."""

    def make() -> Actuator:
        block = plugin.module.load(plugin.params)
        _check_members(block, "an actuator", (*BLOCK, "flow", "reflected_inertia", "positions"))
        _check_state(block, 0.0, 0.0)
        _check_signals("input", block.inputs, _shapes(ACTUATOR_INPUTS), "ACTUATOR_INPUTS")
        _check_signals("output", block.outputs, None, "ACTUATOR_OUTPUTS")
        if missing := [name for name in ACTUATOR_OUTPUTS if name not in block.outputs]:
            raise InputError(f"does not declare the output '{missing[0]}'; use ACTUATOR_OUTPUTS")
        return block

    return call_checked(make, path, reading)


def load_shared_actuator(
    plugin: Plugin, joints: Sequence[str], path: KeyPath, reading: Reading
) -> SharedActuator | None:
    """The drive of several joints of the section at `path`; None after an error, recorded in `reading`."""

    def make() -> SharedActuator:
        if not hasattr(plugin.module, "load_shared"):
            raise InputError(f"'{plugin.type}' is a drive of one joint; give it to a joint, or use a bond graph")
        block = plugin.module.load_shared(plugin.params, joints)
        _check_members(
            block, "an actuator", (*BLOCK, "flow", "reflected", "positions", "is_inertial", "by_acceleration")
        )
        return block

    return call_checked(make, path, reading)


def load_part(plugin: Plugin, path: KeyPath, reading: Reading) -> ContinuousBlock | DiscreteBlock | None:
    """The block of the part at `path`; None after an error, recorded in `reading`."""

    def make() -> ContinuousBlock | DiscreteBlock:
        block = plugin.module.load(plugin.params)
        _check_members(block, "a part", (*BLOCK, "initial"))
        if not (hasattr(block, "flow") or hasattr(block, "update")):
            raise InputError(f"is a {type(block).__name__} with neither 'flow' nor 'update'; a part has one of them")
        for word, declared in (("input", block.inputs), ("output", block.outputs)):
            _check_signals(word, declared, None, "a dict of Signal")
            for name, signal in declared.items():
                _check_part_signal(word, name, signal)
        _check_state(block)
        return block

    return call_checked(make, path, reading)


def _check_part_signal(word: str, name: object, signal: Any) -> None:
    """Raises InputError for an input or output of a part that cannot be coupled."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InputError(f"declares the {word} '{name}'; use letters, digits and '_'")
    if not isinstance(signal, Signal) or not isinstance(signal.unit, str):
        raise InputError(f"declares the {word} '{name}' as a {type(signal).__name__}; use Signal(shape, unit)")
    if len(signal.shape) > 1:
        raise InputError(f"declares the {word} '{name}' of shape {signal.shape}; use () or (n,)")


def load_trajectory(
    plugin: Plugin,
    joints: tuple[str, ...],
    start: Array,
    path: KeyPath,
    reading: Reading,
    context: TrajectoryContext | None = None,
) -> Trajectory | None:
    """The trajectory of n joints that starts at the positions `start` (n,); None after an error in the section at
    `path`, recorded in `reading`. context: None where the model is not known yet."""

    def make() -> Trajectory:
        planning = ()
        if getattr(plugin.module, "NEEDS_MODEL", False):
            if context is None:
                what = f"trajectory '{plugin.name}' is planned with the model of the mechanism"
                raise InputError(f"{what}; use it as the trajectory of a controller")
            planning = (context,)
        trajectory = plugin.module.load(plugin.params, joints, reading.folder, start, *planning)
        _check_members(trajectory, "a trajectory", ("end", "sample"))
        sample, n = trajectory.sample(0.0), len(joints)
        if not isinstance(sample, Mapping):
            every = f"{', '.join(SAMPLE[:-1])} and {SAMPLE[-1]}"
            raise InputError(f"sample returns a {type(sample).__name__}; return a dict of {every}")
        for name in SAMPLE:
            if name not in sample:
                raise InputError(f"sample returns no '{name}'; return {', '.join(SAMPLE[:-1])} and {SAMPLE[-1]}")
            if np.shape(sample[name]) != (n,):
                raise InputError(f"sample returns '{name}' of shape {np.shape(sample[name])}; it is {(n,)}")
        return with_options(plugin, trajectory, joints, reading, context)

    return call_checked(make, path, reading)


def load_given_motion(plugin: Plugin, name: str, start: Array, path: KeyPath, reading: Reading) -> Trajectory | None:
    """As `load_trajectory`, the motion of one coordinate that the mechanism follows exactly."""
    trajectory = load_trajectory(plugin, (name,), start, path, reading)
    if trajectory is None:
        return None

    def checked() -> Trajectory:
        times = breaks_of(trajectory)
        jumps, _ = jumps_at(times, motion_of(trajectory))
        if jumps.any():
            what = f"the position of '{name}' jumps at {times[jumps][0]:.6g} s, which no motion does"
            raise InputError(f"{what}; give a trajectory that is continuous")
        return trajectory

    return call_checked(checked, path, reading)


def with_options(
    plugin: Plugin,
    trajectory: Trajectory,
    joints: tuple[str, ...],
    reading: Reading,
    context: TrajectoryContext | None = None,
) -> Trajectory:
    """The trajectory of n joints with the options in its section, such as input shaping. Raises InputError."""
    for _, option in plugin.options:
        trajectory = option.around(trajectory, joints, reading.folder, context)
    return trajectory


def check_controller(block: Any, n: int, nv: int) -> None:
    """Raises InputError where a controller of n joints declares other signals than a loop of a rig with nv dofs has."""
    _check_members(block, "a controller", (*BLOCK, "update"))
    feedback = {name: (n,) for name in (*FEEDBACK, *REFERENCE)}
    known = feedback | dict.fromkeys(ALL, (nv,))
    _check_signals("input", block.inputs, known, "joint_signals(names, n)")
    _check_signals("output", block.outputs, dict.fromkeys(COMMAND, (n,)), "joint_signals(names, n)")
    _check_signals("signal", signals_of(block), None, "a dict of Signal")
    for name, signal in signals_of(block).items():
        _check_signal(name, signal, n)
    _check_state(block)


def _check_signal(name: object, signal: Any, n: int) -> None:
    """Raises InputError for a signal of a controller of n joints that cannot be recorded."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InputError(f"declares the signal '{name}'; use letters, digits and '_'")
    if name in COMMAND:
        raise InputError(f"declares the signal '{name}', which is an output; take it out of the signals")
    if not isinstance(signal, Signal):
        raise InputError(f"declares the signal '{name}' as a {type(signal).__name__}; use Signal(shape, unit)")
    if tuple(signal.shape) not in ((), (n,)):
        raise InputError(f"declares the signal '{name}' of shape {signal.shape}; it is {(n,)}, one per joint, or ()")
    if not isinstance(signal.unit, str):
        raise InputError(f"declares the signal '{name}' in the unit {signal.unit!r}; use a text such as 'joint effort'")


def _check_state(block: Any, *motion: float) -> None:
    """Raises InputError unless the initial state of a block is a dict of arrays of numbers, nested or not. motion:
    position and velocity of the joint of an actuator."""
    place = origin(block.initial)
    state = block.initial(*motion)
    if not isinstance(state, dict):
        raise InputError(f"initial returns a {type(state).__name__}; return a dict of arrays ({place})")
    for path, value in leaves(state):
        name = ".".join(path)
        if np.asarray(value).dtype.kind not in "biuf":
            raise InputError(
                f"initial returns '{name}' as a {type(value).__name__}; return an array of numbers ({place})"
            )
        if np.isnan(value).any():
            what = f"initial returns '{name}' with an element that is no number (NaN)"
            raise InputError(f"{what}; return numbers ({place})")


def _check_members(part: object, what: str, names: Sequence[str]) -> None:
    """Raises InputError when the part lacks one of these attributes."""
    if missing := [name for name in names if not hasattr(part, name)]:
        has = f"{', '.join(names[:-1])} and {names[-1]}"
        raise InputError(f"is a {type(part).__name__} without '{missing[0]}'; {what} has {has}")


def _check_signals(word: str, declared: object, known: Shapes | None, use: str) -> None:
    """Raises InputError for declared signals that are not a mapping or differ in name or shape from `known`.

    known: None for any; use: the correct declaration.
    """
    if not isinstance(declared, Mapping):
        raise InputError(f"declares its {word}s as a {type(declared).__name__}; use {use}")
    for name, signal in declared.items() if known is not None else ():
        if known is not None and name not in known:
            raise InputError(f"declares the {word} '{name}', which does not exist{did_you_mean(name, known)}")
        if known is not None and tuple(signal.shape) != known[name]:
            raise InputError(f"declares the {word} '{name}' of shape {signal.shape}; it is {known[name]}")


def _shapes(signals: Signals) -> Shapes:
    return {name: signal.shape for name, signal in signals.items()}
