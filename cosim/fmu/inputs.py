"""Variables that the importer gives: efforts that act on joints from outside, beside those of their drives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cosim.errors import InputError, did_you_mean
from cosim.fmu.variables import UnitVariable
from cosim.rig.build.wired_rig import WiredRig
from cosim.units import JOINT_DIMENSIONS

EXTERNAL_EFFORT = "external_effort"
OPTION = "--input"


def with_inputs(rig: WiredRig, names: Sequence[str]) -> WiredRig:
    """The rig with places for these inputs in its ticks; names: `<joint>/external_effort`, or `*/external_effort` for
    all joints. Raises InputError for others."""
    dofs = tuple(dict.fromkeys(dof for name in names for dof in _dofs(rig, name)))
    if not dofs:
        return rig
    if rig.tick_model.coupling is not None:
        raise InputError("a rig with parts takes its efforts from them; take the option out", OPTION)
    model = replace(rig.tick_model, plant=replace(rig.plant, coupled=dofs))
    model.parameters[:] = rig.tick_model.parameters
    return rig.with_ticks(model)


def _dofs(rig: WiredRig, name: str) -> Sequence[str]:
    joint, _, what = name.rpartition("/")
    if what != EXTERNAL_EFFORT or not joint:
        example = f"{rig.joints[0]}/{EXTERNAL_EFFORT}"
        raise InputError(f"'{name}' cannot be an input; give <joint>/{EXTERNAL_EFFORT}, such as {example}", OPTION)
    if joint != "*" and joint not in rig.joints:
        raise InputError(f"there is no joint '{joint}'{did_you_mean(joint, rig.joints)}", OPTION)
    return rig.joints if joint == "*" else (joint,)


def inputs_of(rig: WiredRig) -> tuple[UnitVariable, ...]:
    """The inputs of a rig of `with_inputs`: an effort is constant until it is set again."""
    plant = rig.tick_model.plant
    if rig.tick_model.coupling is not None or not plant.coupled:
        return ()
    units = dict(zip(plant.model.dof_names, plant.model.dof_units, strict=True))
    region = rig.tick_model.layout.place("plant", "external", "coefficients")
    per_dof = region.shape[1]  # the first coefficient is the value
    return tuple(
        UnitVariable(
            f"{dof}/{EXTERNAL_EFFORT}",
            "input",
            JOINT_DIMENSIONS["joint effort"][units[dof] == "m"],
            "MEMORY",
            region.where.start + per_dof * k,
            about="acts on the joint beside its drive",
        )
        for k, dof in enumerate(plant.coupled)
    )
