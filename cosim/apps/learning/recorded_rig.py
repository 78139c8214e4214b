"""What a run shows of its rig: whether it is of this one, and what its feedback commanded.

What is learned from a run holds for its mechanism, controllers and trajectories only. Feedback is the commanded effort
minus what the controllers command without an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import yaml

from cosim.control.control_loop import ControlLoop
from cosim.control.feedforward_table import FeedforwardTrajectory
from cosim.core.compile import ArrayPort, compile
from cosim.core.errors import CompileError, InputError
from cosim.core.recordings.index import recordings_of
from cosim.core.types import ALL, Array, Numeric, requested_effort
from cosim.rig.rig import Rig
from cosim.rig.rig_files import files_of
from cosim.rig.run.comparison import flattened
from cosim.rig.run.run import Run
from cosim.simulation.tick.signals import reported_effort

SECTIONS = ("mechanism", "controllers")
FIX = "give the rig as it ran, with its --set and --overlay"
REFERENCE_TOLERANCE = 1e-6  # of a reference, as a fraction of its travel
ON_HARDWARE = 0.05  # … of real motors, which begin where they are
_MEASURED = tuple(name.removeprefix("all_") for name in ALL if name != "all_locked")


def check_run(rig: Rig, run: Run, place: str = "the run") -> None:
    """Raises InputError for a run with other joints, parameters of controllers, or references."""
    if run.joints != rig.joints:
        raise InputError(f"is of '{run.rig.name}' with the joints {', '.join(run.joints)}; {FIX}", place)
    _refuse_other(run.rig.parameters, rig.parameters, place, rig.spec.path.name)
    tolerance = ON_HARDWARE if run.rig.hardware or rig.hardware else REFERENCE_TOLERANCE
    for loop in learning_loops(rig):
        expected = np.array([loop.trajectory.sample(float(t))["position"] for t in run.t])
        for k, name in enumerate(rig.plant.model.dof_names[j] for j in loop.index):
            signal = f"{name}/reference_position"
            if signal not in run:
                continue  # what lacks is said where it is needed
            away = float(np.sqrt(np.mean((run[signal] - expected[:, k]) ** 2)))
            if away > tolerance * max(float(np.ptp(expected[:, k])), 1e-3):
                what = f"has another trajectory of '{name}' than {rig.spec.path.name}, {away:.3g} rms away"
                raise InputError(f"{what}; {FIX}", place)


def check_recording(rig: Rig, path: Path) -> None:
    """Raises InputError for a recording of a rig with another mechanism, other controllers, or other files of them."""
    if path.suffix == ".npz":
        return  # has no files
    index = recordings_of(path)[0]
    if "as_run" not in index.metadata:
        return
    recorded, present = index.files(), files_of(rig)
    if (as_run := index.metadata["as_run"]) not in recorded:
        raise InputError(f"lacks the file '{as_run}' of its rig; record the run again", str(path))
    theirs, ours = _sections(recorded[as_run]), _sections(present.contents[present.as_run])
    _refuse_other(theirs, ours, str(path), rig.spec.path.name)
    own = {index.metadata.get("rig_file"), as_run}
    others = {PurePosixPath(name).name: content for name, content in recorded.items() if name not in own}
    for name, content in present.contents.items():
        other = others.get(PurePosixPath(name).name)
        if other is not None and _bytes(other) != _bytes(content):
            raise InputError(f"was recorded with another file {name}; {FIX}", str(path))


def _sections(text: bytes | str) -> dict[str, Any]:
    data = yaml.safe_load(text)
    return flattened({key: data.get(key) for key in SECTIONS})


def _bytes(content: bytes | str) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _refuse_other(recorded: Mapping[str, Any], present: Mapping[str, Any], place: str, name: str) -> None:
    """Raises InputError with the first value that differs."""
    other = [key for key in dict.fromkeys([*recorded, *present]) if recorded.get(key) != present.get(key)]
    if other:
        key = other[0]
        first, second = (_shown(values.get(key)) for values in (recorded, present))
        more = f", and {len(other) - 1} more differ" if len(other) > 1 else ""
        raise InputError(f"is of another rig: {key} is {first} there and {second} in {name}{more}; {FIX}", place)


def _shown(value: Any) -> str:
    if value is None:
        return "not given"
    if isinstance(value, list | tuple) and len(value) == 1:
        return _shown(value[0])
    return f"{value:g}" if isinstance(value, float) else str(value)


def learning_loops(rig: Rig) -> list[ControlLoop]:
    """The control loops that follow a position of a trajectory. Raises InputError if there are none."""
    with_trajectory = {spec.name for spec in rig.spec.controllers if spec.trajectory is not None}
    loops = (loop for loop in rig.tick_model.loops if loop.name in with_trajectory)
    found = [loop for loop in loops if loop.needs_reference("position")]
    if not found:
        raise InputError("no controller follows a trajectory, so there is nothing to learn", str(rig.spec.path))
    return found


def feedforward_in(loop: ControlLoop, t: Array) -> Array:
    """(k, n) the efforts of the feedforward table of a loop, 0 without one."""
    if isinstance(loop.trajectory, FeedforwardTrajectory):
        return np.array([loop.trajectory.table(float(time))[0] for time in t])
    return np.zeros((len(t), len(loop.index)))


def feedback_effort(rig: Rig, loop: ControlLoop, run: Run) -> Array:
    """(k, n) at the ticks of the run. Raises InputError for a controller in Python."""
    names = np.array(rig.plant.model.dof_names)
    commanded = _signals(run, names[loop.index], "command_effort")
    return commanded - _without_error(rig, loop, run, names)


def _without_error(rig: Rig, loop: ControlLoop, run: Run, names: Array) -> Array:
    """(k, n) what the controller commands where its joints are measured on their references."""
    k, nv, n, block = len(run.t), len(names), len(loop.index), loop.block
    reference = {f"reference_{what}": np.zeros((k, n)) for what in ("position", "velocity", "acceleration", "effort")}
    for what in ("position", "velocity", "acceleration"):
        reference[f"reference_{what}"] = _signals(run, names[loop.index], f"reference_{what}")
    reference["reference_effort"] = np.array([loop.trajectory.sample(float(t))["effort"] for t in run.t])
    whole = {f"all_{what}": _signals(run, names, what) for what in _MEASURED}
    whole["all_acceleration"] = np.where(rig.plant.unprescribed, 0.0, whole["all_acceleration"])
    for what in ("position", "velocity"):
        whole[f"all_{what}"][:, loop.index] = reference[f"reference_{what}"]
    given = reference | whole

    def command(t: Numeric, *arrays: Numeric) -> Numeric:
        u = dict(zip(given, arrays, strict=True)) | {"all_locked": np.zeros(nv)}
        at = {"position": u["reference_position"], "velocity": u["reference_velocity"]}
        u |= at | {"effort": u["all_effort"][loop.index]}
        _, y = block.update(t, block.params, block.initial(), {name: u[name] for name in block.inputs})
        return requested_effort(y, at)

    ports = [ArrayPort("t", ()), *(ArrayPort(name, array.shape[1:]) for name, array in given.items())]
    try:
        return compile(command, ports, "without_error", interpret=False)(run.t, *given.values())
    except CompileError:
        raise InputError(f"controller '{loop.name}' runs in Python; learning takes controllers that compile") from None


def error_of(run: Run, names: Array) -> Array:
    """(k, n) reference minus measured position."""
    return _signals(run, names, "reference_position") - _signals(run, names, "position")


def _signals(run: Run, names: Array, what: str) -> Array:
    """(k, n) a signal of each of these dofs. Raises InputError for one that the run does not have."""
    signals = [reported_effort(name, run.signals) if what == "effort" else f"{name}/{what}" for name in names]
    for signal in (signal for signal in signals if signal not in run):
        raise InputError(f"the run has no signal '{signal}'; learn from a whole run of this rig")
    return np.stack([run[signal] for signal in signals], axis=1)
