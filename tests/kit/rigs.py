"""Small rigs, written as text into a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from cosim import Rig, load_rig

# a controller of one joint: `lines` set its effort from q, v and n, the number of its calls so far
PUSH = """
import math
import numpy as np
from cosim.plugin import ops
from cosim.plugin import COMMAND, FEEDBACK, joint_signals, param, params

@params
class Params:
    size: float = param(default=1.0)

class Push:
    def __init__(self, params, context):
        self.params, self.seen = params, []
        self.inputs = joint_signals(FEEDBACK, 1)
        self.outputs = joint_signals(COMMAND, 1)

    def initial(self):
        return {{"n": np.zeros(1)}}

    def update(self, t, p, x, u):
        n, q, v = x["n"], u["position"], u["velocity"]
        {lines}
        rest = ops.zeros(1)
        command = {{"position": rest, "velocity": rest, "effort": effort, "kp": rest, "kd": rest}}
        return {{"n": n + 1.0}}, command

def load(params, context):
    return Push(params, context)
"""


def rig_in(folder: Path, text: str, *overrides: str, interpret: bool = False, **files: str) -> Rig:
    """The rig of a text, written to `rig.yaml` in the folder; files: name -> text of the Python file beside it."""
    (folder / "rig.yaml").write_text(dedent(text))
    for name, source in files.items():
        (folder / f"{name}.py").write_text(source)
    return load_rig(folder / "rig.yaml", overrides, interpret)


def signal_units(rig: Rig) -> dict[str, str]:
    """Signal -> its unit."""
    return {name: signal.unit for name, signal in rig.tick_model.signals.declared.items()}


def controller(lines: str) -> str:
    """The controller PUSH whose effort these lines of Python set."""
    return PUSH.format(lines=lines.replace("\n", "\n        "))


@pytest.fixture
def rig_of(tmp_path: Path) -> Callable[..., Rig]:
    """`rig_in` a folder of its own; push: lines of the controller `push.py` beside the rig."""

    def load(text: str, *overrides: str, push: str = "effort = ops.array([p.size])", interpret: bool = False) -> Rig:
        return rig_in(tmp_path, text, *overrides, interpret=interpret, push=controller(push))

    return load
