"""Commands that the mode of a drive does not use: the table of modes against what a controller commands.

| mode of the drive | the command that it follows | without it | also |
|---|---|---|---|
| `velocity` | velocity | it stands still | a position that only `kp` would follow drifts |
| `position` | position | it is held at 0 | |
| `effort` | effort, with the gains | | |

What a command depends on is found in its equations. Of a controller in plain Python nothing is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from cosim.core import ops
from cosim.core.compile.trace import symbols
from cosim.core.layout import Layout
from cosim.core.types import COMMAND, Array, Controller, Numeric

if TYPE_CHECKING:
    from cosim.rig.wiring.wired_rig import WiredRig

OF_MODE = {"velocity": "it stands still", "position": "it is held at 0"}
FIX = "use a controller, or an interface, that commands it, or another mode"
_NUMBER = re.compile(r"_[0-9]+$")  # of an element of a symbol
POSITIONS = ("position", "reference_position")  # inputs


def modes_of_drives(rig: WiredRig) -> dict[str, str]:
    """Joint -> mode of its drive, real or simulated, of those that close a loop themselves."""
    actuators = rig.plant.actuators
    simulated = {name: str(getattr(actuators[name], "mode", "effort")) for name in rig.plant.drive_controlled}
    return simulated | {name: spec.mode for spec in rig.spec.drivers for name in spec.joints if spec.mode != "effort"}


def commands_without_effect(rig: WiredRig) -> Iterator[str]:
    """A line for each joint whose drive does not follow what its controller commands."""
    modes = modes_of_drives(rig)
    for loop in rig.tick_model.loops if modes else ():
        joints = {i: rig.joints[k] for i, k in enumerate(loop.index) if rig.joints[k] in modes}
        traceable = joints and loop.name not in rig.tick_model.untraceable  # others may keep hidden state
        command = equations_of(loop.block) if traceable else None
        if command is None:
            continue
        for i, name in joints.items():
            mode, begin = modes[name], f"controller '{loop.name}' commands joint '{name}'"
            if _is_zero(command[mode][i]) and (mode == "velocity" or any(not _is_zero(c[i]) for c in command.values())):
                yield f"{begin} no {mode}, which its drive in mode {mode} follows: {OF_MODE[mode]}; {FIX}"
            elif mode == "velocity" and not _is_zero(command["kp"][i]) and not _uses(command[mode][i], POSITIONS):
                what = "a stiffness kp, without effect on its drive in mode velocity: errors of the position stay"
                yield f"{begin} with {what}; use another mode, or interface: velocity"


def equations_of(block: Controller) -> Mapping[str, Array] | None:
    """The command of a controller by COMMAND, (n,) each, as equations of its inputs; None of one in plain Python."""
    layout = Layout(block.initial())
    t, x = symbols("t", ())[1], layout.unpack(symbols("x", (layout.size,))[1])
    u = {name: symbols(name, signal.shape)[1] for name, signal in block.inputs.items()}
    with suppress(Exception):  # code of a user may raise anything
        _, outputs = block.update(t, block.params, x, u)
        return {name: np.ravel(ops.array(outputs[name])) for name in COMMAND}
    return None


def _is_zero(value: Numeric) -> bool:
    return (not ops.is_symbolic(value) and float(value) == 0.0) or ops.is_zero(value)


def _uses(value: Numeric, inputs: tuple[str, ...]) -> bool:
    """Whether an equation uses one of these inputs, or a state, which may remember one."""
    if not ops.is_symbolic(value):
        return False
    import casadi

    names = {_NUMBER.sub("", symbol.name()) for symbol in casadi.symvar(casadi.SX(value))}
    return bool(names & {*inputs, "x"})
