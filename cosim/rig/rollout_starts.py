"""Initial states of many runs of one rig: positions and velocities of its joints by signal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.core.errors import InputError, InputErrors, did_you_mean
from cosim.core.types import Array
from cosim.rig.wiring.initial_state import is_spherical_dof
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.plant.plant import Plant
from cosim.simulation.tick.tick_model import TickModel


def read_starts(rig: WiredRig, model: TickModel, initial: Mapping[str, Any]) -> Starts | None:
    """The memories at t = 0 of runs that start elsewhere than the rig."""
    errors, values = list[InputError](), dict[str, Array]()
    known = {f"{name}/{what}": None for name in rig.joints for what in ("position", "velocity")}
    for name, value in initial.items():
        try:
            array = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            array = np.zeros(())
        joint, _, quantity = name.rpartition("/")
        what = ""
        if name not in known:
            what = f"there is no such initial value{did_you_mean(name, list(known))}"
        elif joint in rig.plant.prescribed:
            what = f"joint '{joint}' is prescribed and starts on its trajectory; leave it out"
        elif quantity == "position" and is_spherical_dof(rig.spec, joint):
            what = f"'{rig.spec.owners[joint]}' turns: its position is a quaternion; give its velocities only"
        elif array.ndim != 1 or not array.size or not np.isfinite(array).all():
            what = f"give an array (k,) of finite numbers in SI for k runs, got {_described(value)}"
        if what:
            errors.append(InputError(what, f"initial '{name}'"))
        values[name] = array
    if len({len(array) for array in values.values() if array.ndim}) > 1 and not errors:
        counts = " and ".join(f"{len(array)} for '{name}'" for name, array in values.items())
        errors.append(InputError(f"give as many values for each, got {counts}", "initial"))
    if errors:
        raise InputErrors(errors)
    return Starts(model, rig.plant, values) if values else None


def _described(value: object) -> str:
    shape = np.shape(value) if isinstance(value, np.ndarray | list | tuple) else ()
    return f"an array of shape {shape}" if shape else repr(value)


@dataclass
class Starts:
    """The memory at t = 0 of each run. plant: with the numbers of the rig; values: positions and velocities by signal,
    (k,)."""

    model: TickModel
    plant: Plant
    values: Mapping[str, Array]

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def __call__(self, k: int) -> Array:
        """(size,) Raises InputError for a start at which loops cannot be closed."""
        plant, model = self.plant, self.plant.full_model
        q, v = np.array(plant.position, dtype=float), np.array(plant.velocity, dtype=float)
        kept_q, kept_v = (kept.copy() for kept in plant.kept)
        for name, values in self.values.items():
            joint, _, what = name.rpartition("/")
            dof = model.dof_index(joint)
            if what == "position":
                q[model.coordinate_names.index(joint)], kept_q[dof] = values[k], True
            else:
                v[dof], kept_v[dof] = values[k], True
        try:
            return self.model.memory_from(plant.starting_at(q, v, (kept_q, kept_v)))
        except InputError as error:
            raise InputError(f"{error.what} (run {k})", "initial") from None
