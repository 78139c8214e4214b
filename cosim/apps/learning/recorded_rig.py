"""Whether a run is of a rig: what is learned from a run holds for its mechanism, controllers and trajectories only."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import yaml

from cosim.apps.learning.feedback import learning_loops
from cosim.core.errors import InputError
from cosim.output.recording_index import recordings_of
from cosim.rig.rig import Rig
from cosim.rig.rig_files import files_of
from cosim.rig.run.comparison import flattened
from cosim.rig.run.run import Run

SECTIONS = ("mechanism", "controllers")
FIX = "give the rig as it ran, with its --set and --overlay"
SAME = 1e-6  # of a reference, as a fraction of its travel
ON_HARDWARE = 0.05  # … of real motors, which begin where they are


def check_run(rig: Rig, run: Run, place: str = "the run") -> None:
    """Raises InputError for a run with other joints, parameters of controllers, or references."""
    if run.joints != rig.joints:
        raise InputError(f"is of '{run.rig.name}' with the joints {', '.join(run.joints)}; {FIX}", place)
    _refuse_other(run.rig.parameters, rig.parameters, place, rig.spec.path.name)
    tolerance = ON_HARDWARE if run.rig.hardware or rig.hardware else SAME
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
