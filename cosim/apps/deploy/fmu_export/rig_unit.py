"""A rig as a unit: its whole tick, with places for what the importer gives."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.apps.deploy.exportable import check_rig
from cosim.apps.deploy.fmu_export.dependencies import inputs_of_signals
from cosim.apps.deploy.fmu_export.inputs import parametrised
from cosim.apps.deploy.fmu_export.model_description import UnitOutline
from cosim.apps.deploy.fmu_export.rig_code import rig_code
from cosim.apps.deploy.fmu_export.rig_data import rig_data
from cosim.apps.deploy.fmu_export.unit import FMU, UnitContent
from cosim.apps.deploy.fmu_export.variables import variables_of
from cosim.apps.deploy.tick_code import observe_routine
from cosim.rig.wiring.wired_rig import WiredRig


def unit_of_rig(rig: WiredRig, inputs: Sequence[str]) -> UnitContent:
    """inputs: see `inputs.parametrised`. Raises InputError for a rig whose ticks are not machine code."""
    check_rig(rig, FMU)
    rig, given, of_parts, references = parametrised(rig, inputs)
    observe = observe_routine(rig.tick_model)
    variables = variables_of(rig, given, of_parts, inputs_of_signals(rig.tick_model, observe, given))
    code, data = rig_code(rig.tick_model, observe), rig_data(rig.tick_model, variables, references)
    return UnitContent("rig", _outline(rig), variables, code, data)


def _outline(rig: WiredRig) -> UnitOutline:
    spec, step = rig.spec, rig.tick_model.step
    return UnitOutline(
        spec.name,
        spec.description,
        step,
        spec.schedule.duration_ns * 1e-9,
        f"Steps are whole multiples of {step:g} s, the tick of the rig. A stop by the guard ends the simulation with an"
        " error and its reason.",
        step,
    )
