"""The drives of real joints, simulated beside them: current-controlled, as drives with a protocol are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cosim.core.types import Actuator
from cosim.mechanics.integrators.methods import INTEGRATORS
from cosim.rig.reading.contracts import load_actuator
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.rig_spec import RigSpec
from cosim.rig.wiring.emulated_plant import current_controlled, needed_substeps


def twins_of(spec: RigSpec, real: Iterable[str], reading: Reading) -> dict[str, Actuator]:
    """By real joint that has an actuator in the rig; none without `guard.shadow`."""
    if spec.guard.shadow is None:
        return {}
    twins = {}
    for name in real:
        drive = current_controlled(spec.joints[name]).actuator
        twin = None if drive is None else load_actuator(drive, ("joints", name, "actuator"), reading)
        if twin is not None:
            twins[name] = twin
    return twins


def with_twins(spec: RigSpec, twins: Iterable[str]) -> RigSpec:
    """The rig with the substeps that the twins of these joints need. Raises InputErrors at one that is too fast."""
    schedule = spec.schedule
    if INTEGRATORS[schedule.integrator].implicit or schedule.adaptive:
        return spec
    substeps = max(schedule.substeps, needed_substeps(spec, twins, schedule.step_ns))
    return replace(spec, schedule=replace(schedule, substeps=substeps))
