"""What authors of controllers, actuators, trajectories, drivers, parts and laws import: the promised names.

Mathematics on arrays and symbols is in `ops`, filters in `filters`, units in `units`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cosim.core import filters, ops, units
from cosim.core.driver_contract import Connection, DeviceEmulator, Driver, DriverContext, HardwareDriver
from cosim.core.errors import InputError, RunError, SourceLocation
from cosim.core.types import (
    ACTUATOR_INPUTS,
    ACTUATOR_OUTPUTS,
    ALL,
    BRAKE,
    COMMAND,
    FEEDBACK,
    REFERENCE,
    SETPOINTS,
    Actuator,
    Array,
    ContinuousBlock,
    Controller,
    ControllerContext,
    DiscreteBlock,
    JointCommand,
    JointState,
    Limits,
    MechanismFunctions,
    MechanismModel,
    Numeric,
    PerJoint,
    SampledActuator,
    Signal,
    Signals,
    State,
    Trajectory,
    TrajectoryContext,
    joint_signals,
    param,
    params,
)

if TYPE_CHECKING:
    from cosim.mechanics.multibody.constraint_laws import ConstraintLaw, ForceLaw, ReactionSpec
    from cosim.mechanics.multibody.elastic.shape_functions import ShapeFunctions
    from cosim.mechanics.multibody.joints import GeneralMotion

__all__ = [
    "ACTUATOR_INPUTS",
    "ACTUATOR_OUTPUTS",
    "ALL",
    "BRAKE",
    "COMMAND",
    "FEEDBACK",
    "REFERENCE",
    "SETPOINTS",
    "Actuator",
    "Array",
    "Connection",
    "ConstraintLaw",
    "ContinuousBlock",
    "Controller",
    "ControllerContext",
    "DeviceEmulator",
    "DiscreteBlock",
    "Driver",
    "DriverContext",
    "ForceLaw",
    "GeneralMotion",
    "HardwareDriver",
    "InputError",
    "JointCommand",
    "JointState",
    "Limits",
    "MechanismFunctions",
    "MechanismModel",
    "Numeric",
    "PerJoint",
    "ReactionSpec",
    "RunError",
    "SampledActuator",
    "ShapeFunctions",
    "Signal",
    "Signals",
    "SourceLocation",
    "State",
    "Trajectory",
    "TrajectoryContext",
    "filters",
    "joint_signals",
    "ops",
    "param",
    "params",
    "units",
]

# laws and joints of users, loaded when they are asked for
_HOMES = {
    **dict.fromkeys(("ConstraintLaw", "ReactionSpec"), "cosim.mechanics.multibody.constraint_laws"),
    "ForceLaw": "cosim.mechanics.multibody.constraint_laws",
    "GeneralMotion": "cosim.mechanics.multibody.joints",
    "ShapeFunctions": "cosim.mechanics.multibody.elastic.shape_functions",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cosim.plugin' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)
