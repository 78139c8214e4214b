"""What feedback commanded in a run: the commanded effort minus what its controllers command without an error."""

from __future__ import annotations

import numpy as np

from cosim.control.control_loop import ControlLoop
from cosim.control.feedforward_table import FeedforwardTrajectory
from cosim.core.compile import ArrayPort, compile
from cosim.core.errors import CompileError, InputError
from cosim.core.types import ALL, Array, Numeric, requested_effort
from cosim.rig.rig import Rig
from cosim.rig.run.run import Run

_MEASURED = tuple(name.removeprefix("all_") for name in ALL if name != "all_locked")


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
    for name in (name for name in names if f"{name}/{what}" not in run):
        raise InputError(f"the run has no signal '{name}/{what}'; learn from a whole run of this rig")
    return np.stack([run[f"{name}/{what}"] for name in names], axis=1)
